"""Contracts as their pages show them: in words, as lines, by version, with their grader tests."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence

from evalsite.common.formatting import counted
from reviews.core.contract_drafts import contract_of_text, grader_tests_of
from reviews.core.disposition import Mark
from reviews.core.regrades import GraderTest
from reviews.selectors.contracts import MarkRow, ProposalRow, VersionRow
from traces.core.contracts.changes import (
    ContractChange,
    LineKind,
    contract_changes,
    criterion_digests,
    line_changes,
)
from traces.core.contracts.model import OUTCOME, Contract
from traces.core.contracts.words import (
    EntryWords,
    Words,
    budget_words,
    evidence_words,
    external_words,
    outcome_words,
    prohibited_words,
    required_words,
    semantic_words,
    variation_words,
)
from traces.core.shown_json import shown_json
from traces.models import ContractOutcome, WorkState
from traces.services.families import SPLIT_WORDS
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.rule_rows import work_badge

MOST_LINES = 4_000  # of a text on a page
_LONGEST_VALUE = 2_000
_MARK_WORDS = {Mark.DEFECTIVE.value: "defective", Mark.AMBIGUOUS.value: "ambiguous"}
_DECIDED = {
    ContractOutcome.APPROVED: "approved by",
    ContractOutcome.REJECTED: "rejected by",
    ContractOutcome.WITHDRAWN: "withdrawn by",
}


def version_badge(row: VersionRow) -> pages.Badge:
    """The state of a version in a word or two."""
    if row.is_in_effect:
        return pages.Badge("in effect", "pass")
    match row.outcome:
        case None:
            return pages.Badge("waits for a decision", "waiting")
        case ContractOutcome.REJECTED:
            return pages.Badge("rejected", "fail")
        case ContractOutcome.WITHDRAWN:
            return pages.Badge("withdrawn")
        case ContractOutcome.APPROVED:
            pass
    return _approved_badge(row.regrade_state, "earlier")


def proposal_badge(row: ProposalRow) -> pages.Badge:
    """The state of a proposal in a word or two."""
    match row.outcome:
        case None:
            return pages.Badge("waits for a decision", "waiting")
        case ContractOutcome.REJECTED:
            return pages.Badge("rejected", "fail")
        case ContractOutcome.WITHDRAWN:
            return pages.Badge("withdrawn")
        case ContractOutcome.APPROVED:
            return _approved_badge(row.regrade_state, "came into effect")


def _approved_badge(state: WorkState | None, done: str) -> pages.Badge:
    match state:
        case WorkState.WORKING:
            return pages.Badge("being graded", "working")
        case WorkState.DONE:
            return pages.Badge(done, "pass" if done != "earlier" else "")
        case None:
            return pages.Badge("approved", "waiting")
        case _:
            return work_badge(state)


def decision_words(outcome: ContractOutcome | None, by: str) -> str:
    """What was decided and by whom; "" while nobody has decided."""
    return f"{_DECIDED[outcome]} {by}" if outcome else ""


def proposal_link(number: int, at: Addresses) -> pages.Link:
    """A proposal by its number."""
    return pages.Link(f"proposal {number}", at.contract_proposal(number))


def proposal_line(row: ProposalRow, at: Addresses) -> pages.ProposalLine:
    """A proposal in a list."""
    return pages.ProposalLine(
        label=f"Proposal {row.number}",
        href=at.contract_proposal(row.number),
        badge=proposal_badge(row),
        tasks=tasks_words(row.tasks, row.n_tasks),
        reason=row.reason,
        by=row.by_name,
        at=row.created_at,
        decision=decision_words(row.outcome, row.decided_by),
        decided_at=row.decided_at,
        decision_reason=row.decision_reason,
        regrade=_regrade_link(row.regrade, at),
    )


def tasks_words(tasks: Sequence[str], n_tasks: int) -> str:
    """Some tasks by name, and how many more there are."""
    named = ", ".join(tasks)
    more = n_tasks - len(tasks)
    return f"{named} and {counted(more, 'more task', 'more tasks')}" if more > 0 else named


def version_line(row: VersionRow, at: Addresses) -> pages.VersionOfContract:
    """A version in the history of its task."""
    return pages.VersionOfContract(
        label=f"Version {row.number}",
        href=at.contract_version(row.uuid),
        badge=version_badge(row),
        reason=row.reason,
        by=row.by_name,
        at=row.created_at,
        proposal=proposal_link(row.proposal, at),
        decision=decision_words(row.outcome, row.decided_by),
        decided_at=row.decided_at,
        regrade=_regrade_link(row.regrade, at),
    )


def _regrade_link(number: int | None, at: Addresses) -> pages.Link | None:
    return pages.Link(f"regrade {number}", at.regrade(number)) if number else None


UNREADABLE = (
    "This version of the product cannot read this contract: its language is another one. The text "
    "is shown as it was written."
)


def body_of(text: str, at: Addresses, *, marks: Iterable[MarkRow] = ()) -> pages.ContractBody:
    """What a contract says, in words and as text, with its grader tests run."""
    contract = contract_of_text(text)
    if contract is None:
        return pages.ContractBody((), (), (), (), (), code_lines(text), (), "", UNREADABLE)
    holding = marks_by_criterion(contract, marks, at)
    tests = grader_tests_of(contract)
    return pages.ContractBody(
        cases=tuple(
            pages.OutcomeCaseLines(case.lead, case.when, tuple(map(_part, case.lines)))
            for case in outcome_words(contract)
        ),
        outcome_marks=holding.get(OUTCOME, ()),
        groups=tuple(_groups(contract, holding)),
        facts=tuple(_facts(contract)),
        variation=variation_words(contract),
        lines=code_lines(text),
        tests=grader_test_rows(tests),
        tests_words=grader_tests_words(tests),
    )


def marks_by_criterion(
    contract: Contract, marks: Iterable[MarkRow], at: Addresses
) -> Mapping[str, tuple[pages.MarkLine, ...]]:
    """The marks that hold for a contract as it stands, by criterion; "" for its fixture."""
    digests = {"": contract.digest, **criterion_digests(contract)}
    found: dict[str, list[pages.MarkLine]] = {}
    for mark in marks:
        digest = digests.get(mark.criterion)
        is_held = digest is not None and mark.criterion_digest == uuid.UUID(bytes=digest)
        if is_held and not mark.is_withdrawn:
            found.setdefault(mark.criterion, []).append(mark_line(mark, at))
    return {criterion: tuple(lines) for criterion, lines in found.items()}


def mark_line(mark: MarkRow, at: Addresses) -> pages.MarkLine:
    """A mark with its reason."""
    return pages.MarkLine(
        badge=pages.Badge(_MARK_WORDS.get(mark.mark, mark.mark), "unresolved"),
        reason=mark.reason,
        by=mark.by_name,
        at=mark.marked_at,
        href=at.trial(mark.trial) if mark.trial else "",
    )


def _groups(
    contract: Contract, marks: Mapping[str, tuple[pages.MarkLine, ...]]
) -> Iterator[pages.EntryGroup]:
    named = (
        ("Required", "must have happened", required_words(contract)),
        *(
            (f"Prohibited: {group.harm}", "must not happen", group.entries)
            for group in prohibited_words(contract)
        ),
        ("Budget", "the limit itself is allowed", budget_words(contract)),
        ("Judged", "by people and calibrated judges", semantic_words(contract)),
        ("Decided outside", "not decided without that verdict", external_words(contract)),
    )
    for heading, note, entries in named:
        if entries:
            lines = tuple(_entry(entry, marks.get(entry.id, ())) for entry in entries)
            yield pages.EntryGroup(heading, note, lines)


def _entry(entry: EntryWords, marks: tuple[pages.MarkLine, ...]) -> pages.EntryLine:
    return pages.EntryLine(
        entry.id, tuple(map(_part, entry.parts)), entry.note, entry.is_mandatory, marks
    )


def _part(words: Words) -> pages.EntryPart:
    return pages.EntryPart(words.lead, words.name, words.where)


def _facts(contract: Contract) -> Iterator[pages.Fact]:
    if contract.input is not None:
        given = contract.input if isinstance(contract.input, str) else shown_json(contract.input)
        yield pages.Fact("Input", _cut(given))
    for name, value in contract.facts.items():
        yield pages.Fact(f"facts.{name}", _cut(shown_json(value)))
    if contract.trial_facts:
        yield pages.Fact("Each trial brings", ", ".join(contract.trial_facts))
    if contract.family:
        yield pages.Fact("Family", contract.family)
    if contract.split:
        yield pages.Fact("Split", SPLIT_WORDS.get(contract.split, contract.split))
    if contract.evidence:
        yield pages.Fact("Evidence needed", ", ".join(evidence_words(contract)))
    if contract.trials is not None:
        yield pages.Fact("Trials a run", str(contract.trials))


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def code_lines(
    text: str, notes: Mapping[int, Sequence[str]] | None = None
) -> tuple[pages.CodeLine, ...]:
    """A text line by line, with what is wrong with each; a very long one is cut."""
    lines = text.splitlines()
    shown = [
        pages.CodeLine(number, line, tuple((notes or {}).get(number, ())))
        for number, line in enumerate(lines[:MOST_LINES], 1)
    ]
    if len(lines) > MOST_LINES:
        words = f"{len(lines) - MOST_LINES:,} more lines are not shown"
        shown.append(pages.CodeLine(0, words, kind="skipped"))
    return tuple(shown)


def grader_test_rows(tests: Iterable[GraderTest]) -> tuple[pages.GraderTestRow, ...]:
    """Grader tests, those that are not met first."""
    rows = [
        pages.GraderTestRow(
            test.name,
            test.is_met,
            tuple(
                f"{check.criterion}: {check.expected} expected, {check.found} found. "
                f"{check.sentence}".rstrip()
                for check in test.checks
            ),
        )
        for test in tests
    ]
    return tuple(sorted(rows, key=lambda row: row.is_met))


def grader_tests_words(tests: Sequence[GraderTest]) -> str:
    """How many grader tests are met."""
    if not tests:
        return "No grader tests: nothing shows that its checks tell right from wrong."
    n_met = sum(test.is_met for test in tests)
    if n_met == len(tests):
        return "The grader test is met." if n_met == 1 else f"All {n_met:,} grader tests are met."
    return f"{len(tests) - n_met:,} of {counted(len(tests), 'grader test')} not met."


def change_of(before_text: str, text: str, *, before: int | None) -> pages.ContractChange:
    """The difference to the text of version `before`: by entry, where both are read, and by line.

    Without an earlier version everything is new, and the lines say no more than the text does.
    """
    old = contract_of_text(before_text) if before_text else None
    new = contract_of_text(text)
    lines = line_changes(before_text, text) if before_text else ()
    is_readable = new is not None and (old is not None or not before_text)
    return pages.ContractChange(
        heading="What it brings" if before is None else f"What it changes in version {before}",
        entries=tuple(map(_entry_change, contract_changes(old, new)))
        if new is not None and is_readable
        else (),
        lines=tuple(
            pages.CodeLine(
                line.new_number or 0, line.text, kind=_KINDS[line.kind], before=line.old_number
            )
            for line in lines
        ),
        words=_nothing_changed(before_text, text),
    )


def _nothing_changed(before_text: str, text: str) -> str:
    return "The text is the same." if before_text == text else ""


_KINDS = {
    LineKind.SAME: "",
    LineKind.ADDED: "added",
    LineKind.REMOVED: "removed",
    LineKind.GAP: "skipped",
}


def _entry_change(change: ContractChange) -> pages.EntryChange:
    return pages.EntryChange(
        kind=change.kind.value,
        name=change.name,
        before=change.before,
        after=change.after,
        is_other_check=change.is_other_check,
    )
