"""Calibrations read anew, and the trials that judges decide differently by them.

Reading and decisions are one transaction under the locks of all releases of the system: a judge
speaks on trials of any of them.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction
from django.db.models import QuerySet

from evalsite.after_review import decided_again
from evalsite.common.audit import AuditedObject, record, written_last
from reviews.core.requirements import requirements_of
from reviews.models import Calibration, Criterion
from reviews.selectors.calibration_items import (
    CriterionKey,
    has_calibrations,
    keys_known,
    keys_touched,
)
from reviews.services.calibrations import Reading, readings_of
from traces.core.contracts.model import Contract
from traces.models import Release, System, User
from traces.services.trials import ingest_locks


@contextmanager
def all_evidence_locked(system: System) -> Iterator[None]:
    """One transaction that nobody else adds evidence of the system beside.

    Whoever may complete a calibration set in a transaction of their own begins it with this: locks
    that are taken later, one release after another, may cross those of an upload.
    """
    with transaction.atomic():
        ingest_locks(system, _releases(system))
        with written_last():
            yield


def calibrations_and_decide(
    system: System,
    criterion: Criterion,
    criterion_digest: uuid.UUID | None,
    *,
    now: datetime,
    by: User | None = None,
) -> list[Calibration]:
    """Read how judges are calibrated on a criterion, and decide trials anew where that changes votes.

    Returns the rows that were added: one for each judge version whose status or figures changed.
    """
    with all_evidence_locked(system):
        readings = readings_of(system, CriterionKey(criterion, criterion_digest), now=now, by=by)
        decided_again(judged_trials(readings), system, now=now)
    return [reading.row for reading in readings]


def read_by_hand(
    system: System,
    criterion: Criterion,
    criterion_digest: uuid.UUID | None,
    *,
    by: User,
    now: datetime,
) -> list[Calibration]:
    """Read calibrations because a person asks for it (`calibrations_and_decide`)."""
    with all_evidence_locked(system):
        rows = calibrations_and_decide(system, criterion, criterion_digest, now=now, by=by)
        record(
            "calibration.read",
            system_pk=system.pk,
            by_pk=by.pk,
            at=now,
            obj=AuditedObject("criterion", str(criterion.pk), criterion.name),
            after={"n_changed": len(rows)},
            rows=[("reviews_calibration", row.pk) for row in rows],
        )
    return rows


def releases_of_judges(system: System) -> Iterable[Release]:
    """The releases to lock before judges' verdicts are stored: all, where labels may say of them."""
    return _releases(system) if has_calibrations(system.pk) else ()


def read_after_upload(system: System, trial_ids: Iterable[int], *, now: datetime) -> list[int]:
    """Read calibrations that judges' new verdicts on trials may change. Returns trials to decide.

    A judge's words on labelled trials may calibrate it, or not any more; the first words of its
    next version make it stale. Part of the transaction that stored the verdicts, before their
    trials are decided.
    """
    wanted = set(trial_ids)
    if not wanted or not has_calibrations(system.pk):
        return []
    readings = [
        reading
        for key in keys_touched(system.pk, wanted)
        for reading in readings_of(system, key, now=now)
    ]
    found = judged_trials(readings)
    if found:
        # Held already, unless the first set of the system was complete a moment ago.
        ingest_locks(system, _releases(system))
    return found


def read_after_contract(
    system: System, before: Contract | None, after: Contract, *, now: datetime
) -> None:
    """Read the calibrations on criteria that one contract asks and the other does not.

    Part of the transaction in which a task's contract takes effect, before its trials are decided:
    no other task's trials are decided by what only this contract asks.
    """
    asked = {_asked(before), _asked(after)}
    changed = frozenset.union(*asked) - frozenset.intersection(*asked)
    for key in keys_known(system.pk):
        if (key.criterion.name, key.digest) in changed or (key.digest is None and before is None):
            readings_of(system, key, now=now)


def _asked(contract: Contract | None) -> frozenset[tuple[str, uuid.UUID | None]]:
    if contract is None:
        return frozenset()
    return frozenset(
        (each.criterion, uuid.UUID(bytes=each.criterion_digest))
        for each in requirements_of(contract, contract_key="")
        if each.criterion_digest is not None
    )


def _releases(system: System) -> QuerySet[Release]:
    # Their version records may be long.
    return system.releases.only("pk")


def judged_trials(readings: Iterable[Reading]) -> list[int]:
    """The trials with a verdict of a judge whose verdicts began or ceased to count. One query."""
    changed = [reading.row for reading in readings if reading.is_other_vote]
    if not changed:
        return []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT trial_id FROM reviews_verdict"
            " WHERE criterion_id = ANY(%s) AND grader_version_id = ANY(%s) ORDER BY trial_id",
            [
                list({row.criterion_id for row in changed}),
                list({row.grader_version_id for row in changed}),
            ],
        )
        return [row[0] for row in cursor.fetchall()]
