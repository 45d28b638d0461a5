"""Labels that people gave elsewhere, read from a file: JSON Lines or CSV.

One label a line. A trial is named by `trial_id` (its id here), by `external_id`, or by `task_id` and
`trial` with, where these are not enough, `run`, `release` and `attempt`. A JSON line may instead hold
several labels of one trial in a list under `labels`, as the export writes them. A line that cannot be
used is told with its number and the reason; the others land.
"""

from __future__ import annotations

import csv
import io
import re
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from reviews.core.consensus import Consensus, consensus_of
from traces.core.canonical import nfc
from traces.core.limits import MIB, Limits
from traces.core.records import VerdictValue
from traces.core.strict_json import StrictJsonError, decoded, loads_text
from traces.core.text_marks import clean_text, count_marks, csv_safe
from traces.core.values import Json
from traces.core.verdict_words import verdict_of

MOST_BYTES: Final = 8 * MIB
MOST_LABELS: Final = 20_000
MOST_LABELLERS: Final = 3  # of one trial
LONGEST_LABELLER: Final = 200  # characters
LONGEST_REASON: Final = 4_000
MOST_STEPS: Final = 50
_SHOWN_WORD: Final = 60
_LIMITS: Final = Limits(depth=8, keys=200)

CSV_FIELDS: Final = (
    "task_id",
    "trial",
    "run",
    "release",
    "attempt",
    "trial_id",
    "external_id",
    "labeller",
    "value",
    "reason",
    "steps",
    "withdrawn",
)
"""The columns that are read; others are left aside."""


class LabelFileError(ValueError):
    """The file as a whole cannot be read. The message is a sentence for people."""


class _LineError(ValueError):
    """One line cannot be used. The message is a sentence for people."""


@dataclass(frozen=True, slots=True)
class TrialName:
    """How a label names its trial. "" and None leave a part open."""

    task_id: str = ""
    trial: str = ""
    run: str = ""
    release: str = ""
    attempt: int | None = None
    trial_id: uuid.UUID | None = None
    external_id: str = ""


@dataclass(frozen=True, slots=True)
class FileLabel:
    """One label of a file."""

    line: int
    trial: TrialName
    labeller: str
    value: VerdictValue  # pass, fail or unknown
    reason: str = ""
    steps: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class RefusedLine:
    """A line that did not land. 0: it has none, and the sentence names what it is about."""

    line: int
    sentence: str


@dataclass(frozen=True, slots=True)
class ReadLabels:
    """What a file holds."""

    labels: tuple[FileLabel, ...] = ()
    refused: tuple[RefusedLine, ...] = ()


def read_labels(data: bytes) -> ReadLabels:
    """The labels of a file. Raises `LabelFileError` for one that is too long or is neither form."""
    if len(data) > MOST_BYTES:
        raise LabelFileError(f"A file of labels has at most {MOST_BYTES // MIB} MiB.")
    try:
        text = decoded(data)
    except StrictJsonError as error:
        raise LabelFileError(error.sentence) from None
    if not text.strip():
        raise LabelFileError("The file is empty: there is no label in it.")
    found = _json_lines(text) if text.lstrip().startswith(("{", "[")) else _csv_lines(text)
    labels: list[FileLabel] = []
    refused: list[RefusedLine] = []
    for each in found:
        if isinstance(each, RefusedLine):
            refused.append(each)
        else:
            labels.append(each)
        if len(labels) + len(refused) > MOST_LABELS:
            raise LabelFileError(f"A file of labels has at most {MOST_LABELS:,} labels.")
    return ReadLabels(tuple(labels), tuple(refused))


def _json_lines(text: str) -> Iterator[FileLabel | RefusedLine]:
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            yield from _json_line(number, loads_text(line, _LIMITS))
        except StrictJsonError as error:
            yield RefusedLine(number, error.sentence)
        except _LineError as error:
            yield RefusedLine(number, str(error))


