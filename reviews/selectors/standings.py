"""What a trial comes to, requirement by requirement, with everything that says so."""

from __future__ import annotations

import uuid
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection

from evalsite.common import blobs
from reviews.core.deciding import TaskRequirements
from reviews.core.disposition import (
    Adjudication,
    Decision,
    GivenVerdict,
    NextAction,
    Standing,
    StandingResult,
    TrialFacts,
    applies_to,
)
from reviews.core.requirements import FIXTURE, MarkedCriterion
from reviews.selectors.judge_states import JudgeState, TrialJudges, judges_on
from reviews.selectors.marks import HeldMark, held_marks
from reviews.selectors.rulings import HeldRuling, rulings_about, rulings_on
from reviews.selectors.verdict_cards import TrialCards, VerdictCard, trial_cards
from reviews.selectors.votes import SeenEvidence
from traces.core.records import Disposition, GraderKind, TrialStatus, VerdictValue
from traces.selectors.contracts import VersionedContract, contracts_named

OTHER_STATE = (
    "Trials of this task that bring the same facts started from different states, so none of them "
    "tells of the agent."
)


@dataclass(frozen=True, slots=True)
class StandingDetail:
    """One requirement with its standing, the verdicts that apply to it, and its check's."""

    standing: Standing
    check: VerdictCard | None  # of the contract's own check, on the most evidence
    voters: tuple[VerdictCard, ...]  # whose verdicts vote
    marks: tuple[HeldMark, ...]
    rulings: tuple[HeldRuling, ...]  # adjudications of it, in the order they came

    @property
    def criterion(self) -> str:
        """Its name."""
        return self.standing.requirement.criterion


@dataclass(frozen=True, slots=True)
class AddedEvidence:
    """Evidence that was added to the trial, without its content."""

    uuid: uuid.UUID
    order: int
    parts: tuple[str, ...]
    source: str
    reason: str
    by_name: str
    at: datetime


@dataclass(frozen=True, slots=True)
class TrialStandings:
    """What a trial comes to and why."""

    decision: Decision
    contract: VersionedContract | None  # in effect
    details: tuple[StandingDetail, ...]
    cards: tuple[VerdictCard, ...]  # every verdict, in the order in which they came
    is_graded: bool  # under the contract in effect; True without one
    missing_evidence: tuple[str, ...]
    fixture_faults: tuple[str, ...]
    additions: tuple[AddedEvidence, ...]
    rulings: tuple[HeldRuling, ...]  # all adjudications of the trial, in the order they came
    judges: TrialJudges  # those with a verdict on it
    case: uuid.UUID | None
    is_case_open: bool
    hidden: tuple[str, ...] = ()  # criteria on which it says nothing of verdicts
    is_decision_hidden: bool = False  # one of these decides what the trial comes to

    def without(self, criteria: Collection[str]) -> TrialStandings:
        """The same without what anybody says of these criteria, for who may still label them."""
        if not criteria:
            return self
        decision = self.decision
        kept = tuple(s for s in decision.standings if s.requirement.criterion not in criteria)
        gone = {s.requirement.criterion for s in decision.standings} & set(criteria)
        named = gone | {
            card.given.criterion for card in self.cards if card.given.criterion in criteria
        }
        deciding = [s for s in kept if s.requirement.mandatory]
        failed = {
            s.requirement.criterion_class for s in deciding if s.result is StandingResult.FAIL
        }
        left = {s.action for s in deciding} | {NextAction.RERUN_TRIAL}
        if self.missing_evidence:
            left.add(NextAction.REPAIR_EVIDENCE)
        is_told = bool(failed) or decision.disposition is Disposition.HARNESS_ERROR
        decides = any(
            s.requirement.mandatory for s in decision.standings if s.requirement.criterion in gone
        )
        return replace(
            self,
            decision=replace(
                decision,
                standings=kept,
                failed_classes=tuple(c for c in decision.failed_classes if c in failed),
                actions=tuple(a for a in decision.actions if a in left),
            ),
            details=tuple(d for d in self.details if d.criterion not in criteria),
            cards=tuple(c for c in self.cards if c.given.criterion not in criteria),
            rulings=tuple(r for r in self.rulings if r.given.criterion not in criteria),
            hidden=tuple(sorted(named)),
            is_decision_hidden=decides and not is_told,
        )

    @property
    def adjudications(self) -> tuple[Adjudication, ...]:
        """The adjudications as the disposition reads them."""
        return tuple(each.given for each in self.rulings)

    def judge_state(self, verdict: GivenVerdict) -> JudgeState | None:
        """How the judge of a verdict is calibrated for the criterion as the trial requires it."""
        digest = next(
            (
                detail.standing.requirement.criterion_digest
                for detail in self.details
                if detail.criterion == verdict.criterion
            ),
            None,
        )
        return self.judges.state_of(verdict, digest)

    @property
    def given(self) -> tuple[GivenVerdict, ...]:
        """The verdicts as the disposition reads them."""
        return tuple(card.given for card in self.cards)

    @property
    def superseded(self) -> frozenset[str]:
        """Ids of check verdicts that say nothing any more: of other versions, on less evidence."""
        voting = {card.given.id for detail in self.details for card in detail.voters}
        return frozenset(
            card.given.id for card in self.cards if card.is_check and card.given.id not in voting
        )

    @property
    def untaken(self) -> frozenset[str]:
        """Ids of other verdicts that no requirement of the contract takes; none without one."""
        if self.contract is None:
            return frozenset()
        requirements = [detail.standing.requirement for detail in self.details]
        return frozenset(
            card.given.id
            for card in self.cards
            if not card.is_check
            and not any(applies_to(card.given, requirement) for requirement in requirements)
        )


