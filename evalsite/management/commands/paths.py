"""Passing trials grouped by the path they took, and which of these paths are new."""

import json
from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.management.lookups import releases_or_error, system_or_error
from reviews.api.novelty import novelty_document, novelty_of
from reviews.core.accepted_paths import Taking, accepted_name
from reviews.selectors.novelty import NovelPaths, TaskNovelty, newest_release
from traces.api.paths import paths_document
from traces.core.canonical import nfc
from traces.core.paths import PathLevel
from traces.core.text_marks import marked_text
from traces.models import Release, System
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
        parser.add_argument(
            "--novel",
            action="store_true",
            help="show what one release, by default the newest, does with accepted paths, and "
            "which of its paths are new",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        level, messages = PathLevel(options["level"]), not options["no_messages"]
        releases = releases_or_error(system, options["release"])
        task_id = None if options["task"] is None else nfc(options["task"])
        about = f"{level.value}, {'with' if messages else 'without'} agent messages"
        if options["novel"]:
            release = _one_release(system, releases)
            found = novelty_of(system, release, level, messages=messages, task_id=task_id)
            if task_id is not None and not found:
                where = f" of the release {marked_text(release.label)!r}"
                raise _no_trial(system, task_id, where=where)
            if options["json"]:
                document = novelty_document(release, level, found, messages=messages)
                self.stdout.write(json.dumps(document))
            else:
                self._tell(system, release, about, found)
            return
        tasks = passing_paths(
            system, level=level, messages=messages, releases=releases, task_id=task_id
        )
        if task_id is not None and not tasks:
            raise _no_trial(system, task_id, where=" of these releases" if releases else "")
        if options["json"]:
            self.stdout.write(json.dumps(paths_document(level, tasks, messages=messages)))
            return
        self.stdout.write(f"{system.name}: passing paths at the level {about}")
        self.stdout.write("all versions of a task together; passed / graded / run")
        for task in tasks:
            self.stdout.write(
                f"{marked_text(task.task_id)}: {task.n_pass} / {task.n_graded} / {task.n_trials}, "
                f"{len(task.groups)} paths"
            )
            for group in task.groups:
                self.stdout.write(f"  {len(group):>4}  {marked_text(', '.join(group))}")

    def _tell(
        self,
        system: System,
        release: Release,
        about: str,
        found: Sequence[tuple[TaskNovelty, NovelPaths]],
    ) -> None:
        """The same as the document, in lines for people."""
        name = marked_text(release.label)
        self.stdout.write(f"{system.name}: accepted and new paths of {name} at the level {about}")
        for task, paths in found:
            self.stdout.write(f"{marked_text(task.task_id)}:")
            for taking in Taking:
                for numbers in task.merged(taking):
                    self.stdout.write(f"  {taking.value:<22}  {accepted_name(numbers)}")
            for word, groups in (
                ("new", paths.new),
                ("seen, not accepted", paths.seen_before),
            ):
                for group in groups:
                    self.stdout.write(f"  {word:<22}  trials {marked_text(', '.join(group))}")


def _one_release(system: System, releases: Sequence[Release]) -> Release:
    if len(releases) > 1:
        raise CommandError("--novel looks at one release: name one, or none for the newest.")
    release = releases[0] if releases else newest_release(system)
    if release is None:
        raise CommandError(f"No release of {system.slug} has a trial that figures count.")
    return release


def _no_trial(system: System, task_id: str, *, where: str) -> CommandError:
    return CommandError(f"{system.slug} has no trial{where} of the task {marked_text(task_id)!r}.")
