"""Disputes in few words."""

from __future__ import annotations

from typing import Any

from reviews.models import Dispute
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict


def judged(
    task_id: str = "t1",
    trial: int | str = 0,
    *,
    code: str | None = "fail",
    criterion: str = "outcome",
    people: tuple[str, ...] = (),
    **judges: str,
) -> dict[str, Any]:
    """A trial on which a code check, judges by their names and imported people say something."""
    given = [] if code is None else [verdict(code, criterion=criterion)]
    given += [
        verdict(word, criterion=criterion, grader=name, kind="model", grader_version="1")
        for name, word in judges.items()
    ]
    given += [
        verdict(word, criterion=criterion, grader=f"person {n}", kind="human")
        for n, word in enumerate(people, start=1)
    ]
    return record(task_id, trial, verdicts=given)


def disputed(cast: Cast, *records: dict[str, Any], **more: Any) -> list[Dispute]:
    """The disputes of a system once those trials are in."""
    ingest(cast.system, records or [judged(terse="pass")], **more)
    return list(Dispute.objects.filter(system=cast.system).order_by("pk"))
