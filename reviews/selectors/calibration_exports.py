"""The labels of a set as files. What judges say is not in them."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator

from reviews.selectors.calibration_sets import ItemLabel, ListedSet, SetItem, all_items
from traces.core.text_marks import csv_safe

CSV_COLUMNS = (
    "set",
    "criterion",
    "rubric_version",
    "item",
    "task_id",
    "trial",
    "attempt",
    "run",
    "release",
    "trial_id",
    "family",
    "labeller",
    "round",
    "value",
    "reason",
    "steps",
    "given_at",
    "consensus",
    "withdrawn",
)
"""The columns of the CSV export: one line a label, and one for an item without any."""


def label_lines(of: ListedSet) -> Iterator[str]:
    """One ASCII JSON line an item with its labels, which the import takes again.

    Labels of an item that people still label are left out.
    """
    for item in all_items(of):
        yield json.dumps(_document(of, item)) + "\n"


def _document(of: ListedSet, item: SetItem) -> dict[str, object]:
    return {
        "set": of.number,
        "criterion": of.criterion,
        "rubric_version": of.rubric_version,
        "item": item.position,
        "task_id": item.task_id,
        "trial": item.label,
        "attempt": item.attempt,
        "run": item.run,
        "release": item.release,
        "trial_id": str(item.trial_uuid),
        "family": item.family,
        "consensus": item.consensus or None,
        "withdrawn": item.withdrawn_reason if item.withdrawn_at else None,
        "labels": [
            {
                "labeller": label.labeller,
                "round": label.round,
                "value": label.value,
                "reason": label.reason,
                "steps": list(label.steps),
                "given_at": label.given_at.isoformat(),
            }
            for label in item.labels
        ],
    }


def label_csv_rows(of: ListedSet) -> Iterator[str]:
    """The same as CSV, safe to open in a spreadsheet."""
    yield _csv_line(CSV_COLUMNS)
    for item in all_items(of):
        for label in item.labels or (None,):
            yield _csv_line(_cells(of, item, label))


def _cells(of: ListedSet, item: SetItem, label: ItemLabel | None) -> tuple[str | int | None, ...]:
    said: tuple[str | int | None, ...] = (None,) * 6
    if label:
        steps = " ".join(map(str, label.steps))
        given = label.given_at.isoformat()
        said = (label.labeller, label.round, label.value, label.reason, steps, given)
    return (
        of.number,
        of.criterion,
        of.rubric_version,
        item.position,
        item.task_id,
        item.label,
        item.attempt,
        item.run,
        item.release,
        str(item.trial_uuid),
        item.family,
        *said,
        item.consensus,
        item.withdrawn_reason if item.withdrawn_at else None,
    )


def _csv_line(cells: tuple[str | int | None, ...]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\r\n").writerow([csv_safe(cell) for cell in cells])
    return out.getvalue()
