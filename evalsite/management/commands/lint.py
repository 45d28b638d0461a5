"""Everything that is checked without running the product: `manage.py lint`."""

import hashlib
import json
import os
import secrets
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

_TOOLS: Final = ("ruff", "mypy", "lint-imports", "djade")
_FIX: Final = (("ruff", "check", "--fix", "."), ("ruff", "format", "."))
# Made up: the check opens no connection.
_PRODUCTION: Final = {
    "DATABASE_URL": "postgresql://evalsite@db.invalid/evalsite",
    "CELERY_BROKER_URL": "redis://broker.invalid/0",
    "EVALSITE_SECRET_KEY": secrets.token_urlsafe(64),
    "EVALSITE_ALLOWED_HOSTS": "evals.invalid",
}


class Command(BaseCommand):
    help = "Check style, types, layers, templates, migrations and vendored files."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: Any) -> None:
        parser.add_argument("--fix", action="store_true", help="format and repair what can be")

    def handle(self, *args: Any, fix: bool, **options: Any) -> None:
        missing = [tool for tool in _TOOLS if not Path(sys.executable).with_name(tool).exists()]
        if missing:
            raise CommandError(f"Not installed: {', '.join(missing)}.")
        if fix:
            for command in _FIX:
                _run(*command)
        failed = [name for name, check in _CHECKS if not self._passes(name, check)]
        if failed:
            raise CommandError(f"Not in order: {', '.join(failed)}.")
        self.stdout.write("All in order.")

    def _passes(self, name: str, check: Callable[[], str]) -> bool:
        begun = time.monotonic()
        problem = check()
        took = time.monotonic() - begun
        self.stdout.write(f"{'FAILED' if problem else 'ok    '}  {name} ({took:.1f} s)")
        if problem:
            self.stdout.write(problem)
        return not problem


def vendored_problem() -> str:
    """What differs between static/vendor and its list of checksums; empty if nothing does."""
    folder = settings.BASE_DIR / "static" / "vendor"
    problems = []
    for entry in json.loads((folder / "vendor.json").read_text()):
        path = folder / entry["file"]
        if not path.is_file():
            problems.append(f"{entry['file']} is missing")
        elif hashlib.sha256(path.read_bytes()).hexdigest() != entry["sha256"]:
            problems.append(f"{entry['file']} differs from its checksum")
    return "\n".join(problems)


def _templates() -> list[str]:
    return sorted(str(path) for path in (settings.BASE_DIR / "templates").rglob("*.html"))


def _run(tool: str, *arguments: str) -> str:
    return _outcome([str(Path(sys.executable).with_name(tool)), *arguments])


def _manage(*arguments: str, production: bool = False) -> str:
    environment = {**os.environ, **_PRODUCTION} if production else None
    return _outcome([sys.executable, "manage.py", *arguments], environment)


def _outcome(command: list[str], environment: dict[str, str] | None = None) -> str:
    """What a command printed if it failed, else nothing."""
    done = subprocess.run(
        command,
        cwd=settings.BASE_DIR,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr or f"exit {done.returncode}"


_CHECKS: Final[tuple[tuple[str, Callable[[], str]], ...]] = (
    ("ruff check", lambda: _run("ruff", "check", "--quiet", ".")),
    ("ruff format", lambda: _run("ruff", "format", "--check", "--quiet", ".")),
    ("mypy --strict", lambda: _run("mypy")),
    ("import contracts", lambda: _run("lint-imports")),
    ("templates", lambda: _run("djade", "--check", "--target-version", "5.2", *_templates())),
    ("system check", lambda: _manage("check")),
    (
        "system check --deploy",
        lambda: _manage("check", "--deploy", "--fail-level", "WARNING", production=True),
    ),
    ("migrations", lambda: _manage("makemigrations", "--check", "--dry-run")),
    ("vendored files", vendored_problem),
)
