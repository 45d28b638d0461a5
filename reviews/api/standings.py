"""What a trial comes to, requirement by requirement, as plain values for JSON."""

from __future__ import annotations

from typing import Any

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
        "requirements": [_requirement(detail) for detail in found.details],
    }


def _requirement(detail: StandingDetail) -> dict[str, Any]:
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
