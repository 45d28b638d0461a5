"""Batches of probes: which trials, who makes them, what the bundle tells."""

from __future__ import annotations

import json
import uuid
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.utils import timezone

from evalsite.common import blobs
from reviews.core.probes import ProbeKind
from reviews.models import GraderVersion, Probe, ProbeBatch
from reviews.selectors.probes import (
    ProbeSummary,
    bundle_lines,
    probe_record,
    probe_results,
    probes_of,
)
from reviews.services import probes as service
from reviews.services.probes import BatchWish, ProbeDeniedError, ProbeError, make_batch
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.probes import MODEL, batch_of, judged, probe_of
from traces.models import Trial

pytestmark = pytest.mark.django_db

JUDGED = [verdict(), verdict(grader=MODEL, kind="model", grader_version="1")]


def passing(cast: Cast, n: int = 1, **more: Any) -> list[Trial]:
    calls = [("cancel", {"order": "A-1"})]
    lines = [record("t1", i, verdicts=JUDGED, calls=calls, **more) for i in range(n)]
    ingest(cast.system, lines)
    return list(Trial.objects.order_by("pk"))


def shapes(line: dict[str, Any]) -> tuple[object, ...]:
    return (
        sorted(line),
        [sorted(message) for message in line["messages"]],
    )


def test_a_batch_keeps_its_copies_in_a_drawn_order(cast: Cast) -> None:
    passing(cast, 4)

    batch = batch_of(cast, n=3)

    rows = list(Probe.objects.filter(batch=batch).order_by("position"))
    assert [row.position for row in rows] == list(range(1, 16))
    assert (batch.number, batch.seed, batch.reason) == (1, 7, "To try the judges.")
    assert [row.kind for row in rows] != sorted(row.kind for row in rows)
    assert len({row.trial_id for row in rows}) == 3
    again = batch_of(cast, n=3)
    others = list(Probe.objects.filter(batch=again).order_by("position"))
    assert again.number == 2
    assert [(row.trial_id, row.kind) for row in others] == [
        (row.trial_id, row.kind) for row in rows
    ]
    assert not {row.uuid for row in others} & {row.uuid for row in rows}


def test_nothing_in_the_bundle_tells_copies_apart_or_names_their_trial(cast: Cast) -> None:
    (trial,) = passing(
        cast,
        facts={"a": 1},
        final_state={"done": True},
        external_id="simulation-9",
        agent={"name": "desk-bot", "version": "1.0"},
        usage={"cost_usd": 0.1},
        expected_state={"done": True},
        note_of_source="kept",
    )
    batch = batch_of(cast)

    lines = [json.loads(line) for line in bundle_lines(batch)]

    assert len({json.dumps(shapes(line)) for line in lines}) == 1
    assert sorted(lines[0]) == [
        "external_id", "facts", "final_state", "messages", "status", "task_id", "trial",
    ]  # fmt: skip
    assert [line["external_id"] for line in lines] == [line["task_id"] for line in lines]
    ids = [
        call["id"] for line in lines for m in line["messages"] for call in m.get("tool_calls", ())
    ]
    assert len(set(ids)) == len(ids)
    text = "".join(bundle_lines(batch))
    words = [
        "simulation-9",
        "desk-bot",
        "kept",
        str(trial.uuid),
        "t1",
        "probe",
        "padded",
        "control",
    ]
    words += [kind.value for kind in ProbeKind] + ["verdicts", MODEL]
    assert [word for word in words if word in text] == []
    unpacked = probe_record(Probe.objects.get(batch=batch, position=1))
    assert unpacked == blobs.loads(next(bundle_lines(batch)))


def test_what_cannot_be_made_of_a_trial_is_told(cast: Cast) -> None:
    passing(cast)

    (control, *others) = sorted(
        probes_of(batch_of(cast)), key=lambda row: list(ProbeKind).index(row.kind)
    )

    assert [kind for kind, _ in control.not_made] == [ProbeKind.PADDED, ProbeKind.CONCISE]
    assert [row.not_made for row in others] == [(), (), (), ()]
    with pytest.raises(ProbeError, match="No changed copy can be made"):
        batch_of(cast, [ProbeKind.PADDED])
    assert ProbeBatch.objects.count() == 1


def wished(**more: Any) -> BatchWish:
    values = {
        "criterion": "outcome",
        "criterion_digest": None,
        "kinds": frozenset({ProbeKind.VERBOSE}),
        "reason": "To try the judges.",
        "n": 1,
    }
    return BatchWish(**{**values, **more})


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"reason": " \u200b "}, "Say why"),
        ({"reason": "x" * 4_001}, "at most 4,000 characters"),
        ({"kinds": frozenset({ProbeKind.CONTROL})}, "at least one kind"),
        ({"criterion": "tone"}, "no such criterion"),
        ({"criterion_digest": uuid.uuid4()}, "no such criterion"),
        ({"n": 0}, "1 to 50 trials"),
        ({"n": 51}, "1 to 50 trials"),
        ({"trials": tuple(uuid.uuid4() for _ in range(7))}, "7 trials .* and 2 more"),
    ],
)
def test_what_cannot_be_made_is_refused_in_a_sentence(
    cast: Cast, more: dict[str, Any], words: str
) -> None:
    passing(cast)
    with pytest.raises(ProbeError, match=words):
        make_batch(cast.system, wished(**more), by=cast.engineer, now=timezone.now())
    assert not ProbeBatch.objects.exists()


