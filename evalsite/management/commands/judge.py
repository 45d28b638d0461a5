"""Judge runs: started, listed, and taken up again."""

from __future__ import annotations

import json
from argparse import ArgumentParser
from typing import Any
from uuid import UUID

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.common.formatting import counted
from evalsite.judge_runner.starting import configured_judge, start_configured
from evalsite.judge_runner.work import NOT_CONFIGURED, work_out_judge_run
from evalsite.management.lookups import person_or_error, releases_or_error, system_or_error
from reviews.core.judge_prompt import judge_version
from reviews.models import GraderVersion, JudgeRun, ProbeBatch
from reviews.selectors.calibration_candidates import LabelCriterion
from reviews.selectors.judge_runs import (
    JudgeRunRow,
    criteria_to_judge,
    judge_run_row,
    judge_run_rows,
    judge_run_totals,
    trials_to_judge,
)
from reviews.services.judge_runs import (
    MOST_ITEMS,
    AskedJudge,
    JudgeRunError,
    JudgeRunWish,
    restart_judge_run,
)
from traces.core.text_marks import marked_text
from traces.models import System
from traces.tasks import hint_judge_run


class Command(BaseCommand):
    help = "Ask the operator's judge about stored trials or probes, and list what came of it."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        ask = acts.add_parser("ask", help="have the judge asked, one request a trial or probe")
        about = ask.add_mutually_exclusive_group(required=True)
        about.add_argument("--criterion", metavar="C", help="that the judge decides")
        about.add_argument("--probes", type=int, metavar="NUMBER", help="about a batch of probes")
        ask.add_argument("--rubric-version", metavar="V", help="where several are asked for")
        ask.add_argument("--release", metavar="R", help="trials of this release only")
        ask.add_argument("--family", default="", metavar="F", help="trials of this family only")
        ask.add_argument("--trial", action="append", metavar="ID", help="a trial by its id")
        ask.add_argument("--most", type=int, default=50, metavar="N", help="50 by default")
        ask.add_argument("--again", action="store_true", help="also where it has said something")
        ask.add_argument("--dry-run", action="store_true", help="count the requests, send none")
        ask.add_argument("--wait", action="store_true", help="ask here and now, without a worker")
        ask.add_argument("--reason", required=True, metavar="R", help="why it is asked")
        ask.add_argument("--by", required=True, metavar="USER", help="an engineer or a reviewer")
        again = acts.add_parser("restart", help="take up a stopped or failed run")
        again.add_argument("number", type=int, metavar="NUMBER")
        listed = acts.add_parser("list", help="list the runs, or what came of one")
        listed.add_argument("number", type=int, nargs="?", metavar="NUMBER")
        listed.add_argument("--json", action="store_true", help="print JSON Lines")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        match options["act"]:
            case "ask":
                self._ask(system, options)
            case "restart":
                self._restart(system, options["number"])
            case _:
                self._list(system, options["number"], as_json=options["json"])

    def _ask(self, system: System, options: dict[str, Any]) -> None:
        judge = configured_judge()
        if judge is None:
            raise CommandError(NOT_CONFIGURED)
        wish = _wish(system, judge, options)
        n = wish.probes.probes.count() if wish.probes else len(wish.trial_ids)
        if options["dry_run"]:
            self.stdout.write(f"{counted(n, 'request')} to {judge.endpoint}; none is sent.")
            return
        person = person_or_error(options["by"])
        try:
            run = start_configured(
                system, wish, reason=options["reason"], by=person, now=timezone.now()
            )
        except JudgeRunError as error:
            raise CommandError(marked_text(str(error))) from None
        self.stdout.write(f"Judge run {run.number}: {counted(n, 'request')} to {judge.endpoint}")
        if options["wait"]:
            self._wait(system, run)
        else:
            hint_judge_run(run.pk)

    def _wait(self, system: System, run: JudgeRun) -> None:
        while work_out_judge_run(run.pk) == run.pk:
            pass
        row = _row(system, run.number)
        self.stdout.write(_line(row))
        if row.failure:
            raise CommandError(marked_text(row.failure))

    def _restart(self, system: System, number: int) -> None:
        run = JudgeRun.objects.select_related("system").get(pk=_row(system, number).pk)
        try:
            restart_judge_run(run, by=None, now=timezone.now())
        except JudgeRunError as error:
            raise CommandError(str(error)) from None
        hint_judge_run(run.pk)
        self.stdout.write(f"Judge run {number} goes on.")

    def _list(self, system: System, number: int | None, *, as_json: bool) -> None:
        if number is None:
            for row in _all_rows(system):
                self.stdout.write(json.dumps(_document(row)) if as_json else _line(row))
            return
        row = _row(system, number)
        totals = judge_run_totals(row.pk)
        if as_json:
            document = _document(row) | {
                "verdicts": dict(totals.by_value),
                "errors_by_reason": dict(totals.by_failure),
                "input_tokens": totals.input_tokens,
                "output_tokens": totals.output_tokens,
            }
            self.stdout.write(json.dumps(document))
            return
        self.stdout.write(_line(row))
        for word, n in totals.by_value:
            self.stdout.write(f"  {word}: {n:,}")
        for sentence, n in totals.by_failure:
            self.stdout.write(f"  {n:,} × {marked_text(sentence)}")


