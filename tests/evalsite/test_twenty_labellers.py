"""Twenty people label one set at once, and one of them is removed half way."""

from __future__ import annotations

import threading
from collections import Counter

import pytest
from django.db import connection
from django.utils import timezone

from evalsite.after_label import label_and_decide, seat_of
from reviews.models import CalibrationItem, CalibrationSet, Label, Verdict
from reviews.services.labels import wants_labels
from reviews.services.seats import LabelDeniedError, NoSeat, NoSeatKind
from tests.support.cast import Cast
from tests.support.labels import blind_set, reviewer_named
from traces.core.records import VerdictValue
from traces.models import Member, TrialDisposition, User

N_PEOPLE, N_ITEMS, LABELS_EACH = 20, 100, 2
LEAVES_AFTER = N_ITEMS  # labels: half of all


class Bench:
    """The people at work, and what each of them was told last."""

    def __init__(self, of: CalibrationSet, leaver: User) -> None:
        self.of, self.leaver = of, leaver
        self.lock = threading.Lock()
        self.n_given = 0
        self.has_left, self.pause = threading.Event(), threading.Event()
        self.answers: dict[str, NoSeat | str] = {}
        self.errors: list[BaseException] = []

    def work(self, by: User) -> None:
        """Take what is offered and label it until nothing is."""
        try:
            self.answers[by.username] = self._label_all(by)
        except BaseException as error:  # noqa: BLE001 - shown by the test
            self.errors.append(error)
        finally:
            connection.close()

    def _label_all(self, by: User) -> NoSeat | str:
        while True:
            now = timezone.now()
            found = seat_of(self.of, by=by, now=now)
            if isinstance(found, NoSeat):
                if found.kind is NoSeatKind.RESERVED:
                    self.pause.wait(0.02)
                    continue
                if found.kind is NoSeatKind.DONE and wants_labels(self.of):
                    raise AssertionError("the queue was called empty and was not")
                return found
            if by == self.leaver and self.n_given >= LEAVES_AFTER:
                self._leave()
            try:
                label_and_decide(
                    found.item,
                    value=VerdictValue.PASS,
                    reason=f"{by.username} looked.",
                    steps=(),
                    by=by,
                    now=timezone.now(),
                )
            except LabelDeniedError as error:
                return str(error)
            with self.lock:
                self.n_given += 1

    def _leave(self) -> None:
        """The account is removed with an item in hand."""
        User.objects.filter(pk=self.leaver.pk).update(is_active=False)
        Member.objects.filter(user=self.leaver).delete()
        self.has_left.set()


@pytest.mark.django_db(transaction=True)
def test_twenty_people_label_every_item_twice_and_nothing_is_lost(cast: Cast) -> None:
    of = blind_set(cast, N_ITEMS)
    people = [reviewer_named(cast, f"labeller-{n:02}") for n in range(N_PEOPLE)]
    bench = Bench(of, leaver=people[7])
    threads = [threading.Thread(target=bench.work, args=(by,)) for by in people]

    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=600)

    assert bench.errors == []
    assert bench.has_left.is_set()
    labels = list(Label.objects.values_list("item", "by", "round"))
    assert len(labels) == N_ITEMS * LABELS_EACH
    assert len({(item, by) for item, by, _ in labels}) == len(labels)
    assert Counter(item for item, _, _ in labels) == dict.fromkeys(
        CalibrationItem.objects.values_list("pk", flat=True), LABELS_EACH
    )
    assert Verdict.objects.filter(label__isnull=False).count() == len(labels)
    settled = CalibrationItem.objects.filter(settled_at__isnull=False)
    assert Counter(settled.values_list("consensus", "n_needed")) == {("pass", 2): N_ITEMS}
    of.refresh_from_db()
    assert of.completed_at is not None
    last_word = {
        name: answer.kind if isinstance(answer, NoSeat) else "denied"
        for name, answer in bench.answers.items()
    }
    assert len(last_word) == N_PEOPLE
    assert last_word.pop(people[7].username) == "denied"
    assert set(last_word.values()) <= {NoSeatKind.DONE, NoSeatKind.NOT_FOR_YOU}
    assert NoSeatKind.DONE in last_word.values()
    assert TrialDisposition.objects.filter(value="pass").count() == N_ITEMS
