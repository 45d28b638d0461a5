"""The audit log as files: CSV that no spreadsheet takes for formulas, and JSON with everything."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from evalsite.audit.reading import AuditFilter, AuditReader, audit_stream
from evalsite.common.audit import time_word
from evalsite.models import AuditEvent
from reviews.selectors.blinding import HIDDEN
from traces.core.text_marks import csv_safe

_SAID = ("before", "after", "reason")
_COLUMNS = (
    "seq",
    "at",
    "person",
    "role",
    "act",
    "object_kind",
    "object_id",
    "object",
    *_SAID,
    "source",
    "key_name",
    "request_id",
    "rows",
    "uuid",
    "previous",
    "hash",
    "key_id",
    "tag",
)


def csv_lines(chosen: AuditFilter, reader: AuditReader) -> Iterator[str]:
    """A line for the head and one for each event, as RFC 4180 has it; newest first."""
    yield _csv_line(_COLUMNS)
    for event in audit_stream(chosen):
        cells = _cells(event, reader)
        yield _csv_line(tuple(cells[name] for name in _COLUMNS))


def _csv_line(cells: tuple[str | int, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in cells])
    return out.getvalue()


def json_pieces(chosen: AuditFilter, reader: AuditReader) -> Iterator[str]:
    """One JSON array of events, newest first, in pieces."""
    opening = "["
    for event in audit_stream(chosen):
        cells: dict[str, object] = dict(_cells(event, reader))
        for name in ("before", "after", "rows"):
            cells[name] = _value(str(cells[name]))
        yield f"{opening}\n{json.dumps(cells)}"
        opening = ","
    yield "[]\n" if opening == "[" else "\n]\n"


def _value(text: str) -> object:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return text


def _cells(event: AuditEvent, reader: AuditReader) -> dict[str, str | int]:
    said = {"before": event.before, "after": event.after, "reason": event.reason}
    if reader.is_hidden(event):
        said = {"before": "", "after": "", "reason": HIDDEN}
    return {
        "seq": event.seq,
        "at": time_word(event.at),
        "person": event.actor_name,
        "role": event.role,
        "act": event.act,
        "object_kind": event.object_kind,
        "object_id": event.object_id,
        "object": event.object_label,
        **said,
        "source": event.source,
        "key_name": event.key_name,
        "request_id": event.request_id,
        "rows": event.rows,
        "uuid": str(event.uuid),
        "previous": event.previous,
        "hash": event.hash,
        "key_id": event.key_id,
        "tag": event.tag,
    }
