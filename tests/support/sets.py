"""Calibration sets in few words."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from reviews.core.consensus import Consensus
from reviews.models import CalibrationItem, CalibrationSet, Label
from reviews.services.calibration_sets import SetWish, make_set
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import User

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
WISH = SetWish("First set", "The judge is new.", "outcome", None, n=50)


def judged(word: str = "pass", **more: Any) -> dict[str, Any]:
    """A judge's verdict on the outcome."""
    return verdict(word, grader="referee", kind="model", **more)


def stored(cast: Cast, n: int = 3, task_id: str = "t1", **more: Any) -> None:
    """Passing trials of a task whose outcome code and a judge decide."""
    ingest(
        cast.system,
        [record(task_id, label, verdicts=[verdict(), judged()], **more) for label in range(n)],
        by=cast.engineer,
    )


def a_set(cast: Cast, by: User | None = None, seed: int = 4, **changed: Any) -> CalibrationSet:
    """A random set of all trials on the outcome."""
    wish = replace(WISH, **changed)
    return make_set(cast.system, wish, by=by or cast.reviewer, now=NOW, seed=seed)


def labelled(item: CalibrationItem, *said: tuple[User, str], is_settled: bool = True) -> None:
    """What people said of an item, as rows of labels alone."""
    for number, (person, value) in enumerate(said, start=1):
        Label.objects.create(
            item=item,
            by=person,
            round=number,
            value=value,
            reason=f"{value}, they say.",
            cited_steps=[2],
            given_at=NOW,
        )
    if is_settled:
        values = {value for _, value in said}
        item.consensus = said[0][1] if len(values) == 1 else Consensus.SPLIT.value
        item.settled_at = NOW
        item.save()


def items(of: CalibrationSet) -> list[CalibrationItem]:
    """The items of a set in their order."""
    return list(CalibrationItem.objects.filter(set=of).order_by("position"))


def nowhere() -> uuid.UUID:
    """An id of nothing."""
    return uuid.UUID(int=1)
