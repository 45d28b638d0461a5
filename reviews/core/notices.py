"""What the product itself notices about a trial: reasons to look, which change no disposition."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from enum import StrEnum
from typing import assert_never

from reviews.core.disposition import GivenVerdict
from traces.core.canonical import digest_of
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue

NOTICES_VERSION = 2
"""It goes up whenever the same trial may get other notices."""

_FULL_SCORE = Decimal(1)
_SCORE_TOLERANCE = Decimal("0.000001")


class NoticeCode(StrEnum):
    """Why the product asks someone to look at a trial."""

    FAILED_CHECK_OUTSIDE_BASIS = "failed-check-outside-basis"
    CITED_STEP_MISSING = "cited-step-missing"
    VERDICT_AGAINST_SCORE = "verdict-against-score"
    PASS_ON_EMPTY_TRAJECTORY = "pass-on-empty-trajectory"
    ERROR_STATUS_WITH_PASS = "error-status-with-pass"
    IMPORTED_HUMAN_VERDICT = "imported-human-verdict"
    UNKNOWN_CRITERION = "unknown-criterion"
    UNREADABLE_VERDICT = "unreadable-verdict"

    @property
    def flags(self) -> bool:
        """Whether the product flags the trial for it; else it stands on the trial's page only."""
        return self is not NoticeCode.UNREADABLE_VERDICT


@dataclass(frozen=True, slots=True)
class Notice:
    """One reason to look at a trial. `sentence` holds text from the trace: show it as text."""

    code: NoticeCode
    sentence: str
    criterion: str = ""  # "" when it is about the trial as a whole
    steps: tuple[int, ...] = ()

    @property
    def key(self) -> bytes:
        """16 bytes, the same for the same notice on a trial, so that its flag is raised once."""
        return digest_of([self.code.value, self.criterion, self.sentence, list(self.steps)])


@dataclass(frozen=True, slots=True)
class NoticedTrial:
    """What notices must know of a trial."""

    status: TrialStatus
    n_steps: int  # of the transcript
    n_agent_steps: int  # of the trajectory
    criteria: frozenset[str] | None = None  # of the contract in effect; None: there is none


def notices_on(trial: NoticedTrial, verdicts: Sequence[GivenVerdict]) -> tuple[Notice, ...]:
    """All notices on a trial, each once, ordered by code, criterion and sentence.

    The product's own checks are left out: they say themselves what they found.
    """
    said = [v for v in verdicts if v.kind is not GraderKind.CODE or v.is_imported]
    found = {*_on_passes(trial, said), *_outside_basis(said)}
    for verdict in said:
        found.update(_on_verdict(trial, verdict))
        if trial.criteria is not None and verdict.is_imported:
            found.update(_on_criterion(trial.criteria, verdict))
    return tuple(sorted(found, key=lambda n: (n.code, n.criterion, n.sentence, n.steps)))


def notice_summaries(notices: Iterable[Notice]) -> tuple[str, ...]:
    """One line a code, in the order given: what is noticed, and how often."""
    by_code: dict[NoticeCode, int] = {}
    for notice in notices:
        by_code[notice.code] = by_code.get(notice.code, 0) + 1
    return tuple(_summary(code, n) for code, n in by_code.items())


def _summary(code: NoticeCode, n: int) -> str:
    one = n == 1
    match code:
        case NoticeCode.FAILED_CHECK_OUTSIDE_BASIS:
            checks, are = ("1 check", "is") if one else (f"{n} checks", "are")
            return f"{checks} failed that {are} not mandatory"
        case NoticeCode.CITED_STEP_MISSING:
            verdicts = "1 verdict cites" if one else f"{n} verdicts cite"
            return f"{verdicts} a step that does not exist"
        case NoticeCode.VERDICT_AGAINST_SCORE:
            verdicts, whose = ("1 verdict", "its") if one else (f"{n} verdicts", "their")
            return f"{verdicts} against {whose} own score"
        case NoticeCode.PASS_ON_EMPTY_TRAJECTORY:
            return "pass on an empty trajectory"
        case NoticeCode.ERROR_STATUS_WITH_PASS:
            return "error status with a pass"
        case NoticeCode.IMPORTED_HUMAN_VERDICT:
            return "1 imported human verdict" if one else f"{n} imported human verdicts"
        case NoticeCode.UNKNOWN_CRITERION:
            verdicts = "1 verdict" if one else f"{n} verdicts"
            return f"{verdicts} on a criterion that the contract does not have"
        case NoticeCode.UNREADABLE_VERDICT:
            return "1 unreadable verdict" if one else f"{n} unreadable verdicts"
        case _:
            assert_never(code)


