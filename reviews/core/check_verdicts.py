"""What the checks of a contract say of a trial, as verdicts to keep or to decide by at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from reviews.core.checks.results import CHECKS_VERSION, CheckResult, ContractChecks, TrialEvidence
from reviews.core.disposition import GivenVerdict, Requirement
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE, CheckNotes, requirements_of
from traces.core.additions import StoredEvidence
from traces.core.canonical import digest_of
from traces.core.contracts.model import Contract
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue
from traces.core.values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Fixture:
    """How a trial started: digests of the facts that it brings and of its initial state."""

    facts: bytes
    state: bytes


@dataclass(frozen=True, slots=True)
class CheckVerdict:
    """The verdict of one check on one trial."""

    criterion: str
    criterion_class: CriterionClass
    mandatory: bool
    criterion_digest: bytes | None
    value: VerdictValue
    sentence: str
    steps: tuple[int, ...]
    extra: JsonObject  # {} when there is nothing to say beside


@dataclass(frozen=True, slots=True)
class Grading:
    """Everything that a contract's checks say of a trial on some evidence."""

    verdicts: tuple[CheckVerdict, ...]
    missing_evidence: tuple[str, ...]
    fixture_faults: tuple[str, ...]
    fixture: Fixture | None  # None: it says nothing about how the task's trials start

    @property
    def note(self) -> CheckVerdict:
        """What evidence the checks saw, kept beside their verdicts. It is nobody's vote."""
        is_whole = not self.missing_evidence and not self.fixture_faults
        said: JsonObject = {
            "missing": list(self.missing_evidence),
            "faults": list(self.fixture_faults),
        }
        if self.fixture is not None:
            said["fixture"] = [self.fixture.facts.hex(), self.fixture.state.hex()]
        return CheckVerdict(
            criterion=EVIDENCE,
            criterion_class=CriterionClass.CONSTRAINT,
            mandatory=False,
            criterion_digest=None,
            value=VerdictValue.PASS if is_whole else VerdictValue.UNKNOWN,
            sentence=" ".join(
                [
                    *(f"Not recorded: {name}." for name in self.missing_evidence),
                    *self.fixture_faults,
                ]
            ),
            steps=(),
            extra={"evidence": said},
        )


def evidence_of(stored: StoredEvidence) -> TrialEvidence:
    """Stored evidence as the checks take it."""
    return TrialEvidence(
        status=stored.status,
        messages=stored.messages,
        steps=stored.steps,
        facts=stored.facts,
        initial_state=stored.initial_state,
        final_state=stored.final_state,
        expected_state=stored.expected_state,
        cost_usd=stored.cost_usd,
        tokens=stored.tokens,
        seconds=stored.seconds,
    )


def check_requirements(contract: Contract) -> tuple[Requirement, ...]:
    """The requirements that the contract's own checks vote on, in their order."""
    return tuple(r for r in requirements_of(contract, contract_key="") if not r.takes_files)


def grading_of(
    contract: Contract,
    evidence: TrialEvidence,
    checks: ContractChecks,
    requirements: Sequence[Requirement] | None = None,
) -> Grading:
    """The results of the checks as verdicts, and what they noted of the evidence.

    A check that gave no result is left out: its requirement then lacks a vote and stays open.
    `requirements` are the contract's `check_requirements`, where they are at hand.
    """
    said = {result.criterion: result for result in checks.results}
    verdicts = [
        CheckVerdict(
            criterion=requirement.criterion,
            criterion_class=requirement.criterion_class,
            mandatory=requirement.mandatory,
            criterion_digest=requirement.criterion_digest,
            value=result.value,
            sentence=result.sentence,
            steps=result.steps,
            extra=_extra(result),
        )
        for requirement in (check_requirements(contract) if requirements is None else requirements)
        if (result := said.get(requirement.criterion)) is not None
    ]
    return Grading(
        verdicts=tuple(verdicts),
        missing_evidence=checks.missing_evidence,
        fixture_faults=checks.fixture_faults,
        fixture=None if checks.fixture_faults else fixture_of(contract, evidence),
    )


def fixture_of(contract: Contract, evidence: TrialEvidence) -> Fixture | None:
    """How a trial started; None without an initial state, and where the harness broke."""
    if evidence.initial_state is None or evidence.status is TrialStatus.ERROR:
        return None
    facts = evidence.facts or {}
    brought: JsonObject = {name: facts[name] for name in contract.trial_facts if name in facts}
    return Fixture(digest_of(brought), digest_of(evidence.initial_state))


def _extra(result: CheckResult) -> JsonObject:
    said: JsonObject = {
        "differences": [[each.pointer, each.wanted, each.found] for each in result.differences],
        "n_differences": result.n_differences,
        "reached": list(result.reached),
        "attempted": list(result.attempted),
        "committed": list(result.committed),
    }
    return {"check": said} if any(said.values()) else {}


def given_checks(
    verdicts: Sequence[CheckVerdict], *, contract_key: str, evidence_order: int
) -> tuple[list[GivenVerdict], dict[str, CheckNotes]]:
    """Check verdicts as the disposition reads them, without being stored, and their notes."""
    given: list[GivenVerdict] = []
    notes: dict[str, CheckNotes] = {}
    for verdict in verdicts:
        name = f"{contract_key}.{evidence_order}.{verdict.criterion}"
        given.append(
            GivenVerdict(
                id=name,
                grader=CHECKS_GRADER,
                grader_version=CHECKS_VERSION,
                kind=GraderKind.CODE,
                criterion=verdict.criterion,
                value=verdict.value,
                criterion_class=verdict.criterion_class,
                mandatory=verdict.mandatory,
                is_imported=False,
                contract=contract_key,
                criterion_digest=verdict.criterion_digest,
                evidence_order=evidence_order,
                cited_steps=verdict.steps,
            )
        )
        if verdict.extra:
            notes[name] = notes_of(verdict.extra)
    return given, notes


def notes_of(extra: Json) -> CheckNotes:
    """What the stored extra of a check verdict says."""
    check = extra.get("check") if isinstance(extra, dict) else None
    if not isinstance(check, dict):
        return CheckNotes()
    return CheckNotes(
        has_reached=bool(check.get("reached")),
        has_attempted=bool(check.get("attempted")),
        has_committed=bool(check.get("committed")),
    )
