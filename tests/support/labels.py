"""Blind sets over stored trials, and the people who label them."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

from reviews.models import CalibrationItem, CalibrationSet, Criterion, Sampling, Seat
from reviews.services.seats import NoSeat, take_seat
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from traces.models import Role, System, Trial, User
from traces.services.people import set_member

NOW = datetime(2026, 12, 5, 10, 0, tzinfo=UTC)


def judged(task: str = "t1", trial: int = 0, word: str = "pass") -> dict[str, object]:
    """A trial whose state check passes, and of whose tone a judge says the word."""
    tone = verdict(word, criterion="tone", grader="judge", kind="model", rationale="JUDGE-SAYS-SO")
    return record(task, trial, verdicts=[verdict(), tone])


def stored_set(
    system: System, trials: Sequence[Trial], *, by: User, **more: object
) -> CalibrationSet:
    """An open blind set of these trials on the criterion `tone`, in their order."""
    criterion, _ = Criterion.objects.get_or_create(system=system, name="tone")
    values: dict[str, object] = {
        "criterion": criterion,
        "sampling": Sampling.RANDOM.value,
        "reason": "A test.",
        "is_imported": False,
        "by": by,
        "created_at": NOW,
        "name": "Tone",
        "number": CalibrationSet.objects.filter(system=system).count() + 1,
        **more,
    }
    of = CalibrationSet.objects.create(system=system, **values)
    CalibrationItem.objects.bulk_create(
        CalibrationItem(set=of, trial=trial, position=n, uuid=uuid.uuid4())
        for n, trial in enumerate(trials, start=1)
    )
    return of


def blind_set(cast: Cast, n: int = 2, **more: object) -> CalibrationSet:
    """A blind set of `n` new trials on which a judge has said something."""
    ingest(cast.system, [judged("t1", trial) for trial in range(n)])
    trials = list(Trial.objects.filter(system=cast.system).order_by("pk"))
    return stored_set(cast.system, trials, by=cast.owner, **more)


def reviewer_named(cast: Cast, name: str) -> User:
    """One more reviewer of the system."""
    user = person(name)
    set_member(cast.system, user, Role.REVIEWER)
    return user


def seated(of: CalibrationSet, by: User, now: datetime = NOW) -> Seat:
    """The item that a person is given now."""
    found = take_seat(of, by=by, now=now)
    assert not isinstance(found, NoSeat), found
    return found
