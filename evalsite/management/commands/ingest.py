"""Evidence from files, read in this process the same way as every upload."""

import json
import os
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from evalsite.management.lookups import person_or_error
from evalsite.pipeline import process_upload
from traces.core.formats import AUTO
from traces.core.text_marks import marked_text
from traces.models import (
    Door,
    LineOutcome,
    System,
    Upload,
    UploadJob,
    UploadLine,
    UploadState,
    User,
)
from traces.selectors.systems import system_named
from traces.services.acceptance import (
    NOT_JSON_CODES,
    Offer,
    Refusal,
    accept_upload,
    file_chunks,
)
from traces.services.people import PeopleError, create_system

ALL_STORED, SOME_REFUSED, NOTHING_READABLE = 0, 1, 2
_LEDGER = ("received", "stored", "duplicate", "conflict", "refused")
_MORE = ("trials", "verdicts", "verdicts_refused", "waiting", "warnings")
_UNREADABLE_CODES = (*NOT_JSON_CODES, "damaged", "refused-member", "unknown-format")
_PAGE = 1_000
_WAIT_SECONDS = 0.5


@dataclass(slots=True)
class _Outcome:
    """What became of one file. `job` None: it was not taken in."""

    file: str
    sentence: str = ""  # why nothing of it could be read
    upload: Upload | None = None
    job: UploadJob | None = None
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def is_readable(self) -> bool:
        """Whether a record of it could be read, if only to be refused."""
        if self.upload is None or not self.counts["received"]:
            return False
        if self.counts["refused"] < self.counts["received"]:
            return True
        refused = UploadLine.objects.filter(upload=self.upload, outcome=LineOutcome.REFUSED.value)
        return refused.exclude(code__in=_UNREADABLE_CODES).exists()

    @property
    def is_whole(self) -> bool:
        """Whether everything in it is stored or was there already."""
        refused = ("conflict", "refused", "verdicts_refused")
        return not self.sentence and not any(self.counts[name] for name in refused)


