"""The audit log of a system, newest first: filtered, a page or a stream at a time."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, timedelta
from typing import Any

from django.db.models import Q, QuerySet
from django.utils import timezone

from evalsite.models import AuditEvent
from reviews.selectors.blinding import hidden_in
from traces.models import Member, MemberChange, Role, Trial, User

PAGE = 50
STREAMED = 500  # events in memory at a time while a file is written
OPERATOR = "operator"
"""Stands in an address for acts of the operator, who is nobody of the system."""

_BLIND_ACTS = frozenset(
    {"verdict.given", "verdict.corrected", "adjudication.made", "adjudication.corrected"}
)


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Which events of a system are asked for; "" and None ask for all."""

    system_pk: int | None  # None: the site itself
    act: str = ""  # "flag.raised", or a kind of acts such as "flag."
    actor: str = ""  # the person's UUID, or `OPERATOR`
    actor_pk: int | None = None
    kind: str = ""
    object_id: str = ""
    source: str = ""
    since: date | None = None  # the first day, in UTC
    until: date | None = None  # the last day


@dataclass(frozen=True, slots=True)
class AuditReader:
    """Who reads, and what is kept from them: criteria of trials that they may label blind."""

    hidden: dict[str, frozenset[str]]  # by the trial's UUID

    @classmethod
    def of(cls, user_pk: int, role: Role | None, system_pk: int) -> AuditReader:
        """What is kept from a person in a system. At most three queries, none for most roles."""
        hidden = hidden_in(user_pk, role, system_pk)
        names = Trial.objects.filter(pk__in=hidden).values_list("pk", "uuid") if hidden else ()
        return cls({str(uuid): hidden[pk] for pk, uuid in names})

    def is_hidden(self, event: AuditEvent) -> bool:
        """Whether an event tells what somebody said that the reader may not know yet."""
        if event.act not in _BLIND_ACTS or event.object_id not in self.hidden:
            return False
        criterion = _values(event.after).get("criterion")
        return criterion in self.hidden[event.object_id]


@dataclass(frozen=True, slots=True)
class Change:
    """A value before and after an act, as text; None where there is none."""

    name: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditPage:
    """One page of events, newest first."""

    rows: Sequence[AuditEvent]
    next_after: int | None
    previous_before: int | None


def audit_events(chosen: AuditFilter) -> QuerySet[AuditEvent]:
    """The events that are asked for, in no order."""
    found = AuditEvent.objects.filter(system=chosen.system_pk)
    if chosen.act.endswith("."):
        found = found.filter(act__startswith=chosen.act)
    elif chosen.act:
        found = found.filter(act=chosen.act)
    if chosen.actor == OPERATOR:
        found = found.filter(actor=None)
    elif chosen.actor:
        found = found.filter(actor=chosen.actor_pk)
    if chosen.kind:
        found = found.filter(object_kind=chosen.kind)
    if chosen.object_id:
        found = found.filter(object_id=chosen.object_id)
    if chosen.source:
        found = found.filter(Q(source=chosen.source) | Q(source__startswith=f"{chosen.source} "))
    if chosen.since:
        found = found.filter(at__gte=_midnight(chosen.since))
    if chosen.until:
        found = found.filter(at__lt=_midnight(chosen.until + timedelta(days=1)))
    return found


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=timezone.get_default_timezone())


def audit_page(
    chosen: AuditFilter, *, after: int | None = None, before: int | None = None, n: int = PAGE
) -> AuditPage:
    """A page of events: those older than `after`, or the newer ones next to `before`. One query."""
    found = audit_events(chosen).defer("rows")
    if before is not None:
        rows = list(found.filter(seq__gt=before).order_by("seq")[: n + 1])
        has_more, rows = len(rows) > n, rows[:n][::-1]
        return AuditPage(
            rows,
            next_after=rows[-1].seq if rows else None,
            previous_before=rows[0].seq if rows and has_more else None,
        )
    if after is not None:
        found = found.filter(seq__lt=after)
    rows = list(found.order_by("-seq")[: n + 1])
    has_more, rows = len(rows) > n, rows[:n]
    return AuditPage(
        rows,
        next_after=rows[-1].seq if has_more else None,
        previous_before=rows[0].seq if rows and after is not None else None,
    )


def audit_stream(chosen: AuditFilter) -> Iterator[AuditEvent]:
    """All events that are asked for, newest first, some at a time in memory."""
    last: int | None = None
    while True:
        found = audit_events(chosen)
        if last is not None:
            found = found.filter(seq__lt=last)
        rows = list(found.order_by("-seq")[:STREAMED])
        yield from rows
        if len(rows) < STREAMED:
            return
        last = rows[-1].seq


def audit_event_of(system_pk: int, seq: int) -> AuditEvent | None:
    """One event by its number. One query."""
    return AuditEvent.objects.filter(system=system_pk, seq=seq).select_related("actor").first()


def people_of(system_pk: int) -> list[User]:
    """Whoever is or was a member of a system, by name. One query."""
    of_system = Member.objects.filter(system=system_pk).values("user")
    were = MemberChange.objects.filter(system=system_pk).values("user")
    people = User.objects.filter(Q(pk__in=of_system) | Q(pk__in=were))
    return sorted(people, key=lambda user: (user.printed_name.casefold(), user.pk))


def with_actor(chosen: AuditFilter, people: Iterable[User]) -> AuditFilter:
    """The filter with the row of the person that it names; nobody of the system finds nothing."""
    if not chosen.actor or chosen.actor == OPERATOR:
        return chosen
    found = next((user.pk for user in people if str(user.uuid) == chosen.actor), 0)
    return replace(chosen, actor_pk=found)


def changes_of(event: AuditEvent) -> tuple[Change, ...]:
    """What an act changed or made, value by value."""
    before, after = _values(event.before), _values(event.after)
    names = [*before, *(name for name in after if name not in before)]
    return tuple(
        Change(
            name_text(name),
            value_text(before[name]) if name in before else None,
            value_text(after[name]) if name in after else None,
        )
        for name in names
    )


def name_text(name: str) -> str:
    """The name of a value as people read it."""
    words = name.replace("_", " ")
    return f"number of {words[2:]}" if words.startswith("n ") else words


def value_text(value: object) -> str:
    """A value as people read it."""
    match value:
        case None:
            return "none"
        case bool():
            return "yes" if value else "no"
        case str():
            return value or "none"
        case list():
            return ", ".join(map(value_text, value)) or "none"
        case dict():
            return json.dumps(value, ensure_ascii=False, sort_keys=True)
        case _:
            return str(value)


def _values(text: str) -> dict[str, Any]:
    if not text:
        return {}
    try:
        value = json.loads(text)
    except ValueError:  # somebody altered it, which the check of the chain tells
        return {"": text}
    return value if isinstance(value, dict) else {"": value}