def trial_standings(
    trial_pk: int,
    *,
    system_pk: int,
    task_pk: int,
    status: TrialStatus,
    contract_pk: int | None,
) -> TrialStandings:
    """The standings of a trial, in at most six queries."""
    found = trial_cards(trial_pk)
    beside = _beside(trial_pk, task_pk)
    if contract_pk is None:
        contract, seen = None, SeenEvidence()
    else:
        contract = contracts_named([contract_pk])[contract_pk]
        seen = found.seen.get(contract_pk, SeenEvidence())
    faults = (*seen.faults, *((OTHER_STATE,) if contract and beside.has_other_state else ()))
    given = [card.given for card in found.cards]
    judges = judges_on(trial_pk, system_pk=system_pk)
    requirements = TaskRequirements(
        contract.contract if contract else None,
        contract_key=contract.key if contract else "",
        marks=[_marked(mark) for mark in beside.marks],
        calibrations=judges.calibrations,
    )
    facts = TrialFacts(status, seen.missing, len(beside.additions))
    rulings = rulings_on(trial_pk)
    decided = requirements.decided(
        facts,
        given,
        adjudications=[each.given for each in rulings],
        has_faulty_fixture=bool(faults),
    )
    decision = decided.decision
    # Whether a judge's verdict counts depends on what is required: the cards say it alike.
    found = replace(
        found,
        cards=tuple(
            replace(card, given=read)
            for card, read in zip(found.cards, decided.verdicts, strict=True)
        ),
    )
    return TrialStandings(
        decision=decision,
        contract=contract,
        details=tuple(
            _detail(standing, found, beside.marks, rulings, contract)
            for standing in decision.standings
        ),
        cards=found.cards,
        is_graded=contract_pk is None or contract_pk in found.seen,
        missing_evidence=seen.missing,
        fixture_faults=faults,
        additions=beside.additions,
        rulings=rulings,
        judges=judges,
        case=beside.case,
        is_case_open=beside.is_case_open,
    )


def _marked(mark: HeldMark) -> MarkedCriterion:
    digest = mark.criterion_digest
    return MarkedCriterion(mark.criterion, digest.bytes if digest else None, mark.mark)


def _detail(
    standing: Standing,
    found: TrialCards,
    marks: Sequence[HeldMark],
    rulings: tuple[HeldRuling, ...],
    contract: VersionedContract | None,
) -> StandingDetail:
    requirement = standing.requirement
    applying = [card for card in found.cards if applies_to(card.given, requirement)]
    corrected = {card.given.corrects for card in applying if card.given.kind is GraderKind.HUMAN}
    check = max(
        (card for card in applying if card.is_check),
        key=lambda card: (card.given.evidence_order, int(card.given.id)),
        default=None,
    )
    fixture = contract.contract.digest if contract else None
    places = ((requirement.criterion, requirement.criterion_digest), (FIXTURE, fixture))
    return StandingDetail(
        standing=standing,
        check=check,
        voters=tuple(
            card
            for card in applying
            if card.given.counts
            and card.given.id not in corrected
            and not (card.is_check and _gave_way(card, check))
        ),
        marks=tuple(
            mark
            for mark in marks
            if requirement.marks
            and (mark.criterion, mark.criterion_digest and mark.criterion_digest.bytes) in places
        ),
        rulings=rulings_about(rulings, requirement),
    )


def _gave_way(card: VerdictCard, latest: VerdictCard | None) -> bool:
    """Whether the check's verdict on more evidence took the place of an earlier one."""
    if latest is None or card is latest:
        return False
    value = card.given.value
    return value is latest.given.value or value not in (VerdictValue.PASS, VerdictValue.FAIL)


@dataclass(frozen=True, slots=True)
class _Beside:
    """What else a trial's standings need to know."""

    marks: tuple[HeldMark, ...]
    additions: tuple[AddedEvidence, ...]
    has_other_state: bool
    case: uuid.UUID | None
    is_case_open: bool


_NAME = "coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username)"
# One row a addition, or one without any: what stands beside comes along with it.
_ADDITIONS = f"""
SELECT c.uuid, c.state = 'open', EXISTS (
           SELECT 1 FROM traces_trialfixture a
           JOIN traces_trialfixture b ON b.task_id = a.task_id
                AND b.task_version_id = a.task_version_id AND b.facts = a.facts
                AND b.state <> a.state
           WHERE a.trial_id = w.id),
       e.uuid, e."order", e.parts, e.source, e.reason, {_NAME}, e.added_at
FROM (SELECT %s::bigint AS id) w
LEFT JOIN reviews_case c ON c.trial_id = w.id
LEFT JOIN traces_evidenceaddition e ON e.trial_id = w.id
LEFT JOIN traces_user p ON p.id = e.by_id
ORDER BY e."order"
"""  # noqa: S608


def _beside(trial_pk: int, task_pk: int) -> _Beside:
    with connection.cursor() as cursor:
        cursor.execute(_ADDITIONS, [trial_pk])
        rows = cursor.fetchall()
    case, is_open, has_other_state = rows[0][:3]
    return _Beside(
        marks=held_marks(task_pk),
        additions=tuple(_addition(row[3:]) for row in rows if row[3] is not None),
        has_other_state=has_other_state,
        case=case,
        is_case_open=bool(is_open),
    )


def _addition(row: tuple[Any, ...]) -> AddedEvidence:
    identity, order, parts, source, reason, by_name, at = row
    named = blobs.loads(parts) if isinstance(parts, str) else parts
    return AddedEvidence(identity, order, tuple(named), source, reason, by_name, at)
