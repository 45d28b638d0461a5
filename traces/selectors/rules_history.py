"""The versions of a system's rules, what was decided about them, and the work on them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.strict_json import loads_text
from traces.core.values import Json
from traces.models import RulesOutcome, WorkState

PAGE_VERSIONS = 20
MOST_PROPOSALS = 20
MOST_DRAFTS = 5
MOST_SOURCES = 2_000
_LISTED_CHANGE_BYTES = 16_384  # a larger change is read on its version's own page


@dataclass(frozen=True, slots=True)
class WorkRow:
    """How far background work is."""

    state: WorkState
    n_done: int
    n_total: int | None
    failure: str
    started_at: datetime | None
    finished_at: datetime | None
    is_stop_asked: bool
    stopped_by: str

    @property
    def is_open(self) -> bool:
        """Whether a worker has still to do with it."""
        return self.state in (WorkState.WAITING, WorkState.WORKING)


@dataclass(frozen=True, slots=True)
class VersionRow:
    """One version with what became of it. `change` is None where it was made whole, or is large."""

    pk: int
    number: int
    based_on: int | None  # the number of the version before it
    change: Json
    is_whole: bool  # made whole: no change of another version
    reason: str
    created_at: datetime
    by_pk: int | None
    by_name: str
    outcome: RulesOutcome | None
    decision_reason: str
    decided_at: datetime | None
    decided_by: str
    is_shown: bool
    shown_number: int
    preview: UUID | None
    work: WorkRow | None

    @property
    def was_shown(self) -> bool:
        """Whether pages show it, or once did."""
        is_approved = self.is_whole or self.outcome is RulesOutcome.APPROVED
        return is_approved and (self.work is None or self.work.state is WorkState.DONE)

    @property
    def is_proposal(self) -> bool:
        """Whether it waits for a decision."""
        return self.outcome is None and not self.is_whole


@dataclass(frozen=True, slots=True)
class VersionPage:
    """One page of versions, newest first, with the places of its neighbours."""

    rows: tuple[VersionRow, ...]
    next_after: int | None
    previous_before: int | None


_NAME = "coalesce(nullif(trim({0}.first_name || ' ' || {0}.last_name), ''), {0}.username, '')"
_ROWS = f"""
SELECT v.id, v.number, b.number, {{change}}, v.based_on_id IS NULL, v.reason, v.created_at, v.created_by_id,
       {_NAME.format("p")}, d.outcome, coalesce(d.reason, ''), d.decided_at, {_NAME.format("q")},
       v.id = s.shown_rules_id, shown.number, w.uuid,
       j.state, j.n_done, j.n_total, j.failure, j.started_at, j.finished_at, j.is_cancel_asked,
       {_NAME.format("c")}
FROM traces_rulesversion v
JOIN traces_system s ON s.id = v.system_id
LEFT JOIN traces_rulesversion shown ON shown.id = s.shown_rules_id
LEFT JOIN traces_rulesversion b ON b.id = v.based_on_id
LEFT JOIN traces_user p ON p.id = v.created_by_id
LEFT JOIN traces_rulesdecision d ON d.rules_id = v.id
LEFT JOIN traces_user q ON q.id = d.by_id
LEFT JOIN traces_rulesjob j ON j.rules_id = v.id
LEFT JOIN traces_user c ON c.id = j.cancelled_by_id
LEFT JOIN traces_rulespreview w ON w.proposed_as_id = v.id
WHERE v.system_id = %(system)s
"""  # noqa: S608 - put together from constants
_LISTED = _ROWS.format(
    change=f"CASE WHEN pg_column_size(v.change) <= {_LISTED_CHANGE_BYTES} THEN v.change END"
)
_WHOLE = _ROWS.format(change="v.change")


def version_page(
    system_id: int, *, after: int | None = None, before: int | None = None, n: int = PAGE_VERSIONS
) -> VersionPage:
    """One page of the history, newest first, in one query. Places are numbers of versions."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    found = _versions(
        _LISTED + f" AND (%(place)s::bigint IS NULL OR v.number {sign} %(place)s)"
        f" ORDER BY v.number {way} LIMIT %(n)s",
        {"system": system_id, "place": place, "n": n + 1},
    )
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return VersionPage(
        rows=rows,
        next_after=rows[-1].number if rows and has_next else None,
        previous_before=rows[0].number if rows and has_previous else None,
    )


