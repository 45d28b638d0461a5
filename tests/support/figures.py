"""Decided trials for figures, written by hand where a test is about counting, not about deciding."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tests.support.in_effect import contract_in_effect
from traces.models import (
    ContractVersion,
    System,
    TrajectoryPaths,
    Trial,
    TrialDisposition,
    User,
)


def decide(
    system: System,
    task_id: str,
    trial: int | str,
    *,
    release: str = "1.0",
    outcome: str = "pass",
    clean: str = "pass",
    **more: Any,
) -> None:
    """Say what a stored trial comes to; every column that is not given follows from the two."""
    value = "pass"
    if "unknown" in (outcome, clean):
        value = "unresolved"
    if "fail" in (outcome, clean):
        value = "fail"
    classes = [
        name for name, word in (("outcome", outcome), ("constraint", clean)) if word == "fail"
    ]
    columns: dict[str, Any] = {
        "value": value,
        "failed_classes": classes if value == "fail" else [],
        "next_actions": ["repair_evidence"] if value == "unresolved" else [],
        "outcome": outcome,
        "rule_clean": clean,
        **more,
    }
    found = TrialDisposition.objects.filter(
        trial__system=system,
        trial__task__task_id=task_id,
        trial__label=str(trial),
        trial__release__name=release,
    )
    assert found.update(**columns) == 1


def count_writes(
    system: System, task_id: str, trials: Sequence[int], *, writes: int, handoffs: int
) -> None:
    """Say how many committed writes and hand-overs the trajectories of some trials have."""
    trajectories = Trial.objects.filter(
        system=system, task__task_id=task_id, label__in=[str(each) for each in trials]
    ).values("trajectory_id")
    TrajectoryPaths.objects.filter(trajectory__in=trajectories).update(
        n_writes=writes, n_handoffs=handoffs
    )


def put_contract(system: System, text: str, *, by: User) -> ContractVersion:
    """Bring a contract into effect; stored trials are taken as decided by it, as they stand."""
    version = contract_in_effect(system, text, by=by)
    TrialDisposition.objects.filter(trial__task=version.task_id).update(contract=version)
    return version
