"""Calibration sets for pages, commands and files: how far they are, and what people said in them.

What an unsettled item of an open set has been labelled is never given out, to nobody.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection
from django.db.models import Count, QuerySet

from evalsite.common import blobs
from reviews.core.sampling import StratumDraw, read_strata
from reviews.models import CalibrationItem, Label, Revelation, Seat, SeatEnding
from reviews.permissions.labels import releases_brought
from traces.models import User

PAGE_SETS = 30
PAGE_ITEMS = 50
MOST_REMINDERS = 10
MOST_NOTES = 100
AFTER_LABEL = "label"  # where people see what others say once their own label is in
DUE_WITHIN = timedelta(days=14)


class SetState(StrEnum):
    """How far a set is."""

    OPEN = "open"
    COMPLETE = "complete"
    CLOSED = "closed"  # by hand, before it was complete
    IMPORTED = "imported"  # waits for a reviewer's word
    VOUCHED = "vouched for"


@dataclass(frozen=True, slots=True)
class PersonProgress:
    """How many items of a set somebody labelled."""

    name: str
    n_labels: int


@dataclass(frozen=True, slots=True)
class ListedSet:
    """A set as lists show it."""

    pk: int
    uuid: UUID
    number: int
    name: str
    criterion: str
    criterion_pk: int
    criterion_digest: UUID | None
    rubric_version: str
    question: str
    sampling: str
    seed: int | None
    strata: tuple[StratumDraw, ...]
    reason: str
    source: str
    state: SetState
    is_imported: bool
    by_pk: int
    by_name: str
    created_at: datetime
    completed_at: datetime | None
    closed_at: datetime | None
    closed_by: str
    closing_reason: str
    vouched_by: str
    vouched_at: datetime | None
    vouch_reason: str
    n_items: int  # without the withdrawn ones
    n_settled: int
    n_differ: int  # settled ones on which people said different things
    n_withdrawn: int
    n_labels: int

    @property
    def is_open(self) -> bool:
        """Whether people label it."""
        return self.state is SetState.OPEN

    @property
    def n_waiting(self) -> int:
        """Items that want labels."""
        return self.n_items - self.n_settled if self.is_open else 0

    @property
    def criterion_key(self) -> str:
        """What names its criterion in the form that makes a set."""
        return f"{self.criterion_digest.hex if self.criterion_digest else ''}:{self.criterion}"


_NAME = "coalesce(nullif(trim({0}.first_name || ' ' || {0}.last_name), ''), {0}.username)"
_SETS = f"""
SELECT s.id, s.uuid, s.number, s.name, c.name, s.criterion_id, s.criterion_digest,
       s.rubric_version, s.question, s.sampling, s.seed, s.strata, s.reason, s.source,
       s.is_imported, s.by_id, {_NAME.format("b")}, s.created_at, s.completed_at, s.closed_at,
       {_NAME.format("e")}, s.closing_reason, {_NAME.format("w")}, v.vouched_at, v.reason,
       i.n, i.n_settled, i.n_differ, i.n_withdrawn, i.n_labels
FROM reviews_calibrationset s
JOIN reviews_criterion c ON c.id = s.criterion_id
JOIN traces_user b ON b.id = s.by_id
LEFT JOIN traces_user e ON e.id = s.closed_by_id
LEFT JOIN reviews_setvouch v ON v.set_id = s.id
LEFT JOIN traces_user w ON w.id = v.by_id
CROSS JOIN LATERAL (
    SELECT count(*) FILTER (WHERE withdrawn_at IS NULL) AS n,
           count(*) FILTER (WHERE withdrawn_at IS NULL AND settled_at IS NOT NULL) AS n_settled,
           count(*) FILTER (WHERE withdrawn_at IS NULL AND settled_at IS NOT NULL
                            AND l.n_values > 1) AS n_differ,
           count(*) FILTER (WHERE withdrawn_at IS NOT NULL) AS n_withdrawn,
           coalesce(sum(l.n), 0)::bigint AS n_labels
    FROM reviews_calibrationitem t
    CROSS JOIN LATERAL (SELECT count(*) AS n, count(DISTINCT value) AS n_values
                        FROM reviews_label WHERE item_id = t.id) l
    WHERE t.set_id = s.id
) i
WHERE s.system_id = %(system)s
  AND (%(number)s::int IS NULL OR s.number = %(number)s)
  AND (%(after)s::int IS NULL OR s.number < %(after)s)
  AND (%(before)s::int IS NULL OR s.number > %(before)s)
