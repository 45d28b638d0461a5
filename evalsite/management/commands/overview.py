"""The overview of a system as text or JSON."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.common.formatting import NOTHING, counted, money_text
from evalsite.management.lookups import releases_or_error, system_or_error
from reviews.api.overview import SPLITS, overview_document
from reviews.core.estimators import Counts, percent
from reviews.core.overview import MOST_K
from reviews.selectors.overview import OverviewFilter, SystemOverview, system_overview
from traces.core.text_marks import marked_text


class Command(BaseCommand):
    help = (
        "Show the overview of a release: rates with their range, safety, cost, recovery, failures."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        parser.add_argument("--release", metavar="R", help="the newest with trials by default")
        parser.add_argument("--family", default="", metavar="F")
        parser.add_argument("--split", default="", choices=["", *SPLITS])
        parser.add_argument("--k", type=int, metavar="K", help=f"of pass^k, 1 to {MOST_K}")
        parser.add_argument("--json", action="store_true", help="print every figure as JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        k = options["k"]
        if k is not None and not 1 <= k <= MOST_K:
            raise CommandError(f"--k is a whole number from 1 to {MOST_K}.")
        release = options["release"]
        found = system_overview(
            system,
            OverviewFilter(
                release=None if release is None else releases_or_error(system, [release])[0].uuid,
                family=options["family"],
                split=options["split"],
                k=k,
            ),
        )
        if options["json"]:
            self.stdout.write(json.dumps(overview_document(found)))
        else:
            self.stdout.write("\n".join(_lines(found)))


def _lines(found: SystemOverview) -> list[str]:
    figures, cost = found.figures, found.measures.clean_cost
    hat = figures.clean_hat if found.has_rules else figures.outcome_hat
    name = found.release.label if found.release else "no release"
    lines = [
        (
            f"{marked_text(found.system.name)}, release {marked_text(name)}: "
            f"{counted(figures.outcome.run, 'trial')} of {counted(found.n_tasks, 'task')}"
        ),
        f"outcome       {_rate(figures.outcome)}",
        f"rule-clean    {_rate(figures.clean) if found.has_rules else 'none: no rule is checked'}",
        f"pass^{hat.k:<9}{percent(hat.value)} over {counted(hat.mean.n_tasks, 'task')}",
        (
            f"cost          median {money_text(cost.median)}, 95th {money_text(cost.p95)} over "
            f"{counted(cost.n_known, 'rule-clean trial')}"
        ),
        f"recovery      {_rate(found.recovery.counts)}",
    ]
    lines += [
        f"prohibited    {marked_text(each.harm) or 'any harm'}: {each.n_attempted} attempted, "
        f"{each.n_committed} committed, {each.n_known} known of {each.n_run}; true rate at most "
        f"{NOTHING if each.trial_bound is None else f'{100 * each.trial_bound:.1f} %'}"
        for each in found.harms
    ] or ["prohibited    cannot tell: no contract says what is prohibited"]
    lines.append(
        f"not decided   {figures.n_unresolved} unresolved, {figures.n_error} harness errors, "
        f"{figures.n_missing} missing"
    )
    return lines


def _rate(counts: Counts) -> str:
    if counts.range is None:
        return "none"
    return (
        f"{percent(counts.rate)} ({counts.passed} / {counts.graded} / {counts.run}), range "
        f"{percent(counts.range.low)} to {percent(counts.range.high)}"
    )
