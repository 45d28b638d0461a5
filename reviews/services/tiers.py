"""Risk tiers of a system, and which tasks are in them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import MOST_NAMED, AuditedObject, record
from evalsite.common.formatting import counted, time_text
from evalsite.common.gate_marks import lock_evidence, releases_of, touch_gates
from reviews.models import RiskTier, TierAssignment, TierRetirement
from reviews.permissions.flags import role_in
from reviews.permissions.thresholds import thresholds_refusal
from reviews.selectors.tiers import n_tasks_of, tiers_of_tasks
from traces.core.text_marks import clean_text, count_marks, marked_text
from traces.models import System, Task, User

log = logging.getLogger("evalsite.thresholds")

LONGEST_NAME = 80  # characters
LONGEST_DESCRIPTION = 2_000
LONGEST_REASON = 2_000


class TierError(Exception):
    """A refusal, with its sentence for people."""


class TierDeniedError(TierError):
    """Somebody who may not do that."""


@transaction.atomic
def make_tier(
    system: System, name: str, description: str, template: str, *, by: User, now: datetime
) -> RiskTier:
    """Make a risk tier. It has no thresholds yet: no gate asks for it until it has.

    `template` is the name of the thresholds that its first version begins with, or "". Raises
    `TierDeniedError` when the person may not, and `TierError` for a name that is taken, and one
    that is empty or too long.
    """
    _check_owner(system.pk, by)
    named = " ".join(text_of(name, "The name of a tier", LONGEST_NAME).split())
    said = text_of(description, "What a tier is for", LONGEST_DESCRIPTION)
    lock_gates_of(system.pk)
    if RiskTier.objects.filter(system=system, name__iexact=named).exists():
        raise TierError("There is a tier of that name already.")
    tier = RiskTier.objects.create(
        system=system,
        name=named,
        description=said,
        template=template,
        made_by=by,
        made_at=now,
    )
    record(
        "tier.made",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=audited_tier(tier),
        after={"name": named, "description": said, "template": template},
        rows=[("reviews_risktier", tier.pk)],
    )
    log.info("tier made", extra={"system": system.slug, "tier": tier.pk, "by": by.username})
    return tier


@transaction.atomic
def retire_tier(tier: RiskTier, *, reason: str, by: User, now: datetime) -> TierRetirement:
    """Say that no gate asks for a tier any longer, whose first run begins from now on.

    Raises `TierDeniedError` when the person may not, and `TierError` for a tier that is retired or
    that tasks are in, and without a reason.
    """
    _check_owner(tier.system_id, by)
    why = reason_of(reason)
    releases = lock_gates_of(tier.system_id)
    check_in_use(tier)
    if n := n_tasks_of(tier.system_id).get(tier.pk, 0):
        raise TierError(
            f"{counted(n, 'task is', 'tasks are')} in this tier: put them into another one first."
        )
    if tiers_of_tasks(tier.system_id, ()).system_tier == tier.pk:
        raise TierError("It is the system's own tier: choose another one first.")
    retired = TierRetirement.objects.create(tier=tier, reason=why, by=by, retired_at=now)
    touch_gates(releases, now=now)
    record(
        "tier.retired",
        system_pk=tier.system_id,
        by_pk=by.pk,
        at=now,
        obj=audited_tier(tier),
        before={"retired": False},
        after={"retired": True},
        reason=why,
        rows=[("reviews_tierretirement", tier.pk)],
    )
    log.info("tier retired", extra={"tier": tier.pk, "by": by.username})
    return retired


def assign_tier(
    system: System,
    task: Task | None,
    tier: RiskTier | None,
    reason: str,
    *,
    by: User,
    now: datetime,
) -> TierAssignment:
    """Put one task into a tier from now on, or, without a task, all that have none of their own.

    Without a tier a task goes back to the system's own, and the system has none. Raises
    `TierDeniedError` when the person may not, and `TierError` for another system's task or tier, a
    tier that is retired, where that changes nothing, and without a reason.
    """
    if task is not None:
        return assign_tasks(system, [task], tier, reason, by=by, now=now)[0]
    with transaction.atomic():
        why, releases = _checked(system, tier, reason, by)
        old = tiers_of_tasks(system.pk, ()).system_tier
        if old == (tier.pk if tier else None):
            raise TierError(
                f"Tier {marked_text(tier.name)} is the system's own already."
                if tier
                else "The system has no tier of its own already."
            )
        row = TierAssignment.objects.create(
            system=system, task=None, tier=tier, reason=why, by=by, assigned_at=now
        )
        touch_gates(releases, now=now)
        record(
            "system.tier_set",
            system_pk=system.pk,
            by_pk=by.pk,
            at=now,
            obj=AuditedObject("system", str(system.uuid), system.name),
            before={"tier": _names(system.pk).get(old)},
            after={"tier": tier.name if tier else None},
            reason=why,
            rows=[("reviews_tierassignment", row.pk)],
        )
        log.info("system's tier set", extra={"system": system.slug, "by": by.username})
    return row


@transaction.atomic
def assign_tasks(
    system: System,
    tasks: Sequence[Task],
    tier: RiskTier | None,
    reason: str,
    *,
    by: User,
    now: datetime,
    family: str = "",
) -> tuple[TierAssignment, ...]:
    """Put some tasks into a tier from now on as `assign_tier` does, in one act.

    `family` is the one whose tasks they are, where they are put together. Those that are there
    already stay as they are; where all are, it is refused.
    """
    why, releases = _checked(system, tier, reason, by)
    if any(task.system_id != system.pk for task in tasks):
        raise TierError("That task is of another system.")
    own = tiers_of_tasks(system.pk, [task.pk for task in tasks]).own
    wanted = tier.pk if tier else None
    moved = [task for task in tasks if own.get(task.pk) != wanted]
    if not moved:
        where = f"in tier {marked_text(tier.name)}" if tier else "in the system's own tier"
        raise TierError(f"{_named(tasks, family)} {where} already.")
    rows = TierAssignment.objects.bulk_create(
        TierAssignment(system=system, task=task, tier=tier, reason=why, by=by, assigned_at=now)
        for task in moved
    )
    touch_gates(releases, now=now)
    act, obj = _audited(system, tasks, family)
    names = _names(system.pk)
    record(
        act,
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=obj,
        before={"tiers": sorted({names.get(own.get(task.pk)) or "" for task in moved})},
        after={
            "tier": tier.name if tier else None,
            "n_tasks": len(moved),
            "tasks": [task.task_id for task in moved[:MOST_NAMED]],
        },
        reason=why,
        rows=[("reviews_tierassignment", row.pk) for row in rows],
    )
    log.info(
        "tier of tasks set",
        extra={"system": system.slug, "n_tasks": len(rows), "by": by.username},
    )
    return tuple(rows)


def audited_tier(tier: RiskTier) -> AuditedObject:
    """A tier as the audit log names it."""
    return AuditedObject("tier", str(tier.uuid), tier.name)


def _audited(system: System, tasks: Sequence[Task], family: str) -> tuple[str, AuditedObject]:
    """The act and what it was done to, as the audit log names them."""
    if family:
        return "family.tier_moved", AuditedObject("family", family, family)
    if len(tasks) == 1:
        task = tasks[0]
        return "task.tier_moved", AuditedObject("task", str(task.uuid), task.task_id)
    return "system.tasks_moved", AuditedObject("system", str(system.uuid), system.name)


def _names(system_pk: int) -> dict[int | None, str]:
    return dict(RiskTier.objects.filter(system=system_pk).values_list("pk", "name"))


def _named(tasks: Sequence[Task], family: str) -> str:
    if family:
        return f"All of family {marked_text(clean_text(family))} is"
    if len(tasks) == 1:
        return f"Task {marked_text(tasks[0].task_id)} is"
    return "All of these tasks are"


def _checked(
    system: System, tier: RiskTier | None, reason: str, by: User
) -> tuple[str, tuple[int, ...]]:
    _check_owner(system.pk, by)
    why = reason_of(reason)
    releases = lock_gates_of(system.pk)
    if tier is not None:
        if tier.system_id != system.pk:
            raise TierError("That tier is of another system.")
        check_in_use(tier)
    return why, releases


def _check_owner(system_pk: int, by: User) -> None:
    if refusal := thresholds_refusal(role_in(system_pk, by)):
        raise TierDeniedError(refusal)


def check_in_use(tier: RiskTier) -> None:
    """Raise `TierError` for a tier that is retired."""
    for retired in TierRetirement.objects.filter(tier=tier):
        raise TierError(
            f"Tier {marked_text(tier.name)} was retired at {time_text(retired.retired_at)}."
        )


def lock_gates_of(system_pk: int) -> tuple[int, ...]:
    """Take the locks of all evidence of a system. Returns its releases' ids.

    Whoever computes or signs a gate takes the same, so that none rests on half of a change.
    """
    releases = releases_of(system_pk)
    lock_evidence(system_pk, releases)
    return releases


def reason_of(text: str) -> str:
    """A reason as it is stored. Raises `TierError` without one and for one that is too long."""
    return text_of(text, "A reason", LONGEST_REASON)


def text_of(text: str, what: str, longest: int) -> str:
    """A text of a person as it is stored. Raises `TierError` for an empty and a too long one."""
    cleaned = clean_text(text).replace("\r\n", "\n").strip()
    if count_marks(cleaned) >= len("".join(cleaned.split())):
        raise TierError(f"{what} is missing.")
    if len(cleaned) > longest:
        raise TierError(f"{what} has at most {longest:,} characters.")
    return cleaned