ORDER BY s.number {{order}} LIMIT %(limit)s
"""  # noqa: S608 - own names


@dataclass(frozen=True, slots=True)
class SetPage:
    """One page of sets, newest first, with the places of its neighbours."""

    rows: tuple[ListedSet, ...]
    next_after: int | None
    previous_before: int | None


def listed_sets(
    system_pk: int, *, after: int | None = None, before: int | None = None, n: int = PAGE_SETS
) -> SetPage:
    """The sets of a system, newest first: after a number, or before one. One query."""
    is_back = after is None and before is not None
    rows = _sets(system_pk, after=after, before=before if is_back else None, n=n + 1)
    has_more = len(rows) > n
    shown = rows[:n][::-1] if is_back else rows[:n]
    has_next = is_back or has_more
    has_previous = has_more if is_back else after is not None
    return SetPage(
        tuple(shown),
        shown[-1].number if shown and has_next else None,
        shown[0].number if shown and has_previous else None,
    )


def set_numbered(system_pk: int, number: int) -> ListedSet | None:
    """The set of that number; None without one. One query."""
    return next(iter(_sets(system_pk, number=number, n=1)), None)


def _sets(
    system_pk: int,
    *,
    n: int,
    number: int | None = None,
    after: int | None = None,
    before: int | None = None,
) -> list[ListedSet]:
    values = {
        "system": system_pk,
        "number": _column(number),
        "after": _column(after),
        "before": _column(before),
        "limit": n,
    }
    with connection.cursor() as cursor:
        cursor.execute(_SETS.format(order="DESC" if before is None else ""), values)
        return [_listed(*row) for row in cursor.fetchall()]


_LARGEST = 2**31 - 1


def _column(number: int | None) -> int | None:
    """A number from an address as the column can be compared with it."""
    return None if number is None else min(number, _LARGEST)


def _listed(*row: Any) -> ListedSet:
    (pk, identity, number, name, criterion, criterion_pk, digest, rubric, question) = row[:9]
    (sampling, seed, strata, reason, source, is_imported, by_pk, by_name) = row[9:17]
    (created_at, completed_at, closed_at, closed_by, closing_reason) = row[17:22]
    (vouched_by, vouched_at, vouch_reason, *counts) = row[22:]
    return ListedSet(
        pk=pk,
        uuid=identity,
        number=number,
        name=name,
        criterion=criterion,
        criterion_pk=criterion_pk,
        criterion_digest=digest,
        rubric_version=rubric,
        question=question,
        sampling=sampling,
        seed=seed,
        strata=_strata(strata),
        reason=reason,
        source=source,
        state=_state(is_imported, vouched_at, completed_at, closed_at),
        is_imported=is_imported,
        by_pk=by_pk,
        by_name=by_name,
        created_at=created_at,
        completed_at=completed_at,
        closed_at=closed_at,
        closed_by=closed_by or "",
        closing_reason=closing_reason,
        vouched_by=vouched_by or "",
        vouched_at=vouched_at,
        vouch_reason=vouch_reason or "",
        n_items=counts[0],
        n_settled=counts[1],
        n_differ=counts[2],
        n_withdrawn=counts[3],
        n_labels=counts[4],
    )


def _strata(stored: Any) -> tuple[StratumDraw, ...]:
    return read_strata(blobs.loads(stored) if isinstance(stored, str) else stored or ())


def _state(
    is_imported: bool,  # noqa: FBT001 - a column
    vouched_at: datetime | None,
    completed_at: datetime | None,
    closed_at: datetime | None,
) -> SetState:
    if is_imported:
        return SetState.VOUCHED if vouched_at else SetState.IMPORTED
    if completed_at:
        return SetState.COMPLETE
    return SetState.CLOSED if closed_at else SetState.OPEN


# A third label has no person of its own among the two that every item needs: it is counted alike.
_PEOPLE = f"""
SELECT i.set_id, coalesce(nullif(l.labeller, ''), {_NAME.format("p")}) AS name, count(*)
FROM reviews_label l
JOIN reviews_calibrationitem i ON i.id = l.item_id
LEFT JOIN traces_user p ON p.id = l.by_id
WHERE i.set_id = ANY(%s)
GROUP BY i.set_id, l.by_id, name ORDER BY i.set_id, count(*) DESC, name, l.by_id
"""  # noqa: S608 - own names


def people_of(set_pks: Iterable[int]) -> dict[int, tuple[PersonProgress, ...]]:
    """Who labelled how many items of some sets, the most first. One query."""
    found: dict[int, list[PersonProgress]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_PEOPLE, [list(set_pks)])
        for set_pk, name, n in cursor.fetchall():
            found.setdefault(set_pk, []).append(PersonProgress(name, n))
    return {pk: tuple(people) for pk, people in found.items()}


# As `reviews.selectors.label_queue` asks for one set; here it is counted for many.
_LEFT = """
SELECT i.set_id, count(*)
FROM reviews_calibrationitem i
JOIN reviews_calibrationset s ON s.id = i.set_id
JOIN traces_trial t ON t.id = i.trial_id
JOIN traces_task k ON k.id = t.task_id
WHERE i.set_id = ANY(%(sets)s) AND i.settled_at IS NULL AND i.withdrawn_at IS NULL
  AND s.completed_at IS NULL AND s.closed_at IS NULL AND NOT s.is_imported
  AND (SELECT count(*) FROM reviews_label l WHERE l.item_id = i.id) < i.n_needed
  AND t.release_id <> ALL(%(brought)s)
  AND NOT EXISTS (SELECT FROM reviews_verdict v JOIN traces_upload u ON u.id = v.upload_id
                  LEFT JOIN traces_apikey a ON a.id = u.api_key_id
                  WHERE v.trial_id = i.trial_id AND (u.by_id = %(me)s OR a.user_id = %(me)s))
  AND NOT EXISTS (SELECT FROM reviews_label l WHERE l.item_id = i.id AND l.by_id = %(me)s)
  AND NOT EXISTS (SELECT FROM reviews_seat x WHERE x.item_id = i.id AND x.by_id = %(me)s
                  AND x.ended_at IS NOT NULL)
  AND NOT EXISTS (SELECT FROM reviews_revelation r WHERE r.trial_id = i.trial_id
                  AND r.criterion_id = s.criterion_id AND r.by_id = %(me)s)
  AND NOT EXISTS (SELECT FROM reviews_adjudication d WHERE d.trial_id = i.trial_id
                  AND d.criterion_id = s.criterion_id AND d.by_id = %(me)s)
  AND NOT EXISTS (SELECT FROM reviews_verdict v WHERE v.trial_id = i.trial_id
                  AND v.criterion_id = s.criterion_id AND v.by_id = %(me)s)
  AND NOT EXISTS (SELECT FROM traces_contractversion c JOIN traces_contractproposal p
                  ON p.id = c.proposal_id WHERE c.id = k.contract_id AND p.created_by_id = %(me)s)
  AND NOT EXISTS (SELECT FROM traces_evidenceaddition e
                  LEFT JOIN traces_apikey a ON a.id = e.api_key_id
                  WHERE e.trial_id = i.trial_id AND (e.by_id = %(me)s OR a.user_id = %(me)s))
