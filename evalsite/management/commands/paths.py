"""Passing trials grouped by the path they took."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.management.lookups import releases_or_error, system_or_error
from traces.api.paths import paths_document
from traces.core.canonical import nfc
from traces.core.paths import PathLevel
from traces.core.text_marks import marked_text
from traces.selectors.path_groups import passing_paths


class Command(BaseCommand):
    help = "Show, for each task, which passing trials took the same path."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument(
            "--release", action="append", default=[], metavar="R", help="may be given several times"
        )
        parser.add_argument("--task", metavar="T", help="the id of one task; else all of them")
        parser.add_argument(
            "--level",
            choices=[level.value for level in PathLevel],
            default=PathLevel.EXACT.value,
            help="when two trials are on the same path, loosest first; exact by default",
        )
        parser.add_argument(
            "--no-messages", action="store_true", help="leave agent messages without a call out"
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        level, messages = PathLevel(options["level"]), not options["no_messages"]
        releases = releases_or_error(system, options["release"])
        task_id = None if options["task"] is None else nfc(options["task"])
        tasks = passing_paths(
            system, level=level, messages=messages, releases=releases, task_id=task_id
        )
        if task_id is not None and not tasks:
            where = " of these releases" if releases else ""
            raise CommandError(
                f"{system.slug} has no trial{where} of the task {marked_text(task_id)!r}."
            )
        if options["json"]:
            self.stdout.write(json.dumps(paths_document(level, tasks, messages=messages)))
            return
        about = "with agent messages" if messages else "without agent messages"
        self.stdout.write(f"{system.name}: passing paths at the level {level.value}, {about}")
        self.stdout.write("all versions of a task together; passed / graded / run")
        for task in tasks:
            self.stdout.write(
                f"{marked_text(task.task_id)}: {task.n_pass} / {task.n_graded} / {task.n_trials}, "
                f"{len(task.groups)} paths"
            )
            for group in task.groups:
                self.stdout.write(f"  {len(group):>4}  {marked_text(', '.join(group))}")
