"""What a decision on a dispute would do, before anybody confirms it. Nothing is written."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.projections import Supposed, decided_if
from reviews.core.deciding import DecidedBy
from reviews.core.disposition import AdjudicationRuling, Mark, Standing, StandingResult
from reviews.core.requirements import MarkedCriterion
from reviews.selectors.adjudicating import DisputeBasis
from reviews.selectors.release_counts import (
    CountedRelease,
    ReleaseCounts,
    SlotValue,
    counted_release,
    n_alike_disputes,
)
from traces.models import Trial

CODE_FAILS = (
    "A code check fails this criterion, and no decision lifts a trial above a failed check. If the "
    "check is wrong, mark it defective."
)
CODE_PASSES = (
    "Code passes this criterion and no grader that counts fails it, so the code check decides."
)
CODE_OPEN = "A code check could not decide this criterion, so its action comes first."
NO_CODE = "A code verdict that this criterion requires has not been given, so that comes first."
MARKED = "The check or its fixture is at fault, so that is mended first."
NOT_REQUIRED = "Nothing requires this criterion of the trial: it is reported and decides nothing."
NOT_MANDATORY = "This criterion is not mandatory: it is reported and decides nothing."
BROKEN = "The harness broke, so the trial says nothing of the agent, whatever is decided."
SAME_AS_NOW = "The criterion comes to the same as now."
OTHERS_DECIDE = "Other requirements decide the trial as it is."


@dataclass(frozen=True, slots=True)
class DecisionEffect:
    """What one possible decision would do."""

    decision: AdjudicationRuling | Mark
    before: DecidedBy
    after: DecidedBy
    standing_before: Standing | None  # of the criterion; None: nothing requires it
    standing_after: Standing | None
    release: CountedRelease
    counts_after: ReleaseCounts  # of the release
    n_alike: int  # other open disputes under the same version of the rubric
    n_trials: int  # of the task: a mark holds for all of them
    why_nothing: str  # why the trial stays as it is; "" where something of it changes

    @property
    def changes_disposition(self) -> bool:
        """Whether the trial would come to something else."""
        return self.before.decision.disposition is not self.after.decision.disposition


def effect_of(
    trial: Trial, basis: DisputeBasis, decision: AdjudicationRuling | Mark
) -> DecisionEffect:
    """What a decision on a dispute would do to the trial, its release and other disputes."""
    supposed = _supposed(trial, basis, decision)
    before, after = supposed.now, supposed.then
    release = counted_release(trial.pk)
    is_counted = not release.left_out
    counts = release.counts
    held = [_standing(each, basis.criterion) for each in (before, after)]
    return DecisionEffect(
        decision=decision,
        before=before,
        after=after,
        standing_before=held[0],
        standing_after=held[1],
        release=release,
        counts_after=counts.moved(_slot(before), _slot(after)) if is_counted else counts,
        n_alike=n_alike_disputes(
            trial.system_id,
            criterion=basis.criterion,
            rubric_version=basis.rubric_version,
            digest=basis.criterion_digest,
            but_trial=trial.pk,
        ),
        n_trials=Trial.objects.filter(task=trial.task_id).count()
        if isinstance(decision, Mark)
        else 0,
        why_nothing=_why_nothing(before, after, held[0], held[1]),
    )


def _supposed(trial: Trial, basis: DisputeBasis, decision: AdjudicationRuling | Mark) -> Supposed:
    if isinstance(decision, AdjudicationRuling):
        return decided_if(trial.pk, adjudication=basis.hypothetical(decision))
    digest = basis.requirement.criterion_digest if basis.requirement else None
    return decided_if(trial.pk, mark=MarkedCriterion(basis.criterion, digest, decision))


def _standing(decided: DecidedBy, criterion: str) -> Standing | None:
    standings = decided.decision.standings
    return next((s for s in standings if s.requirement.criterion == criterion), None)


def _slot(decided: DecidedBy) -> SlotValue:
    figures = decided.figures
    return SlotValue(decided.decision.disposition.value, figures.outcome, figures.rule_clean)


def _comes_to(decided: DecidedBy) -> tuple[object, ...]:
    """What a trial comes to: its disposition, what failed, and what would settle it."""
    decision = decided.decision
    return (decision.disposition, decision.failed_classes, decision.actions)


def _why_nothing(
    before: DecidedBy, after: DecidedBy, now: Standing | None, then: Standing | None
) -> str:
    if _comes_to(before) != _comes_to(after):
        return ""
    if before.decision.disposition.value == "harness_error":
        return BROKEN
    if now is None or then is None:
        return NOT_REQUIRED
    if not then.requirement.mandatory:
        return NOT_MANDATORY
    if (now.result, now.action) != (then.result, then.action):
        return OTHERS_DECIDE
    return _why_same(then)


def _why_same(then: Standing) -> str:
    """Why the criterion comes to the same whatever is decided, or happens to."""
    match then.rule:
        case 1:
            return MARKED
        case 2:
            return NO_CODE
        case 3 if "adjudicated" not in then.sentence and "reviewer" not in then.sentence:
            return {
                StandingResult.FAIL: CODE_FAILS,
                StandingResult.PASS: CODE_PASSES,
                StandingResult.OPEN: CODE_OPEN,
            }[then.result]
        case _:
            return SAME_AS_NOW