def _wish(system: System, judge: AskedJudge, options: dict[str, Any]) -> JudgeRunWish:
    batch = _batch(system, options["probes"]) if options["probes"] else None
    criterion = _criterion(system, options, batch)
    return JudgeRunWish(
        criterion=criterion.name,
        criterion_digest=criterion.digest,
        rubric_version=criterion.rubric_version,
        question=criterion.question,
        trial_ids=() if batch else _trials(system, judge, criterion, options),
        probes=batch,
    )


def _batch(system: System, number: int) -> ProbeBatch:
    found = ProbeBatch.objects.filter(system=system, number=number).select_related("criterion")
    if (batch := found.first()) is None:
        raise CommandError(f"{system.slug} has no batch of probes {number}.")
    return batch


def _criterion(system: System, options: dict[str, Any], batch: ProbeBatch | None) -> LabelCriterion:
    name = batch.criterion.name if batch else options["criterion"]
    version = options["rubric_version"]
    found = [
        each
        for each in criteria_to_judge(system.pk)
        if each.name == name
        and (batch is None or each.digest == batch.criterion_digest)
        and version in (None, each.rubric_version)
    ]
    if not found:
        raise CommandError(f"{system.slug} has no criterion {marked_text(name)!r} with a question.")
    if len(found) > 1:
        versions = ", ".join(sorted({each.rubric_version or "none" for each in found}))
        raise CommandError(
            f"{marked_text(name)!r} is asked in several texts: name one by --rubric-version "
            f"({marked_text(versions)})."
        )
    return found[0]


def _trials(
    system: System, judge: AskedJudge, criterion: LabelCriterion, options: dict[str, Any]
) -> list[int]:
    if not 1 <= options["most"] <= MOST_ITEMS:
        raise CommandError(f"A run is of 1 to {MOST_ITEMS:,} trials.")
    release = releases_or_error(system, [options["release"]])[0] if options["release"] else None
    spoken = GraderVersion.objects.filter(
        grader__system=system,
        grader__kind="model",
        grader__name=judge.name,
        version=judge_version(judge.model, criterion.rubric_version),
    ).first()
    return list(
        trials_to_judge(
            system,
            criterion,
            release_pk=release.pk if release else None,
            family=options["family"],
            trials=[_trial_id(text) for text in options["trial"]] if options["trial"] else None,
            unasked_of=spoken.pk if spoken and not options["again"] else None,
            most=options["most"],
        )
    )


def _trial_id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise CommandError(f"{marked_text(text)!r} is no id of a trial.") from None


def _row(system: System, number: int) -> JudgeRunRow:
    row = judge_run_row(system, number)
    if row is None:
        raise CommandError(f"{system.slug} has no judge run {number}.")
    return row


def _all_rows(system: System) -> list[JudgeRunRow]:
    rows: list[JudgeRunRow] = []
    while found := judge_run_rows(system, before=rows[-1].number if rows else None):
        rows += found
    return rows


def _line(row: JudgeRunRow) -> str:
    what = "probes" if row.probes else "trials"
    cost = f", ${row.cost_usd:f}" if row.cost_usd else ""
    return (
        f"{row.number}  {row.state.value}  {marked_text(row.criterion)}  {marked_text(row.judge)}, "
        f"{marked_text(row.version)}  {row.n_done:,} of {row.n_total or 0:,} {what}, "
        f"{counted(row.n_errors, 'error')}{cost}"
    )


def _document(row: JudgeRunRow) -> dict[str, Any]:
    return {
        "number": row.number,
        "state": row.state.value,
        "criterion": row.criterion,
        "rubric_version": row.rubric_version,
        "judge": row.judge,
        "version": row.version,
        "model": row.model,
        "endpoint": row.endpoint,
        "probes": row.probes,
        "n_done": row.n_done,
        "n_total": row.n_total,
        "n_errors": row.n_errors,
        "cost_usd": str(row.cost_usd),
        "reason": row.reason,
        "asked_by": row.by_name,
        "asked_at": row.asked_at.isoformat(),
        "failure": row.failure,
    }
