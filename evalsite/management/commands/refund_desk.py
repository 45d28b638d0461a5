"""`manage.py refund_desk`: the made-up trials of one release, as they are loaded by `up`."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.refund_desk import gated_releases, releases


class Command(BaseCommand):
    """Writes the native records of a release of the made-up refund desk."""

    help = "Print the made-up trials of the refund desk as JSON Lines: the same bytes each time."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Which release, and where to."""
        names = [release.name for release in (*releases(), *gated_releases())]
        parser.add_argument("release", choices=names, help="the release whose trials are printed")
        parser.add_argument("--out", type=Path, metavar="FILE", help="else to standard output")

    def handle(self, *args: Any, release: str, out: Path | None, **options: Any) -> None:
        """Write the lines."""
        lines = next(one.lines for one in (*releases(), *gated_releases()) if one.name == release)
        data = b"".join(lines)
        try:
            if out is None:
                sys.stdout.buffer.write(data)
                sys.stdout.buffer.flush()
            else:
                out.write_bytes(data)
                self.stdout.write(
                    f"{len(lines)} made-up trials of {release}, {len(data)} bytes: {out}"
                )
        except BrokenPipeError:
            # The reader has enough; Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            raise CommandError(f"{out} cannot be written: {error.strerror}.") from None
