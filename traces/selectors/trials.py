"""Stored trials, found by what names them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from traces.core.records import TrialKey
from traces.models import System, Trial


@dataclass(frozen=True, slots=True)
class FoundTrial:
    """A stored trial as verdicts that came alone name it."""

    trial_id: int
    digest: uuid.UUID
    release_id: int
    run_name: str


def trials_by_external_id(
    system: System, external_ids: Iterable[str]
) -> dict[str, list[FoundTrial]]:
    """Trials by the id that their source gave, such as a simulation id."""
    wanted = list(external_ids)
    found: dict[str, list[FoundTrial]] = {}
    if not wanted:
        return found
    rows = Trial.objects.filter(system=system, external_id__in=wanted).exclude(external_id="")
    for name, pk, digest, release, run in rows.order_by("pk").values_list(
        "external_id", "pk", "digest", "release_id", "run__name"
    ):
        found.setdefault(name, []).append(FoundTrial(pk, digest, release, run))
    return found


def trials_by_key(
    system: System, keys: Sequence[TrialKey]
) -> dict[tuple[str, str, int], list[FoundTrial]]:
    """Trials by task id, label and attempt, over all releases and runs of a system."""
    found: dict[tuple[str, str, int], list[FoundTrial]] = {}
    if not keys:
        return found
    rows = Trial.objects.filter(
        task__system=system,
        task__task_id__in={key.task_id for key in keys},
        label__in={key.trial for key in keys},
    )
    for task, label, attempt, pk, digest, release, run in rows.order_by("pk").values_list(
        "task__task_id", "label", "attempt", "pk", "digest", "release_id", "run__name"
    ):
        found.setdefault((task, label, attempt), []).append(FoundTrial(pk, digest, release, run))
    return found
