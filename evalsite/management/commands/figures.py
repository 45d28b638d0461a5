"""Figures of a system over all tasks."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand

from evalsite.management.lookups import releases_or_error, system_or_error
from reviews.api.figures import figures_document
from reviews.core.estimators import percent, rate_text
from reviews.selectors.figures import SystemFigures, system_figures
from traces.core.text_marks import marked_text

_NAMED = 10


class Command(BaseCommand):
    help = "Show passed / graded / run, pass^k and pass@k over the tasks of a system."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument(
            "--release",
            action="append",
            default=[],
            metavar="R",
            help="may be given several times; their trials are taken together",
        )
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        figures = system_figures(system, releases_or_error(system, options["release"]))
        if options["json"]:
            self.stdout.write(json.dumps(figures_document(figures)))
        else:
            self.stdout.write("\n".join(_table(figures)))


def _table(figures: SystemFigures) -> list[str]:
    total = figures.total
    counts = f"{total.passed} / {total.graded} / {total.run}"
    lines = [
        f"{len(figures.tasks)} tasks; passed / graded / run: {counts}; rate {rate_text(total)}"
    ]
    if total.range:
        lines.append(
            f"range of the rate, from all unknown ones fail to all pass: "
            f"{percent(total.range.low)} to {percent(total.range.high)}"
        )
    if figures.n_left_out:
        lines.append(
            f"{figures.n_left_out} trials are left out: production, injected fault or split tuning"
        )
    lines.append(
        "   k    pass^k    pass@k   over tasks   left out, as they have fewer than k trials"
    )
    for k, (hat, at) in enumerate(zip(figures.pass_hat_k, figures.pass_at_k, strict=True), start=1):
        named = ", ".join(map(marked_text, hat.left_out[:_NAMED]))
        more = len(hat.left_out) - _NAMED
        lines.append(
            f"{k:>4}   {percent(hat.value):>7}   {percent(at.value):>7}   "
            f"{hat.n_tasks:>10}   {named}{f' and {more} more' if more > 0 else ''}"
        )
    return lines
