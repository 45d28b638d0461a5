"""`manage.py vendor`: fetches the browser libraries again, or checks that nothing changed."""

from __future__ import annotations

import tempfile
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from evalsite.vendoring.build import build, fetch


class Command(BaseCommand):
    help = (
        "Fetch and build the browser libraries of static/vendor again, by npm. Change a version in "
        "evalsite/vendoring/package.json first, and its lock file with npm install "
        "--package-lock-only --omit-lockfile-registry-resolved."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--check", action="store_true", help="write nothing; fail when a file would change"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        target = Path(settings.BASE_DIR) / "static" / "vendor"
        with tempfile.TemporaryDirectory() as folder:
            workshop = Path(folder)
            fetch(workshop)
            listing = build(workshop, workshop / "built" if options["check"] else target)
            changed = [entry.file for entry in listing if _differs(entry.file, workshop, target)]
        if options["check"] and changed:
            raise CommandError(f"Built again, these differ: {', '.join(changed)}")
        for entry in listing:
            self.stdout.write(f"{entry.file}  {entry.name} {entry.version}  {entry.licence}")


def _differs(file: str, workshop: Path, target: Path) -> bool:
    built = workshop / "built" / file
    return built.exists() and built.read_bytes() != (target / file).read_bytes()
