"""Cases follow dispositions: opened, brought up to date and closed as trials are decided.

The state of a case depends on the disposition of its trial alone, however often and in whatever
order trials are decided; what people did to it stays. Its history says what happened when.
"""

from __future__ import annotations

import json
import logging
import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from evalsite.common.copying import copy_rows
from reviews.core.cases import DecidedCase
from reviews.core.disposition import NextAction
from reviews.models import CaseEventKind, CaseState
from traces.core.records import Disposition
from traces.core.text_marks import clean_text

log = logging.getLogger("evalsite.cases")

LONGEST_WHY = 600  # characters of one reason, as its column takes
_OPEN, _CLOSED, _ASIDE = CaseState.OPEN.value, CaseState.CLOSED.value, CaseState.SET_ASIDE.value
_WORKED_BY = {action.value: action.worked_by.value for action in NextAction}

LATER_ATTEMPT = "A later attempt stands for its slot."
CLOSED_BY = {
    Disposition.PASS.value: "The trial passes: every requirement passes.",
    Disposition.FAIL.value: "The trial fails: a requirement of it failed.",
    Disposition.HARNESS_ERROR.value: LATER_ATTEMPT,
}
"""Why a case closed by itself, by the disposition that its trial has now."""
NOT_DECIDED = "The evidence does not decide the trial any more."
HARNESS_BROKE = "The harness broke, and no later attempt stands for the slot."
OTHER_ACTIONS = "It was set aside, and its next actions are others now."


def is_case(decided: DecidedCase) -> bool:
    """Whether somebody has to work on a trial that was decided like this."""
    if decided.disposition == Disposition.HARNESS_ERROR.value:
        return decided.stands
    return decided.disposition == Disposition.UNRESOLVED.value


@dataclass(frozen=True, slots=True)
class _Row:
    """A stored case, as far as dispositions move it."""

    id: int
    trial_id: int
    state: str
    disposition: str
    next_actions: tuple[str, ...]
    action: str
    worked_by: str
    why: tuple[str, ...]
    n_opened: int
    opened_at: datetime
    closed_at: datetime | None
    is_reopened: bool = False


_Event = tuple[int, str, str, dict[str, Any]]  # case, kind, text, detail


def follow_dispositions(decided: Iterable[DecidedCase], *, now: datetime) -> int:
    """Open, change and close the cases of trials that were decided. Returns how many it touched.

    Part of the transaction that decides the trials, under the locks of their releases. A trial
    given twice counts as it was given last. Five statements at most, however many trials.
    """
    by_trial = {one.trial_id: one for one in decided}
    if not by_trial:
        return 0
    stored = _stored(sorted(by_trial))
    known = {row.trial_id for row in stored}
    fresh = [one for one in by_trial.values() if one.trial_id not in known and is_case(one)]
    _open_new(fresh, now)
    moving = [r.id for r in stored if _moved(r, by_trial.get(r.trial_id), now)[0] != r]
    changed: list[_Row] = []
    events: list[_Event] = []
    # Only what moves is locked, and looked at again: somebody may have set it aside meanwhile.
    for row in _locked(moving):
        moved, event = _moved(row, by_trial.get(row.trial_id), now)
        if moved != row:
            changed.append(moved)
        if event is not None:
            events.append(event)
    _write_events(events, now)  # first: they look at the cases as they were
    _update(changed)
    if fresh or events:
        n_closed = sum(kind == CaseEventKind.CLOSED.value for _, kind, _, _ in events)
        opened_again = len(events) - n_closed
        log.info(
            "cases follow", extra={"n_opened": len(fresh) + opened_again, "n_closed": n_closed}
        )
    return len(fresh) + len(changed)


def _moved(row: _Row, one: DecidedCase | None, now: datetime) -> tuple[_Row, _Event | None]:
    """A stored case as the decision leaves it. None: a later attempt of the slot was decided."""
    if one is None or not is_case(one):
        return _closed(row, one, now)
    actions = one.actions
    moved = replace(
        row,
        disposition=one.disposition,
        next_actions=actions,
        action=actions[0] if actions else row.action,
        worked_by=_WORKED_BY[actions[0]] if actions else row.worked_by,
        why=_why(one),
    )
    if row.state == _OPEN or (row.state == _ASIDE and actions == row.next_actions):
        return moved, None
    moved = replace(
        moved,
        state=_OPEN,
        n_opened=row.n_opened + 1,
        opened_at=now,
        closed_at=None,
        is_reopened=True,
    )
    text = OTHER_ACTIONS if row.state == _ASIDE else _opened_by(one)
    return moved, _event(row, CaseEventKind.OPENED, text, one)


