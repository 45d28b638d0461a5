"""`manage.py generate`: native trials with the shape of the airline data, as many as wanted."""

from __future__ import annotations

import gzip
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from evalsite.benchmarks.generator import N_RELEASES, trials


class Command(BaseCommand):
    """Writes generated trials to a file, a line each."""

    help = "Write native trials with the shape of the airline data, to try things out at scale."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """How many trials of how many tasks, and where to."""
        parser.add_argument("--trials", type=int, required=True)
        parser.add_argument("--tasks", type=int, default=50)
        parser.add_argument("--releases", type=int, default=N_RELEASES)
        parser.add_argument("--seed", type=int, default=0, help="the same seed, the same bytes")
        parser.add_argument("--out", type=Path, required=True, help="FILE.jsonl or FILE.jsonl.gz")

    def handle(self, *args: Any, **options: Any) -> None:
        """Write the file, then say what is in it."""
        if min(options["trials"], options["tasks"], options["releases"]) < 1:
            raise CommandError("--trials, --tasks and --releases must be at least 1.")
        lines = trials(
            n_trials=options["trials"],
            n_tasks=options["tasks"],
            n_releases=options["releases"],
            seed=options["seed"],
        )
        try:
            n_bytes = write_lines(options["out"], lines)
        except OSError as error:
            raise CommandError(f"{options['out']} cannot be written: {error.strerror}.") from error
        self.stdout.write(
            f"{options['trials']} trials, {n_bytes} bytes before compression: {options['out']}"
        )


def write_lines(path: Path, lines: Iterable[bytes]) -> int:
    """Write lines to a file, compressed when its name ends in .gz. Returns the plain bytes."""
    n_bytes = 0
    with path.open("wb") as file:
        if path.suffix != ".gz":
            for line in lines:
                n_bytes += file.write(line)
            return n_bytes
        # No name and no time in the header: the same seed gives the same file.
        with gzip.GzipFile(
            filename="", mode="wb", compresslevel=6, fileobj=file, mtime=0
        ) as packed:
            for line in lines:
                n_bytes += packed.write(line)
    return n_bytes
