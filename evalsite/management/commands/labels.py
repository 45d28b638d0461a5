"""Labels of calibration sets from files and to files."""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.common.formatting import counted
from evalsite.management.lookups import person_or_error, system_or_error
from evalsite.web.calibration_set_words import NO_SET, SAMPLING, STATES
from evalsite.web.label_import import landed_words
from reviews.core.label_files import MOST_BYTES, LabelFileError, read_labels
from reviews.models import Sampling
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.selectors.calibration_exports import label_csv_rows, label_lines
from reviews.selectors.calibration_sets import ListedSet, listed_sets, people_of, set_numbered
from reviews.services.calibration_sets import CalibrationSetError
from reviews.services.label_imports import (
    Imported,
    ImportWish,
    import_from_verdicts,
    import_labels,
)
from traces.core.text_marks import marked_text
from traces.models import System

WRONG, UNREADABLE = 1, 2
MOST_REFUSED = 200


class Command(BaseCommand):
    help = "List calibration sets, bring labels of people in, and write them out."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        acts.add_parser("list", help="the sets, newest first, and the criteria to label")
        export = acts.add_parser("export", help="the labels of a set")
        export.add_argument("number", type=int, metavar="SET", help="its number")
        export.add_argument("--format", choices=["jsonl", "csv"], default="jsonl")
        export.add_argument("--output", metavar="FILE", help="else standard output")
        bring = acts.add_parser(
            "import",
            help="labels of a file as a set of their own, exploratory until a reviewer vouches for "
            "it. Ends with 0 when all landed, 1 when some did not, 2 when the file cannot be read",
        )
        bring.add_argument("file", nargs="?", metavar="FILE", help="JSON Lines or CSV; - for input")
        bring.add_argument(
            "--from-verdicts",
            action="store_true",
            help="take the verdicts of people that came with the traces instead of a file",
        )
        bring.add_argument("--criterion", required=True, metavar="NAME", help="what was labelled")
        bring.add_argument("--rubric-version", metavar="V", default="", help="where there are more")
        bring.add_argument("--sampling", choices=[s.value for s in Sampling], default="chosen")
        bring.add_argument("--name", required=True, metavar="N", help="of the set")
        bring.add_argument("--source", required=True, metavar="S", help="where they are from")
        bring.add_argument("--licence", required=True, metavar="L", help="under which licence")
        bring.add_argument("--reason", required=True, metavar="R", help="what they are for")
        bring.add_argument(
            "--by", required=True, metavar="USER", help="an engineer or reviewer of the system"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        try:
            match options["act"]:
                case "list":
                    self._list(system)
                case "export":
                    self._export(system, options)
                case _:
                    self._import(system, options)
        except BrokenPipeError:
            # The reader has enough; Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

    def _list(self, system: System) -> None:
        rows = all_sets(system)
        people = people_of(row.pk for row in rows)
        for row in rows:
            said = ", ".join(f"{each.name} {each.n_labels}" for each in people.get(row.pk, ()))
            self._write(
                f"{row.number}  {row.name}  {row.criterion} {row.rubric_version}".rstrip()
                + f"  {SAMPLING[row.sampling]}  {STATES[row.state].label}"
                + f"  {row.n_settled} of {counted(row.n_items, 'item')} settled"
                + (f"  ({said})" if said else "")
            )
        if not rows:
            self._write("No calibration set yet.")
        for each in criteria_to_label(system.pk):
            self._write(f"criterion  {each.name} {each.rubric_version}".rstrip())

    def _export(self, system: System, options: dict[str, Any]) -> None:
        found = set_numbered(system.pk, options["number"])
        if found is None:
            raise CommandError(NO_SET)
        lines = label_csv_rows(found) if options["format"] == "csv" else label_lines(found)
        if not options["output"]:
            for line in lines:
                self.stdout.write(line, ending="")
            return
        try:
            with Path(options["output"]).open("w", encoding="utf-8", newline="") as file:
                file.writelines(lines)
        except OSError as error:
            name = marked_text(str(options["output"]))
            raise CommandError(f"{name} cannot be written: {error.strerror}.") from None

    def _import(self, system: System, options: dict[str, Any]) -> None:
        if options["from_verdicts"] == bool(options["file"]):
            raise CommandError("Give a file, or --from-verdicts.")
        criterion = _criterion(system, options["criterion"], options["rubric_version"])
        wish = ImportWish(
            name=options["name"],
            criterion=criterion.name,
            criterion_digest=criterion.digest,
            sampling=Sampling(options["sampling"]),
            source=options["source"],
            licence=options["licence"],
            reason=options["reason"],
        )
        person, now = person_or_error(options["by"]), timezone.now()
        try:
            if options["from_verdicts"]:
                found = import_from_verdicts(system, wish, by=person, now=now)
            else:
                read = read_labels(_content(options["file"]))
                found = import_labels(system, wish, read, by=person, now=now)
        except (CalibrationSetError, LabelFileError) as error:
            raise CommandError(marked_text(str(error)), returncode=WRONG) from None
        self._tell(found)

    def _tell(self, found: Imported) -> None:
        for each in found.refused[:MOST_REFUSED]:
            self._write(f"line {each.line}: {each.sentence}" if each.line else each.sentence)
        if len(found.refused) > MOST_REFUSED:
            self._write(f"and {len(found.refused) - MOST_REFUSED:,} more that did not land")
        self._write(landed_words(found))
        if found.refused or found.calibration_set is None:
            sys.exit(WRONG)

    def _write(self, line: str) -> None:
        self.stdout.write(marked_text(line))


def all_sets(system: System) -> list[ListedSet]:
    """Every set of a system, newest first."""
    rows: list[ListedSet] = []
    after: int | None = None
    while True:
        page = listed_sets(system.pk, after=after)
        rows.extend(page.rows)
        if page.next_after is None:
            return rows
        after = page.next_after


def _criterion(system: System, name: str, version: str) -> LabelCriterion:
    """The criterion of that name, and version where several are asked. By its digest, too."""
    named = [each for each in criteria_to_label(system.pk) if each.name == name]
    fitting = [each for each in named if version in ("", each.rubric_version, _hex(each.digest))]
    if len(fitting) == 1:
        return fitting[0]
    if not fitting:
        raise CommandError(f"{system.slug} asks for no criterion {marked_text(name)!r} to label.")
    versions = ", ".join(each.rubric_version or _hex(each.digest) or "files" for each in fitting)
    raise CommandError(
        f"{marked_text(name)!r} is asked in several versions: {marked_text(versions)}. Give "
        "--rubric-version."
    )


def _hex(digest: UUID | None) -> str:
    return digest.hex if digest else "files"


def _content(name: str) -> bytes:
    try:
        if name == "-":
            return sys.stdin.buffer.read(MOST_BYTES + 1)
        with Path(name).open("rb") as file:
            # One byte more than is taken is enough to refuse the whole.
            return file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such name is possible"
        sentence = f"{marked_text(name)} cannot be read: {reason}."
        raise CommandError(sentence, returncode=UNREADABLE) from None
