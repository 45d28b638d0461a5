"""The rules of a system: in force, proposed, and being worked out."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.management.lookups import system_or_error
from traces.core.rule_changes import change_sentences, parse_change
from traces.core.rule_words import rule_sentence
from traces.core.text_marks import marked_text
from traces.models import RulesVersion, System
from traces.selectors.rules import newest_approved, rules_in, shown_rules
from traces.selectors.rules_history import VersionRow, open_proposals, unfinished_work
from traces.services.rules import RulesError, restart_work
from traces.tasks import hint_recompute


class Command(BaseCommand):
    help = (
        "Show the rules in force, the proposals that wait, and the work that goes on; restart it."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")
        parser.add_argument(
            "--restart", type=int, metavar="N", help="take up stopped or failed work on version N"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        if options["restart"] is not None:
            self._restart(system, options["restart"])
        elif options["json"]:
            self.stdout.write(json.dumps(_document(system)))
        else:
            self.stdout.write("\n".join(map(marked_text, _lines(system))))

    def _restart(self, system: System, number: int) -> None:
        version = RulesVersion.objects.filter(system=system, number=number).first()
        if version is None:
            raise CommandError(f"{system.slug} has no rules version {number}.")
        try:
            restart_work(version, now=timezone.now())
        except RulesError as error:
            raise CommandError(str(error)) from None
        hint_recompute(version.pk)
        self.stdout.write(f"The work on version {number} goes on behind its checkpoint.")


def _document(system: System) -> dict[str, object]:
    shown, work = shown_rules(system), unfinished_work(system.pk)
    return {
        "system": system.slug,
        "in_force": {"version": shown.number, **shown.document},
        "newest_approved": newest_approved(system).number,
        "proposals": [
            {
                "version": row.number,
                "based_on": row.based_on,
                "by": row.by_name,
                "reason": row.reason,
                "changes": _changes(system, row),
            }
            for row in open_proposals(system.pk)
        ],
        "work": None if work is None else _work(work),
    }


def _work(row: VersionRow) -> dict[str, object]:
    assert row.work is not None
    return {
        "version": row.number,
        "state": row.work.state.value,
        "n_done": row.work.n_done,
        "n_total": row.work.n_total,
        "failure": row.work.failure,
    }


def _lines(system: System) -> Iterator[str]:
    shown = shown_rules(system)
    rules = rules_in(shown)
    yield f"{system.name}: rules version {shown.number} is in force"
    for rule in rules.rules:
        scope = "" if rule.task_id is None else f"task {rule.task_id}: "
        yield f"  {scope}{rule_sentence(rule)} {rule.reason}"
    for tool, kind in rules.tool_kinds:
        yield f"  {tool}: {kind}"
    for row in open_proposals(system.pk):
        yield f"version {row.number}, proposed by {row.by_name}, waits for a decision: {row.reason}"
        for sentence in _changes(system, row):
            yield f"  {sentence}"
    late = unfinished_work(system.pk)
    if late is not None and (work := late.work):
        done = f"{work.n_done:,} of {work.n_total or 0:,} trajectories"
        yield f"version {late.number} is approved and not in force yet: {work.state}, {done}"
        if work.failure:
            yield f"  {work.failure}"


def _changes(system: System, row: VersionRow) -> list[str]:
    """What a proposal changes; the list of proposals leaves a large change out."""
    version = RulesVersion.objects.select_related("based_on").get(system=system, number=row.number)
    assert version.based_on is not None
    change, _ = parse_change(version.change)
    return list(change_sentences(change, rules_in(version.based_on)))
