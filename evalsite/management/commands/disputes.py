"""The disputes of a system: criteria of trials whose verdicts disagree."""

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from typing import Any

from django.core.management import BaseCommand

from evalsite.common.formatting import counted
from evalsite.management.lookups import system_or_error
from evalsite.web.dispute_csv import csv_lines
from reviews.api.disputes import ANY_STATE, dispute_documents
from reviews.core.disputes import DisputeKind
from reviews.models import DisputeState
from reviews.selectors.disputes import DisputeFilter
from traces.core.records import CriterionClass
from traces.core.text_marks import marked_text


class Command(BaseCommand):
    help = "List the disputes of a system: criteria of trials whose verdicts disagree."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("system", metavar="SYSTEM", help="its address or its name")
        parser.add_argument(
            "--state",
            choices=[*(s.value for s in DisputeState), ANY_STATE],
            default=DisputeState.OPEN.value,
            help="open by default",
        )
        parser.add_argument(
            "--deciding", action="store_true", help="only those that decide something"
        )
        parser.add_argument("--class", dest="class_name", choices=[c.value for c in CriterionClass])
        parser.add_argument("--criterion", help="its exact name")
        parser.add_argument("--kind", choices=[k.value for k in DisputeKind], help="between whom")
        parser.add_argument(
            "--format",
            choices=["text", "json", "csv"],
            default="text",
            help="text by default; json prints JSON Lines, one a dispute",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        state, class_name, kind = options["state"], options["class_name"], options["kind"]
        chosen = DisputeFilter(
            system.pk,
            state=None if state == ANY_STATE else DisputeState(state),
            deciding=options["deciding"],
            criterion_class=CriterionClass(class_name) if class_name else None,
            criterion=options["criterion"],
            kind=DisputeKind(kind) if kind else None,
        )
        match options["format"]:
            case "csv":
                for line in csv_lines(chosen, {}):
                    self.stdout.write(line, ending="")
            case "json":
                for document in dispute_documents(chosen):
                    self.stdout.write(json.dumps(document))
            case _:
                for line in _table(dispute_documents(chosen)):
                    self.stdout.write(line)


def _table(documents: Iterator[dict[str, Any]]) -> Iterator[str]:
    n = n_deciding = 0
    for dispute in documents:
        n += 1
        n_deciding += dispute["decides"]
        attempt = f", attempt {dispute['attempt']}" if dispute["attempt"] > 1 else ""
        place = (
            f"{dispute['release']} {dispute['run']} {dispute['task_id']},"
            f" trial {dispute['trial']}{attempt}"
        )
        effect = "decides" if dispute["decides"] else str(dispute["why_not"]).replace("_", " ")
        state = "" if dispute["state"] == DisputeState.OPEN else f", {dispute['state']}"
        yield marked_text(f"{place}  {dispute['criterion']}: {_says(dispute)}  ({effect}{state})")
    yield f"{counted(n, 'dispute')}, {n_deciding:,} of them decide something"


def _says(dispute: dict[str, Any]) -> str:
    said = [
        f"{side['grader']} {'/'.join(side['verdicts'])}{'' if side['counts'] else ' (no vote)'}"
        for side in dispute["says"]
    ]
    if dispute["n_more_graders"]:
        said.append(f"{dispute['n_more_graders']:,} more")
    return ", ".join(said)
