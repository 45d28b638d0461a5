"""Disputes in words: between whom, what they change, and who says what."""

from __future__ import annotations

from evalsite.common.formatting import count_text, counted
from reviews.core.disposition import AdjudicationRuling
from reviews.core.disputes import DisputeKind, NoEffect
from reviews.selectors.disputes import DisputeTotals, ListedDispute, ListedSide, Stance
from traces.core.records import CriterionClass, GraderKind, VerdictValue

CLASSES = {
    CriterionClass.OUTCOME: "class outcome",
    CriterionClass.CONSTRAINT: "class constraint",
    CriterionClass.SEMANTIC: "class semantic",
}
KINDS = {
    DisputeKind.CODE_JUDGE: "code against judge",
    DisputeKind.CODE_PERSON: "code against person",
    DisputeKind.CODE_CODE: "code against code",
    DisputeKind.JUDGE_PERSON: "judge against person",
    DisputeKind.JUDGE_JUDGE: "judge against judge",
    DisputeKind.PERSON_PERSON: "person against person",
    DisputeKind.FLIP: "one grader says both",
}
JUDGES_AGREE = "judges that agree, against code"
STANCES = {
    Stance.ABOVE_CODE: "says pass, code does not",
    Stance.BELOW_CODE: "does not say pass, code does",
    Stance.OTHER_JUDGES: "against another judge",
    Stance.PEOPLE: "against a person",
    Stance.BOTH: "says both itself",
}
RULINGS = {
    AdjudicationRuling.PASS: "pass",
    AdjudicationRuling.FAIL: "fail",
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: "insufficient evidence",
    AdjudicationRuling.RUBRIC_UNCLEAR: "rubric unclear",
}
RULING_STATES = {
    AdjudicationRuling.PASS: "pass",
    AdjudicationRuling.FAIL: "fail",
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: "unresolved",
    AdjudicationRuling.RUBRIC_UNCLEAR: "unresolved",
}
VALUE_STATES = {
    VerdictValue.PASS: "pass",
    VerdictValue.FAIL: "fail",
    VerdictValue.UNKNOWN: "unresolved",
    VerdictValue.ERROR: "harness-error",
}
GRADERS = {GraderKind.CODE: "code", GraderKind.MODEL: "judge", GraderKind.HUMAN: "person"}

_IDLE = {
    NoEffect.CODE_DECIDES: "code decides it",
    NoEffect.MARKED: "its check, fixture or rubric is at fault",
    NoEffect.NO_CODE_VOTE: "a code verdict that it requires is missing",
    NoEffect.NOT_REQUIRED: "nothing requires it",
    NoEffect.BROKEN: "the harness broke",
    NoEffect.REPLACED: "a later attempt stands",
    NoEffect.AGREED: "those that count agree",
}
_SENTENCES = {
    NoEffect.CODE_DECIDES: "It decides nothing: code decides this requirement, and a person can "
    "only mark the check as defective or ambiguous.",
    NoEffect.MARKED: "It decides nothing: a reviewer marked its check, fixture or rubric, or the "
    "trial did not start as its task says.",
    NoEffect.NO_CODE_VOTE: "It decides nothing: the requirement lacks a code verdict.",
    NoEffect.NOT_REQUIRED: "It decides nothing: no requirement of the trial asks for it.",
    NoEffect.BROKEN: "It decides nothing: the harness broke, and the trial is no evidence about "
    "the agent.",
    NoEffect.REPLACED: "It decides nothing: a later attempt stands for its slot.",
    NoEffect.AGREED: "Nothing waits for it: the graders that count agree. An adjudication would "
    "overrule them.",
}
DECIDES = "It decides something: an adjudication settles a requirement of the trial."
NOT_COUNTING = "No two graders that count disagree: it changes no disposition."
NOT_COUNTING_YET = (
    "No two graders that count disagree: it changes no disposition until it is adjudicated."
)


def idle_words(reason: NoEffect) -> str:
    """Why a dispute decides nothing, in a few words."""
    return _IDLE[reason]


def effect_sentence(dispute: ListedDispute) -> str:
    """What an adjudication of it would change."""
    if dispute.no_effect is None:
        return DECIDES
    return _SENTENCES[dispute.no_effect]


def counting_sentence(dispute: ListedDispute) -> str:
    """That graders which do not count change nothing; "" where those that count disagree."""
    if dispute.is_counting:
        return ""
    return NOT_COUNTING_YET if dispute.decides else NOT_COUNTING


def heading_of(totals: DisputeTotals, *, state: str = "open") -> str:
    """How many disputes there are, how many of them decide something, and why the rest do not."""
    if not totals.n:
        return "No dispute" if state != "open" else "No open dispute"
    n = counted(totals.n, "dispute")
    if state == "over":
        return f"{n} that {'is' if totals.n == 1 else 'are'} over"
    if state == "adjudicated":
        return f"{n} adjudicated"
    if totals.n_deciding:
        if not totals.n_idle:
            return f"{n}, {_all_decide(totals.n)}"
        verb = "decides" if totals.n_deciding == 1 else "decide"
        return f"{n}, {count_text(totals.n_deciding)} of them {verb} something"
    none = "it decides nothing" if totals.n == 1 else "none of them decides anything"
    return f"{n}, {none}{_because(totals)}"


def _all_decide(n: int) -> str:
    return "it decides something" if n == 1 else "each of them decides something"


def _because(totals: DisputeTotals) -> str:
    """Why none decides anything, where there is one reason for all of them."""
    if len(totals.reasons) != 1:
        return ""
    reason = totals.reasons[0][0]
    if reason is NoEffect.CODE_DECIDES:
        return f", because code decides {totals.idle_criterion or 'their criteria'}"
    if reason is NoEffect.NOT_REQUIRED:
        return f", because nothing requires {totals.idle_criterion or 'their criteria'}"
    return f", because {_IDLE[reason]}"


def why_not_counting(side: ListedSide) -> str:
    """Why a grader does not count; "" when it does."""
    if side.counts:
        return ""
    match side.kind:
        case GraderKind.MODEL:
            return "not calibrated, does not count"
        case GraderKind.HUMAN:
            return "imported, does not count" if side.is_imported else "does not count"
        case GraderKind.CODE:
            return "of a file, does not count"
