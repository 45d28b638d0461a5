"""What a trial comes to, requirement by requirement, as plain values for JSON."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from reviews.core.disposition import Requirement
from reviews.selectors.judge_states import JudgeState
from reviews.selectors.rulings import HeldRuling
from reviews.selectors.standings import StandingDetail, TrialStandings
from reviews.selectors.verdict_cards import VerdictCard


def standings_document(found: TrialStandings) -> dict[str, Any]:
    """The standings of a trial with the checks behind them."""
    return {
        "contract": {
            "id": str(found.contract.identity),
            "version": found.contract.number,
        }
        if found.contract
        else None,
        "sentence": found.decision.sentence,
        "evidence_order": len(found.additions),
        "missing_evidence": list(found.missing_evidence),
        "fixture_faults": list(found.fixture_faults),
        "requirements": [_requirement(detail, found) for detail in found.details],
    }


def _requirement(detail: StandingDetail, found: TrialStandings) -> dict[str, Any]:
    standing = detail.standing
    requirement = standing.requirement
    return {
        "criterion": requirement.criterion,
        "class": requirement.criterion_class.value,
        "source": requirement.source.value,
        "mandatory": requirement.mandatory,
        "prohibition": requirement.is_prohibition,
        "result": standing.result.value,
        "rule": standing.rule,
        "sentence": standing.sentence,
        "next_action": standing.action.value if standing.action else None,
        "check": _check(detail.check) if detail.check else None,
        "voters": [
            {
                "grader": card.given.grader,
                "version": card.given.grader_version,
                "kind": card.given.kind.value,
                "verdict": card.given.value.value,
                "steps": list(card.given.cited_steps),
            }
            for card in detail.voters
        ],
        "marks": [
            {"mark": mark.mark.value, "on": mark.criterion or "fixture", "reason": mark.reason}
            for mark in detail.marks
        ],
        "adjudications": [_ruling(held) for held in detail.rulings],
        "judges": list(_judges(requirement, found)),
    }


def _ruling(held: HeldRuling) -> dict[str, Any]:
    return {
        "id": str(held.uuid),
        "ruling": held.given.ruling.value,
        "reason": held.reason,
        "steps": list(held.cited_steps),
        "by": held.by_name,
        "decided_at": held.at.isoformat(),
        "by_party": held.given.is_by_party,
        "blind_label": held.is_label,
        "corrects_earlier": held.given.replaces is not None,
        "in_force": not held.is_replaced,
    }


def _judges(requirement: Requirement, found: TrialStandings) -> Iterable[dict[str, Any]]:
    """The judges with a verdict on a requirement, and how each is calibrated for it."""
    for (grader, version, criterion), judge in sorted(found.judges.known.items()):
        if criterion == requirement.criterion:
            state = judge.states.get(requirement.criterion_digest)
            yield {"grader": grader, "version": version, "calibration": _calibration(state)}


def _calibration(state: JudgeState | None) -> dict[str, Any] | None:
    if state is None:
        return None
    return {
        "status": state.status.value,
        "sentence": state.why,
        "read_at": state.read_at.isoformat(),
        "valid_until": state.valid_until.isoformat() if state.valid_until else None,
    }


def _check(card: VerdictCard) -> dict[str, Any]:
    found = card.check
    return {
        "verdict": card.given.value.value,
        "sentence": card.rationale,
        "steps": list(card.given.cited_steps),
        "differences": [
            {"pointer": each.pointer, "wanted": each.wanted, "found": each.found}
            for each in found.differences
        ],
        "n_differences": found.n_differences,
        "reached": list(found.reached),
        "attempted": list(found.attempted),
        "committed": list(found.committed),
    }
