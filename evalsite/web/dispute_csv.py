"""Disputes as CSV, as RFC 4180 has it, with nothing that a spreadsheet takes for a formula."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from evalsite.web.dispute_rows import Hidden, is_hidden
from reviews.selectors.disputes import DisputeFilter, ListedDispute, listed_disputes
from traces.core.text_marks import csv_safe

_BATCH = 500
_CSV_COLUMNS = (
    "criterion",
    "class",
    "rubric_version",
    "task",
    "family",
    "split",
    "release",
    "run",
    "trial",
    "attempt",
    "state",
    "decides",
    "why_not",
    "counting_graders_disagree",
    "between",
    "pass",
    "fail",
    "unknown",
    "ruling",
    "opened_at",
    "closed_at",
    "trial_id",
    "dispute_id",
)


def csv_lines(chosen: DisputeFilter, hidden: Hidden) -> Iterator[str]:
    """A line for the head and one for each dispute; `hidden` ones tell nothing of what is said."""
    yield _csv_line(_CSV_COLUMNS)
    after = None
    while True:
        page = listed_disputes(chosen, after=after, n=_BATCH)
        for row in page.rows:
            yield _csv_line(_cells(row, is_blind=is_hidden(row, hidden)))
        after = page.next_after
        if after is None:
            return


def _csv_line(cells: tuple[str | int | None, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in cells])
    return out.getvalue()


def _cells(row: ListedDispute, *, is_blind: bool) -> tuple[str | int | None, ...]:
    said = [""] * 7
    if not is_blind:
        said = [
            _yes(row.decides),
            row.no_effect.value if row.no_effect else "",
            _yes(row.is_counting),
            " ".join(kind.value for kind in row.kinds),
            *(_who(row, value) for value in ("pass", "fail", "unknown")),
        ]
    return (
        row.criterion,
        row.criterion_class.value,
        row.rubric_version,
        row.task_id,
        row.family,
        row.split,
        row.release_name,
        row.run_name,
        row.label,
        row.attempt,
        row.state.value,
        *said,
        row.ruling.value if row.ruling and not is_blind else "",
        row.opened_at.isoformat(),
        row.closed_at.isoformat() if row.closed_at else "",
        str(row.trial_uuid),
        str(row.uuid),
    )


def _yes(value: bool) -> str:  # noqa: FBT001 - a cell
    return "yes" if value else "no"


def _who(row: ListedDispute, value: str) -> str:
    return "; ".join(
        f"{side.grader} {side.version}".strip()
        for side in row.sides
        if any(each.value == value for each in side.values)
    )
