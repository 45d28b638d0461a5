"""What thresholds are in force in each risk tier of a system, and every version before."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.common.formatting import counted, time_text
from evalsite.management.lookups import system_or_error
from reviews.api.tiers import tiers_document
from reviews.core.gate.thresholds import threshold_sentence
from reviews.selectors.thresholds import (
    TierRow,
    VersionOfThresholds,
    tiers_of,
    versions_of,
)
from traces.core.text_marks import marked_text

MOST_VERSIONS = 1_000  # of a tier


class Command(BaseCommand):
    help = (
        "Print the thresholds in force in each risk tier, and their history. "
        "Owners set them on the pages of the site."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", metavar="S", required=True, help="its address or its name")
        parser.add_argument("--tier", metavar="T", help="one tier by its name; all by default")
        parser.add_argument("--json", action="store_true", help="print everything as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        tiers = tiers_of(system.pk, now=timezone.now())
        if options["tier"] is not None:
            wanted = options["tier"].casefold()
            tiers = tuple(tier for tier in tiers if tier.name.casefold() == wanted)
            if not tiers:
                raise CommandError(f"There is no risk tier {options['tier']!r} in this system.")
        history = {tier.pk: versions_of(tier.pk, n=MOST_VERSIONS).rows for tier in tiers}
        if options["json"]:
            document = tiers_document(tiers, slug=system.slug, history=history)
            self.stdout.write(json.dumps(document))
        elif not tiers:
            self.stdout.write("No risk tier yet. An owner makes them on the page of thresholds.")
        else:
            for tier in tiers:
                self.stdout.write("\n".join(_lines(tier, history[tier.pk])))


def _lines(tier: TierRow, history: tuple[VersionOfThresholds, ...]) -> Iterator[str]:
    retired = ", retired" if tier.retired else ""
    yield f"{marked_text(tier.name)} ({counted(tier.n_tasks, 'task')}{retired})"
    if tier.in_force is None:
        yield "  no thresholds in force"
    elif tier.in_force.thresholds is None:
        yield "  the thresholds in force cannot be read"
    else:
        for threshold in tier.in_force.thresholds.checks:
            yield f"  {marked_text(threshold_sentence(threshold))}"
    for version in history:
        mark = "*" if tier.in_force and version.number == tier.in_force.number else " "
        by = marked_text(version.by_name) or "the operator"
        yield (
            f"{mark} version {version.number}, in force from {time_text(version.in_force_from)}, "
            f"set by {by} at {time_text(version.made_at)}: {_one_line(version.reason)}"
        )


def _one_line(text: str) -> str:
    return marked_text(" ".join(text.split()))
