"""Contracts from files and to files."""

import os
import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.common.formatting import counted
from evalsite.contract_previews import work_out_contract_preview
from evalsite.management.lookups import person_or_error, system_or_error
from evalsite.web.contract_effects import effect_headline
from reviews.core.contract_drafts import (
    ContractSource,
    DraftFinding,
    ReadDrafts,
    drafts_of,
    grader_tests_of,
)
from reviews.core.regrades import GraderTest, parse_preview
from reviews.selectors.contract_checks import checked_contracts
from reviews.selectors.contracts import contracts_in_effect
from reviews.services.contracts import (
    ContractFindingsError,
    ContractsError,
    draft_contracts,
    propose_contracts,
)
from traces.core.contracts.documents import MOST_TEXT_BYTES
from traces.core.contracts.writing import join_documents
from traces.core.text_marks import marked_text
from traces.models import ContractPreview, System, User
from traces.tasks import hint_contract_preview
from traces.web.addresses import Addresses

WRONG, UNREADABLE = 1, 2


class Command(BaseCommand):
    help = "Check files of contracts, load them as drafts or proposals, and export those in effect."
    requires_system_checks = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="ACT")
        check = acts.add_parser(
            "check",
            help="name what is wrong at FILE:LINE:COLUMN and run the grader tests; keeps nothing. "
            "Ends with 0 when all is well, 1 when not, 2 when a file cannot be read",
        )
        check.add_argument("file", nargs="+", metavar="FILE", help="YAML; - for the input")
        check.add_argument("--system", metavar="S", help="check tools and families of it, too")
        load = acts.add_parser("load", help="draft the contracts of files, and propose them")
        load.add_argument("system", metavar="SYSTEM", help="its address or its name")
        load.add_argument("file", nargs="+", metavar="FILE", help="YAML; - for the input")
        load.add_argument("--by", required=True, metavar="USER", help="an engineer of the system")
        load.add_argument("--propose", action="store_true", help="propose them; needs --reason")
        load.add_argument("--reason", metavar="R", default="", help="why they should hold")
        export = acts.add_parser("export", help="write the contracts in effect as one file")
        export.add_argument("system", metavar="SYSTEM", help="its address or its name")
        export.add_argument("--output", metavar="FILE", help="else standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        match options["act"]:
            case "check":
                self._check(options["file"], options["system"])
            case "load":
                self._load(options)
            case _:
                self._export(system_or_error(options["system"]), options["output"])

    def _check(self, files: Sequence[str], system_name: str | None) -> None:
        sources = [_source(name) for name in files]
        system = system_or_error(system_name) if system_name else None
        read = checked_contracts(system, sources) if system else drafts_of(sources)
        self._write(map(_finding_line, read.findings))
        tests = [test for each in read.contracts for test in grader_tests_of(each.contract)]
        if not read.findings:
            self._write(_test_lines(tests))
            self._write([_checked_words(read, tests)])
        if read.findings or not all(test.is_met for test in tests):
            sys.exit(WRONG)

    def _load(self, options: dict[str, Any]) -> None:
        system, person = system_or_error(options["system"]), person_or_error(options["by"])
        reason, propose = options["reason"], options["propose"]
        if propose and not reason.strip():
            raise CommandError("A proposal needs a reason: --reason R.")
        sources = [_source(name) for name in options["file"]]
        try:
            preview = draft_contracts(system, sources, by=person, now=timezone.now())
            if propose:
                self._propose(preview, reason, person)
            else:
                hint_contract_preview(preview.pk)
                at = Addresses.of(system.slug).contract_preview(preview.uuid)
                drafts = counted(len(preview.texts), "contract")
                self.stdout.write(f"{drafts} drafted; {at} shows what they would change.")
        except ContractFindingsError as error:
            self._write(map(_finding_line, error.findings))
            raise CommandError("Nothing was loaded.", returncode=WRONG) from None
        except ContractsError as error:
            raise CommandError(marked_text(str(error)), returncode=WRONG) from None

    def _propose(self, preview: ContractPreview, reason: str, person: User) -> None:
        work_out_contract_preview(preview.pk)
        preview.refresh_from_db()
        if preview.result:
            self.stdout.write(f"{effect_headline(parse_preview(preview.result))}.")
        proposal = propose_contracts(preview, reason=reason, by=person, now=timezone.now())
        at = Addresses.of(preview.system.slug).contract_proposal(proposal.number)
        self.stdout.write(
            f"Proposal {proposal.number}: {counted(len(preview.texts), 'contract')}; somebody else "
            f"decides at {at}."
        )

    def _export(self, system: System, output: str | None) -> None:
        text = join_documents(each.text for each in contracts_in_effect(system.pk))
        if not text:
            raise CommandError(f"{system.slug} has no contract in effect.")
        try:
            if output:
                Path(output).write_text(text, encoding="utf-8", newline="")
            else:
                self.stdout.write(text, ending="")
        except BrokenPipeError:
            # The reader has enough; Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            name = marked_text(str(output))
            raise CommandError(f"{name} cannot be written: {error.strerror}.") from None

    def _write(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(marked_text(line))


def _source(name: str) -> ContractSource:
    try:
        if name == "-":
            data = sys.stdin.buffer.read(MOST_TEXT_BYTES + 1)
        else:
            with Path(name).open("rb") as file:
                # One byte more than is taken is enough to refuse the whole.
                data = file.read(MOST_TEXT_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "no such name is possible"
        sentence = f"{marked_text(name)} cannot be read: {reason}."
        raise CommandError(sentence, returncode=UNREADABLE) from None
    return ContractSource(name, data)


def _finding_line(finding: DraftFinding) -> str:
    return ": ".join(part for part in (finding.place, finding.sentence) if part)


def _test_lines(tests: Iterable[GraderTest]) -> Iterator[str]:
    for test in tests:
        yield f"{'met' if test.is_met else 'NOT MET'}  {test.task_id}: {test.name}"
        for check in test.checks:
            yield (
                f"         {check.criterion}: {check.expected} expected, {check.found} found. "
                f"{check.sentence}".rstrip()
            )


def _checked_words(read: ReadDrafts, tests: Sequence[GraderTest]) -> str:
    n_met = sum(test.is_met for test in tests)
    contracts = counted(len(read.contracts), "contract")
    return f"{contracts} without mistakes; {n_met:,} of {counted(len(tests), 'grader test')} met."
