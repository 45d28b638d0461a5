"""Contracts of a system's tasks: what is in effect, what waits, and the history of each."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeVar
from uuid import UUID

from django.db import connection

from traces.models import ContractOutcome, WorkState

PAGE_TASKS = 100
PAGE_PROPOSALS = 30
PAGE_VERSIONS = 20
MOST_DRAFTS = 5

Row = TypeVar("Row")


class ContractState(StrEnum):
    """Which tasks a list of contracts shows."""

    ALL = "all"
    IN_EFFECT = "with"
    NONE = "without"
    WAITING = "waiting"  # for a decision, or for its regrade


@dataclass(frozen=True, slots=True)
class ContractFilter:
    """Which tasks of a system. "" leaves a choice open."""

    system_id: int
    state: ContractState = ContractState.ALL
    family: str = ""
    words: str = ""  # looked for in task id and title, letter case aside


@dataclass(frozen=True, slots=True)
class ContractRow:
    """A task with its contract."""

    pk: int
    uuid: UUID
    task_id: str
    title: str
    family: str
    split: str
    n_trials: int  # slots of all releases
    version: UUID | None  # in effect
    number: int | None
    waiting: int | None  # the number of a proposal that is undecided, or approved and unfinished
    is_waiting_approved: bool


@dataclass(frozen=True, slots=True)
class ContractPage:
    """One page of tasks, with the places of its neighbours."""

    rows: tuple[ContractRow, ...]
    next_after: int | None
    previous_before: int | None


@dataclass(frozen=True, slots=True)
class ContractTotals:
    """Tasks of a system, the other choices of a filter left aside."""

    n_all: int
    n_in_effect: int
    n_waiting: int
    families: tuple[str, ...]

    @property
    def n_none(self) -> int:
        """Tasks without a contract in effect."""
        return self.n_all - self.n_in_effect

    def of(self, state: ContractState) -> int:
        """How many tasks a state shows."""
        return {
            ContractState.ALL: self.n_all,
            ContractState.IN_EFFECT: self.n_in_effect,
            ContractState.NONE: self.n_none,
            ContractState.WAITING: self.n_waiting,
        }[state]


# The newest proposal of a task that is not done with: undecided, or approved and unfinished.
_WAITING = """
SELECT p.number, d.outcome IS NOT NULL AS approved
FROM traces_contractversion v
JOIN traces_contractproposal p ON p.id = v.proposal_id
LEFT JOIN traces_contractdecision d ON d.proposal_id = p.id
LEFT JOIN reviews_regrade g ON g.proposal_id = p.id
WHERE v.task_id = t.id
  AND (d.outcome IS NULL OR d.outcome = 'approved' AND g.state IS NOT NULL AND g.state <> 'done')
ORDER BY p.number DESC LIMIT 1
"""
_TASKS = f"""
FROM traces_task t
LEFT JOIN traces_contractversion c ON c.id = t.contract_id
LEFT JOIN LATERAL ({_WAITING}) w ON true
WHERE t.system_id = %(system)s
  AND (%(family)s = '' OR t.family = %(family)s)
  AND (%(words)s = '' OR t.task_id ILIKE %(like)s OR t.title ILIKE %(like)s)
"""
_STATES = {
    ContractState.ALL: "true",
    ContractState.IN_EFFECT: "t.contract_id IS NOT NULL",
    ContractState.NONE: "t.contract_id IS NULL",
    ContractState.WAITING: "w.number IS NOT NULL",
}


def _values(chosen: ContractFilter) -> dict[str, Any]:
    escaped = chosen.words.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")
    return {
        "system": chosen.system_id,
        "family": chosen.family,
        "words": chosen.words,
        "like": f"%{escaped}%",
    }


def contract_page(
    chosen: ContractFilter,
    *,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_TASKS,
) -> ContractPage:
    """One page of tasks in natural order, in one query. Places are ids of tasks."""
    backward = before is not None
    place = after if before is None else before
    sign, way = ("<", "DESC") if backward else (">", "ASC")
    query = f"""
    SELECT t.id, t.uuid, t.task_id, t.title, t.family, t.split,
           coalesce((SELECT f.n_run + f.n_left_out FROM traces_taskfigures f
                     WHERE f.task_id = t.id AND f.release_id IS NULL), 0),
           c.uuid, c.number, w.number, coalesce(w.approved, false)
    {_TASKS} AND {_STATES[chosen.state]}
      AND (%(place)s::bigint IS NULL OR (t.sort_key, t.id) {sign}
           (SELECT k.sort_key, k.id FROM traces_task k
            WHERE k.id = %(place)s AND k.system_id = %(system)s))
    ORDER BY t.sort_key {way}, t.id {way} LIMIT %(n)s
    """  # noqa: S608 - put together from constants
    with connection.cursor() as cursor:
        cursor.execute(query, {**_values(chosen), "place": place, "n": n + 1})
        found = [ContractRow(*row) for row in cursor.fetchall()]
    rows, next_after, previous_before = _paged(found, n, place, backward=backward)
    return ContractPage(
        rows,
        rows[-1].pk if rows and next_after else None,
        rows[0].pk if rows and previous_before else None,
    )


def contract_totals(chosen: ContractFilter) -> ContractTotals:
    """How many tasks each state has under the filter's family and words, and all families."""
    query = f"""
    SELECT count(*), count(t.contract_id), count(w.number),
           (SELECT coalesce(array_agg(DISTINCT k.family ORDER BY k.family), '{{}}')
            FROM traces_task k WHERE k.system_id = %(system)s AND k.family <> '')
    {_TASKS}
    """  # noqa: S608 - put together from constants
    with connection.cursor() as cursor:
        cursor.execute(query, _values(chosen))
        n_all, n_in_effect, n_waiting, families = cursor.fetchone()
    return ContractTotals(n_all, n_in_effect, n_waiting, tuple(families))


