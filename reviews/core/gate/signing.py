"""What the signatures on a release come to, and what may be signed.

The states are one table. docs/sign-off.md draws it, and a test compares the two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from reviews.core.gate.model import NEVER_WAIVED, Check, CheckKind, Gate, Section
from reviews.core.gate.states import CheckResult, GateState, Mark, Meaning, SignOffState
from traces.core.text_marks import says_nothing

MOST_CHARACTERS = 4_000
"""Of each text that a signature carries."""


class SigningEvent(StrEnum):
    """What happens to the signatures on a release."""

    FIRST_OF_TWO = "an owner signs an approval that needs two"
    APPROVED = "the last owner that is needed approves"
    WAIVED = "the last owner that is needed approves with a waiver"
    REJECTED = "an owner rejects"
    VOID_LEAVES_NONE = "a signature is void, none is left"
    VOID_LEAVES_ONE = "a signature is void, one of two is left as the newest"
    VOID_LEAVES_APPROVAL = "a signature is void, an approval is left as the newest"
    VOID_LEAVES_WAIVER = "a signature is void, an approval with a waiver is left as the newest"
    VOID_LEAVES_REJECTION = "a signature is void, a rejection is left as the newest"


_S, _E = SignOffState, SigningEvent
_ANY = frozenset(SignOffState)
_STANDING = _ANY - {_S.NONE, _S.VOID}
# From each of these states an event leads to that one; from the others it cannot happen. An owner
# who finds another approval signed by one of two joins it, or has it declared void first.
_RULES: tuple[tuple[SigningEvent, frozenset[SignOffState], SignOffState], ...] = (
    (_E.FIRST_OF_TWO, _ANY - {_S.PARTLY}, _S.PARTLY),
    (_E.APPROVED, _ANY, _S.APPROVED),
    (_E.WAIVED, _ANY, _S.WAIVER),
    (_E.REJECTED, _ANY, _S.REJECTED),
    (_E.VOID_LEAVES_NONE, _STANDING, _S.VOID),
    (_E.VOID_LEAVES_ONE, _STANDING, _S.PARTLY),
    (_E.VOID_LEAVES_APPROVAL, _STANDING, _S.APPROVED),
    (_E.VOID_LEAVES_WAIVER, _STANDING, _S.WAIVER),
    (_E.VOID_LEAVES_REJECTION, _STANDING, _S.REJECTED),
)
TRANSITIONS: dict[tuple[SignOffState, SigningEvent], SignOffState] = {
    (before, event): after for event, befores, after in _RULES for before in befores
}

CAN_BE_STALE = frozenset({_S.PARTLY, _S.APPROVED, _S.WAIVER})
CAN_EXPIRE = frozenset({_S.APPROVED, _S.WAIVER})
MARKS: dict[Mark, tuple[frozenset[SignOffState], str]] = {
    Mark.STALE: (CAN_BE_STALE, "the evidence is another than the one that was signed"),
    Mark.EXPIRED: (CAN_EXPIRE, "the last day that it was signed for has passed"),
}


@dataclass(frozen=True, slots=True)
class Terms:
    """The words that a signature is given under."""

    meaning: Meaning
    intended_use: str = ""
    scope: str = ""
    expires_on: date | None = None
    reason: str = ""
    next_action: str = ""
    waived_tier: str = ""  # its name; "" for the section without a tier
    waived_check: str = ""  # its kind

    @property
    def shared(self) -> tuple[object, ...]:
        """What two owners of one approval sign alike; each gives a reason of their own."""
        return (
            self.meaning,
            self.intended_use,
            self.scope,
            self.expires_on,
            self.waived_tier,
            self.waived_check,
        )


@dataclass(frozen=True, slots=True)
class Signature:
    """One signature, as far as the states need it; oldest first in any sequence of them."""

    key: int
    by: int
    digest: str  # of the evidence manifest
    terms: Terms
    n_needed: int
    order: int  # of its signing among signings and voids
    voided_order: int | None = None  # None: it stands


@dataclass(frozen=True, slots=True)
class Decision:
    """One or two signatures that say the same of the same evidence."""

    signatures: tuple[Signature, ...]

    @property
    def meaning(self) -> Meaning:
        """What they say."""
        return self.signatures[0].terms.meaning

    @property
    def digest(self) -> str:
        """Of the evidence manifest that they are bound to."""
        return self.signatures[0].digest

    @property
    def n_needed(self) -> int:
        """How many signatures make it whole."""
        return 1 if self.meaning is Meaning.REJECTED else self.signatures[0].n_needed

    @property
    def is_complete(self) -> bool:
        """Whether nobody else has to sign."""
        return len(self.signatures) >= self.n_needed

    @property
    def state(self) -> SignOffState:
        """What the release's signatures come to where this is the newest decision."""
        if not self.is_complete:
            return SignOffState.PARTLY
        return SignOffState(self.meaning.value)

    def takes(self, signature: Signature) -> bool:
        """Whether a further signature belongs to it."""
        return (
            not self.is_complete
            and self.digest == signature.digest
            and self.signatures[0].terms.shared == signature.terms.shared
            and all(each.by != signature.by for each in self.signatures)
        )


