"""Probes: made, listed, and exported as a blind bundle."""

import json
import os
import sys
import uuid
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.common.formatting import counted
from evalsite.management.lookups import person_or_error, system_or_error
from reviews.api.probes import batch_document, results_document
from reviews.core.probes import KIND_NAMES, ProbeKind
from reviews.models import ProbeBatch
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.selectors.probes import (
    PAGE,
    BatchRow,
    batch_numbered,
    batch_rows,
    bundle_lines,
    counted_by_kind,
    judges_tried,
    probes_of,
)
from reviews.services.probes import BatchWish, ProbeError, make_batch
from traces.core.text_marks import marked_text
from traces.models import System
from traces.web.addresses import Addresses

_CHANGES = [kind.value for kind in ProbeKind if kind is not ProbeKind.CONTROL]


class Command(BaseCommand):
    help = "Make probes for judges, list them with what judges made of them, and export a bundle."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        make = acts.add_parser("make", help="make copies of passing trials")
        make.add_argument("--criterion", required=True, metavar="C", help="that judges decide")
        make.add_argument("--rubric-version", metavar="V", help="where several are asked for")
        make.add_argument("--digest", metavar="D", help="where several bear the name, its digest")
        make.add_argument("--kind", action="append", choices=_CHANGES, help="all by default")
        chosen = make.add_mutually_exclusive_group()
        chosen.add_argument("--n", type=int, default=5, help="trials to draw, 5 by default")
        chosen.add_argument("--trial", action="append", metavar="ID", help="a trial by its id")
        make.add_argument("--may-fall", action="store_true", help="the criterion asks for brevity")
        make.add_argument("--reason", required=True, metavar="R", help="why they are made")
        make.add_argument("--by", required=True, metavar="USER", help="an engineer or a reviewer")
        export = acts.add_parser("export", help="write the blind bundle of a batch")
        export.add_argument("number", type=int, metavar="NUMBER")
        export.add_argument("--output", metavar="FILE", help="else standard output")
        listed = acts.add_parser("list", help="list the batches, or what judges made of one")
        listed.add_argument("number", type=int, nargs="?", metavar="NUMBER")
        listed.add_argument("--json", action="store_true", help="print JSON Lines")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        match options["act"]:
            case "make":
                self._make(system, options)
            case "export":
                self._export(_batch(system, options["number"]), options["output"])
            case _:
                self._list(system, options["number"], as_json=options["json"])

    def _make(self, system: System, options: dict[str, Any]) -> None:
        criterion = _criterion(
            system, options["criterion"], options["rubric_version"], options["digest"]
        )
        wish = BatchWish(
            criterion=criterion.name,
            criterion_digest=criterion.digest,
            kinds=frozenset(map(ProbeKind, options["kind"] or _CHANGES)),
            reason=options["reason"],
            n=options["n"],
            trials=tuple(map(_trial_id, options["trial"] or ())),
            may_fall=options["may_fall"],
        )
        person = person_or_error(options["by"])
        try:
            batch = make_batch(system, wish, by=person, now=timezone.now())
        except ProbeError as error:
            raise CommandError(marked_text(str(error))) from None
        rows = probes_of(batch)
        kinds = ", ".join(
            f"{n} {KIND_NAMES[kind]}" for kind, n in sorted(counted_by_kind(rows).items())
        )
        at = Addresses.of(system.slug).probe_batch(batch.number)
        self.stdout.write(f"Batch {batch.number}: {counted(len(rows), 'probe')} ({kinds}); {at}")

    def _export(self, batch: ProbeBatch, output: str | None) -> None:
        try:
            if output:
                with Path(output).open("w", encoding="utf-8", newline="") as out:
                    out.writelines(bundle_lines(batch))
            else:
                for line in bundle_lines(batch):
                    self.stdout.write(line, ending="")
        except BrokenPipeError:
            # The reader has enough; Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            raise CommandError(f"{output} cannot be written: {error.strerror}.") from None

    def _list(self, system: System, number: int | None, *, as_json: bool) -> None:
        if number is None:
            rows = _all_rows(system)
            for row in rows:
                self.stdout.write(json.dumps(batch_document(row)) if as_json else _line(row))
            return
        batch = _batch(system, number)
        document = results_document(batch, judges_tried(batch))
        for line in [json.dumps(document)] if as_json else _results(document):
            self.stdout.write(line)


def _criterion(
    system: System, name: str, rubric_version: str | None, digest: str | None
) -> LabelCriterion:
    found = [each for each in criteria_to_label(system.pk) if each.name == name]
    if rubric_version is not None:
        found = [each for each in found if each.rubric_version == rubric_version]
    if digest is not None:
        found = [each for each in found if _digest(each) == digest]
    match found:
        case [one]:
            return one
        case []:
            raise CommandError(f"{system.slug} has no such criterion for judges: {name!r}.")
        case _:
            which = ", ".join(
                f"{_digest(each)} ({each.rubric_version or 'no version'}, "
                f"{counted(each.n_tasks, 'task')})"
                for each in found
            )
            raise CommandError(
                f"Several criteria are called {name!r}; name one by --digest: {marked_text(which)}."
            )


def _digest(criterion: LabelCriterion) -> str:
    return criterion.digest.hex if criterion.digest else "none"


def _trial_id(text: str) -> uuid.UUID:
    try:
        return uuid.UUID(text)
    except ValueError:
        raise CommandError(f"{text!r} is no id of a trial.") from None


def _batch(system: System, number: int) -> ProbeBatch:
    batch = batch_numbered(system.pk, number)
    if batch is None:
        raise CommandError(f"{system.slug} has no batch of probes {number}.")
    return batch


def _all_rows(system: System) -> Iterator[BatchRow]:
    before: int | None = None
    while rows := batch_rows(system.pk, before=before):
        yield from rows[:PAGE]
        if len(rows) <= PAGE:
            return
        before = rows[PAGE - 1].number


def _line(row: BatchRow) -> str:
    version = f" {row.rubric_version}" if row.rubric_version else ""
    return marked_text(
        f"{row.number}  {row.criterion}{version}  {counted(row.n_probes, 'probe')} of "
        f"{counted(row.n_trials, 'trial')}, {counted(row.n_judges, 'judge version')}: {row.reason}"
    )


def _results(document: dict[str, Any]) -> Iterator[str]:
    yield marked_text(f"Batch {document['number']} on {document['criterion']}")
    for judge in document["judges"]:
        state = "failed" if judge["has_failed"] else "no wrong word"
        name = f"{judge['judge']} {judge['version']}".strip()
        yield marked_text(f"{name}: {state}, {judge['n_missing']} missing")
        for kind, told in judge["kinds"].items():
            counts = ", ".join(f"{n} {word}" for word, n in told.items() if n)
            yield f"    {KIND_NAMES[ProbeKind(kind)]}: {counts}"
    if not document["judges"]:
        yield "No judge has said anything of it yet."
