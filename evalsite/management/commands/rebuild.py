"""Projections made anew from evidence."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from evalsite.management.lookups import system_or_error
from evalsite.rebuilding import rebuild
from traces.models import System


class Command(BaseCommand):
    help = "Make path keys, dispositions and figures anew from the evidence."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", metavar="S", help="else every system")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["system"]:
            systems = [system_or_error(options["system"])]
        else:
            systems = list(System.objects.select_related("shown_rules").order_by("pk"))
        for system in systems:
            self.stdout.write(f"{system.name}:")
            rebuild(system, say=lambda text: self.stdout.write(f"  {text}"))