def _on_passes(trial: NoticedTrial, verdicts: Sequence[GivenVerdict]) -> list[Notice]:
    if all(v.value is not VerdictValue.PASS for v in verdicts):
        return []
    found: list[Notice] = []
    if trial.n_agent_steps == 0:
        sentence = "A verdict says pass, but the agent took no step."
        found.append(Notice(NoticeCode.PASS_ON_EMPTY_TRAJECTORY, sentence))
    if trial.status is TrialStatus.ERROR:
        sentence = "A verdict says pass, but the harness broke."
        found.append(Notice(NoticeCode.ERROR_STATUS_WITH_PASS, sentence))
    return found


def _outside_basis(verdicts: Sequence[GivenVerdict]) -> list[Notice]:
    """Code checks that failed and are not mandatory, while the outcome, which is, passes."""
    outcome = {
        v.value
        for v in verdicts
        if v.mandatory and v.kind is GraderKind.CODE and v.criterion_class is CriterionClass.OUTCOME
    }
    if outcome != {VerdictValue.PASS}:
        return []
    return [
        Notice(
            NoticeCode.FAILED_CHECK_OUTSIDE_BASIS,
            f"The outcome passes, but check {v.criterion} failed; it is not mandatory.",
            v.criterion,
            v.cited_steps,
        )
        for v in verdicts
        if not v.mandatory and v.kind is GraderKind.CODE and v.value is VerdictValue.FAIL
    ]


def _on_verdict(trial: NoticedTrial, verdict: GivenVerdict) -> list[Notice]:
    found: list[Notice] = []
    broken = tuple(sorted({s for s in verdict.cited_steps if not 1 <= s <= trial.n_steps}))
    if broken:
        steps = ", ".join(map(str, broken))
        sentence = f"{verdict.grader} cites step {steps}; the transcript has {trial.n_steps} steps."
        found.append(Notice(NoticeCode.CITED_STEP_MISSING, sentence, verdict.criterion, broken))
    if verdict.score is not None and _is_against_score(verdict.value, verdict.score):
        score = _plain(verdict.score)
        sentence = f"{verdict.grader} says {verdict.value} with a score of {score}."
        found.append(Notice(NoticeCode.VERDICT_AGAINST_SCORE, sentence, verdict.criterion))
    if verdict.kind is GraderKind.HUMAN and not verdict.counts:
        found.append(imported_notice(verdict))
    if _is_unreadable(verdict):
        said = f"said {verdict.raw_word!r}, which is" if verdict.raw_word else "gave"
        sentence = f"{verdict.grader} {said} no verdict that can be read; it counts as an error."
        found.append(Notice(NoticeCode.UNREADABLE_VERDICT, sentence, verdict.criterion))
    return found


def imported_notice(verdict: GivenVerdict) -> Notice:
    """What is noticed of a human verdict that came in a file and that nobody vouched for."""
    sentence = (
        f"The verdict of {verdict.grader} came in a file; "
        "it does not count until a reviewer vouches for it."
    )
    return Notice(NoticeCode.IMPORTED_HUMAN_VERDICT, sentence, verdict.criterion)


def _on_criterion(criteria: frozenset[str], verdict: GivenVerdict) -> list[Notice]:
    if verdict.criterion in criteria:
        return []
    sentence = f"{verdict.grader} decided {verdict.criterion}, which the contract does not have."
    return [Notice(NoticeCode.UNKNOWN_CRITERION, sentence, verdict.criterion)]


def _plain(score: Decimal) -> str:
    """A score in plain digits, however many places it is stored with."""
    text = f"{score:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _is_against_score(value: VerdictValue, score: Decimal) -> bool:
    """A pass with no point at all, or a fail with a full score, where 1 is full.

    A fail with a score above 1 says nothing: the score is on a scale that is not known.
    """
    if value is VerdictValue.PASS:
        return score <= 0
    is_full = abs(score - _FULL_SCORE) <= _SCORE_TOLERANCE
    return value is VerdictValue.FAIL and is_full


def _is_unreadable(verdict: GivenVerdict) -> bool:
    """Whether its error stands for a word that is not in the closed set, or for none at all."""
    word = verdict.raw_word.strip().lower()
    return verdict.value is VerdictValue.ERROR and word != VerdictValue.ERROR
