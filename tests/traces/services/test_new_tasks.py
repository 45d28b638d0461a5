from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evalsite.common import blobs
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import Role, Task, TaskOrigin, TaskVersion, Trial
from traces.permissions.families import NOT_AN_ENGINEER
from traces.services.families import FamilyDeniedError, FamilyError
from traces.services.new_tasks import NOT_OPEN, make_task

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def failed(cast: Cast, word: str = "fail", **more: Any) -> Trial:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(word)], **more)])
    return Trial.objects.get(system=cast.system)


def make(trial: Trial, cast: Cast, **changed: Any) -> tuple[Task, bool]:
    asked: dict[str, Any] = {
        "task_id": "t1-from-0",
        "title": "Again",
        "family": "refunds",
        "split": "tuning",
        "input": "Please help.",
        "facts": {"order": "A-1"},
        "reason": "It failed.",
        "by": cast.engineer,
    }
    return make_task(trial, **(asked | changed), now=NOW)


@pytest.mark.parametrize("word", ["fail", "unknown"])
def test_a_task_is_made_with_its_origin(word: str, cast: Cast) -> None:
    trial = failed(cast, word)

    task, is_new = make(trial, cast, task_id="  e\u0301-1 ")

    assert is_new
    stored = Task.objects.get(pk=task.pk)
    assert (stored.task_id, stored.title, stored.family, stored.split) == (
        "\xe9-1",
        "Again",
        "refunds",
        "tuning",
    )
    version = TaskVersion.objects.get(task=task)
    assert blobs.unpack(version.definition) == {
        "input": "Please help.",
        "facts": {"order": "A-1"},
    }
    origin = TaskOrigin.objects.get(task=task)
    assert (origin.trial, origin.reason, origin.by, origin.made_at) == (
        trial,
        "It failed.",
        cast.engineer,
        NOW,
    )


def test_a_second_click_gives_the_same_task(cast: Cast) -> None:
    trial = failed(cast)

    first, again = (make(trial, cast) for _ in range(2))

    assert (first[0], first[1], again[1]) == (again[0], True, False)
    assert TaskOrigin.objects.count() == 1


@pytest.mark.parametrize("more", [{"word": "pass"}, {"error": "broke"}], ids=["passed", "broken"])
def test_a_trial_that_passed_or_broke_makes_no_task(more: dict[str, str], cast: Cast) -> None:
    trial = failed(cast, **more)
    with pytest.raises(FamilyError, match=f"^{NOT_OPEN}$"):
        make(trial, cast)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param({"task_id": " "}, "A task needs an id.", id="no-id"),
        pytest.param(
            {"task_id": "a\u202eb"}, "A task id has no characters that cannot be seen.", id="unseen"
        ),
        pytest.param(
            {"task_id": "\ud800"}, "A task id has no characters that cannot be seen.", id="half"
        ),
        pytest.param({"task_id": "x" * 513}, "A task id has at most 512 characters.", id="long-id"),
        pytest.param(
            {"task_id": "t1"}, "This system has a task 't1' already; choose another id.", id="taken"
        ),
        pytest.param(
            {"title": "x" * 501},
            "A title has at most 500 characters, a family at most 200.",
            id="long-title",
        ),
        pytest.param(
            {"family": "x" * 201},
            "A title has at most 500 characters, a family at most 200.",
            id="long-family",
        ),
        pytest.param(
            {"split": "prod"}, "A split is tuning, held out or regression.", id="no-such-split"
        ),
        pytest.param(
            {"reason": ""}, "Say why: the reason is what the next person reads.", id="silent"
        ),
        pytest.param(
            {"family": "unseen"},
            "Family 'unseen' is in split held out, and stays together.",
            id="other-split",
        ),
        pytest.param(
            {"family": "apart"},
            "Family 'apart' is in several splits; put it into one of them first.",
            id="apart",
        ),
    ],
)
def test_what_cannot_be_made_is_refused(changed: dict[str, str], sentence: str, cast: Cast) -> None:
    ingest(cast.system, [record(name, 0) for name in ("u", "a", "b")], release="0.9")
    Task.objects.filter(task_id="u").update(family="unseen", split="held_out")
    Task.objects.filter(task_id="a").update(family="apart", split="held_out")
    Task.objects.filter(task_id="b").update(family="apart", split="tuning")
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("fail")])])
    trial = Trial.objects.get(task__task_id="t1")

    with pytest.raises(FamilyError) as refused:
        make(trial, cast, **changed)

    assert str(refused.value) == sentence
    assert not TaskOrigin.objects.exists()


def test_a_new_task_joins_the_split_of_its_family(cast: Cast) -> None:
    trial = failed(cast)
    Task.objects.filter(task_id="t1").update(family="refunds", split="held_out")
    task, _ = make(trial, cast, split="held_out")
    assert task.split == "held_out"


def test_a_family_without_a_split_leaves_the_choice(cast: Cast) -> None:
    trial = failed(cast)
    Task.objects.filter(task_id="t1").update(family="refunds")
    assert make(trial, cast)[0].split == "tuning"
    assert make(trial, cast, task_id="other", family="", split="")[0].split == ""


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.ENGINEER])
def test_only_an_engineer_makes_tasks(role: Role, cast: Cast) -> None:
    trial = failed(cast)
    with pytest.raises(FamilyDeniedError, match=f"^{NOT_AN_ENGINEER}$"):
        make(trial, cast, by=cast.members()[role])