def _json_line(number: int, value: Json) -> Iterator[FileLabel | RefusedLine]:
    if not isinstance(value, dict):
        raise _LineError("A line is one JSON object.")
    trial = _trial_name(value)
    _check_not_withdrawn(value)
    if "labels" not in value:
        yield _label(number, trial, value)
        return
    given = value["labels"]
    if not isinstance(given, list):
        raise _LineError("`labels` is a list of objects.")
    for each in given:
        try:
            if not isinstance(each, dict):
                raise _LineError("`labels` is a list of objects.")
            yield _label(number, trial, each)
        except _LineError as error:
            yield RefusedLine(number, str(error))


def _csv_lines(text: str) -> Iterator[FileLabel | RefusedLine]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        head = [name.strip().lower() for name in next(reader)]
        _check_head(head)
        before = reader.line_num
        for cells in reader:
            number, before = before + 1, reader.line_num
            if not any(cell.strip() for cell in cells):
                continue
            yield from _csv_line(number, head, cells)
    except csv.Error as error:
        raise LabelFileError(f"Line {reader.line_num} is not CSV: {error}.") from None


def _check_head(head: list[str]) -> None:
    missing = [name for name in ("labeller", "value") if name not in head]
    if missing:
        raise LabelFileError(
            "The file is neither JSON Lines nor CSV with a head: its first line names no column "
            f"{' and no column '.join(missing)}."
        )
    twice = sorted({name for name in head if name in CSV_FIELDS and head.count(name) > 1})
    if twice:
        raise LabelFileError(f"The first line names the column {twice[0]} twice.")


def _csv_line(number: int, head: list[str], cells: list[str]) -> Iterator[FileLabel | RefusedLine]:
    if len(cells) > len(head):
        yield RefusedLine(number, f"The line has {len(cells)} cells and the head {len(head)}.")
        return
    named = {
        name: _plain_cell(cell)
        for name, cell in zip(head, cells, strict=False)
        if name in CSV_FIELDS and cell.strip()
    }
    # The export writes such a line for a trial that nobody labelled.
    if "labeller" not in named and "value" not in named:
        return
    try:
        _check_not_withdrawn(named)
        yield _label(number, _trial_name(named), named)
    except _LineError as error:
        yield RefusedLine(number, str(error))


def _plain_cell(cell: str) -> str:
    """A cell without the apostrophe that keeps a spreadsheet from reading a formula."""
    return cell[1:] if cell.startswith("'") and csv_safe(cell[1:]) == cell else cell


def _check_not_withdrawn(given: Mapping[str, Json]) -> None:
    if given.get("withdrawn"):
        raise _LineError("This item was withdrawn from the set that the file is of.")


def _label(number: int, trial: TrialName, given: Mapping[str, Json]) -> FileLabel:
    labeller = _text(given, "labeller").strip()
    if count_marks(labeller) >= len("".join(labeller.split())):
        raise _LineError("It names no labeller.")
    if len(labeller) > LONGEST_LABELLER:
        raise _LineError(f"The name of a labeller has at most {LONGEST_LABELLER} characters.")
    reason = _text(given, "reason").strip()
    if len(reason) > LONGEST_REASON:
        raise _LineError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return FileLabel(
        number, trial, nfc(labeller), _value(given), reason, _steps(given.get("steps"))
    )


def _value(given: Mapping[str, Json]) -> VerdictValue:
    word = given.get("value")
    value = verdict_of(word)
    if value is not VerdictValue.ERROR:
        return value
    if word is None:
        raise _LineError("It has no value: pass, fail or unknown.")
    raise _LineError(f"The word {word_shown(word)} stands for no pass, fail or unknown.")


def word_shown(word: Json) -> str:
    """A raw word in quotes, cut where it is long."""
    text = clean_text(word if isinstance(word, str) else str(word))
    return f"\u201c{text if len(text) <= _SHOWN_WORD else text[:_SHOWN_WORD] + '…'}\u201d"


def _trial_name(given: Mapping[str, Json]) -> TrialName:
    name = TrialName(
        task_id=nfc(_name(given, "task_id")),
        trial=_name(given, "trial"),
        run=nfc(_name(given, "run")),
        release=nfc(_name(given, "release")),
        attempt=_attempt(given.get("attempt")),
        trial_id=_identity(_name(given, "trial_id")),
        external_id=_name(given, "external_id"),
    )
    if name.trial_id or name.external_id or (name.task_id and name.trial):
        return name
    raise _LineError("It names no trial: give task_id and trial, trial_id, or external_id.")


