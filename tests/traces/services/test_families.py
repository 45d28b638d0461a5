from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import HeldOutExposure, Role, SplitChange, Task, Trial
from traces.permissions.families import NOT_AN_ENGINEER
from traces.services.families import (
    LONGEST_REASON,
    FamilyDeniedError,
    FamilyError,
    change_split,
    moved_words,
    note_exposure,
)

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def family_of(cast: Cast, *names: str, family: str = "refunds", split: str = "") -> list[Task]:
    ingest(cast.system, [record(name, 0) for name in names])
    tasks = Task.objects.filter(system=cast.system, task_id__in=names).order_by("task_id")
    tasks.update(family=family, split=split)
    return list(tasks)


def splits(cast: Cast) -> dict[str, str]:
    return dict(Task.objects.filter(system=cast.system).values_list("task_id", "split"))


def test_a_family_moves_as_a_whole_and_the_change_is_kept(cast: Cast) -> None:
    family_of(cast, "a", "b", split="tuning")
    family_of(cast, "c", family="other", split="tuning")

    moved = change_split(
        cast.system,
        family="refunds",
        split="held_out",
        reason=" Unseen. ",
        by=cast.engineer,
        now=NOW,
    )

    assert len(moved) == 2
    assert splits(cast) == {"a": "held_out", "b": "held_out", "c": "tuning"}
    assert list(
        SplitChange.objects.values_list(
            "family", "task", "old", "new", "reason", "by", "changed_at"
        )
    ) == [("refunds", None, "tuning", "held_out", "Unseen.", cast.engineer.pk, NOW)]


def test_the_same_change_again_changes_nothing(cast: Cast) -> None:
    family_of(cast, "a")
    for _ in range(2):
        moved = change_split(
            cast.system,
            family="refunds",
            split="tuning",
            reason="Known.",
            by=cast.engineer,
            now=NOW,
        )

    assert moved == ()
    assert SplitChange.objects.count() == 1


def test_a_family_that_is_apart_comes_together(cast: Cast) -> None:
    family_of(cast, "a", split="tuning")
    family_of(cast, "b", split="held_out")

    change_split(
        cast.system, family="refunds", split="tuning", reason="Seen.", by=cast.engineer, now=NOW
    )

    assert splits(cast) == {"a": "tuning", "b": "tuning"}
    assert SplitChange.objects.get().old == "held_out"


def test_a_task_without_family_moves_alone(cast: Cast) -> None:
    (task,) = family_of(cast, "a", family="")

    change_split(
        cast.system, task=task, split="regression", reason="Stable.", by=cast.engineer, now=NOW
    )

    change = SplitChange.objects.get()
    assert (change.family, change.task_id, change.old, change.new) == (
        "",
        task.pk,
        "",
        "regression",
    )


def test_a_task_of_a_family_does_not_move_alone(cast: Cast) -> None:
    (task,) = family_of(cast, "a")

    with pytest.raises(FamilyError) as refused:
        change_split(cast.system, task=task, split="tuning", reason="x", by=cast.engineer, now=NOW)

    assert str(refused.value) == (
        "Task 'a' is of family 'refunds', which stays together: change the split of the family."
    )
    assert splits(cast) == {"a": ""}


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        pytest.param(
            {"split": "prod"}, "A split is tuning, held out or regression.", id="no-such-split"
        ),
        pytest.param({"split": ""}, "A split is tuning, held out or regression.", id="no-split"),
        pytest.param(
            {"family": "else"},
            "There is no task of family 'else' in this system.",
            id="no-such-family",
        ),
        pytest.param({"family": ""}, "There is no task of family '' in this system.", id="nothing"),
        pytest.param(
            {"reason": " \u200b"}, "Say why: the reason is what the next person reads.", id="silent"
        ),
        pytest.param(
            {"reason": "x" * (LONGEST_REASON + 1)},
            "A reason has at most 2,000 characters.",
            id="long",
        ),
    ],
)
def test_what_cannot_be_done_changes_nothing(
    values: dict[str, str], sentence: str, cast: Cast
) -> None:
    family_of(cast, "a")
    family_of(cast, "lone", family="")
    asked = {"family": "refunds", "split": "tuning", "reason": "Known."} | values

    with pytest.raises(FamilyError) as refused:
        change_split(cast.system, **asked, by=cast.engineer, now=NOW)

    assert str(refused.value) == sentence
    assert splits(cast) == {"a": "", "lone": ""}
    assert not SplitChange.objects.exists()


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ENGINEER])
def test_only_an_engineer_moves_families_and_notes_exposures(role: Role, cast: Cast) -> None:
    (task,) = family_of(cast, "a", split="held_out")
    person = cast.members()[role]

    with pytest.raises(FamilyDeniedError) as moving:
        change_split(cast.system, family="refunds", split="tuning", reason="x", by=person, now=NOW)
    with pytest.raises(FamilyDeniedError) as noting:
        note_exposure(task, reason="x", by=person, now=NOW)

    assert {str(moving.value), str(noting.value)} == {NOT_AN_ENGINEER}
    assert splits(cast) == {"a": "held_out"}
    assert not HeldOutExposure.objects.exists()


def test_an_exposure_is_noted_once(cast: Cast) -> None:
    (task,) = family_of(cast, "a", split="held_out")
    trial = Trial.objects.get(task=task)

    first, again = (
        note_exposure(task, trial=trial, reason="Prompt mended.", by=cast.engineer, now=NOW)
        for _ in range(2)
    )
    other = note_exposure(task, reason="Prompt mended.", by=cast.engineer, now=NOW)

    assert first == again != other
    assert list(
        HeldOutExposure.objects.order_by("pk").values_list("task", "trial", "reason", "by")
    ) == [
        (task.pk, trial.pk, "Prompt mended.", cast.engineer.pk),
        (task.pk, None, "Prompt mended.", cast.engineer.pk),
    ]


@pytest.mark.parametrize(
    ("split", "sentence"),
    [
        ("", "Task 'a' is in no split; only a held-out task can be exposed."),
        ("tuning", "Task 'a' is in split tuning; only a held-out task can be exposed."),
        ("regression", "Task 'a' is in split regression; only a held-out task can be exposed."),
    ],
)
def test_only_a_held_out_task_is_exposed(split: str, sentence: str, cast: Cast) -> None:
    (task,) = family_of(cast, "a", split=split)

    with pytest.raises(FamilyError) as refused:
        note_exposure(task, reason="x", by=cast.engineer, now=NOW)

    assert str(refused.value) == sentence


def test_a_trial_of_another_task_exposes_nothing(cast: Cast) -> None:
    first, other = family_of(cast, "a", "b", split="held_out")

    with pytest.raises(FamilyError, match=r"^That trial is of another task\.$"):
        note_exposure(
            first, trial=Trial.objects.get(task=other), reason="x", by=cast.engineer, now=NOW
        )


def test_a_move_is_told_in_words() -> None:
    assert moved_words("family a", "held_out", 1) == "1 task of family a moved to split held out."
    assert moved_words("family a", "tuning", 0) == "All of family a is in split tuning already."
