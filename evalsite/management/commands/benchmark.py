"""`manage.py benchmark`: what this machine reaches, measured on a database of its own."""

from __future__ import annotations

import cProfile
import io
import pstats
from argparse import ArgumentParser
from dataclasses import asdict
from json import dumps
from typing import Any

from django.core.management.base import BaseCommand

from evalsite.benchmarks.grading import N_CHECKS, GradingResult, measure_grading
from evalsite.benchmarks.ingest import IngestResult, measure_ingest
from evalsite.benchmarks.pages import PageResult, measure_pages
from evalsite.benchmarks.rules import RulesResult, measure_rules
from evalsite.benchmarks.scratch import scratch_site
from evalsite.common.formatting import bytes_text, count_text

_LIMITS = {
    "made": "parse, compress and COPY the same rows",
    "ready": "parse and COPY the same rows as ready-made bytes",
    "records": "parse and COPY each record as jsonb",
}


class Command(BaseCommand):
    """Runs a benchmark on a scratch database, which is dropped afterwards."""

    help = "Measure ingest, pages, rules or grading on a scratch database; the installation's own is not touched."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """What to measure, and at which size."""
        kinds = parser.add_subparsers(dest="kind", required=True)
        ingest = kinds.add_parser("ingest", help="trials a second through the real way in")
        ingest.add_argument("--trials", type=int, default=5_000)
        ingest.add_argument("--tasks", type=int, default=50)
        ingest.add_argument("--rounds", type=int, default=3, help="the fastest one counts")
        ingest.add_argument("--seed", type=int, default=0)
        ingest.add_argument("--json", action="store_true")
        ingest.add_argument(
            "--profile", action="store_true", help="also name the dearest functions"
        )
        pages = kinds.add_parser("pages", help="queries, bytes and server time of the main pages")
        pages.add_argument("--trials", type=int, default=20_000)
        pages.add_argument("--tasks", type=int, default=40)
        pages.add_argument("--json", action="store_true")
        rules = kinds.add_parser("rules", help="previews, suggestions and work of argument rules")
        rules.add_argument("--trials", type=int, default=20_000)
        rules.add_argument("--tasks", type=int, default=40)
        rules.add_argument("--json", action="store_true")
        grading = kinds.add_parser("grading", help="trials graded a second, and pages meanwhile")
        grading.add_argument("--trials", type=int, default=5_000)
        grading.add_argument("--tasks", type=int, default=50)
        grading.add_argument("--json", action="store_true")

    def handle(self, *args: Any, **options: Any) -> None:
        """Measure and report."""
        if options["kind"] == "pages":
            self._pages(n_trials=options["trials"], n_tasks=options["tasks"], json=options["json"])
        elif options["kind"] == "rules":
            self._rules(n_trials=options["trials"], n_tasks=options["tasks"], json=options["json"])
        elif options["kind"] == "grading":
            self._grading(
                n_trials=options["trials"], n_tasks=options["tasks"], json=options["json"]
            )
        else:
            self._ingest(options)

    def _ingest(self, options: dict[str, Any]) -> None:
        profile = cProfile.Profile() if options["profile"] else None
        with scratch_site() as folder:
            result = measure_ingest(
                folder,
                n_trials=options["trials"],
                n_tasks=options["tasks"],
                n_rounds=options["rounds"],
                seed=options["seed"],
                profile=profile,
            )
        self._write(result, ingest_report(result), json=options["json"])
        if profile:
            text = io.StringIO()
            pstats.Stats(profile, stream=text).sort_stats("tottime").print_stats(40)
            self.stdout.write(text.getvalue())

    def _pages(self, *, n_trials: int, n_tasks: int, json: bool) -> None:
        with scratch_site() as folder:
            results = measure_pages(folder, n_trials=n_trials, n_tasks=n_tasks)
        for result in results:
            self._write(result, [_page_report(result)], json=json)

    def _rules(self, *, n_trials: int, n_tasks: int, json: bool) -> None:
        with scratch_site() as folder:
            results = measure_rules(folder, n_trials=n_trials, n_tasks=n_tasks)
        for result in results:
            self._write(result, [_rules_report(result)], json=json)

    def _grading(self, *, n_trials: int, n_tasks: int, json: bool) -> None:
        with scratch_site() as folder:
            result = measure_grading(folder, n_trials=n_trials, n_tasks=n_tasks)
        self._write(result, grading_report(result), json=json)

    def _write(
        self,
        result: IngestResult | PageResult | RulesResult | GradingResult,
        report: list[str],
        *,
        json: bool,
    ) -> None:
        self.stdout.write(dumps(asdict(result)) if json else "\n".join(report))


