from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import Task, TaskOrigin, Trial
from traces.selectors.families import (
    FamilyTotals,
    RegressionOffer,
    family_rows,
    family_totals,
    regression_offers,
    splits_of_family,
    task_history,
    tasks_made_from,
)
from traces.services.families import change_split, note_exposure
from traces.services.work import declare_run, release_named

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def put(cast: Cast, name: str, family: str, split: str = "") -> Task:
    Task.objects.filter(system=cast.system, task_id=name).update(family=family, split=split)
    return Task.objects.get(system=cast.system, task_id=name)


def test_families_have_their_splits_counts_and_history(cast: Cast) -> None:
    ingest(cast.system, [record(name, n) for name in ("a", "b", "c") for n in (0, 1)])
    ingest(cast.other_system, [record("z", 0)])
    task = put(cast, "a", "one", "held_out")
    put(cast, "b", "one", "tuning")
    put(cast, "c", "two")
    trial = Trial.objects.get(task=task, label="0")
    note_exposure(task, trial=trial, reason="Used.", by=cast.engineer, now=NOW)
    change_split(
        cast.system, family="two", split="tuning", reason="Known.", by=cast.engineer, now=NOW
    )

    first, second = family_rows(cast.system.pk).rows

    assert (first.name, first.splits, first.n_tasks, first.n_trials, first.n_exposed) == (
        "one",
        ("held_out", "tuning"),
        2,
        4,
        1,
    )
    assert first.change is None
    assert first.exposure is not None
    assert (first.exposure.reason, first.exposure.by_name, first.exposure.trial_uuid) == (
        "Used.",
        "engineer",
        trial.uuid,
    )
    assert (second.name, second.splits, second.n_tasks, second.n_exposed) == (
        "two",
        ("tuning",),
        1,
        0,
    )
    assert second.change is not None
    assert (second.change.reason, second.change.by_name, second.change.at) == (
        "Known.",
        "engineer",
        NOW,
    )
    assert family_totals(cast.system.pk) == FamilyTotals(n_families=2, n_lone=0)


@pytest.mark.parametrize("lone", [False, True], ids=["families", "tasks"])
def test_pages_lead_forward_and_back(lone: bool, cast: Cast) -> None:  # noqa: FBT001
    names = [f"t{n}" for n in range(12)]
    ingest(cast.system, [record(name, 0) for name in names])
    if not lone:
        for at, name in enumerate(names):
            put(cast, name, f"family {at:02}")

    first = family_rows(cast.system.pk, lone=lone, n=5)
    second = family_rows(cast.system.pk, lone=lone, after=first.next_after, n=5)
    third = family_rows(cast.system.pk, lone=lone, after=second.next_after, n=5)
    back = family_rows(cast.system.pk, lone=lone, before=second.previous_before, n=5)

    listed = [row.name for page in (first, second, third) for row in page.rows]
    assert listed == (names if lone else [f"family {n:02}" for n in range(12)])
    assert (first.previous_before, third.next_after) == (None, None)
    assert (back.rows, back.previous_before) == (first.rows, None)


def test_a_family_has_the_splits_of_its_tasks(cast: Cast) -> None:
    ingest(cast.system, [record(name, 0) for name in ("a", "b", "c")])
    put(cast, "a", "one", "tuning")
    put(cast, "b", "one", "held_out")

    assert splits_of_family(cast.system.pk, "one") == ("held_out", "tuning")
    assert splits_of_family(cast.system.pk, "none such") == ()
    assert splits_of_family(cast.system.pk, "") == ()


def run_release(cast: Cast, release: str, words: dict[str, list[str]]) -> None:
    ingest(
        cast.system,
        [
            record(task, n, verdicts=[verdict(word)])
            for task, said in words.items()
            for n, word in enumerate(said)
        ],
        release=release,
    )


def test_what_passed_in_every_trial_of_two_releases_is_offered(cast: Cast) -> None:
    all_pass = ["pass"] * 3
    always = dict.fromkeys(("lone", "f1", "f2", "g1", "there"), all_pass)
    run_release(cast, "1.0", {**always, "g2": all_pass, "new": ["fail"] * 3})
    run_release(cast, "2.0", {**always, "g2": ["pass", "fail", "pass"], "few": ["pass"] * 2})
    run_release(cast, "3.0", {**always, "g2": all_pass, "few": all_pass, "new": all_pass})
    for name, family in (("f1", "f"), ("f2", "f"), ("g1", "g"), ("g2", "g")):
        put(cast, name, family, "held_out")
    put(cast, "there", "", "regression")

    found = regression_offers(cast.system.pk)

    assert [name for _, name in found.releases] == ["3.0", "2.0"]
    lone = Task.objects.get(task_id="lone")
    assert found.offers == (
        RegressionOffer("f", None, ("held_out",), 2, 12, 3),
        RegressionOffer("lone", lone.uuid, ("",), 1, 6, 3),
    )
    assert found.n_more == 0
    assert regression_offers(cast.system.pk, n=1).n_more == 1


def test_a_missing_trial_keeps_a_task_from_being_offered(cast: Cast) -> None:
    run_release(cast, "1.0", {"a": ["pass"] * 3, "b": ["pass"] * 3})
    release = release_named(cast.system, "2.0", by=None)
    declare_run(release, "default", trials=4, task_ids=["a"], by=None, now=NOW)
    run_release(cast, "2.0", {"a": ["pass"] * 3, "b": ["pass"] * 3})

    assert [offer.name for offer in regression_offers(cast.system.pk).offers] == ["b"]


def test_one_release_offers_nothing(cast: Cast) -> None:
    run_release(cast, "1.0", {"a": ["pass"] * 3})

    found = regression_offers(cast.system.pk)

    assert ([name for _, name in found.releases], found.offers) == (["1.0"], ())


def test_a_task_knows_its_origin_and_a_trial_what_was_made_of_it(cast: Cast) -> None:
    ingest(cast.system, [record("a", 7), record("b", 0)])
    trial = Trial.objects.get(label="7")
    made = put(cast, "b", "", "held_out")
    TaskOrigin.objects.create(task=made, trial=trial, reason="x", by=cast.engineer, made_at=NOW)
    for reason in ("First.", "Second."):
        note_exposure(made, reason=reason, by=cast.engineer, now=NOW)

    with CaptureQueriesContext(connection) as captured:
        history = task_history(made.pk)
    assert len(captured) == 1
    assert (
        history.origin_uuid,
        history.origin_label,
        history.origin_task,
        history.made_by,
        history.made_at,
        history.n_exposed,
    ) == (trial.uuid, "7", "a", "engineer", NOW, 2)
    assert history.exposure is not None
    assert (history.exposure.reason, history.exposure.trial_uuid) == ("Second.", None)
    assert [(t.task_id, t.split) for t in tasks_made_from(trial.pk)] == [("b", "held_out")]

    plain = task_history(trial.task_id)
    assert (plain.origin_uuid, plain.n_exposed, plain.exposure) == (None, 0, None)
