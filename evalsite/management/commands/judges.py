"""The judges of a system and how each is calibrated, as a table or JSON."""

import json
from argparse import ArgumentParser
from datetime import datetime
from fractions import Fraction
from typing import Any

from django.core.management import BaseCommand
from django.utils import timezone

from evalsite.common.formatting import NOTHING, counted
from evalsite.management.lookups import system_or_error
from reviews.api.judges import judges_document
from reviews.core.calibration import CalibrationStatus
from reviews.core.estimators import percent
from reviews.selectors.judges import ListedJudge, judges_of
from traces.core.text_marks import marked_text


class Command(BaseCommand):
    help = "List the judges of a system: what each said, whether its verdicts vote, and why."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        parser.add_argument("--criterion", metavar="C", help="all of them by default")
        parser.add_argument(
            "--status", choices=[status.value for status in CalibrationStatus], metavar="S"
        )
        parser.add_argument("--json", action="store_true", help="print everything as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        now = timezone.now()
        judges = [
            each
            for each in judges_of(system.pk)
            if options["criterion"] in (None, each.criterion)
            and options["status"] in (None, each.status_at(now).value)
        ]
        if options["json"]:
            document = judges_document(judges, slug=system.slug, now=now)
            self.stdout.write(json.dumps(document))
        elif not judges:
            self.stdout.write("No judge has given a verdict.")
        else:
            self.stdout.write("\n".join(_line(each, now) for each in judges))


def _line(each: ListedJudge, now: datetime) -> str:
    name = marked_text(f"{each.judge} {each.version}".strip())
    current = each.current
    bound = current.figures.held.false_pass.bound if current else None
    at_most = NOTHING if bound is None else percent(Fraction(bound))
    until = f"until {current.valid_until:%Y-%m-%d}" if current and current.valid_until else ""
    return "\t".join(
        (
            each.status_at(now).value,
            name,
            marked_text(each.criterion),
            counted(each.said.n, "verdict"),
            f"false passes at most {at_most}",
            until or NOTHING,
            current.why if current else "No status was read.",
        )
    )
