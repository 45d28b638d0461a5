"""A release's gate: a section a tier, blocked, waiting for evidence or ready, and one sentence."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from reviews.core.gate.checks import checks_of
from reviews.core.gate.evidence import OrderedEvidence, ordered
from reviews.core.gate.model import Check, Gate, Section, TierEvidence
from reviews.core.gate.states import CheckResult, GateState
from reviews.core.gate.threshold_words import (
    counted,
    listed,
    name_in_sentence,
    number_word,
    shortened,
)
from traces.core.canonical import natural_key

MOST_NAMED = 4
"""Checks and tasks that a sentence names."""

_LONGEST_CHECK = 200

_PASSING = frozenset({CheckResult.MET, CheckResult.DOES_NOT_APPLY})


def decide_gate(release_name: str, tiers: Sequence[TierEvidence]) -> Gate:
    """The gate of a release from the evidence of its tiers, in their order.

    Blocked if a check is not met, else waiting if one cannot be told or there is nothing to decide
    by, else ready. A check that does not apply counts as met.
    """
    sections = tuple(map(section_of, tiers))
    state = _state_of_sections(sections)
    return Gate(state, _gate_sentence(shortened(release_name), state, sections), sections)


def section_of(evidence: TierEvidence) -> Section:
    """The checks of one tier. Without thresholds in force there are none, and it waits."""
    in_order = ordered(evidence)
    slots, found = in_order.counted, evidence.threshold_set
    checks = checks_of(found.thresholds.checks, in_order) if found else ()
    state = _state_of_checks(checks)
    sentence = _results_sentence(checks) if found else _no_thresholds_sentence(in_order)
    if evidence.n_by_party:
        sentence += f" {_by_party(evidence.n_by_party)}"
    return Section(
        tier=evidence.tier,
        tier_uuid=evidence.tier_uuid,
        threshold_set=found,
        state=state,
        sentence=sentence,
        checks=checks,
        n_slots=len(slots),
        n_tasks=len({slot.task for slot in slots}),
    )


def _state_of_checks(checks: Sequence[Check]) -> GateState:
    if any(check.result is CheckResult.NOT_MET for check in checks):
        return GateState.BLOCKED
    is_ready = checks and all(check.result in _PASSING for check in checks)
    return GateState.READY if is_ready else GateState.WAITING


def _state_of_sections(sections: Sequence[Section]) -> GateState:
    states = [section.state for section in sections]
    if GateState.BLOCKED in states:
        return GateState.BLOCKED
    is_ready = states and all(state is GateState.READY for state in states)
    return GateState.READY if is_ready else GateState.WAITING


def _no_thresholds_sentence(evidence: OrderedEvidence) -> str:
    if not any(not run.is_left_out for run in evidence.runs):
        return "No run that counts has begun, so no thresholds apply yet."
    tasks = sorted({slot.task for slot in evidence.counted}, key=natural_key)
    if not tasks:
        return (
            "No thresholds were in force when the first run began, so nobody can tell until an "
            "owner has it evaluated again."
        )
    return (
        f"No thresholds were in force for {counted(len(tasks), 'task')} when the first run began, "
        f"so nobody can tell until an owner has it evaluated again: {_named(tasks)}."
    )


def _by_party(n: int) -> str:
    return (
        f"{counted(n, 'trial')} {'was' if n == 1 else 'were'} decided by a party: by somebody with "
        "a verdict of their own."
    )


def _with_result(checks: Iterable[Check], result: CheckResult) -> list[Check]:
    return [check for check in checks if check.result is result]


def _results_sentence(checks: Sequence[Check]) -> str:
    """How many are not met and cannot be told: "One threshold is not met, and three …"."""
    n_missed = len(_with_result(checks, CheckResult.NOT_MET))
    n_open = len(_with_result(checks, CheckResult.CANNOT_TELL))
    if n_missed:
        said = f"{number_word(n_missed)} {_thresholds(n_missed)} {_is(n_missed)} not met"
        if n_open:
            said += f", and {number_word(n_open)} cannot be told yet"
    elif n_open:
        said = f"{number_word(n_open)} {_thresholds(n_open)} cannot be told yet"
    elif checks:
        return _all_met_sentence(checks)
    else:
        said = "nothing is asked for"
    return f"{said[0].upper()}{said[1:]}."


def _all_met_sentence(checks: Sequence[Check]) -> str:
    n_none = len(_with_result(checks, CheckResult.DOES_NOT_APPLY))
    n_met = len(checks) - n_none
    said = f"All {number_word(n_met)} {_thresholds(n_met)} are met"
    if n_met == 1:
        said = "The one threshold is met"
    if n_none:
        said += f", and {number_word(n_none)} {'does' if n_none == 1 else 'do'} not apply"
    return f"{said}."


def _thresholds(n: int) -> str:
    return "threshold" if n == 1 else "thresholds"


def _is(n: int) -> str:
    return "is" if n == 1 else "are"


def _gate_sentence(release: str, state: GateState, sections: Sequence[Section]) -> str:
    missed = _names_of(sections, CheckResult.NOT_MET)
    unknown = _names_of(sections, CheckResult.CANNOT_TELL)
    bare = [section for section in sections if section.threshold_set is None]
    if state is GateState.BLOCKED:
        said = f"Release {release} is blocked: {_named(missed)} {_is(len(missed))} not met"
        if unknown:
            said += f", and {counted_checks(len(unknown))} cannot be told yet"
        return f"{said}."
    if state is GateState.READY:
        n = sum(len(section.checks) for section in sections)
        return f"Release {release} is ready to be signed: {_ready_words(n)}."
    waiting = f"Release {release} is waiting for evidence"
    if unknown:
        return f"{waiting}: {_named(unknown)} cannot be told yet."
    if bare:
        return f"{waiting}. {bare[0].sentence}"
    return f"{waiting}: there are no thresholds to decide it by."


def counted_checks(n: int) -> str:
    """How many checks in words: "one check", "three checks"."""
    return f"{number_word(n)} {'check' if n == 1 else 'checks'}"


def _ready_words(n: int) -> str:
    return f"all {number_word(n)} checks are met or do not apply"


def _names_of(sections: Sequence[Section], result: CheckResult) -> list[str]:
    """The checks of one result, each with its tier where there are several."""
    return [
        name_in_sentence(check.threshold) + (f" ({section.tier})" if len(sections) > 1 else "")
        for section in sections
        for check in _with_result(section.checks, result)
    ]


def _named(names: Sequence[str]) -> str:
    """Names as a sentence lists them, at most `MOST_NAMED` and how many more."""
    if len(names) <= MOST_NAMED:
        return listed([shortened(name, _LONGEST_CHECK) for name in names])
    first = [shortened(name, _LONGEST_CHECK) for name in names[:MOST_NAMED]]
    return f"{', '.join(first)} and {len(names) - MOST_NAMED:,} more"
