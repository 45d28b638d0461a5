"""The audit log of a system: its list, one event, and the log as files."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import date

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system
from evalsite.audit.export import csv_lines, json_pieces
from evalsite.audit.reading import (
    OPERATOR,
    AuditFilter,
    AuditReader,
    audit_event_of,
    audit_page,
    changes_of,
    people_of,
    with_actor,
)
from evalsite.audit.words import (
    ACTS,
    KINDS,
    SOURCES,
    act_words,
    kind_words,
    object_href,
    source_words,
)
from evalsite.common.audit import chain_head
from evalsite.common.shell import Crumb, Option
from evalsite.models import AuditEvent
from reviews.selectors.blinding import HIDDEN
from traces.core.text_marks import has_marks
from traces.models import User
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, text_in
from traces.web.downloads import attachment
from traces.web.pages.audit import (
    AuditChange,
    AuditEventPage,
    AuditFilterForm,
    AuditLine,
    AuditListPage,
)
from traces.web.pages.parts import Empty, Fact, Link
from traces.web.shell import system_shell

_SECTION = "Audit log"
_SHOWN_CHANGES = 4  # of an event in the list
_SHOWN_TEXT = 300  # characters of a reason in the list
_SHOWN_VALUE = 100  # characters of a value there
_SHOWN_DIGEST = 12
_WHOLE_TEXT = 20_000  # characters on the page of an event


@require_GET
@in_system(Act.READ)
def audit_log(request: SystemRequest) -> HttpResponse:
    """Who did what in a system, newest first."""
    access = request.access
    at = Addresses.of(access.system.slug)
    people = people_of(access.system.pk)
    chosen = with_actor(_filter(request), people)
    found = audit_page(
        chosen, after=number_in(request, "after"), before=number_in(request, "before")
    )
    reader = AuditReader.of(access.user.pk, access.role, access.system.pk)
    values = _values(chosen)
    page = AuditListPage(
        shell=system_shell(access, section=_SECTION),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb(_SECTION)),
        heading=_heading(chosen, found.rows),
        sub="Every act on this system: by whom, in which role, when, why and by which way. "
        "Entries are chained, so that none is changed or removed unseen.",
        filter=_form(chosen, people, at),
        rows=tuple(_line(event, at, reader) for event in found.rows),
        pager=pager_of(found, at.audit, values),
        empty=None if found.rows else _empty(at, is_filtered=any(values.values())),
        csv_url=address(f"{at.audit.removesuffix('/')}.csv", values),
        json_url=address(f"{at.audit.removesuffix('/')}.json", values),
        all_url=at.audit if chosen.kind or chosen.object_id else "",
    )
    return render(request, "reviews/audit_list.html", {"page": page})


@require_GET
@in_system(Act.READ)
def audit_event(request: SystemRequest, seq: int) -> HttpResponse:
    """One event with everything that is kept of it, and its place in the chain."""
    access = request.access
    event = audit_event_of(access.system.pk, seq) if seq < 2**63 else None
    if event is None:
        raise Http404("There is no such event in the audit log.")
    at = Addresses.of(access.system.slug)
    reader = AuditReader.of(access.user.pk, access.role, access.system.pk)
    heading = f"Event {event.seq:,}"
    is_last = event.seq >= chain_head(access.system.pk).seq
    page = AuditEventPage(
        shell=system_shell(access, section=_SECTION),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb(_SECTION, at.audit), Crumb(heading)),
        heading=heading,
        line=_line(event, at, reader, most=_WHOLE_TEXT, most_changes=None),
        facts=_facts(event),
        rows=_rows(event),
        chain=_chain(event),
        previous_url=at.audit_event(event.seq - 1) if event.seq > 1 else "",
        next_url="" if is_last else at.audit_event(event.seq + 1),
        history_url=address(at.audit, {"kind": event.object_kind, "id": event.object_id}),
    )
    return render(request, "reviews/audit_detail.html", {"page": page})


@require_GET
@in_system(Act.READ)
def audit_csv(request: SystemRequest) -> HttpResponseBase:
    """The log as CSV, narrowed as the list is; safe to open in a spreadsheet."""
    lines = _encoded(csv_lines(*_asked(request)))
    name = f"{request.access.system.slug}-audit.csv"
    return attachment(lines, file_name=name, content_type="text/csv; charset=utf-8")


@require_GET
@in_system(Act.READ)
def audit_json(request: SystemRequest) -> HttpResponseBase:
    """The log as JSON, narrowed as the list is."""
    pieces = _encoded(json_pieces(*_asked(request)))
    name = f"{request.access.system.slug}-audit.json"
    return attachment(pieces, file_name=name, content_type="application/json")


def _asked(request: SystemRequest) -> tuple[AuditFilter, AuditReader]:
    access = request.access
    chosen = _filter(request)
    if chosen.actor:
        chosen = with_actor(chosen, people_of(access.system.pk))
    return chosen, AuditReader.of(access.user.pk, access.role, access.system.pk)


def _encoded(pieces: Iterable[str]) -> Iterator[bytes]:
    return (piece.encode() for piece in pieces)


def _filter(request: SystemRequest) -> AuditFilter:
    """What the address asks for. Nonsense asks for nothing."""
    act, source = text_in(request, "act", most=64), request.GET.get("source", "")
    return AuditFilter(
        request.access.system.pk,
        act=act if act in KINDS or act in ACTS else "",
        actor=text_in(request, "by", most=36),
        kind=_name(text_in(request, "kind", most=32)),
        object_id=_name(text_in(request, "id", most=64)),
        source=source if source in SOURCES else "",
        since=_day(request.GET.get("from", "")),
        until=_day(request.GET.get("to", "")),
    )


def _name(text: str) -> str:
    """A kind or key of an object, none of which has characters that cannot be seen."""
    return "" if has_marks(text) else text


def _day(text: str) -> date | None:
    try:
        day = date.fromisoformat(text)
    except ValueError:
        return None
    # The day after has to be one, too.
    return day if date.min < day < date.max else None


def _values(chosen: AuditFilter) -> dict[str, Value]:
    """What an address says of a filter."""
    return {
        "act": chosen.act,
        "by": chosen.actor,
        "kind": chosen.kind,
        "id": chosen.object_id,
        "source": chosen.source,
        "from": chosen.since.isoformat() if chosen.since else "",
        "to": chosen.until.isoformat() if chosen.until else "",
    }


def _heading(chosen: AuditFilter, rows: Iterable[AuditEvent]) -> str:
    if not chosen.object_id:
        return _SECTION
    label = next((row.object_label for row in rows if row.object_label), "")
    return f"{_SECTION}: {label or kind_words(chosen.kind) or 'one object'}"


def _form(chosen: AuditFilter, people: Iterable[User], at: Addresses) -> AuditFilterForm:
    acts = {"": "all acts", **dict(sorted(KINDS.items(), key=lambda item: item[1]))}
    if chosen.act and chosen.act not in acts:
        acts[chosen.act] = ACTS[chosen.act]
    names = {"": "anybody", **{str(user.uuid): user.printed_name for user in people}}
    names[OPERATOR] = "the operator"
    sources = {"": "any way", **SOURCES}
    values = _values(chosen)
    kept = {"kind": chosen.kind, "id": chosen.object_id}
    return AuditFilterForm(
        action=at.audit,
        acts=_options(acts, chosen.act),
        people=_options(names, chosen.actor),
        sources=_options(sources, chosen.source),
        since=chosen.since.isoformat() if chosen.since else "",
        until=chosen.until.isoformat() if chosen.until else "",
        kind=chosen.kind,
        object_id=chosen.object_id,
        clear_url=address(at.audit, kept)
        if any(value for name, value in values.items() if name not in kept)
        else "",
    )


def _options(choices: dict[str, str], chosen: str) -> tuple[Option, ...]:
    return tuple(Option(value, label, value == chosen) for value, label in choices.items())


def _empty(at: Addresses, *, is_filtered: bool) -> Empty:
    if is_filtered:
        return Empty(
            "No act fits",
            "Nothing in the log fits what you chose.",
            Link("Show the whole log", at.audit),
        )
    return Empty(
        "Nothing is logged yet",
        "Acts are logged from the first one on that is made with this version of the product.",
    )


def _line(
    event: AuditEvent,
    at: Addresses,
    reader: AuditReader,
    *,
    most: int = _SHOWN_TEXT,
    most_changes: int | None = _SHOWN_CHANGES,
) -> AuditLine:
    is_hidden = reader.is_hidden(event)
    changes = () if is_hidden else changes_of(event)
    shown = changes[:most_changes]
    reason = "" if is_hidden else event.reason
    return AuditLine(
        seq=event.seq,
        href=at.audit_event(event.seq),
        at=event.at,
        who=event.actor_name or "the operator",
        role=event.role,
        did=act_words(event.act),
        kind=kind_words(event.object_kind),
        object=Link(event.object_label or event.object_id, object_href(event, at)),
        changes=tuple(
            AuditChange(
                change.name,
                _value(change.before, most),
                _value(change.after, most),
                has_before=change.before is not None,
                has_after=change.after is not None,
            )
            for change in shown
        ),
        n_more_changes=len(changes) - len(shown),
        reason=_cut(reason, most),
        is_cut=len(reason) > most,
        hidden=HIDDEN if is_hidden else "",
        source=source_words(event.source),
        key_name=event.key_name,
        request_id=event.request_id,
    )


def _value(text: str | None, most: int) -> str:
    """A value; in the list a short one, as the page of its event has all of it."""
    if text is None or most > _SHOWN_TEXT:
        return _cut(text or "", most)
    is_digest = len(text) == 64 and text.isalnum()
    return f"{text[:_SHOWN_DIGEST]}…" if is_digest else _cut(text, _SHOWN_VALUE)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


def _facts(event: AuditEvent) -> tuple[Fact, ...]:
    found = (
        ("Act", event.act),
        ("By", event.actor_name or "the operator"),
        ("User name", event.actor.username if event.actor else ""),
        ("Role", event.role),
        ("Source", source_words(event.source)),
        ("API key", event.key_name),
        ("Request", event.request_id),
        ("Object", f"{kind_words(event.object_kind)} {event.object_id}"),
        ("Event id", str(event.uuid)),
    )
    return tuple(Fact(name, value) for name, value in found if value)


def _rows(event: AuditEvent) -> tuple[Fact, ...]:
    try:
        entries = json.loads(event.rows) if event.rows else []
        return tuple(Fact(f"{table} {pk}", digest) for table, _, pk, digest in entries)
    except (ValueError, TypeError):  # somebody altered it, which the check of the chain tells
        return (Fact("rows", event.rows),)


def _chain(event: AuditEvent) -> tuple[Fact, ...]:
    return (
        Fact("Number", f"{event.seq:,}"),
        Fact("Hash", event.hash),
        Fact("Hash of the event before it", event.previous or "none: it is the first"),
        Fact("Tag", event.tag),
        Fact("Key of the tag", event.key_id),
    )