def _name(given: Mapping[str, Json], field: str) -> str:
    value = given.get(field)
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    text = _text(given, field)
    if len(text) > _LIMITS.identifier_chars:
        raise _LineError(f"`{field}` has at most {_LIMITS.identifier_chars} characters.")
    return text


def _text(given: Mapping[str, Json], field: str) -> str:
    value = given.get(field)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise _LineError(f"`{field}` is a text.")
    return clean_text(value)


def _identity(text: str) -> uuid.UUID | None:
    if not text:
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        raise _LineError("`trial_id` is no id of a trial; give it as it stands here.") from None


_WHOLE = re.compile(r"[0-9]{1,9}")


def _attempt(value: Json) -> int | None:
    if value is None or value == "":
        return None
    number = _whole(value)
    if number is None or number < 1:
        raise _LineError("`attempt` is a whole number from 1.")
    return number


def _whole(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 0 <= value < 10**9 else None
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    return None


def _steps(value: Json) -> tuple[int, ...]:
    """Cited steps: a list of numbers, or in CSV numbers with blanks, commas or semicolons between."""
    if value is None:
        return ()
    parts: list[Json] = (
        [part for part in re.split(r"[\s,;]+", value) if part] if isinstance(value, str) else []
    )
    if isinstance(value, list):
        parts = value
    elif not isinstance(value, str):
        raise _LineError("`steps` is a list of step numbers.")
    if len(parts) > MOST_STEPS:
        raise _LineError(f"A label cites at most {MOST_STEPS} steps.")
    numbers = [_whole(part) for part in parts]
    if any(not number for number in numbers):
        raise _LineError("`steps` is a list of step numbers.")
    return tuple(sorted({number for number in numbers if number}))


@dataclass(frozen=True, slots=True)
class PlacedLabel:
    """A label with the trial that it is of, by the id of its row."""

    label: FileLabel
    trial_pk: int


@dataclass(frozen=True, slots=True)
class ImportedItem:
    """The labels of one trial, each of its own round, and what they come to."""

    trial_pk: int
    labels: tuple[FileLabel, ...]
    consensus: Consensus


@dataclass(frozen=True, slots=True)
class SortedLabels:
    """Labels by trial, in the order in which the trials come, and those that cannot stand."""

    items: tuple[ImportedItem, ...] = ()
    refused: tuple[RefusedLine, ...] = ()


def sorted_by_trial(placed: Iterable[PlacedLabel]) -> SortedLabels:
    """The labels of each trial.

    One labeller has one label a trial, and a trial has three at most: what comes later is refused. The
    people of a trial stand in the order in which the whole first names them, so that where the same two
    label every trial the first round is always the same one's.
    """
    by_trial: dict[int, dict[str, FileLabel]] = {}
    order: dict[str, int] = {}
    refused: list[RefusedLine] = []
    for each in placed:
        label = each.label
        order.setdefault(label.labeller, len(order))
        labels = by_trial.setdefault(each.trial_pk, {})
        if earlier := labels.get(label.labeller):
            refused.append(RefusedLine(label.line, _twice(label, earlier)))
        elif len(labels) == MOST_LABELLERS:
            sentence = f"This trial has {MOST_LABELLERS} labels already; no more are taken."
            refused.append(RefusedLine(label.line, sentence))
        else:
            labels[label.labeller] = label
    items = tuple(
        _item(trial_pk, sorted(labels.values(), key=lambda label: order[label.labeller]))
        for trial_pk, labels in by_trial.items()
    )
    return SortedLabels(items, tuple(refused))


def _twice(label: FileLabel, earlier: FileLabel) -> str:
    said = "the same" if label.value is earlier.value else earlier.value.value
    where = f" in line {earlier.line:,}" if earlier.line else ""
    return f"{word_shown(label.labeller)} said {said} of this trial{where} already."


def _item(trial_pk: int, labels: list[FileLabel]) -> ImportedItem:
    agreed = consensus_of([label.value for label in labels], n_needed=len(labels))
    # Two that differ, and no third: nobody can be asked for one any more.
    return ImportedItem(trial_pk, tuple(labels), agreed or Consensus.SPLIT)