@dataclass(frozen=True, slots=True)
class ProposalRow:
    """A proposal with what became of it."""

    pk: int
    uuid: UUID
    number: int
    reason: str
    created_at: datetime
    by_pk: int
    by_name: str
    n_tasks: int
    tasks: tuple[str, ...]  # the first ones, in natural order
    outcome: ContractOutcome | None
    decision_reason: str
    decided_at: datetime | None
    decided_by: str
    preview: UUID | None
    regrade: int | None  # its number
    regrade_state: WorkState | None
    regrade_done: int
    regrade_total: int | None

    @property
    def is_open(self) -> bool:
        """Whether it waits for a decision."""
        return self.outcome is None


@dataclass(frozen=True, slots=True)
class ProposalPage:
    """One page of proposals, newest first, with the places of its neighbours."""

    rows: tuple[ProposalRow, ...]
    next_after: int | None
    previous_before: int | None


_NAME = "coalesce(nullif(trim({0}.first_name || ' ' || {0}.last_name), ''), {0}.username, '')"
_SHOWN_TASKS = 5
_PROPOSALS = f"""
SELECT p.id, p.uuid, p.number, p.reason, p.created_at, p.created_by_id, {_NAME.format("u")},
       (SELECT count(*) FROM traces_contractversion v WHERE v.proposal_id = p.id),
       ARRAY(SELECT t.task_id FROM traces_contractversion v JOIN traces_task t ON t.id = v.task_id
             WHERE v.proposal_id = p.id ORDER BY t.sort_key, t.id LIMIT {_SHOWN_TASKS}),
       d.outcome, coalesce(d.reason, ''), d.decided_at, {_NAME.format("q")},
       w.uuid, g.number, g.state, g.n_done, g.n_total
FROM traces_contractproposal p
JOIN traces_user u ON u.id = p.created_by_id
LEFT JOIN traces_contractdecision d ON d.proposal_id = p.id
LEFT JOIN traces_user q ON q.id = d.by_id
LEFT JOIN traces_contractpreview w ON w.id = p.preview_id
LEFT JOIN reviews_regrade g ON g.proposal_id = p.id
WHERE p.system_id = %(system)s
"""  # noqa: S608 - put together from constants


def proposal_page(
    system_id: int,
    *,
    after: int | None = None,
    before: int | None = None,
    only_open: bool = False,
    n: int = PAGE_PROPOSALS,
) -> ProposalPage:
    """One page of proposals, newest first, in one query. Places are numbers of proposals."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    found = _proposals(
        _PROPOSALS
        + (" AND d.outcome IS NULL" if only_open else "")
        + f" AND (%(place)s::bigint IS NULL OR p.number {sign} %(place)s)"
        f" ORDER BY p.number {way} LIMIT %(n)s",
        {"system": system_id, "place": place, "n": n + 1},
    )
    rows, next_after, previous_before = _paged(found, n, place, backward=backward)
    return ProposalPage(
        rows,
        rows[-1].number if rows and next_after else None,
        rows[0].number if rows and previous_before else None,
    )


def proposal_row(system_id: int, number: int) -> ProposalRow | None:
    """The proposal of that number; None when there is none."""
    found = _proposals(
        _PROPOSALS + " AND p.number = %(number)s", {"system": system_id, "number": number}
    )
    return found[0] if found else None


def n_open_proposals(system_id: int) -> int:
    """How many proposals wait for a decision."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM traces_contractproposal p WHERE p.system_id = %s AND NOT EXISTS"
            " (SELECT 1 FROM traces_contractdecision d WHERE d.proposal_id = p.id)",
            [system_id],
        )
        return int(cursor.fetchone()[0])