def open_proposals(system_id: int, *, n: int = MOST_PROPOSALS) -> tuple[VersionRow, ...]:
    """Versions that wait for a decision, newest first, in one query."""
    return tuple(
        _versions(
            _LISTED + " AND d.rules_id IS NULL AND v.based_on_id IS NOT NULL"
            " ORDER BY v.number DESC LIMIT %(n)s",
            {"system": system_id, "n": n},
        )
    )


def unfinished_work(system_id: int) -> VersionRow | None:
    """The newest approved version that is not in force yet, with its work; None without one."""
    found = _versions(
        _LISTED + " AND j.state <> 'done' AND v.number > shown.number"
        " ORDER BY v.number DESC LIMIT 1",
        {"system": system_id},
    )
    return found[0] if found else None


def version_row(system_id: int, number: int) -> VersionRow | None:
    """The version of that number with its whole change; None when there is none."""
    found = _versions(
        _WHOLE + " AND v.number = %(number)s", {"system": system_id, "number": number}
    )
    return found[0] if found else None


def _versions(query: str, values: dict[str, Any]) -> list[VersionRow]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [_version(row) for row in cursor.fetchall()]


def _version(row: tuple[Any, ...]) -> VersionRow:
    pk, number, based_on, change, is_whole, *rest = row
    reason, created_at, by_pk, by_name, outcome, why, decided_at, decided_by, *rest = rest
    is_shown, shown_number, preview, state, *work = rest
    return VersionRow(
        pk=pk,
        number=number,
        based_on=based_on,
        change=None if change is None else loads_text(change),
        is_whole=is_whole,
        reason=reason,
        created_at=created_at,
        by_pk=by_pk,
        by_name=by_name,
        outcome=RulesOutcome(outcome) if outcome else None,
        decision_reason=why,
        decided_at=decided_at,
        decided_by=decided_by,
        is_shown=bool(is_shown),
        shown_number=shown_number or 0,
        preview=preview,
        work=WorkRow(WorkState(state), *work) if state else None,
    )


@dataclass(frozen=True, slots=True)
class Draft:
    """A preview of a person that nobody has proposed."""

    uuid: UUID
    state: WorkState
    asked_at: datetime
    change: Json  # None where it is large


def drafts_of(system_id: int, user_id: int, *, n: int = MOST_DRAFTS) -> tuple[Draft, ...]:
    """The newest previews of a person that were not proposed, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT uuid, state, asked_at,"
            " CASE WHEN pg_column_size(change) <= %s THEN change END"
            " FROM traces_rulespreview"
            " WHERE system_id = %s AND by_id = %s AND proposed_as_id IS NULL"
            " ORDER BY id DESC LIMIT %s",
            [_LISTED_CHANGE_BYTES, system_id, user_id, n],
        )
        return tuple(
            Draft(uuid, WorkState(state), asked_at, None if change is None else loads_text(change))
            for uuid, state, asked_at, change in cursor.fetchall()
        )


def changes_up_to(system_id: int, number: int) -> tuple[tuple[int, Json], ...]:
    """The approved changes from a version back to one that was made whole, newest first.

    The last entry is the whole one, with None. In one query.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.number, v.change FROM traces_rulesversion v"
            " LEFT JOIN traces_rulesdecision d ON d.rules_id = v.id"
            " WHERE v.system_id = %(system)s AND v.number <= %(number)s"
            " AND (v.based_on_id IS NULL OR d.outcome = 'approved')"
            " AND v.number >= (SELECT coalesce(max(number), 0) FROM traces_rulesversion"
            "  WHERE system_id = %(system)s AND number <= %(number)s AND based_on_id IS NULL)"
            " ORDER BY v.number DESC LIMIT %(most)s",
            {"system": system_id, "number": number, "most": MOST_SOURCES},
        )
        return tuple(
            (each, None if change is None else loads_text(change))
            for each, change in cursor.fetchall()
        )
