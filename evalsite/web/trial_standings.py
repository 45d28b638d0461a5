"""What a trial comes to, requirement by requirement, as its page shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from evalsite.access import Access, Act
from evalsite.common.formatting import count_text, counted
from evalsite.web.judge_words import RULINGS
from reviews.core.disposition import (
    NextAction,
    Requirement,
    RequirementSource,
    StandingResult,
)
from reviews.selectors.adjudicating import dispute_on
from reviews.selectors.marks import HeldMark
from reviews.selectors.rulings import HeldRuling
from reviews.selectors.standings import StandingDetail, TrialStandings
from reviews.selectors.verdict_cards import VerdictCard
from traces.core.contracts.model import OUTCOME, Contract
from traces.core.records import CriterionClass, Disposition, TrialStatus, VerdictValue
from traces.core.text_marks import clean_text
from traces.core.touched import TouchedCollection, TouchedRecords
from traces.models import Split
from traces.selectors.families import MadeTask
from traces.selectors.trial_detail import RecordFacts, TrialDetail
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.standings import (
    AdditionRow,
    ReachedActions,
    RequirementGroup,
    RequirementRow,
    RulingRow,
    Standings,
    TouchedRow,
    WentWrong,
    WrongField,
)
from traces.web.rows import action_words
from traces.web.transcript import ShownTranscript

SHOWN_FIELDS = 8  # of the outcome; all of them are counted
MOST_STEPS = 12  # links to deciding steps of one requirement
_VALUES = {
    StandingResult.PASS: ("pass", "pass"),
    StandingResult.FAIL: ("fail", "fail"),
    StandingResult.OPEN: ("unresolved", "open"),
}
VOID = "The harness broke, so this says nothing of the agent."
_TITLES = {
    CriterionClass.OUTCOME: "Outcome",
    CriterionClass.CONSTRAINT: "Constraints",
    CriterionClass.SEMANTIC: "Semantic",
}
_NO_STATE = "A state was not recorded, so nobody can say which records the run touched."
_NOTHING_TOUCHED = "The run touched no record."
_PARTS = {"cost_usd": "cost"}


@dataclass(frozen=True, slots=True)
class StepLinks:
    """Addresses of steps, on the page of the transcript that is shown where they are on it."""

    here: str
    n_steps: int
    first: int
    last: int

    @classmethod
    def of(cls, trial: TrialDetail, page: ShownTranscript, here: str) -> StepLinks:
        """Those of a trial whose page shows that part of the transcript."""
        return cls(here, trial.n_messages, page.first, page.last)

    def href(self, step: int) -> str:
        """The address of a step; "" for one that does not exist."""
        if not 1 <= step <= self.n_steps:
            return ""
        if self.first <= step <= self.last:
            return f"#step-{step}"
        return f"{self.here}?step={step}#step-{step}"

    def links(self, steps: Iterable[int]) -> tuple[pages.Link, ...]:
        """Links to steps; one behind the transcript is a result that was added."""
        return tuple(
            pages.Link(f"step {step}", self.href(step))
            if step <= self.n_steps
            else pages.Link("added result", "#added-evidence")
            for step in list(steps)[:MOST_STEPS]
        )


def standings_of(
    found: TrialStandings,
    trial: TrialDetail,
    record: RecordFacts,
    *,
    made: Sequence[MadeTask],
    access: Access,
    links: StepLinks,
) -> Standings:
    """The standings of a trial with what explains them and what can be done."""
    at = Addresses.of(access.system.slug)
    is_broken = trial.status == TrialStatus.ERROR.value
    contract = found.contract.contract if found.contract else None
    looks = _Rows(trial.uuid, at, links, contract, is_broken=is_broken, access=access)
    has_passed = found.decision.disposition is Disposition.PASS
    return Standings(
        contract=pages.Link(
            f"contract version {found.contract.number}",
            at.contract_version(found.contract.identity),
        )
        if found.contract
        else None,
        earlier_note=""
        if found.is_graded
        else "The checks of this contract version have not graded the trial yet.",
        groups=tuple(_groups(found, looks)),
        wrong=None if has_passed else _went_wrong(found, links, is_broken=is_broken),
        reached=None if has_passed or contract is None else _reached(found, contract, links),
        touched=tuple(_touched(each) for each in record.touched),
        touched_words="" if record.touched else _untouched(record),
        missing=found.missing_evidence,
        faults=found.fixture_faults,
        acts=tuple(_acts(found, trial, access, at)),
        additions=tuple(
            AdditionRow(
                order=each.order,
                parts=", ".join(_PARTS.get(part, part.replace("_", " ")) for part in each.parts),
                source=each.source,
                reason=each.reason,
                by=each.by_name,
                at=each.at,
            )
            for each in found.additions
        ),
        made=tuple(pages.Link(each.task_id, at.task(each.uuid)) for each in made),
    )


def _groups(found: TrialStandings, looks: _Rows) -> Iterable[RequirementGroup]:
    by_class: dict[CriterionClass, list[RequirementRow]] = {}
    for detail in found.details:
        rows = by_class.setdefault(detail.standing.requirement.criterion_class, [])
        rows.append(looks.row(detail))
    return (
        RequirementGroup(_TITLES[name], tuple(by_class[name]))
        for name in CriterionClass
        if name in by_class
    )


class _Rows:
    """Requirements of one trial as rows."""

    def __init__(
        self,
        trial: UUID,
        at: Addresses,
        links: StepLinks,
        contract: Contract | None,
        *,
        is_broken: bool,
        access: Access,
    ) -> None:
        self.trial, self.at, self.links, self.is_broken = trial, at, links, is_broken
        self.may_review = access.may(Act.REVIEW)
        self.harms = {each.id: each.harm for each in contract.prohibited} if contract else {}
        self.required = frozenset(each.id for each in contract.required) if contract else ()
        self.questions = {each.id: each.question for each in contract.semantic} if contract else {}

    def row(self, detail: StandingDetail) -> RequirementRow:
        """One requirement."""
        standing, check = detail.standing, detail.check
        requirement = standing.requirement
        is_void = self.is_broken and not (
            requirement.is_prohibition and standing.result is StandingResult.FAIL
        )
        value, word = ("harness-error", "void") if is_void else _VALUES[standing.result]
        found = check.check if check else None
        fields = found.differences[:SHOWN_FIELDS] if found else ()
        name = requirement.criterion
        return RequirementRow(
            name=requirement_name(requirement),
            value=value,
            word=word,
            notes=tuple(self._notes(detail)),
            rule=VOID if is_void else standing.sentence,
            why=check.rationale if check else "",
            action=action_words(standing.action.value) if standing.action and not is_void else "",
            steps=self.links.links(self._steps(detail)),
            fields=tuple(WrongField(each.pointer, each.wanted, each.found) for each in fields),
            n_more_fields=found.n_differences - len(fields) if found else 0,
            voters=tuple(verdict_words(card) for card in detail.voters if card is not check),
            marks=tuple(_mark_words(mark) for mark in detail.marks),
            is_folded=not detail.rulings
            and (standing.result is StandingResult.PASS or not requirement.mandatory),
            question=self.questions.get(name, ""),
            verdict_url=address(self.at.verdict_form(self.trial), {"criterion": name})
            if self.may_review
            else "",
            mark_url=address(self.at.mark_form(self.trial), {"criterion": name})
            if self.may_review
            else "",
            rulings=tuple(self._ruling(each) for each in reversed(detail.rulings)),
        )

    def _ruling(self, held: HeldRuling) -> RulingRow:
        value, word = RULINGS[held.given.ruling]
        return RulingRow(
            value=value,
            word=word,
            by=held.by_name,
            at=held.at,
            reason=held.reason,
            steps=self.links.links(held.cited_steps),
            notes=tuple(_ruling_notes(held)),
            is_replaced=held.is_replaced,
            href=self.at.dispute(held.dispute) if held.dispute else "",
        )

    def _notes(self, detail: StandingDetail) -> Iterable[str]:
        requirement, check = detail.standing.requirement, detail.check
        name = requirement.criterion
        if name in self.required:
            yield "required"
        if requirement.is_prohibition:
            yield "prohibited"
            yield f"harm: {self.harms.get(name, '')}"
        if check and check.check.attempted:
            yield "committed" if check.check.committed else "attempted, not committed"
        if requirement.source is RequirementSource.EXTERNAL:
            yield "decided outside"
        if not requirement.mandatory:
            yield "not mandatory"

    def _steps(self, detail: StandingDetail) -> tuple[int, ...]:
        if detail.check:
            return detail.check.given.cited_steps
        cited = {step for card in detail.voters for step in card.given.cited_steps}
        return tuple(sorted(step for step in cited if 1 <= step <= self.links.n_steps))


def requirement_name(requirement: Requirement) -> str:
    """A requirement as people name it."""
    if requirement.source is RequirementSource.CHECK and requirement.criterion == OUTCOME:
        return "final state"
    return requirement.criterion


def verdict_words(card: VerdictCard) -> str:
    """Who says what."""
    return f"{clean_text(card.by_name or card.given.grader)} says {card.given.value.value}"


def _mark_words(mark: HeldMark) -> str:
    what = "" if mark.criterion else "the fixture "
    return f"{what}marked as {mark.mark.value} by {mark.by_name}: {mark.reason}"


def _ruling_notes(held: HeldRuling) -> Iterable[str]:
    if held.is_label:
        yield "as the third blind label"
    if held.given.is_by_party:
        yield "decided by a party: they have a verdict of their own on it"
    if held.given.replaces is not None:
        yield "corrects an earlier decision"
    if held.is_replaced:
        yield "corrected since: it decides no more"


def _went_wrong(found: TrialStandings, links: StepLinks, *, is_broken: bool) -> WentWrong | None:
    """The earliest deciding step of a failed mandatory check; else the first failed one."""
    failed = [
        detail
        for detail in found.details
        if detail.standing.requirement.mandatory
        and detail.standing.result is StandingResult.FAIL
        and (detail.standing.requirement.is_prohibition or not is_broken)
    ]
    placed = [
        (min(detail.check.given.cited_steps), detail.check, detail)
        for detail in failed
        if detail.check
        and detail.check.given.value is VerdictValue.FAIL
        and detail.check.given.cited_steps
    ]
    if placed:
        step, check, detail = min(placed, key=lambda each: each[0])
        name = requirement_name(detail.standing.requirement)
        return WentWrong(name, check.rationale, links.links([step])[0])
    checked = next((detail for detail in failed if detail.check), None)
    if checked is None or checked.check is None:
        return None
    return WentWrong(requirement_name(checked.standing.requirement), checked.check.rationale, None)


def _reached(found: TrialStandings, contract: Contract, links: StepLinks) -> ReachedActions | None:
    """Which mandatory required actions the run reached, anchors left aside."""
    wanted = {each.id for each in contract.required if each.mandatory}
    details = [
        detail
        for detail in found.details
        if detail.criterion in wanted and detail.check is not None
    ]
    if not details:
        return None
    reached: list[pages.Link] = []
    missed: list[str] = []
    for detail in details:
        steps = detail.check.check.reached if detail.check else ()
        if steps:
            reached.append(pages.Link(detail.criterion, links.href(steps[0]), f"step {steps[0]}"))
        else:
            missed.append(detail.criterion)
    words = f"{count_text(len(reached))} of {counted(len(details), 'required action')}"
    return ReachedActions(words, tuple(reached), tuple(missed))


def _touched(each: TouchedCollection) -> TouchedRow:
    fates = (("created", each.created), ("changed", each.changed), ("removed", each.removed))
    return TouchedRow(
        each.name,
        tuple(
            (f"{word} {count_text(records.n)}", _records(records))
            for word, records in fates
            if records.n
        ),
    )


def _records(records: TouchedRecords) -> str:
    names = [name for name in records.names if name]
    if not names:
        return ""
    more = records.n - len(names)
    return ", ".join([*names, *([f"{count_text(more)} more"] if more > 0 else [])])


def _untouched(record: RecordFacts) -> str:
    if {"initial_state", "final_state"} <= set(record.recorded_states):
        return _NOTHING_TOUCHED
    return _NO_STATE if record.recorded_states else ""


def _acts(
    found: TrialStandings, trial: TrialDetail, access: Access, at: Addresses
) -> Iterable[pages.Link]:
    """What can be done about an open trial by this person, the first next action first."""
    yielded: set[str] = set()
    for action in found.decision.actions:
        link = _act(action, found, trial, access, at)
        if link is not None and link.href not in yielded:
            yielded.add(link.href)
            yield link
    if found.case and found.is_case_open:
        yield pages.Link("Case", at.case(found.case))
    has_passed = found.decision.disposition is Disposition.PASS
    if access.may(Act.CONTRIBUTE) and not has_passed:
        yield pages.Link("Make a task of it", at.task_from(trial.uuid))
        if trial.task_split == Split.HELD_OUT.value:
            yield pages.Link(
                "Note an exposure",
                address(
                    at.families, {"expose": trial.task_uuid, "trial": trial.uuid}, place="#form"
                ),
                "This held-out failure was used to change the agent",
            )


def _act(
    action: NextAction, found: TrialStandings, trial: TrialDetail, access: Access, at: Addresses
) -> pages.Link | None:
    match action:
        case NextAction.REPAIR_EVIDENCE if access.may(Act.CONTRIBUTE):
            return pages.Link("Add evidence", at.evidence_form(trial.uuid))
        case NextAction.FIX_FIXTURE | NextAction.CLARIFY_CONTRACT if access.may(Act.CONTRIBUTE):
            return pages.Link(
                "Edit the contract" if found.contract else "Write a contract",
                address(at.contract_form, {"task": trial.task_uuid}),
            )
        case NextAction.GRADE | NextAction.ADJUDICATE | NextAction.CALIBRATE_JUDGE if access.may(
            Act.REVIEW
        ):
            name = next(
                (each.criterion for each in found.details if each.standing.action is action), None
            )
            if action is NextAction.ADJUDICATE and (dispute := dispute_on(trial.pk, name or "")):
                return pages.Link("Decide the dispute", at.dispute(dispute))
            return pages.Link(
                "Give a verdict", address(at.verdict_form(trial.uuid), {"criterion": name})
            )
        case NextAction.RERUN_TRIAL if access.may(Act.WORK) and found.case:
            return pages.Link("Ask for a rerun", at.case(found.case))
        case _:
            return None