def _proposals(query: str, values: dict[str, Any]) -> list[ProposalRow]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [_proposal(row) for row in cursor.fetchall()]


def _proposal(row: tuple[Any, ...]) -> ProposalRow:
    *head, tasks, outcome, why, at, by, preview, regrade, state, n_done, n_total = row
    decided = (ContractOutcome(outcome) if outcome else None, why, at, by)
    work = (regrade, WorkState(state) if state else None, n_done or 0, n_total)
    return ProposalRow(*(*head, tuple(tasks), *decided, preview, *work))


@dataclass(frozen=True, slots=True)
class VersionRow:
    """A version of a task's contract with what became of it. `text` is "" in lists."""

    pk: int
    uuid: UUID
    number: int
    text: str
    digest: UUID
    task_pk: int
    task_uuid: UUID
    task_id: str
    task_title: str
    based_on: UUID | None
    based_on_number: int | None
    is_in_effect: bool
    proposal: int
    reason: str
    created_at: datetime
    by_name: str
    outcome: ContractOutcome | None
    decided_at: datetime | None
    decided_by: str
    regrade: int | None
    regrade_state: WorkState | None


@dataclass(frozen=True, slots=True)
class VersionPage:
    """One page of a task's versions, newest first, with the places of its neighbours."""

    rows: tuple[VersionRow, ...]
    next_after: int | None
    previous_before: int | None


_VERSIONS = f"""
SELECT v.id, v.uuid, v.number, {{text}}, v.digest, t.id, t.uuid, t.task_id, t.title,
       b.uuid, b.number, coalesce(t.contract_id = v.id, false), p.number, p.reason, p.created_at,
       {_NAME.format("u")}, d.outcome, d.decided_at, {_NAME.format("q")}, g.number, g.state
FROM traces_contractversion v
JOIN traces_task t ON t.id = v.task_id
JOIN traces_contractproposal p ON p.id = v.proposal_id
JOIN traces_user u ON u.id = p.created_by_id
LEFT JOIN traces_contractversion b ON b.id = v.based_on_id
LEFT JOIN traces_contractdecision d ON d.proposal_id = p.id
LEFT JOIN traces_user q ON q.id = d.by_id
LEFT JOIN reviews_regrade g ON g.proposal_id = p.id
WHERE p.system_id = %(system)s
"""  # noqa: S608 - put together from constants
_LISTED = _VERSIONS.format(text="''")
_WHOLE = _VERSIONS.format(text="v.text")


def version_page(
    system_id: int,
    task_pk: int,
    *,
    after: int | None = None,
    before: int | None = None,
    n: int = PAGE_VERSIONS,
) -> VersionPage:
    """One page of a task's versions, newest first, in one query. Places are their numbers."""
    backward = before is not None
    place = after if before is None else before
    sign, way = (">", "ASC") if backward else ("<", "DESC")
    found = _versions(
        _LISTED
        + f" AND v.task_id = %(task)s AND (%(place)s::bigint IS NULL OR v.number {sign} %(place)s)"
        f" ORDER BY v.number {way} LIMIT %(n)s",
        {"system": system_id, "task": task_pk, "place": place, "n": n + 1},
    )
    rows, next_after, previous_before = _paged(found, n, place, backward=backward)
    return VersionPage(
        rows,
        rows[-1].number if rows and next_after else None,
        rows[0].number if rows and previous_before else None,
    )


def version_row(system_id: int, identity: UUID) -> VersionRow | None:
    """A version with its text; None when the system has none of that address."""
    found = _versions(_WHOLE + " AND v.uuid = %(uuid)s", {"system": system_id, "uuid": identity})
    return found[0] if found else None


def version_in_effect(system_id: int, task_pk: int) -> VersionRow | None:
    """The version in effect for a task, with its text; None without one."""
    found = _versions(
        _WHOLE + " AND v.task_id = %(task)s AND t.contract_id = v.id",
        {"system": system_id, "task": task_pk},
    )
    return found[0] if found else None


def version_before(version: VersionRow, system_id: int) -> VersionRow | None:
    """What a version is compared with: the one in effect when it was proposed, with its text."""
    return None if version.based_on is None else version_row(system_id, version.based_on)


def versions_of_proposal(system_id: int, proposal: int) -> tuple[VersionRow, ...]:
    """The versions of a proposal with their texts, by task, in one query."""
    return tuple(
        _versions(
            _WHOLE + " AND p.number = %(proposal)s ORDER BY t.sort_key, t.id",
            {"system": system_id, "proposal": proposal},
        )
    )


