"""Judges and the people whose labels they are held against, in few words."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils import timezone

from evalsite.after_calibration import calibrations_and_decide
from evalsite.after_review import decided_again
from reviews.core.consensus import consensus_of
from reviews.models import Calibration, CalibrationItem, CalibrationSet, Criterion, Label, Sampling
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.core.contracts.reading import read_contract
from traces.core.records import VerdictValue
from traces.models import System, Trial, User

NOW = datetime(2026, 12, 5, 10, 0, tzinfo=UTC)
RUBRIC = "truthful"
CONTRACT = """\
task: {task}
family: refunds
semantic:
  - {{rubric: truthful, version: "{version}", question: Does it say what it did?}}
"""


def said(word: str, version: str = "m1/p1", **more: Any) -> dict[str, Any]:
    """One verdict of the judge on the rubric."""
    return verdict(
        word, criterion=RUBRIC, grader="judge", kind="model", grader_version=version, **more
    )


def asked(cast: Cast, task: str = "t1", version: str = "1") -> uuid.UUID:
    """A contract that asks nothing but the rubric, in effect; its trials decided. The digest."""
    text = CONTRACT.format(task=task, version=version)
    contract_in_effect(cast.system, text, by=cast.engineer)
    of_task = Trial.objects.filter(system=cast.system, task__task_id=task)
    decided_again(of_task.values_list("pk", flat=True), cast.system, now=timezone.now())
    return digest_of_rubric(text)


def digest_of_rubric(text: str) -> uuid.UUID:
    """The digest of the only rubric of a contract."""
    contract = read_contract(text).contract
    assert contract is not None
    return uuid.UUID(bytes=contract.semantic[0].digest)


def judged_trials(
    cast: Cast, words: Sequence[str], *, task: str = "t1", version: str = "m1/p1", **more: Any
) -> list[Trial]:
    """Trials 0, 1, ... of a task, of each of which the judge says a word."""
    ingest(
        cast.system,
        [
            record(task, number, verdicts=[said(word, version)], **more)
            for number, word in enumerate(words)
        ],
    )
    found = Trial.objects.filter(system=cast.system, task__task_id=task)
    return sorted(found, key=lambda trial: int(trial.label))


def verdicts_alone(
    words: Mapping[int, str] | Sequence[str], *, task: str = "t1", version: str = "m1/p1"
) -> list[dict[str, Any]]:
    """Records of verdicts of the judge on trials that are stored."""
    pairs = words.items() if isinstance(words, Mapping) else enumerate(words)
    return [
        {"record": "verdicts", "task_id": task, "trial": trial, "verdicts": [said(word, version)]}
        for trial, word in pairs
    ]


def labelled_set(
    system: System,
    trials: Sequence[Trial],
    labels: Sequence[Sequence[str]],
    *,
    people: Sequence[User | str],
    digest: uuid.UUID | None = None,
    by: User,
    criterion: str = RUBRIC,
    now: datetime = NOW,
    **more: Any,
) -> CalibrationSet:
    """A complete set: the labels of each trial in the order of rounds, by these people."""
    row, _ = Criterion.objects.get_or_create(system=system, name=criterion)
    values: dict[str, Any] = {
        "name": "A set",
        "rubric_version": "1" if digest else "",
        "sampling": Sampling.RANDOM.value,
        "seed": 7,
        "reason": "A test.",
        "is_imported": False,
        "created_at": now,
        "completed_at": now,
        **more,
    }
    made = CalibrationSet.objects.create(
        system=system,
        number=CalibrationSet.objects.filter(system=system).count() + 1,
        criterion=row,
        criterion_digest=digest,
        by=by,
        **values,
    )
    for position, (trial, words) in enumerate(zip(trials, labels, strict=True)):
        given = [VerdictValue(word) for word in words]
        found = consensus_of(given, n_needed=len(given))
        item = CalibrationItem.objects.create(
            set=made,
            trial=trial,
            position=position,
            n_needed=len(given),
            consensus=found.value if found else "",
            settled_at=now,
        )
        Label.objects.bulk_create(
            Label(
                item=item,
                by=who if isinstance(who, User) else None,
                labeller=who if isinstance(who, str) else "",
                round=number,
                value=value.value,
                given_at=now,
            )
            for number, (value, who) in enumerate(zip(given, people, strict=False), start=1)
        )
    return made


def read_of(made: CalibrationSet, *, now: datetime = NOW) -> list[Calibration]:
    """The calibrations on a set's criterion, read as after its completion."""
    return calibrations_and_decide(made.system, made.criterion, made.criterion_digest, now=now)


def twice(words: Iterable[str]) -> list[tuple[str, str]]:
    """Labels of two people who agree on each item."""
    return [(word, word) for word in words]