def _closed(row: _Row, one: DecidedCase | None, now: datetime) -> tuple[_Row, _Event | None]:
    disposition = row.disposition if one is None else one.disposition
    if row.state == _CLOSED:
        return replace(row, disposition=disposition), None
    moved = replace(
        row, state=_CLOSED, disposition=disposition, next_actions=(), why=(), closed_at=now
    )
    text = LATER_ATTEMPT if one is None else CLOSED_BY[disposition]
    return moved, _event(row, CaseEventKind.CLOSED, text, one)


def _opened_by(one: DecidedCase) -> str:
    is_broken = one.disposition == Disposition.HARNESS_ERROR.value
    return HARNESS_BROKE if is_broken else NOT_DECIDED


def _event(row: _Row, kind: CaseEventKind, text: str, one: DecidedCase | None) -> _Event:
    disposition = row.disposition if one is None else one.disposition
    detail = {
        "disposition": disposition,
        "actions": list(one.actions) if one else [],
        "opened_at": row.opened_at.isoformat(),  # the row forgets it when the case opens again
    }
    return row.id, kind.value, text, detail


def _why(one: DecidedCase) -> tuple[str, ...]:
    if one.disposition == Disposition.HARNESS_ERROR.value:
        return ()  # what is open of a broken trial is void
    return tuple(clean_text(name)[:LONGEST_WHY] for name in one.open_criteria)


# The cases of the trials, and of earlier attempts of their slots, which stand no longer.
_COLUMNS_OF_ROW = """
SELECT id, trial_id, state, disposition, next_actions, action, worked_by, why, n_opened,
       opened_at, closed_at FROM reviews_case
"""
_STORED = f"""
{_COLUMNS_OF_ROW} WHERE trial_id = ANY(ARRAY(
    SELECT unnest(%(trials)s::int8[])
    UNION
    SELECT o.id FROM (SELECT * FROM traces_trial WHERE id = ANY(%(trials)s) AND attempt > 1
                      OFFSET 0) t
    JOIN traces_trial o ON o.run_id = t.run_id AND o.task_id = t.task_id AND o.label = t.label
         AND o.attempt < t.attempt AND o.status = 'error'))
ORDER BY id
"""  # noqa: S608
_LOCKED = f"{_COLUMNS_OF_ROW} WHERE id = ANY(%(ids)s) ORDER BY id FOR NO KEY UPDATE"


def _stored(trial_ids: list[int]) -> list[_Row]:
    return _rows(_STORED, {"trials": trial_ids})


def _locked(ids: list[int]) -> list[_Row]:
    return _rows(_LOCKED, {"ids": ids}) if ids else []


def _rows(query: str, values: dict[str, list[int]]) -> list[_Row]:
    with connection.cursor() as cursor:
        cursor.execute(query, values)
        return [
            _Row(
                pk, trial, state, disposition, tuple(actions), action, worked_by, tuple(why), *more
            )
            for pk, trial, state, disposition, actions, action, worked_by, why, *more in (
                cursor.fetchall()
            )
        ]


_COLUMNS = (
    ("uuid", "uuid"),
    ("system_id", "int8"),
    ("trial_id", "int8"),
    ("task_id", "int8"),
    ("release_id", "int8"),
    ("state", "text"),
    ("disposition", "text"),
    ("next_actions", "varchar[]"),
    ("action", "text"),
    ("worked_by", "text"),
    ("why", "varchar[]"),
    ("n_opened", "int4"),
    ("opened_at", "timestamptz"),
    ("n_comments", "int4"),
)


def _open_new(fresh: Sequence[DecidedCase], now: datetime) -> None:
    if not fresh:
        return
    rows = (
        (
            uuid.uuid4(),
            one.system_id,
            one.trial_id,
            one.task_id,
            one.release_id,
            _OPEN,
            one.disposition,
            list(one.actions),
            one.actions[0],
            _WORKED_BY[one.actions[0]],
            list(_why(one)),
            1,
            now,
            0,
        )
        for one in fresh
    )
    copy_rows("reviews_case", _COLUMNS, rows)


_UPDATE = """
UPDATE reviews_case c SET state = w.state, disposition = w.disposition,
    next_actions = w.next_actions, action = w.action, worked_by = w.worked_by, why = w.why,
    n_opened = w.n_opened, opened_at = w.opened_at, closed_at = w.closed_at,
    due_on = CASE WHEN w.is_reopened THEN NULL ELSE c.due_on END
FROM jsonb_to_recordset(%s::jsonb) AS w(id int8, state text, disposition text,
    next_actions varchar[], action text, worked_by text, why varchar[], n_opened int4,
    opened_at timestamptz, closed_at timestamptz, is_reopened bool)
WHERE c.id = w.id
"""