@dataclass(frozen=True, slots=True)
class SignOffStanding:
    """What the signatures on a release come to now."""

    state: SignOffState
    marks: tuple[Mark, ...]
    newest: Decision | None  # the newest that is not void

    @property
    def is_approval(self) -> bool:
        """Whether it is approved, with or without a waiver, whatever the marks say."""
        return self.state in (SignOffState.APPROVED, SignOffState.WAIVER)

    @property
    def is_valid(self) -> bool:
        """Whether it is an approval over the evidence as it is, within its date."""
        return self.is_approval and not self.marks


def decisions_of(signatures: Iterable[Signature]) -> tuple[Decision, ...]:
    """The decisions that the signatures that stand come to, oldest first."""
    found: list[Decision] = []
    for signature in signatures:
        if signature.voided_order is not None:
            continue
        if found and found[-1].takes(signature):
            found[-1] = Decision((*found[-1].signatures, signature))
        else:
            found.append(Decision((signature,)))
    return tuple(found)


def sign_off_state(
    signatures: Sequence[Signature], *, digest: str | None, today: date
) -> SignOffStanding:
    """What signatures come to, oldest first.

    `digest` is that of the evidence manifest as it is now; None: it is being computed, which
    counts as another one.
    """
    decisions = decisions_of(signatures)
    newest = decisions[-1] if decisions else None
    state = walked_state(signatures) or (newest.state if newest else SignOffState.VOID)
    return SignOffStanding(state, _marks(state, newest, digest, today), newest)


def last_approval(signatures: Iterable[Signature]) -> Decision | None:
    """The last approval that is complete and not void, with or without a waiver."""
    whole = [d for d in decisions_of(signatures) if d.is_complete]
    return next((d for d in reversed(whole) if d.meaning is not Meaning.REJECTED), None)


def _marks(
    state: SignOffState, newest: Decision | None, digest: str | None, today: date
) -> tuple[Mark, ...]:
    if newest is None:
        return ()
    marks = []
    if state in CAN_BE_STALE and newest.digest != digest:
        marks.append(Mark.STALE)
    dates = [s.terms.expires_on for s in newest.signatures if s.terms.expires_on is not None]
    if state in CAN_EXPIRE and dates and today > min(dates):
        marks.append(Mark.EXPIRED)
    return tuple(marks)


def walked_state(signatures: Sequence[Signature]) -> SignOffState | None:
    """The state that the table leads to along what happened; None: it cannot have happened so."""
    state: SignOffState | None = SignOffState.NONE
    acts = [(s.order, s, False) for s in signatures]
    acts += [(s.voided_order, s, True) for s in signatures if s.voided_order is not None]
    for order, signature, is_void in sorted(acts, key=lambda act: act[0]):
        then = [_as_of(each, order) for each in signatures if each.order <= order]
        event = _void_event(then) if is_void else _signing_event(then, signature)
        state = TRANSITIONS.get((state, event)) if state else None
    return state


