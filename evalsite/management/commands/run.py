"""Runs that are declared before their trials, so that missing ones are seen."""

from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import transaction
from django.utils import timezone

from evalsite.management.commands.ingest import system_for_evidence
from evalsite.management.lookups import person_or_error
from traces.services.work import WorkError, declare_run, release_named


class Command(BaseCommand):
    help = "Declare a run: so many trials of each task against one release."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="declare")
        declare = acts.add_parser("declare", help="declare a run before its trials come")
        declare.add_argument("--system", required=True, metavar="S", help="its address or its name")
        declare.add_argument("--release", required=True, metavar="R")
        declare.add_argument("--name", required=True, metavar="N", help="the name of the run")
        declare.add_argument("--trials", required=True, type=int, help="trials of each task")
        declare.add_argument(
            "--tasks", metavar="FILE", help="one task id a line; else the tasks that come"
        )
        declare.add_argument("--by", metavar="USER", help="who declares it; else the operator")

    def handle(self, *args: Any, **options: Any) -> None:
        by = person_or_error(options["by"]) if options["by"] else None
        tasks = _task_ids(options["tasks"])
        system = system_for_evidence(options["system"], by=by)
        try:
            with transaction.atomic():
                run = declare_run(
                    release_named(system, options["release"], by=by),
                    options["name"],
                    trials=options["trials"],
                    task_ids=tasks,
                    by=by,
                    now=timezone.now(),
                )
        except WorkError as error:
            raise CommandError(str(error)) from None
        of = f"of {len(tasks)} tasks" if tasks else "of each task that its trials name"
        self.stdout.write(f"Run {run.name!r} is declared: {options['trials']} trials {of}.")


def _task_ids(path: str | None) -> list[str]:
    if path is None:
        return []
    try:
        lines = Path(path).read_text(encoding="utf-8-sig").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise CommandError(f"{path} cannot be read: {reason}.") from None
    ids = list(dict.fromkeys(line.strip() for line in lines if line.strip()))
    if not ids:
        raise CommandError(f"{path} names no task.")
    return ids