GROUP BY i.set_id
"""


def left_for(user: User, system_pk: int, set_pks: Iterable[int]) -> dict[int, int]:
    """How many items of open sets a reviewer may still label, by set. Two queries."""
    values: dict[str, int | list[int]] = {
        "sets": list(set_pks),
        "me": user.pk,
        "brought": list(releases_brought(system_pk, user)),
    }
    with connection.cursor() as cursor:
        cursor.execute(_LEFT, values)
        return dict(cursor.fetchall())


# --- recalibration


@dataclass(frozen=True, slots=True)
class DueCalibration:
    """A calibrated judge whose date is near or past."""

    judge: str
    version: str
    grader_version_pk: int
    criterion: str
    criterion_pk: int
    criterion_digest: UUID | None
    valid_until: datetime
    open_set: int | None  # the number of a set that people label for it now

    @property
    def criterion_key(self) -> str:
        """What names the criterion in the form that makes a set."""
        return f"{self.criterion_digest.hex if self.criterion_digest else ''}:{self.criterion}"


_DUE = """
SELECT w.name, w.version, w.grader_version_id, w.criterion, w.criterion_id, w.criterion_digest,
       w.valid_until, (
           SELECT max(s.number) FROM reviews_calibrationset s
           WHERE s.system_id = %(system)s AND s.criterion_id = w.criterion_id
             AND s.criterion_digest IS NOT DISTINCT FROM w.criterion_digest
             AND s.completed_at IS NULL AND s.closed_at IS NULL)
