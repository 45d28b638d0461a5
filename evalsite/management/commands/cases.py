"""The queue of cases of a system, and the reruns that are asked for."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management import BaseCommand

from evalsite.common.formatting import counted
from evalsite.management.lookups import system_or_error
from reviews.api.cases import case_documents
from reviews.core.disposition import NextAction
from reviews.models import CaseState
from reviews.selectors.cases import CaseFilter
from traces.core.text_marks import marked_text

_ALL = "all"


class Command(BaseCommand):
    help = "List the cases of a system: trials that are not decided, and what is to do next."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        parser.add_argument(
            "--action", choices=[a.value for a in NextAction], help="the first next action"
        )
        parser.add_argument(
            "--state",
            choices=[*(s.value for s in CaseState), _ALL],
            default=CaseState.OPEN.value,
            help="open by default",
        )
        parser.add_argument(
            "--rerun", action="store_true", help="only those whose rerun somebody asked for"
        )
        parser.add_argument("--json", action="store_true", help="print JSON Lines, one a case")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        state, action = options["state"], options["action"]
        documents = case_documents(
            CaseFilter(
                system.pk,
                state=None if state == _ALL else CaseState(state),
                action=NextAction(action) if action else None,
                rerun_asked=options["rerun"],
            )
        )
        for line in map(json.dumps, documents) if options["json"] else _table(documents):
            self.stdout.write(line)


def _table(documents: Iterator[dict[str, Any]]) -> Iterator[str]:
    n = 0
    for case in documents:
        n += 1
        attempt = f", attempt {case['attempt']}" if case["attempt"] > 1 else ""
        place = f"{case['release']} {case['run']} {case['task_id']}, trial {case['trial']}{attempt}"
        actions = ", ".join(a.replace("_", " ") for a in case["next_actions"]) or case["state"]
        why = f": {', '.join(case['open_criteria'])}" if case["open_criteria"] else ""
        who = case["assignee"] or case["worked_by"]
        due = f", due {case['due_on']}" if case["due_on"] else ""
        yield marked_text(f"{place}  {actions}{why}  ({who}{due})")
        if case["rerun"]:
            yield marked_text(
                f"    rerun asked by {case['rerun']['by']}: {case['rerun']['reason']}"
            )
    yield counted(n, "case")
