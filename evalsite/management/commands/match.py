"""Cases of trajectory matching, scored."""

import json
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.common.formatting import counted
from traces.core.limits import MIB
from traces.core.match_cases import CaseScore, read_cases, scores_of_cases
from traces.core.text_marks import marked_text

MOST_BYTES = 64 * MIB
_MOST_NAMED = 20


class Command(BaseCommand):
    help = (
        "Score cases of trajectory matching in the format of agentevals' tests: docs/formats.md. "
        "Needs no database."
    )
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", metavar="FILE", help="a JSON list of cases; - for the input")
        parser.add_argument("--json", action="store_true", help="print JSON instead of a table")

    def handle(self, *args: Any, **options: Any) -> None:
        cases, findings = read_cases(_bytes_of(options["file"]))
        if findings:
            named = [finding.sentence for finding in findings[:_MOST_NAMED]]
            more = len(findings) - len(named)
            raise CommandError("\n".join([*named, f"And {more} more."] if more else named))
        scores = scores_of_cases(cases)
        if options["json"]:
            self.stdout.write(json.dumps([_document(each) for each in scores]))
            return
        self.stdout.write("\n".join(_table(scores)))


def _bytes_of(name: str) -> bytes:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                data = file.read(MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such name is possible"
        raise CommandError(f"{marked_text(name)} cannot be read: {reason}.") from error
    if len(data) > MOST_BYTES:
        raise CommandError(f"{marked_text(name)} is larger than {MOST_BYTES // MIB} MiB.")
    return data


def _document(score: CaseScore) -> dict[str, str | bool | None]:
    document: dict[str, str | bool | None] = {"id": score.case_id, "score": score.score}
    return document | {"reason": score.reason} if score.reason else document


_WORDS = {True: "match", False: "no match", None: "cannot tell"}


def _table(scores: Sequence[CaseScore]) -> Iterator[str]:
    names = [marked_text(each.case_id) for each in scores]
    width = max(map(len, names), default=0)
    for name, each in zip(names, scores, strict=True):
        differs = each.expected is not None and each.score not in (None, each.expected)
        remarks = [f"the file expects {_WORDS[each.expected]}"] if differs else []
        remarks += [each.reason] if each.reason else []
        line = f"{name:<{width}}  {each.mode:<9}  {_WORDS[each.score]:<11}  {'; '.join(remarks)}"
        yield line.rstrip()
    n_told = sum(each.score is not None for each in scores)
    told = [each for each in scores if None not in (each.score, each.expected)]
    n_same = sum(each.score == each.expected for each in told)
    yield (
        f"{counted(len(scores), 'case')}: {sum(each.score is True for each in scores)} match,"
        f" {sum(each.score is False for each in scores)} do not,"
        f" {len(scores) - n_told} cannot be told;"
        f" {n_same} of {len(told)} as the file expects"
    )