def _as_of(signature: Signature, order: int) -> Signature:
    """A signature as it stood when something happened."""
    if signature.voided_order is None or signature.voided_order <= order:
        return signature
    return Signature(
        signature.key,
        signature.by,
        signature.digest,
        signature.terms,
        signature.n_needed,
        signature.order,
    )


def _signing_event(then: Sequence[Signature], signature: Signature) -> SigningEvent:
    match decisions_of(then)[-1].state:
        case SignOffState.PARTLY:
            return SigningEvent.FIRST_OF_TWO
        case SignOffState.APPROVED:
            return SigningEvent.APPROVED
        case SignOffState.WAIVER:
            return SigningEvent.WAIVED
        case _:
            assert signature.terms.meaning is Meaning.REJECTED
            return SigningEvent.REJECTED


_LEFT = {
    SignOffState.PARTLY: SigningEvent.VOID_LEAVES_ONE,
    SignOffState.APPROVED: SigningEvent.VOID_LEAVES_APPROVAL,
    SignOffState.WAIVER: SigningEvent.VOID_LEAVES_WAIVER,
    SignOffState.REJECTED: SigningEvent.VOID_LEAVES_REJECTION,
}


def _void_event(then: Sequence[Signature]) -> SigningEvent:
    decisions = decisions_of(then)
    return _LEFT[decisions[-1].state] if decisions else SigningEvent.VOID_LEAVES_NONE


# --- what may be signed

NOT_READY = "Only a gate that is ready can be approved; this one is {state}."
READY_NEEDS_NO_WAIVER = "Every check is met, so there is nothing to waive: approve it."
UNKNOWN_WAIVER = "The waiver names no check of this gate."
NOTHING_TO_WAIVE = "The check that the waiver names is met."
NEVER = "Prohibited actions cannot be waived."
TOO_MANY = "A waiver covers one check; {n} checks are neither met nor do they not apply."
NO_THRESHOLDS = "A part of this gate has no thresholds in force, which no waiver covers."
_STATES = {
    GateState.BLOCKED: "blocked",
    GateState.WAITING: "waiting for evidence",
    GateState.READY: "ready",
}
_GOOD = (CheckResult.MET, CheckResult.DOES_NOT_APPLY)


@dataclass(frozen=True, slots=True)
class OpenCheck:
    """A check that is neither met nor does not apply, with the tier that asks for it."""

    tier: str
    tier_uuid: str
    kind: CheckKind


def open_checks(gate: Gate) -> tuple[OpenCheck, ...]:
    """What keeps a gate from being ready."""
    return tuple(
        OpenCheck(section.tier, section.tier_uuid, check.threshold.kind)
        for section in gate.sections
        for check in section.checks
        if check.result not in _GOOD
    )


def approval_refusal(gate: Gate) -> str:
    """Why a gate cannot be approved; "" when it can."""
    return "" if gate.state is GateState.READY else NOT_READY.format(state=_STATES[gate.state])


def waivable(gate: Gate) -> OpenCheck | str:
    """The one check that a waiver would name; else why there is none."""
    left = open_checks(gate)
    if any(_is_without_thresholds(section) for section in gate.sections) or not gate.sections:
        return NO_THRESHOLDS
    if not left:
        return READY_NEEDS_NO_WAIVER
    if len(left) > 1:
        return TOO_MANY.format(n=len(left))
    return NEVER if left[0].kind in NEVER_WAIVED else left[0]


def waiver_refusal(gate: Gate, *, tier: str, check: str) -> str:
    """Why one check of a gate cannot be waived; "" when it can."""
    named = [c for s in gate.sections if s.tier == tier for c in _of_kind(s, check)]
    if not named:
        return UNKNOWN_WAIVER
    if named[0].threshold.kind in NEVER_WAIVED:
        return NEVER
    found = waivable(gate)
    if isinstance(found, str):
        return found
    return "" if (found.tier, found.kind) == (tier, check) else NOTHING_TO_WAIVE