FROM (
    SELECT DISTINCT ON (b.grader_version_id, b.criterion_id, b.criterion_digest)
        g.name, gv.version, b.grader_version_id, c.name AS criterion, b.criterion_id,
        b.criterion_digest, b.status, b.valid_until
    FROM reviews_calibration b
    JOIN reviews_graderversion gv ON gv.id = b.grader_version_id
    JOIN reviews_grader g ON g.id = gv.grader_id
    JOIN reviews_criterion c ON c.id = b.criterion_id
    WHERE b.system_id = %(system)s
    ORDER BY b.grader_version_id, b.criterion_id, b.criterion_digest, b.id DESC
) w
WHERE w.status = 'calibrated' AND w.valid_until <= %(until)s
ORDER BY w.valid_until, w.grader_version_id, w.criterion_id LIMIT %(limit)s
"""


def due_calibrations(system_pk: int, *, now: datetime) -> tuple[DueCalibration, ...]:
    """The judges to be calibrated again, the most pressing first. One query."""
    values: dict[str, int | datetime] = {
        "system": system_pk,
        "until": now + DUE_WITHIN,
        "limit": MOST_REMINDERS,
    }
    with connection.cursor() as cursor:
        cursor.execute(_DUE, values)
        return tuple(DueCalibration(*row) for row in cursor.fetchall())


# --- one set


class ItemShow(StrEnum):
    """Which items of a set a page lists."""

    ALL = "all"
    WAITING = "waiting"
    SETTLED = "settled"
    DIFFER = "differ"  # settled, and people said different things
    WITHDRAWN = "withdrawn"


@dataclass(frozen=True, slots=True)
class ItemLabel:
    """What somebody said of an item."""

    labeller: str
    round: int
    value: str
    reason: str
    steps: tuple[int, ...]
    given_at: datetime
    is_imported: bool


@dataclass(frozen=True, slots=True)
class SetItem:
    """An item of a set. Labels and consensus of an unsettled one are left out while people label."""

    pk: int
    uuid: UUID
    position: int
    stratum: str  # "" while people label: it would tell
    consensus: str
    settled_at: datetime | None
    withdrawn_at: datetime | None
    withdrawn_by: str  # "" where the criterion changed by itself
    withdrawn_reason: str
    trial_uuid: UUID
    task_id: str
    family: str
    release: str
    run: str
    label: str
    attempt: int
    labels: tuple[ItemLabel, ...]


@dataclass(frozen=True, slots=True)
class ItemPage:
    """One page of items, with the places of its neighbours."""

    rows: tuple[SetItem, ...]
    next_after: int | None
    previous_before: int | None


def items_of(
    of: ListedSet,
    *,
    show: ItemShow = ItemShow.ALL,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_ITEMS,
) -> ItemPage:
    """A page of the items of a set, by position. Two queries."""
    rows = _shown(of, show)
    is_back = after is None and before is not None
    if after is not None:
        rows = rows.filter(position__gt=_column(after))
    elif before is not None:
        rows = rows.filter(position__lt=_column(before))
    found = list(rows.order_by("-position" if is_back else "position")[: n + 1])
    has_more = len(found) > n
    shown = found[:n][::-1] if is_back else found[:n]
    has_next = is_back or has_more
    has_previous = has_more if is_back else after is not None
    return ItemPage(
        tuple(_items(of, shown)),
        shown[-1].position if shown and has_next else None,
        shown[0].position if shown and has_previous else None,
    )


def _shown(of: ListedSet, show: ItemShow) -> QuerySet[CalibrationItem]:
    rows = CalibrationItem.objects.filter(set=of.pk).select_related(
        "trial__task", "trial__release", "trial__run", "withdrawn_by"
    )
    match show:
        case ItemShow.ALL:
            return rows
        case ItemShow.WAITING:
            return rows.filter(settled_at=None, withdrawn_at=None)
        case ItemShow.SETTLED:
            return rows.filter(settled_at__isnull=False, withdrawn_at=None)
        case ItemShow.DIFFER:
            counted = rows.annotate(n_values=Count("labels__value", distinct=True))
            return counted.filter(settled_at__isnull=False, withdrawn_at=None, n_values__gt=1)
        case ItemShow.WITHDRAWN:
            return rows.filter(withdrawn_at__isnull=False)


def _items(of: ListedSet, rows: Sequence[CalibrationItem]) -> Iterator[SetItem]:
    told = [row.pk for row in rows if not of.is_open or row.settled_at]
    labels = _labels(told)
    for row in rows:
        trial = row.trial
        yield SetItem(
            pk=row.pk,
            uuid=row.uuid,
            position=row.position,
            stratum="" if of.is_open else row.stratum,
            consensus=row.consensus,
            settled_at=row.settled_at,
            withdrawn_at=row.withdrawn_at,
            withdrawn_by=row.withdrawn_by.printed_name if row.withdrawn_by else "",
            withdrawn_reason=row.withdrawn_reason,
            trial_uuid=trial.uuid,
            task_id=trial.task.task_id,
            family=trial.task.family,
            release=trial.release.name,
            run=trial.run.name,
            label=trial.label,
            attempt=trial.attempt,
            labels=labels.get(row.pk, ()),
        )


def _labels(item_pks: Sequence[int]) -> Mapping[int, tuple[ItemLabel, ...]]:
    found: dict[int, list[ItemLabel]] = {}
    rows = Label.objects.filter(item__in=item_pks).select_related("by")
    for row in rows.order_by("item", "round"):
        label = ItemLabel(
            labeller=row.labeller or (row.by.printed_name if row.by else ""),
            round=row.round,
            value=row.value,
            reason=row.reason,
            steps=tuple(row.cited_steps),
            given_at=row.given_at,
            is_imported=row.by_id is None,
        )
        found.setdefault(row.item_id, []).append(label)
    return {pk: tuple(labels) for pk, labels in found.items()}


@dataclass(frozen=True, slots=True)
class SetNote:
    """That somebody left an item to others, or saw what others say of it."""

    position: int
    trial_uuid: UUID
    who: str
    what: str  # "skipped", "gave up", "saw what others say"
    where: str
    reason: str  # "" while the item is not settled: it may tell
    at: datetime


_WHAT = {SeatEnding.SKIPPED.value: "skipped", SeatEnding.GIVEN_UP.value: "gave up"}


def notes_of(of: ListedSet) -> tuple[SetNote, ...]:
    """Who skipped items, gave them up, or saw what others say of them: the newest. Three queries.

    What people see once their own label is in is left out.
    """
    seats = (
        Seat.objects.filter(item__set=of.pk, ending__in=_WHAT)
        .select_related("item__trial", "by")
        .order_by("-ended_at", "-pk")[:MOST_NOTES]
    )
    notes = [
        SetNote(
            position=seat.item.position,
            trial_uuid=seat.item.trial.uuid,
            who=seat.by.printed_name,
            what=_WHAT[seat.ending],
            where="",
            reason=seat.reason if not of.is_open or seat.item.settled_at else "",
            at=seat.ended_at or seat.taken_at,
        )
        for seat in seats
    ]
    notes += _revelations(of)
    return tuple(
        sorted(notes, key=lambda note: (note.at, note.position), reverse=True)[:MOST_NOTES]
    )


def _revelations(of: ListedSet) -> list[SetNote]:
    items = CalibrationItem.objects.filter(set=of.pk)
    rows = list(
        Revelation.objects.filter(criterion=of.criterion_pk, trial__in=items.values("trial"))
        .exclude(where=AFTER_LABEL)
        .select_related("by", "trial")
        .order_by("-at", "-pk")[:MOST_NOTES]
    )
    seen = items.filter(trial__in=[row.trial_id for row in rows])
    positions = dict(seen.values_list("trial", "position"))
    return [
        SetNote(
            position=positions[row.trial_id],
            trial_uuid=row.trial.uuid,
            who=row.by.printed_name,
            what="saw what others say",
            where=row.where,
            reason="",
            at=row.at,
        )
        for row in rows
    ]


def item_of_set(set_pk: int, item: UUID) -> CalibrationItem | None:
    """The item of that id in a set; None without one. One query."""
    rows = CalibrationItem.objects.filter(set=set_pk, uuid=item).select_related("trial__task")
    return rows.first()


def all_items(of: ListedSet) -> Iterator[SetItem]:
    """The items of a set, read a page at a time. Two queries a page."""
    after: int | None = None
    while True:
        page = items_of(of, after=after)
        yield from page.rows
        if page.next_after is None:
            return
        after = page.next_after
