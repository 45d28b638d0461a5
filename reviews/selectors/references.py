"""Accepted paths as references that trajectories are matched with."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from reviews.models import AcceptedPath
from traces.core.paths import PathLevel


@dataclass(frozen=True, slots=True)
class AcceptedReference:
    """An accepted path in force, with its representative trajectory and the trial that showed it."""

    uuid: UUID
    number: int
    level: PathLevel
    trajectory: int
    trial_uuid: UUID
    trial_label: str
    trial_attempt: int
    release_name: str


def accepted_references(task_pk: int) -> tuple[AcceptedReference, ...]:
    """The accepted paths of a task that are in force, lowest number first, in one query."""
    paths = (
        AcceptedPath.objects.filter(task=task_pk, withdrawal=None)
        .select_related("trial__release")
        .order_by("number")
    )
    return tuple(
        AcceptedReference(
            uuid=path.uuid,
            number=path.number,
            level=PathLevel(path.level),
            trajectory=path.trajectory_id,
            trial_uuid=path.trial.uuid,
            trial_label=path.trial.label,
            trial_attempt=path.trial.attempt,
            release_name=path.trial.release.name,
        )
        for path in paths
    )
