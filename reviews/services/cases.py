"""What people do to cases: assign, date, comment, set aside, take up, ask for a rerun.

A case is a working row; each act on it is an event of its history, which only grows.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from django.db import connection, transaction

from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from reviews.models import Case, CaseEvent, CaseEventKind, CaseState
from reviews.permissions.cases import (
    assignee_refusal,
    commenting_refusal,
    open_refusal,
    rerun_refusal,
    taking_up_refusal,
    working_refusal,
)
from reviews.permissions.flags import role_in
from traces.core.text_marks import clean_text, count_marks
from traces.models import Role, User

log = logging.getLogger("evalsite.cases")

LONGEST_TEXT = 2_000  # characters of a comment or reason
MOST_ASSIGNED = 200  # cases in one act
LAST_YEAR = 2200  # of a due date
NO_REASON = "Say why: the reason is what the next person reads."
NO_COMMENT = "Write something: a comment is what the next person reads."
NOT_OF_SYSTEM = "A chosen case is not one of this system. Nothing was assigned."


class CaseError(Exception):
    """A refusal, with its sentence for people."""


class CaseDeniedError(CaseError):
    """Somebody who may not do that."""


@dataclass(frozen=True, slots=True)
class Assigned:
    """What came of assigning cases: each refusal once, in the order of the cases."""

    n_assigned: int
    n_unchanged: int
    refusals: tuple[str, ...]


@transaction.atomic
def assign_cases(
    cases: Iterable[Case],
    *,
    to: User | None,
    by: User,
    now: datetime,
    seen: Mapping[int, int | None] | None = None,
) -> Assigned:
    """Give open cases of one system to a person, or to nobody (`to` None).

    A case that cannot be given to them stays as it is, and its reason is returned. `seen` holds
    the assignee that the page showed, by case: where somebody else has it by now, it stays theirs.
    Raises `CaseDeniedError` when `by` may not work on cases, `CaseError` for cases of several
    systems or too many.
    """
    locked = _locked(cases)
    if len({case.system_id for case in locked}) != 1:
        raise CaseError(NOT_OF_SYSTEM)
    if len(locked) > MOST_ASSIGNED:
        raise CaseError(f"At most {MOST_ASSIGNED} cases are assigned at once.")
    system_id = locked[0].system_id
    if refusal := working_refusal(role_in(system_id, by)):
        raise CaseDeniedError(refusal)
    role = None if to is None else role_in(system_id, to)
    given: list[Case] = []
    refusals: list[str] = []
    for case in locked:
        if refusal := _assigning_refusal(case, to, role, seen or {}):
            refusals.append(refusal)
        elif case.assignee_id != (to.pk if to else None):
            given.append(case)
    Case.objects.filter(pk__in=[case.pk for case in given]).update(assignee=to)
    words = "" if to is None else clean_text(to.printed_name)
    detail = None if to is None else {"to": to.username}
    rows = _note_all(given, CaseEventKind.ASSIGNED, words, by=by, now=now, detail=detail)
    if rows:
        _record_assigned(rows, to)
    n_unchanged = len(locked) - len(given) - len(refusals)
    return Assigned(len(given), n_unchanged, tuple(dict.fromkeys(refusals)))


def _assigning_refusal(
    case: Case, to: User | None, role: Role | None, seen: Mapping[int, int | None]
) -> str:
    if refusal := open_refusal(CaseState(case.state)):
        return refusal
    has_moved = case.pk in seen and seen[case.pk] != case.assignee_id
    if has_moved and case.assignee_id != (to.pk if to else None):
        holder = case.assignee.printed_name if case.assignee else "nobody"
        return f"Meanwhile it was assigned to {holder}; assign it again if that is wrong."
    return "" if to is None else assignee_refusal(role, to.printed_name, case.next_actions)


@transaction.atomic
def set_due(case: Case, due_on: date | None, *, by: User, now: datetime) -> Case:
    """Say until when a case should be settled; None takes the date away.

    Raises `CaseDeniedError`, and `CaseError` for a case that is not open or a date in the past.
    """
    locked = _worked(case, by)
    if due_on is not None and not now.date() <= due_on < date(LAST_YEAR, 1, 1):
        raise CaseError(f"A due date is today or later, and before {LAST_YEAR}.")
    if locked.due_on == due_on:
        return locked
    earlier, locked.due_on = locked.due_on, due_on
    locked.save(update_fields=["due_on"])
    words = due_on.isoformat() if due_on else ""
    (row,) = _note_all([locked], CaseEventKind.DUE, words, by=by, now=now)
    _record("case.due_set", row, before={"due": earlier}, after={"due": due_on})
    return locked


@transaction.atomic
def comment_on_case(case: Case, text: str, *, by: User, now: datetime) -> CaseEvent:
    """Say something about a case, whatever its state. Comments stay as they are written."""
    locked = _locked([case])[0]
    if refusal := commenting_refusal(role_in(locked.system_id, by)):
        raise CaseDeniedError(refusal)
    said = _text(text, nothing=NO_COMMENT, noun="comment")
    locked.n_comments += 1
    locked.save(update_fields=["n_comments"])
    (row,) = _note_all([locked], CaseEventKind.COMMENT, said, by=by, now=now)
    _record("case.commented", row)
    return row


@transaction.atomic
def set_aside(case: Case, *, reason: str, by: User, now: datetime) -> Case:
    """Close a case by hand. It opens by itself when its next actions become others."""
    locked = _worked(case, by)
    why = _text(reason, nothing=NO_REASON, noun="reason")
    locked.state, locked.closed_at = CaseState.SET_ASIDE.value, now
    locked.save(update_fields=["state", "closed_at"])
    (row,) = _note_all([locked], CaseEventKind.SET_ASIDE, why, by=by, now=now)
    _record("case.set_aside", row, before={"state": "open"}, after={"state": locked.state})
    return locked


@transaction.atomic
def take_up(case: Case, *, by: User, now: datetime, reason: str = "") -> Case:
    """Open a case again that was set aside. Its age goes on: it was never settled."""
    locked = _locked([case])[0]
    if refusal := working_refusal(role_in(locked.system_id, by)):
        raise CaseDeniedError(refusal)
    if refusal := taking_up_refusal(CaseState(locked.state)):
        raise CaseError(refusal)
    why = _text(reason, nothing=NO_REASON, noun="reason") if reason.strip() else ""
    locked.state, locked.closed_at = CaseState.OPEN.value, None
    locked.save(update_fields=["state", "closed_at"])
    (row,) = _note_all([locked], CaseEventKind.TAKEN_UP, why, by=by, now=now)
    _record("case.taken_up", row, before={"state": "set_aside"}, after={"state": locked.state})
    return locked


@transaction.atomic
def ask_rerun(case: Case, *, reason: str, by: User, now: datetime) -> CaseEvent:
    """Ask whoever runs the harness for a further attempt of the trial.

    Raises `CaseError` where a further attempt would not be taken.
    """
    locked = _worked(case, by)
    if refusal := rerun_refusal(locked.next_actions):
        raise CaseError(refusal)
    why = _text(reason, nothing=NO_REASON, noun="reason")
    (row,) = _note_all([locked], CaseEventKind.RERUN_ASKED, why, by=by, now=now)
    _record("case.rerun_asked", row)
    return row


def _record(
    act: str,
    row: CaseEvent,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    """One act on a case. Its comment or reason is the event's."""
    says = act in {"case.commented", "case.set_aside", "case.taken_up", "case.rerun_asked"}
    record(
        act,
        system_pk=row.case.system_id,
        by_pk=row.by_id,
        at=row.at,
        obj=AuditedObject("case", str(row.case.uuid), _case_name(row.case)),
        before=before,
        after=after,
        reason=row.text if says else "",
        rows=[("reviews_caseevent", row.pk)],
    )