def test_engineers_and_reviewers_make_probes(cast: Cast) -> None:
    passing(cast)
    for person in (cast.viewer, cast.owner, cast.outsider):
        with pytest.raises(ProbeDeniedError, match="Only an engineer or a reviewer"):
            make_batch(cast.system, wished(), by=person, now=timezone.now())
    for person in (cast.engineer, cast.reviewer):
        make_batch(cast.system, wished(), by=person, now=timezone.now())


def test_probes_are_made_of_passing_trials_alone(cast: Cast) -> None:
    judge = verdict("pass", grader=MODEL, kind="model")
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=[verdict("fail"), judge]),
            record("t1", 1, verdicts=[verdict("unknown")]),
            record("t1", 2, error="broke"),
            record("t2", 0, verdicts=[verdict("pass", criterion="other")]),
            # Only an uncalibrated judge spoke, and said pass: it waits for nothing else.
            record("t3", 0, verdicts=[judge]),
            record("t4", 0, verdicts=[verdict("fail", grader=MODEL, kind="model")]),
        ],
    )
    by_task = {t.task.task_id + t.label: t for t in Trial.objects.select_related("task")}

    batch = batch_of(cast, [ProbeKind.VERBOSE], n=10)

    assert set(Probe.objects.filter(batch=batch).values_list("trial_id", flat=True)) == {
        by_task["t30"].pk
    }
    for name in ("t10", "t11", "t12", "t20", "t40"):
        with pytest.raises(ProbeError, match="cannot be used"):
            batch_of(cast, [ProbeKind.VERBOSE], trials=(by_task[name].uuid,))


def test_trials_of_another_system_cannot_be_named(cast: Cast) -> None:
    passing(cast)
    ingest(cast.other_system, [record("t1", 0, verdicts=JUDGED)])
    theirs = Trial.objects.get(system=cast.other_system)
    with pytest.raises(ProbeError, match="cannot be used"):
        batch_of(cast, trials=(theirs.uuid,))


def test_long_trials_are_taken_up_to_a_bound(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    trials = passing(cast, 3)
    monkeypatch.setattr(service, "MOST_STEPS", 2 * trials[0].n_messages)

    batch = batch_of(cast, [ProbeKind.VERBOSE], n=3)
    assert Probe.objects.filter(batch=batch).values("trial").distinct().count() == 2
    with pytest.raises(ProbeError, match="steps together"):
        batch_of(cast, [ProbeKind.VERBOSE], trials=tuple(t.uuid for t in trials))
    monkeypatch.setattr(service, "MOST_STEPS", 1)
    with pytest.raises(ProbeError, match="steps together"):
        batch_of(cast, [ProbeKind.VERBOSE])


def test_a_trial_of_6000_messages_is_copied_in_bounded_time(cast: Cast) -> None:
    calls = [("get_page", {"page": n}) for n in range(2_999)]
    ingest(cast.system, [record("long", 0, verdicts=JUDGED, calls=calls)])
    begun = timezone.now()

    batch = batch_of(cast)

    assert (timezone.now() - begun).total_seconds() < 60
    lines = [json.loads(line) for line in bundle_lines(batch)]
    assert [len(line["messages"]) for line in lines] == [6_000] * 5


def test_batches_and_probes_are_never_changed(cast: Cast) -> None:
    passing(cast)
    batch_of(cast)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        ProbeBatch.objects.update(reason="x")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Probe.objects.update(kind="x")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        Probe.objects.all().delete()


# --- what verdicts tell


def said(cast: Cast, *lines: dict[str, Any]) -> None:
    ingest(cast.system, lines, release=None)


def summary_of(batch: ProbeBatch, *, version: str = "1") -> ProbeSummary:
    row = GraderVersion.objects.get(version=version, grader__name=MODEL, grader__kind="model")
    return probe_results(row.pk, batch.criterion_id, batch.criterion_digest)


def test_a_verdict_is_held_against_the_same_versions_word_on_the_trial(cast: Cast) -> None:
    passing(cast)
    batch = batch_of(cast)
    verbose = probe_of(batch, ProbeKind.VERBOSE)
    said(cast, judged(verbose, "fail"), judged(verbose, "fail", version="2"))

    first, second = summary_of(batch), summary_of(batch, version="2")

    assert (first.n_wrong, first.n_open, first.n_missing) == (1, 0, 4)
    assert (second.n_wrong, second.n_open, second.has_failed) == (0, 1, False)
    said(cast, judged(probe_of(batch, ProbeKind.CONTROL), "pass", version="2"))
    second = summary_of(batch, version="2")
    assert (second.n_wrong, second.n_open, second.has_failed) == (1, 0, True)
    (wrong,) = second.wrong
    assert (wrong.kind, wrong.uuid, wrong.batch_number) == (ProbeKind.VERBOSE, verbose.uuid, 1)


def test_every_verdict_counts_and_the_worst_decides(cast: Cast) -> None:
    passing(cast)
    batch = batch_of(cast)
    probe = probe_of(batch, ProbeKind.WRONG_VALUE)
    said(cast, judged(probe, "fail", id="a"))
    assert summary_of(batch).n_right == 1
    said(cast, judged(probe, "pass", id="b"), judged(probe, "fail", id="c"))
    assert (summary_of(batch).n_right, summary_of(batch).n_wrong) == (0, 1)


def test_all_batches_on_a_criterion_count_together(cast: Cast) -> None:
    passing(cast)
    first, second = batch_of(cast), batch_of(cast)
    said(cast, judged(probe_of(first, ProbeKind.INJECTION), "pass"))
    said(cast, judged(probe_of(second, ProbeKind.INJECTION), "fail"))

    summary = summary_of(second)

    assert (summary.n_tried, summary.n_right, summary.n_wrong) == (2, 1, 1)
    assert probe_results(0, second.criterion_id, None) == ProbeSummary()
