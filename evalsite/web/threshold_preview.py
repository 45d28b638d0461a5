"""What thresholds would have meant for past releases."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from evalsite.common.formatting import counted
from evalsite.gate_supposed import SupposedGate, supposed_gate
from reviews.core.gate.model import Check, Section, Thresholds
from reviews.core.gate.states import CheckResult, GateState
from reviews.core.gate.thresholds import KIND_NAMES
from reviews.selectors.thresholds import TierRow
from traces.models import Release, System
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.thresholds import Preview, PreviewCheck, PreviewRelease

MOST_RELEASES = 5
_MOST_LOOKED_AT = 20
"""Releases without a counting run say nothing, and are passed over."""

_STATES = {
    GateState.BLOCKED: ("blocked", "fail"),
    GateState.WAITING: ("waiting for evidence", "unresolved"),
    GateState.READY: ("ready", "pass"),
}
_RESULTS = {
    CheckResult.MET: ("met", "pass"),
    CheckResult.NOT_MET: ("not met", "fail"),
    CheckResult.CANNOT_TELL: ("cannot tell", "unresolved"),
    CheckResult.DOES_NOT_APPLY: ("does not apply", ""),
}
_FINE = frozenset({CheckResult.MET, CheckResult.DOES_NOT_APPLY})
_NOT_ASKED = "not asked"


def preview_of(system: System, tier: TierRow, thresholds: Thresholds, *, now: datetime) -> Preview:
    """What thresholds of a tier would have meant for the newest releases of a system."""
    at = Addresses.of(system.slug)
    releases = Release.objects.filter(system=system, is_unversioned=False).order_by("-pk")
    found: list[PreviewRelease] = []
    for release in releases[:_MOST_LOOKED_AT]:
        supposed = supposed_gate(release.pk, tier.pk, thresholds, now=now)
        if supposed is None:
            continue
        found.append(_release(release, supposed, at))
        if len(found) == MOST_RELEASES:
            break
    if not found:
        return Preview("There is no past release with a run that counts: nothing to compare.", ())
    return Preview(
        "Nothing of this counts: gates of past releases keep the thresholds that were in force when "
        "their first run began. Tasks are taken as they are in this tier now.",
        tuple(found),
    )


def _release(release: Release, supposed: SupposedGate, at: Addresses) -> PreviewRelease:
    was, would_be = supposed.section, supposed.supposed_section
    checks = tuple(_changed(would_be.tier, was, would_be))
    return PreviewRelease(
        release=pages.Link(release.label, at.gate(release.uuid)),
        was=pages.Badge(*_STATES[supposed.gate.state]),
        would_be=pages.Badge(*_STATES[supposed.supposed.state]),
        sentence=_sentence(supposed, would_be),
        checks=checks,
        n_same=_same_words(was, would_be, checks),
    )


def _same_words(was: Section | None, would_be: Section, checks: tuple[PreviewCheck, ...]) -> str:
    n = len(would_be.checks) - sum(check.would_be != _NOT_ASKED for check in checks)
    if was is None or not was.checks:
        met = counted(n, "other check would be met", "other checks would be met")
        return f"No thresholds of this tier were in force for it; {met}"
    return counted(n, "check comes out the same", "checks come out the same")


def _sentence(supposed: SupposedGate, would_be: Section) -> str:
    tasks = counted(would_be.n_tasks, "task")
    trials = counted(would_be.n_slots, "trial")
    seen = f"{tasks} of this tier, {trials}."
    if supposed.gate.state is supposed.supposed.state:
        return f"The gate would be the same: {_STATES[supposed.gate.state][0]}. {seen}"
    return (
        f"The gate would be {_STATES[supposed.supposed.state][0]} instead of "
        f"{_STATES[supposed.gate.state][0]}. {seen}"
    )


def _changed(tier: str, was: Section | None, would_be: Section) -> Iterator[PreviewCheck]:
    """Each check that comes out otherwise, and those that only one of both asks for."""
    before = {check.threshold.kind: check for check in was.checks} if was else {}
    after = {check.threshold.kind: check for check in would_be.checks}
    for kind in [*after, *(kind for kind in before if kind not in after)]:
        old, new = before.get(kind), after.get(kind)
        if old and new and old.result is new.result:
            continue
        if not before and new and new.result in _FINE:
            continue
        shown = new or old
        yield PreviewCheck(
            tier=tier,
            name=KIND_NAMES[kind],
            was=_result(old)[0],
            would_be=_result(new)[0],
            state=_result(new)[1],
            sentence=shown.sentence if shown else "",
        )


def _result(check: Check | None) -> tuple[str, str]:
    return _RESULTS[check.result] if check else (_NOT_ASKED, "")
