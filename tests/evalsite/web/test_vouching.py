from __future__ import annotations

from html import unescape

import pytest
from django.db import DatabaseError, transaction
from django.test import Client

from reviews.models import Flag, FlagClosing, Vouch
from reviews.permissions.vouching import BROUGHT_IT, NOT_A_REVIEWER
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import System, Trial, TrialDisposition

pytestmark = pytest.mark.django_db


def said(value: str, grader: str = "ann") -> dict[str, object]:
    return verdict(grader=grader, kind="human", criterion="truthful", verdict=value)


def brought(system: System, *values: str, first: int = 0, grader: str = "ann") -> list[Trial]:
    """Trials whose only verdict is one of a person outside, in one upload."""
    records = [record("t1", first + n, verdicts=[said(v, grader)]) for n, v in enumerate(values)]
    ingest(system, records)
    labels = [str(first + n) for n in range(len(values))]
    return list(Trial.objects.filter(system=system, label__in=labels).order_by("pk"))


def disposition(trial: Trial) -> str:
    return TrialDisposition.objects.get(trial=trial).value


def test_verdicts_count_once_a_reviewer_vouched_for_them(client: Client, cast: Cast) -> None:
    first, second = brought(cast.system, "pass", "fail")
    here = f"{root(cast.system)}vouching/"
    page = visit(client, cast.reviewer, here)
    (line,) = page.rows
    before = [disposition(first), disposition(second)]
    chosen = visit(client, cast.reviewer, here, group=line.key)
    answer = client.post(f"{here}vouch", {"group": line.key, "reason": "I asked ann."}, follow=True)

    assert (line.grader, line.criterion) == ("ann", "truthful")
    assert line.counts == "2 verdicts on 2 trials: 1 pass, 1 fail"
    assert (line.state.label, line.is_waiting) == ("waits", True)
    assert [each.value.label for each in chosen.verdicts] == ["pass", "fail"]
    assert before == ["unresolved", "unresolved"]
    assert [disposition(first), disposition(second)] == ["pass", "fail"]
    assert "You vouched for them: they count now, and 2 trials are decided anew." in (
        answer.content.decode()
    )
    (after,) = answer.context["page"].rows
    assert (after.state.label, after.note.startswith("reviewer, ")) == ("vouched for", True)
    assert Vouch.objects.filter(by=cast.reviewer, reason="I asked ann.").count() == 2
    assert not Flag.objects.filter(code="imported-human-verdict", closing=None).exists()
    assert {row.reason for row in FlagClosing.objects.all()} == {"Vouched for: I asked ann."}


def test_a_vouch_stands_for_ever_and_once(client: Client, cast: Cast) -> None:
    (trial,) = brought(cast.system, "pass")
    here = f"{root(cast.system)}vouching/"
    key = visit(client, cast.reviewer, here).rows[0].key
    client.post(f"{here}vouch", {"group": key, "reason": "I asked ann."})
    again = client.post(f"{here}vouch", {"group": key, "reason": "Again."})

    assert again.status_code == 422
    assert "There is nothing left here to vouch for." in again.content.decode()
    assert Vouch.objects.get().reason == "I asked ann."
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Vouch.objects.update(reason="x")
    assert disposition(trial) == "pass"


def test_the_verdicts_of_one_trial_may_be_vouched_for_alone(client: Client, cast: Cast) -> None:
    first, second = brought(cast.system, "pass", "pass")
    here = f"{root(cast.system)}vouching/"
    page = visit(client, cast.reviewer, here, trial=str(first.uuid))
    sent = {"group": page.rows[0].key, "trial": str(first.uuid), "reason": "I asked ann."}
    client.post(f"{here}vouch", sent)
    (line,) = visit(client, cast.reviewer, here).rows

    assert page.trial is not None
    assert page.rows[0].counts == "1 verdict on 1 trial: 1 pass, 0 fail"
    assert (disposition(first), disposition(second)) == ("pass", "unresolved")
    assert line.note.startswith("1 of 2, reviewer, ")


@pytest.mark.parametrize("reason", ["", " ", "\u200b", "x" * 2_001])
def test_a_vouch_says_how_one_knows(client: Client, cast: Cast, reason: str) -> None:
    brought(cast.system, "pass")
    here = f"{root(cast.system)}vouching/"
    key = visit(client, cast.reviewer, here).rows[0].key
    answer = client.post(f"{here}vouch", {"group": key, "reason": reason})

    assert answer.status_code == 422
    assert answer.context["page"].form.error
    assert not Vouch.objects.exists()


def test_who_brought_the_evidence_does_not_vouch(client: Client, cast: Cast) -> None:
    brought(cast.system, "pass")
    ingest(cast.system, [record("t1", 7, verdicts=[said("fail")])], by=cast.second_reviewer)
    here = f"{root(cast.system)}vouching/"
    for line in visit(client, cast.second_reviewer, here).rows:
        answer = client.post(f"{here}vouch", {"group": line.key, "reason": "Me."})
        assert (answer.status_code, BROUGHT_IT in unescape(answer.content.decode())) == (403, True)
    client.force_login(cast.engineer)
    other = client.post(f"{here}vouch", {"group": line.key, "reason": "Me."})

    assert other.status_code == 403
    assert visit(client, cast.engineer, here, group=line.key).form.why_not == NOT_A_REVIEWER
    assert not Vouch.objects.exists()


def test_another_systems_verdicts_are_absent(client: Client, cast: Cast) -> None:
    brought(cast.other_system, "pass")
    foreign = Trial.objects.get(system=cast.other_system)
    here = f"{root(cast.system)}vouching/"
    client.force_login(cast.reviewer)
    answers = [
        client.get(here, {"trial": str(foreign.uuid)}),
        client.get(here, {"trial": "x"}),
        client.post(f"{here}vouch", {"group": "1.1.1", "reason": "x"}),
        client.post(f"{here}vouch", {"group": "x", "reason": "x"}),
    ]
    page = visit(client, cast.reviewer, here, group="1.1.1")

    assert [answer.status_code for answer in answers] == [404, 404, 404, 404]
    assert (page.rows, page.form, page.empty is not None) == ((), None, True)


def test_the_page_takes_the_same_queries_with_one_row_and_with_three(
    client: Client, cast: Cast
) -> None:
    brought(cast.system, "pass")
    here = f"{root(cast.system)}vouching/"
    key = visit(client, cast.viewer, here).rows[0].key
    one = n_queries(client, here, group=key)
    for n, grader in enumerate(("ben", "eve"), start=1):
        brought(cast.system, "pass", "error", first=10 * n, grader=grader)

    assert len(visit(client, cast.viewer, here).rows) == 3
    assert (one, n_queries(client, here, group=key)) == (6, 6)
