"""The gate under other thresholds, tiers or contracts, beside the one that counts."""

from __future__ import annotations

from typing import TypeAlias

from django.urls import reverse

from evalsite.access import Act, SystemRequest
from evalsite.web.gate_found import GateFound
from evalsite.web.gate_words import GATES, RESULTS, results_words, section_title
from reviews.core.gate.model import Check, CheckKind, Gate
from reviews.core.gate.threshold_words import check_name
from traces.web.pages import Badge
from traces.web.pages.gates import OtherGate, OtherGateCheck

_Key: TypeAlias = tuple[str, CheckKind, int | None]


def other_gate(request: SystemRequest, found: GateFound) -> OtherGate | None:
    """Both results side by side; None where nothing would come out of other terms."""
    if found.gate is None or found.other is None:
        return None
    other, is_later = found.other, found.other.is_later
    kwargs = {"slug": request.access.system.slug, "release": found.release.uuid}
    checks, n_same = _checks(found.gate, other.gate)
    return OtherGate(
        title="If it were re-evaluated now" if is_later else "As it was when its runs began",
        sentence=other.sentence,
        counting=GATES[found.gate.state],
        counting_words=results_words(found.gate),
        other=GATES[other.gate.state],
        other_words=results_words(other.gate),
        checks=checks,
        n_same=n_same,
        form_url=reverse("gate-reevaluate", kwargs=kwargs)
        if is_later and request.access.may(Act.OWN)
        else "",
        why_not=request.access.refusal(Act.OWN) if is_later else "",
    )


def _checks(counting: Gate, other: Gate) -> tuple[tuple[OtherGateCheck, ...], int]:
    """The checks that come out otherwise, and how many come out alike."""
    here, there = _by_key(counting), _by_key(other)
    rows, n_same = [], 0
    for key in dict.fromkeys([*here, *there]):
        one, two = here.get(key), there.get(key)
        if one and two and one[1].result is two[1].result:
            n_same += 1
            continue
        tier, check = one or two or (key[0], None)
        assert check is not None
        rows.append(OtherGateCheck(tier, check_name(check.threshold), _badge(one), _badge(two)))
    return tuple(rows), n_same


def _by_key(gate: Gate) -> dict[_Key, tuple[str, Check]]:
    return {
        (section.tier_uuid, check.threshold.kind, check.threshold.k): (
            section_title(section),
            check,
        )
        for section in gate.sections
        for check in section.checks
    }


def _badge(found: tuple[str, Check] | None) -> Badge | None:
    return RESULTS[found[1].result] if found else None
