"""A release's gate for people and for CI: text, JSON or Markdown, and an exit status."""

import json
import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from evalsite.gate_report import (
    ExitStatus,
    Required,
    exit_status,
    gate_report,
    report_document,
    report_lines,
    report_markdown,
)
from evalsite.management.lookups import releases_or_error, system_or_error
from traces.models import Release


class Command(BaseCommand):
    help = (
        "Compute the gate of a release now, with its signatures. Exit status: 0 as required, "
        "1 the tool failed, 2 wrong usage, 3 blocked, 4 waiting for evidence, 5 ready but not "
        "validly signed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument("--release", required=True, metavar="R", help="its name")
        form = parser.add_mutually_exclusive_group()
        form.add_argument("--json", action="store_true", help="print all of it as JSON")
        form.add_argument("--markdown", action="store_true", help="print a table for a comment")
        parser.add_argument(
            "--require",
            choices=[each.value for each in Required],
            default=Required.READY.value,
            help="what ends with 0: a gate that is ready (default), or a valid signature",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            report = gate_report(self._release(options), now=timezone.now())
        except (OperationalError, InterfaceError) as error:
            raise CommandError(
                f"The database is away ({type(error).__name__}).",
                returncode=ExitStatus.TOOL_ERROR,
            ) from None
        if options["json"]:
            self.stdout.write(json.dumps(report_document(report)))
        elif options["markdown"]:
            self.stdout.write(report_markdown(report))
        else:
            self.stdout.write("\n".join(report_lines(report)))
        status = exit_status(report, Required(options["require"]))
        if status is not ExitStatus.AS_REQUIRED:
            self.stdout.flush()
            sys.exit(int(status))

    def _release(self, options: dict[str, Any]) -> Release:
        try:
            system = system_or_error(options["system"])
            (release,) = releases_or_error(system, [options["release"]])
        except CommandError as error:
            error.returncode = ExitStatus.USAGE
            raise
        if release.is_unversioned:
            raise CommandError(
                "Evidence that names no version has no gate.", returncode=ExitStatus.USAGE
            )
        return release