def texts_of(system_id: int, uuids: list[UUID]) -> dict[UUID, str]:
    """The texts of some versions of a system, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.uuid, v.text FROM traces_contractversion v"
            " JOIN traces_contractproposal p ON p.id = v.proposal_id"
            " WHERE p.system_id = %s AND v.uuid = ANY(%s)",
            [system_id, uuids],
        )
        return dict(cursor.fetchall())


def _versions(query: str, values: dict[str, Any]) -> list[VersionRow]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [_version(row) for row in cursor.fetchall()]


def _version(row: tuple[Any, ...]) -> VersionRow:
    *head, outcome, decided_at, decided_by, regrade, state = row
    decided = (ContractOutcome(outcome) if outcome else None, decided_at, decided_by)
    return VersionRow(*(*head, *decided, regrade, WorkState(state) if state else None))


@dataclass(frozen=True, slots=True)
class TaskContract:
    """A task that exists, with the contract in effect."""

    task_id: str
    uuid: UUID
    sort_key: str
    number: int | None  # None without a contract
    text: str


def task_contracts(system_id: int, task_ids: list[str]) -> dict[str, TaskContract]:
    """Those of some tasks that exist, by id, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.task_id, t.uuid, t.sort_key, v.number, coalesce(v.text, '')"
            " FROM traces_task t LEFT JOIN traces_contractversion v ON v.id = t.contract_id"
            " WHERE t.system_id = %s AND t.task_id = ANY(%s)",
            [system_id, task_ids],
        )
        return {row[0]: TaskContract(*row) for row in cursor.fetchall()}


@dataclass(frozen=True, slots=True)
class EffectiveContract:
    """A contract in effect, as exports and the API give it."""

    task_id: str
    version: UUID
    number: int
    digest: UUID
    text: str


def contracts_in_effect(system_id: int, *, task_id: str = "") -> tuple[EffectiveContract, ...]:
    """All contracts in effect by task, in one query; of one task where it is named."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.task_id, v.uuid, v.number, v.digest, v.text FROM traces_task t"
            " JOIN traces_contractversion v ON v.id = t.contract_id"
            " WHERE t.system_id = %(system)s AND (%(task)s = '' OR t.task_id = %(task)s)"
            " ORDER BY t.sort_key, t.id",
            {"system": system_id, "task": task_id},
        )
        return tuple(EffectiveContract(*row) for row in cursor.fetchall())


@dataclass(frozen=True, slots=True)
class Draft:
    """A preview of a person that nobody has proposed."""

    uuid: UUID
    state: WorkState
    asked_at: datetime
    tasks: tuple[str, ...]


def drafts_of(system_id: int, user_id: int, *, n: int = MOST_DRAFTS) -> tuple[Draft, ...]:
    """The newest previews of a person that were not proposed, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT w.uuid, w.state, w.asked_at,"
            " ARRAY(SELECT jsonb_object_keys(w.texts) ORDER BY 1)"
            " FROM traces_contractpreview w"
            " WHERE w.system_id = %s AND w.by_id = %s AND NOT EXISTS"
            "  (SELECT 1 FROM traces_contractproposal p WHERE p.preview_id = w.id)"
            " ORDER BY w.id DESC LIMIT %s",
            [system_id, user_id, n],
        )
        return tuple(
            Draft(uuid, WorkState(state), asked_at, tuple(tasks))
            for uuid, state, asked_at, tasks in cursor.fetchall()
        )


@dataclass(frozen=True, slots=True)
class MarkRow:
    """A mark on a criterion or the fixture of a task."""

    uuid: UUID
    criterion: str  # "": the fixture
    criterion_digest: UUID | None
    mark: str
    reason: str
    by_name: str
    marked_at: datetime
    trial: UUID | None
    is_withdrawn: bool


def marks_of(task_pk: int, *, n: int = 50) -> tuple[MarkRow, ...]:
    """The newest marks on a task's checks and fixture, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT m.uuid, m.criterion, m.criterion_digest, m.mark, m.reason,"  # noqa: S608
            f" {_NAME.format('u')}, m.marked_at, t.uuid, x.mark_id IS NOT NULL"
            " FROM reviews_checkmark m JOIN traces_user u ON u.id = m.by_id"
            " LEFT JOIN reviews_checkmarkwithdrawal x ON x.mark_id = m.id"
            " LEFT JOIN traces_trial t ON t.id = m.trial_id"
            " WHERE m.task_id = %s ORDER BY m.id DESC LIMIT %s",
            [task_pk, n],
        )
        return tuple(MarkRow(*row) for row in cursor.fetchall())


def _paged(
    found: list[Row], n: int, place: int | None, *, backward: bool
) -> tuple[tuple[Row, ...], bool, bool]:
    """The rows of a page, whether more follow, and whether more stand before."""
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    return (rows, True, has_more) if backward else (rows, has_more, place is not None)