def terms_refusal(terms: Terms, *, today: date) -> str:
    """What the words of a signature lack; "" when they are whole."""
    for name, text in _texts(terms):
        if len(text) > MOST_CHARACTERS:
            return f"{name} has at most {MOST_CHARACTERS:,} characters."
        if "\0" in text:
            return f"{name} holds a character that cannot be stored."
    for name, text in _needed(terms):
        if says_nothing(text):
            return f"{name} is needed."
    if terms.meaning is Meaning.REJECTED:
        return ""
    if terms.expires_on is None:
        return "An expiry date is needed."
    return "" if terms.expires_on > today else "The expiry date is a day after today."


def _texts(terms: Terms) -> tuple[tuple[str, str], ...]:
    return (
        ("The intended use", terms.intended_use),
        ("The scope", terms.scope),
        ("The reason", terms.reason),
        ("The next action", terms.next_action),
    )


def _needed(terms: Terms) -> tuple[tuple[str, str], ...]:
    use, scope, reason, action = _texts(terms)
    needed = {
        Meaning.APPROVED: (use, scope),
        Meaning.WAIVER: (reason, scope),
        Meaning.REJECTED: (reason, action),
    }
    return needed[terms.meaning]


def _is_without_thresholds(section: Section) -> bool:
    return section.threshold_set is None


def _of_kind(section: Section, kind: str) -> list[Check]:
    return [check for check in section.checks if check.threshold.kind == kind]


# --- drawn for the docs

_NAMES = {
    SignOffState.NONE: "none",
    SignOffState.PARTLY: "partly signed",
    SignOffState.APPROVED: "approved",
    SignOffState.WAIVER: "approved with waiver",
    SignOffState.REJECTED: "rejected",
    SignOffState.VOID: "void",
}


def table_text() -> str:
    """The table of states in Markdown: a row an event, a column the state before it."""
    states = tuple(SignOffState)
    lines = [
        "| what happens | " + " | ".join(f"from {_NAMES[state]}" for state in states) + " |",
        "|---|" + "---|" * len(states),
    ]
    for event in SigningEvent:
        cells = (TRANSITIONS.get((state, event)) for state in states)
        words = " | ".join("–" if cell is None else _NAMES[cell] for cell in cells)
        lines.append(f"| {event.value} | {words} |")
    lines += ["", "| mark | beside | when |", "|---|---|---|"]
    for mark, (beside, when) in MARKS.items():
        named = ", ".join(_NAMES[state] for state in states if state in beside)
        lines.append(f"| {mark.value} | {named} | {when} |")
    return "\n".join(lines) + "\n"


def diagram_text() -> str:
    """The signing part of the table, and the way to void, as a diagram that viewers draw."""
    lines = ["stateDiagram-v2", "    [*] --> none"]
    arrows: dict[tuple[SignOffState, SignOffState], list[str]] = {}
    for (before, event), after in sorted(
        TRANSITIONS.items(), key=lambda item: tuple(SigningEvent).index(item[0][1])
    ):
        if event in _SHORT:
            arrows.setdefault((before, after), []).append(_SHORT[event])
    order = tuple(SignOffState)
    for (before, after), words in sorted(
        arrows.items(), key=lambda item: (order.index(item[0][0]), order.index(item[0][1]))
    ):
        lines.append(f"    {before.value} --> {after.value}: {', '.join(words)}")
    return "\n".join(lines) + "\n"


_SHORT = {
    SigningEvent.FIRST_OF_TWO: "first of two signs",
    SigningEvent.APPROVED: "approve",
    SigningEvent.WAIVED: "approve with waiver",
    SigningEvent.REJECTED: "reject",
    SigningEvent.VOID_LEAVES_NONE: "the last one is void",
}
