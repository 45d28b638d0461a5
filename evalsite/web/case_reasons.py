"""Why trials are not decided: the standings of their requirements, for many trials at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from evalsite.grading import mixed_fixtures
from evalsite.web.case_words import short_reason
from reviews.core.deciding import TaskRequirements
from reviews.core.disposition import (
    Decision,
    GivenVerdict,
    Standing,
    StandingResult,
    TrialFacts,
)
from reviews.selectors.votes import (
    SeenEvidence,
    TrialVotes,
    calibrations_in,
    marks_on,
    trial_votes,
)
from traces.core.records import TrialStatus
from traces.models import Trial
from traces.selectors.contracts import VersionedContract, contracts_in_effect


@dataclass(frozen=True, slots=True)
class TrialReasons:
    """A trial as it is decided now, with the votes behind it."""

    decision: Decision
    verdicts: tuple[GivenVerdict, ...]
    contract: VersionedContract | None
    seen: SeenEvidence

    @property
    def standings(self) -> tuple[Standing, ...]:
        """Those of every requirement."""
        return self.decision.standings

    @property
    def open(self) -> tuple[Standing, ...]:
        """Those of the mandatory requirements that are open."""
        return tuple(
            s for s in self.standings if s.requirement.mandatory and s.result is StandingResult.OPEN
        )

    @property
    def missing(self) -> tuple[str, ...]:
        """Evidence that the contract declares and the trial lacks, in words."""
        return tuple(name.replace("_", " ") for name in self.seen.missing)

    @property
    def short(self) -> tuple[str, ...]:
        """Why each open requirement is open, in a few words."""
        return tuple(short_reason(s.ruling) for s in self.open)


def reasons_of(trial_pks: Sequence[int]) -> dict[int, TrialReasons]:
    """Trials decided from what is stored of them, in eight queries at most whatever their number."""
    if not trial_pks:
        return {}
    trials = {
        pk: (system_pk, task_pk, TrialStatus(status))
        for pk, system_pk, task_pk, status in Trial.objects.filter(pk__in=trial_pks).values_list(
            "pk", "system_id", "task_id", "status"
        )
    }
    tasks = {task_pk for _, task_pk, _ in trials.values()}
    calibrations = calibrations_in(system_pk for system_pk, _, _ in trials.values())
    contracts, marks = contracts_in_effect(tasks), marks_on(tasks)
    votes = trial_votes(trials)
    mixed = mixed_fixtures(trials) if contracts else set()
    found = {}
    for pk, (system_pk, task_pk, status) in trials.items():
        contract, said = contracts.get(task_pk), votes.get(pk) or TrialVotes()
        seen = (said.seen.get(contract.pk) if contract else None) or SeenEvidence()
        requirements = TaskRequirements(
            contract.contract if contract else None,
            contract_key=contract.key if contract else "",
            marks=marks.get(task_pk, ()),
            calibrations=calibrations[system_pk],
        )
        decided = requirements.decided(
            TrialFacts(
                status, seen.missing, said.evidence_order(contract.pk if contract else None)
            ),
            said.verdicts,
            adjudications=said.adjudications,
            has_faulty_fixture=pk in mixed or bool(seen.faults),
        )
        found[pk] = TrialReasons(decided.decision, tuple(decided.verdicts), contract, seen)
    return found