def _page_report(result: PageResult) -> str:
    ratio = result.milliseconds / result.bare_milliseconds
    return (
        f"{result.name}: {result.status}, {result.n_queries} queries "
        f"({result.n_queries_small} with 3 trials), {bytes_text(result.n_bytes)}, "
        f"{result.milliseconds:.1f} ms, {ratio:.2f} times the bare view's "
        f"{result.bare_milliseconds:.1f} ms"
    )


def _rules_report(result: RulesResult) -> str:
    ratio = result.seconds / result.bare_seconds
    return (
        f"{result.name}: {count_text(result.n_items)} {result.unit} in {result.seconds:.2f} s "
        f"(processor {result.processor_seconds:.2f} s), {result.per_second:.0f} a second, "
        f"{ratio:.1f} times a bare read of all passing trials; "
        f"peak memory {bytes_text(result.peak_bytes)}"
    )


def grading_report(result: GradingResult) -> list[str]:
    """The lines that a person reads."""
    ingest = result.graded_ingest_seconds / result.ingest_seconds
    lines = [
        (
            f"{count_text(result.n_trials)} trials of {count_text(result.n_tasks)} tasks, "
            f"{N_CHECKS} checks each, {count_text(result.n_verdicts)} verdicts"
        ),
        (
            f"regraded and in effect: {result.seconds:.2f} s, {result.per_second:.0f} trials a "
            f"second (processor {result.processor_seconds:.2f} s), "
            f"{result.seconds / result.bare_seconds:.1f} times a bare write of the same rows"
        ),
        f"ingest with contracts in effect takes {ingest:.2f} times what it takes without",
        "where the time of the regrade goes:",
    ]
    rest = result.seconds - sum(result.stages.values())
    for name, seconds in sorted({**result.stages, "the rest": rest}.items(), key=lambda s: -s[1]):
        lines.append(f"  {seconds:7.2f} s  {seconds / result.seconds:4.0%}  {name}")
    lines.append("pages while a worker regrades all trials:")
    for name, (alone, meanwhile) in result.pages.items():
        lines.append(
            f"  {name}: {meanwhile / alone:.2f} times as long ({meanwhile:.1f} ms, {alone:.1f} ms)"
        )
    lines.append(f"peak memory: {bytes_text(result.peak_bytes)}")
    return lines


def ingest_report(result: IngestResult) -> list[str]:
    """The lines that a person reads."""
    rate = result.trials_per_second
    lines = [
        (
            f"{count_text(result.n_trials)} trials, {count_text(result.n_verdicts)} verdicts, "
            f"{bytes_text(result.n_bytes // result.n_trials)} a trial"
        ),
        (
            f"committed and queryable: {result.seconds:.2f} s, {rate:.0f} trials a second "
            f"(processor {result.processor_seconds:.2f} s, and {result.reader_seconds:.2f} s to read)"
        ),
    ]
    for bare in result.bare:
        limit = result.n_trials / bare.seconds
        lines.append(
            f"bare limit, {_LIMITS[bare.name]}: {limit:.0f} trials a second "
            f"(processor {bare.processor_seconds:.2f} s); reached {rate / limit:.0%} of it"
        )
    lines.append("where the time goes:")
    rest = result.seconds - sum(result.stages.values())
    for name, seconds in sorted({**result.stages, "the rest": rest}.items(), key=lambda s: -s[1]):
        lines.append(f"  {seconds:7.2f} s  {seconds / result.seconds:4.0%}  {name}")
    lines.append(
        f"peak memory: {bytes_text(result.peak_bytes)} "
        f"({bytes_text(result.base_bytes)} before the first record)"
    )
    lines.append(f"database: {bytes_text(int(result.bytes_per_trial))} a trial")
    for table, size in sorted(result.database_bytes.items(), key=lambda item: -item[1]):
        lines.append(f"  {bytes_text(size // result.n_trials):>9} a trial  {table}")
    return lines