def _record_assigned(rows: Sequence[CaseEvent], to: User | None) -> None:
    """One act, however many cases."""
    first = rows[0].case
    is_one = len(rows) == 1
    record(
        "case.assigned",
        system_pk=first.system_id,
        by_pk=rows[0].by_id,
        at=rows[0].at,
        obj=AuditedObject("case", str(first.uuid), _case_name(first))
        if is_one
        else AuditedObject("cases", str(len(rows)), f"{len(rows)} cases"),
        before={"assignee": first.assignee.username if first.assignee else ""} if is_one else None,
        after={
            "assignee": to.username if to else "",
            "n_cases": len(rows),
            "cases": [str(row.case.uuid) for row in rows[:MOST_NAMED]],
        },
        rows=[("reviews_caseevent", row.pk) for row in rows],
    )


def _case_name(case: Case) -> str:
    return f"{case.trial.task.task_id} · trial {case.trial.label}"


def note_on_trial(
    trial_pk: int,
    kind: CaseEventKind,
    text: str,
    *,
    by: User,
    now: datetime,
    detail: dict[str, Any] | None = None,
) -> None:
    """Tell the history of a trial's case what was done to the trial; nothing without a case."""
    cases = Case.objects.filter(trial=trial_pk)
    _note_all(cases, kind, clean_text(text), by=by, now=now, detail=detail)


def note_on_task(
    task_pk: int,
    kind: CaseEventKind,
    text: str,
    *,
    by: User,
    now: datetime,
    detail: dict[str, Any] | None = None,
) -> None:
    """Tell the history of all cases of a task that wait, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO reviews_caseevent (case_id, kind, text, detail, by_id, at)"
            " SELECT id, %s, %s, %s::jsonb, %s, %s FROM reviews_case"
            " WHERE task_id = %s AND state <> 'closed' ORDER BY id",
            [
                kind.value,
                clean_text(text),
                None if detail is None else json.dumps(detail),
                by.pk,
                now,
                task_pk,
            ],
        )


def _locked(cases: Iterable[Case]) -> list[Case]:
    """The cases as they are now, kept from changing; in one order, so that nobody waits in a circle."""
    return list(
        Case.objects.select_for_update(no_key=True, of=("self",))
        .select_related("assignee", "trial__task")
        .filter(pk__in={case.pk for case in cases})
        .order_by("pk")
    )


def _worked(case: Case, by: User) -> Case:
    """An open case that the person may work on."""
    locked = _locked([case])[0]
    if refusal := working_refusal(role_in(locked.system_id, by)):
        raise CaseDeniedError(refusal)
    if refusal := open_refusal(CaseState(locked.state)):
        raise CaseError(refusal)
    return locked


def _note_all(
    cases: Iterable[Case],
    kind: CaseEventKind,
    text: str,
    *,
    by: User,
    now: datetime,
    detail: dict[str, Any] | None = None,
) -> list[CaseEvent]:
    rows = [
        CaseEvent(case=case, kind=kind.value, text=text, detail=detail, by=by, at=now)
        for case in cases
    ]
    CaseEvent.objects.bulk_create(rows)
    for row in rows:
        log.info("case event", extra={"case": str(row.case.uuid), "kind": kind.value, "by": by.pk})
    return rows


def _text(text: str, *, nothing: str, noun: str) -> str:
    said = clean_text(text).strip()
    if count_marks(said) >= len("".join(said.split())):
        raise CaseError(nothing)
    if len(said) > LONGEST_TEXT:
        raise CaseError(f"A {noun} has at most {LONGEST_TEXT:,} characters.")
    return said