class Command(BaseCommand):
    help = (
        "Store evidence from files. Exit code 0: all stored or already there; 1: some records "
        "were refused or are in conflict; 2: nothing could be read."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("files", nargs="+", metavar="FILE")
        parser.add_argument(
            "--system", required=True, metavar="S", help="address or name; made when absent"
        )
        parser.add_argument("--release", default="", metavar="R", help="else as the records say")
        parser.add_argument("--run", default="", metavar="NAME", help="else as the records say")
        parser.add_argument("--format", default=AUTO, help="found out by looking, by default")
        parser.add_argument("--by", metavar="USER", help="who uploads; else the operator")
        parser.add_argument("--json", action="store_true", help="print the ledger as JSON")

    def handle(self, *args: Any, files: list[str], **options: Any) -> None:
        closed = {file: _Outcome(file, sentence) for file in files if (sentence := _closed(file))}
        try:
            by = person_or_error(options["by"]) if options["by"] else None
            if len(closed) < len(set(files)):
                system = system_for_evidence(options["system"], by=by)
        except CommandError as error:
            error.returncode = NOTHING_READABLE
            raise
        outcomes = [
            closed[file] if file in closed else self._ingest(file, system, by, options)
            for file in files
        ]
        if options["json"]:
            self.stdout.write(json.dumps(_document(outcomes)))
        else:
            for outcome in outcomes:
                self._print(outcome)
        if code := exit_code(outcomes):
            self.stdout.flush()
            sys.exit(code)

    def _ingest(
        self, file: str, system: System, by: User | None, options: dict[str, Any]
    ) -> _Outcome:
        path = Path(file)
        try:
            taken = accept_upload(
                file_chunks(path),
                Offer(
                    system=system,
                    door=Door.COMMAND,
                    by=by,
                    file_name=path.name,
                    release=options["release"],
                    run=options["run"],
                    format=options["format"],
                ),
                now=timezone.now(),
            )
        except OSError as error:
            return _Outcome(file, _reason(error))
        if isinstance(taken, Refusal):
            return _Outcome(file, taken.sentence)
        return _outcome_of(file, taken, _finished_job(taken))

    def _print(self, outcome: _Outcome) -> None:
        self.stdout.write(f"{marked_text(outcome.file)}:")
        if outcome.sentence:
            self.stdout.write(f"  {marked_text(outcome.sentence)}")
        if outcome.upload is None:
            return
        for line in _lines(outcome.upload):
            where = f"{line.member}: " if line.member else ""
            place = f" at {line.place}" if line.place else ""
            text = f"  {where}record {line.number} {line.outcome}{place}: {line.sentence}"
            self.stdout.write(marked_text(text))
        ledger = ", ".join(f"{outcome.counts[name]:,} {name}" for name in _LEDGER)
        more = ", ".join(f"{outcome.counts[name]:,} {name.replace('_', ' ')}" for name in _MORE)
        self.stdout.write(f"  {ledger}\n  {more}")


def _closed(file: str) -> str:
    """Why a file cannot be opened; "" when it can."""
    try:
        if Path(file).is_fifo():  # it can be opened once only
            return ""
        with Path(file).open("rb"):
            return ""
    except (OSError, ValueError) as error:
        return _reason(error)


def _reason(error: OSError | ValueError) -> str:
    if isinstance(error, IsADirectoryError):
        return "This is a folder; pack it as zip or tar.gz."
    words = error.strerror if isinstance(error, OSError) else "its name is none"
    return f"The file cannot be read: {words}."


def system_for_evidence(name: str, *, by: User | None) -> System:
    """The system of that address or name, made without an owner when it does not exist."""
    if system := system_named(name):
        return system
    try:
        with transaction.atomic():
            system = create_system(name, by=None)
            system.created_by = by
            system.save(update_fields=["created_by"])
    except PeopleError as error:
        raise CommandError(str(error)) from None
    return system


def _finished_job(upload: Upload) -> UploadJob:
    """The job at its end. A worker that took the upload meanwhile is waited for."""
    process_upload(upload.pk)
    while True:
        job = UploadJob.objects.get(upload=upload)
        if job.state in (UploadState.DONE.value, UploadState.FAILED.value):
            return job
        time.sleep(_WAIT_SECONDS)
        process_upload(upload.pk)


def _outcome_of(file: str, upload: Upload, job: UploadJob) -> _Outcome:
    counts = {name: getattr(job, f"n_{name}") for name in (*_LEDGER, *_MORE)}
    return _Outcome(file, job.failure, upload, job, counts)


def exit_code(outcomes: list[_Outcome]) -> int:
    """0: all stored or already there; 1: some refused; 2: nothing readable in any file."""
    if all(outcome.is_whole for outcome in outcomes):
        return ALL_STORED
    if any(outcome.is_readable for outcome in outcomes):
        return SOME_REFUSED
    return NOTHING_READABLE


def _lines(upload: Upload) -> Iterator[UploadLine]:
    after = 0
    while rows := list(
        UploadLine.objects.filter(upload=upload, pk__gt=after)
        .exclude(outcome=LineOutcome.NOTE.value)
        .order_by("pk")[:_PAGE]
    ):
        yield from rows
        after = rows[-1].pk


def _document(outcomes: list[_Outcome]) -> dict[str, Any]:
    """The ledger over all files, and each file's own with its lines."""
    names = (*_LEDGER, *_MORE)
    return {
        **{name: sum(outcome.counts.get(name, 0) for outcome in outcomes) for name in names},
        "files": [
            {
                "file": os.fsencode(outcome.file).decode(errors="replace"),
                "upload": str(outcome.upload.uuid) if outcome.upload else None,
                "state": outcome.job.state if outcome.job else None,
                "failure": outcome.sentence,
                **{name: outcome.counts.get(name, 0) for name in names},
                "lines": [_line(line) for line in _lines(outcome.upload)] if outcome.upload else [],
            }
            for outcome in outcomes
        ],
    }


def _line(line: UploadLine) -> dict[str, Any]:
    return {
        "number": line.number,
        "member": line.member,
        "outcome": line.outcome,
        "place": line.place,
        "code": line.code,
        "sentence": line.sentence,
    }