def _update(rows: Sequence[_Row]) -> None:
    if not rows:
        return
    documents = [
        {
            "id": row.id,
            "state": row.state,
            "disposition": row.disposition,
            "next_actions": row.next_actions,
            "action": row.action,
            "worked_by": row.worked_by,
            "why": row.why,
            "n_opened": row.n_opened,
            "opened_at": row.opened_at.isoformat(),
            "closed_at": row.closed_at and row.closed_at.isoformat(),
            "is_reopened": row.is_reopened,
        }
        for row in rows
    ]
    with connection.cursor() as cursor:
        cursor.execute(_UPDATE, [json.dumps(documents)])


# Beside a closing or opening stands the last thing that came before it and may have caused it: a
# verdict that is not the product's own, added evidence, a decision on a dispute, a mark or its
# withdrawal, an approved contract. OFFSET 0: an index look-up a trial, never a walk along the
# primary key.
_EVENTS = """
INSERT INTO reviews_caseevent (case_id, kind, text, detail, at)
SELECT w.case_id, w.kind, w.text,
       w.detail || CASE WHEN l.what IS NULL THEN '{}'::jsonb
           ELSE jsonb_build_object('after', l.what) END, %(now)s
FROM jsonb_to_recordset(%(events)s::jsonb)
     AS w(nr int8, case_id int8, kind text, text text, detail jsonb)
JOIN reviews_case c ON c.id = w.case_id
LEFT JOIN LATERAL (SELECT u.what FROM (
    (SELECT v.created_at AS at, jsonb_build_object('kind', 'verdict', 'criterion', k.name,
         'value', v.value, 'grader',
         coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, g.name)) AS what
     FROM (SELECT * FROM reviews_verdict WHERE trial_id = c.trial_id OFFSET 0) v
     JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
     JOIN reviews_grader g ON g.id = gv.grader_id JOIN reviews_criterion k ON k.id = v.criterion_id
     LEFT JOIN traces_user p ON p.id = v.by_id
     WHERE v.contract_id IS NULL OR v.by_id IS NOT NULL ORDER BY v.id DESC LIMIT 1)
    UNION ALL
    (SELECT a.added_at, jsonb_build_object('kind', 'evidence', 'order', a."order", 'parts', a.parts)
     FROM traces_evidenceaddition a WHERE a.trial_id = c.trial_id ORDER BY a."order" DESC LIMIT 1)
    UNION ALL
    (SELECT j.decided_at, jsonb_build_object('kind', 'adjudication', 'criterion', k.name,
         'ruling', j.ruling, 'is_by_party', j.is_by_party, 'by',
         coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username))
     FROM (SELECT * FROM reviews_adjudication WHERE trial_id = c.trial_id OFFSET 0) j
     JOIN reviews_criterion k ON k.id = j.criterion_id JOIN traces_user p ON p.id = j.by_id
     ORDER BY j.id DESC LIMIT 1)
    UNION ALL
    (SELECT coalesce(x.withdrawn_at, m.marked_at), jsonb_build_object('kind',
         CASE WHEN x.mark_id IS NULL THEN 'mark' ELSE 'withdrawal' END, 'criterion', m.criterion,
         'mark', m.mark)
     FROM reviews_checkmark m LEFT JOIN reviews_checkmarkwithdrawal x ON x.mark_id = m.id
     WHERE m.task_id = c.task_id ORDER BY 1 DESC LIMIT 1)
    UNION ALL
    (SELECT y.decided_at, jsonb_build_object('kind', 'contract', 'number', n.number)
     FROM traces_task t JOIN traces_contractversion n ON n.id = t.contract_id
     JOIN traces_contractdecision y ON y.proposal_id = n.proposal_id WHERE t.id = c.task_id)
) u WHERE u.at >= coalesce((SELECT max(e.at) FROM reviews_caseevent e WHERE e.case_id = c.id
    AND e.kind = ANY(%(turns)s)), c.opened_at) ORDER BY u.at DESC LIMIT 1) l ON true
ORDER BY w.nr
"""
_TURNS = [CaseEventKind.OPENED.value, CaseEventKind.CLOSED.value]


def _write_events(events: Sequence[_Event], now: datetime) -> None:
    if not events:
        return
    documents = [
        {"nr": nr, "case_id": case_id, "kind": kind, "text": text, "detail": detail}
        for nr, (case_id, kind, text, detail) in enumerate(events)
    ]
    with connection.cursor() as cursor:
        cursor.execute(_EVENTS, {"events": json.dumps(documents), "now": now, "turns": _TURNS})
