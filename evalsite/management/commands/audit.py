"""`manage.py audit`: the audit log of a system, or the site's own, as CSV or JSON."""

import sys
from argparse import ArgumentParser
from datetime import date
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.audit.export import csv_lines, json_pieces
from evalsite.audit.reading import AuditFilter, AuditReader
from traces.models import System


class Command(BaseCommand):
    """Prints events, the newest first. The operator reads everything, also what labels are blind to."""

    help = "Print the audit log of a system; with --site sign-ins and what concerns no system."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Whose log, and which events."""
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--system", metavar="S", help="address of the system")
        whose.add_argument("--site", action="store_true", help="the log of the site itself")
        parser.add_argument("--act", default="", help='such as "sign_off.made", or "sign_off."')
        parser.add_argument("--kind", default="", help="kind of the object, such as release")
        parser.add_argument(
            "--id", default="", dest="object_id", help="UUID or number of the object"
        )
        parser.add_argument(
            "--since", type=date.fromisoformat, metavar="DAY", help="first day, UTC"
        )
        parser.add_argument("--until", type=date.fromisoformat, metavar="DAY", help="last day, UTC")
        parser.add_argument("--format", choices=("csv", "json"), default="csv")

    def handle(self, *args: Any, system: str | None, **options: Any) -> None:
        """Write the events as they are read."""
        row = System.objects.filter(slug=system).first() if system else None
        if system and row is None:
            raise CommandError(f"There is no system {system!r}.", returncode=2)
        chosen = AuditFilter(
            row.pk if row else None,
            act=options["act"],
            kind=options["kind"],
            object_id=options["object_id"],
            since=options["since"],
            until=options["until"],
        )
        pieces = csv_lines if options["format"] == "csv" else json_pieces
        for piece in pieces(chosen, AuditReader({})):
            sys.stdout.write(piece)
