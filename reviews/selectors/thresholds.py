"""Risk tiers of a system with their versions of thresholds: in force, to come, and before."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db.models import OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce

from reviews.core.gate.model import Thresholds
from reviews.core.gate.thresholds import parse_thresholds
from reviews.models import RiskTier, ThresholdSet
from reviews.selectors.tiers import n_tasks_of

PAGE_VERSIONS = 50


@dataclass(frozen=True, slots=True)
class VersionOfThresholds:
    """One version of a tier's thresholds. `thresholds` None: a document that cannot be read."""

    uuid: UUID
    number: int
    digest: str
    reason: str
    by_name: str  # "": the operator
    made_at: datetime
    in_force_from: datetime
    thresholds: Thresholds | None


@dataclass(frozen=True, slots=True)
class Retired:
    """Who retired a tier, when and why."""

    at: datetime
    by_name: str
    reason: str


@dataclass(frozen=True, slots=True)
class TierRow:
    """A tier, with what is in force in it at the instant that was asked for."""

    pk: int
    uuid: UUID
    name: str
    description: str
    template: str
    made_by: str
    made_at: datetime
    retired: Retired | None
    in_force: VersionOfThresholds | None
    to_come: tuple[VersionOfThresholds, ...]  # in the order in which their time comes
    newest: int  # number of its newest version; 0: it has none
    n_tasks: int


@dataclass(frozen=True, slots=True)
class VersionPage:
    """Some versions of a tier, the newest first."""

    rows: tuple[VersionOfThresholds, ...]
    next_after: int | None  # a number


def tiers_of(system_id: int, *, now: datetime) -> tuple[TierRow, ...]:
    """The tiers of a system in the order in which they were made, retired ones last. 3 queries."""
    rows = _tier_rows(RiskTier.objects.filter(system=system_id), system_id, now=now)
    return tuple(sorted(rows, key=lambda row: (row.retired is not None, row.pk)))


def tier_row(system_id: int, uuid: UUID, *, now: datetime) -> TierRow | None:
    """One tier of a system; None where it has none such. At most three queries."""
    found = _tier_rows(RiskTier.objects.filter(system=system_id, uuid=uuid), system_id, now=now)
    return next(iter(found), None)


def _tier_rows(asked: QuerySet[RiskTier], system_id: int, *, now: datetime) -> list[TierRow]:
    tiers = list(asked.select_related("made_by", "retirement__by").order_by("pk"))
    if not tiers:
        return []
    versions: dict[int, list[VersionOfThresholds]] = {tier.pk: [] for tier in tiers}
    for row in _current_versions(list(versions), now=now):
        versions[row.tier_id].append(_version(row))
    n_tasks = n_tasks_of(system_id)
    return [_tier(tier, versions[tier.pk], n_tasks.get(tier.pk, 0), now=now) for tier in tiers]


def _current_versions(tier_ids: list[int], *, now: datetime) -> QuerySet[ThresholdSet]:
    """The version in force of each tier, and all later ones."""
    in_force = ThresholdSet.objects.filter(tier=OuterRef("tier"), in_force_from__lte=now)
    number = Subquery(in_force.order_by("-number").values("number")[:1])
    return (
        ThresholdSet.objects.filter(tier__in=tier_ids, number__gte=Coalesce(number, 0))
        .select_related("by")
        .order_by("tier", "number")
    )


def _tier(
    tier: RiskTier, versions: list[VersionOfThresholds], n_tasks: int, *, now: datetime
) -> TierRow:
    retirement = getattr(tier, "retirement", None)
    return TierRow(
        pk=tier.pk,
        uuid=tier.uuid,
        name=tier.name,
        description=tier.description,
        template=tier.template,
        made_by=tier.made_by.printed_name if tier.made_by else "",
        made_at=tier.made_at,
        retired=Retired(retirement.retired_at, retirement.by.printed_name, retirement.reason)
        if retirement
        else None,
        in_force=next((each for each in versions if each.in_force_from <= now), None),
        to_come=_to_come(versions, now=now),
        newest=versions[-1].number if versions else 0,
        n_tasks=n_tasks,
    )


def _to_come(
    versions: list[VersionOfThresholds], *, now: datetime
) -> tuple[VersionOfThresholds, ...]:
    """Those whose time comes, without the ones that a later version replaces before that."""
    kept: list[VersionOfThresholds] = []
    for one in reversed(versions):
        if one.in_force_from > now and all(one.in_force_from < k.in_force_from for k in kept):
            kept.append(one)
    return tuple(reversed(kept))


def _version(row: ThresholdSet) -> VersionOfThresholds:
    read = parse_thresholds(row.document)
    return VersionOfThresholds(
        uuid=row.uuid,
        number=row.number,
        digest=row.digest,
        reason=row.reason,
        by_name=row.by.printed_name if row.by else "",
        made_at=row.made_at,
        in_force_from=row.in_force_from,
        thresholds=read if isinstance(read, Thresholds) else None,
    )


def versions_of(tier_id: int, *, after: int | None = None, n: int = PAGE_VERSIONS) -> VersionPage:
    """The versions of a tier, the newest first. `after` is a number. One query."""
    rows = ThresholdSet.objects.filter(tier=tier_id).select_related("by").order_by("-number")
    if after is not None:
        rows = rows.filter(number__lt=after)
    found = [_version(row) for row in rows[: n + 1]]
    return VersionPage(tuple(found[:n]), found[n - 1].number if len(found) > n else None)


def version_of(tier_id: int, number: int) -> VersionOfThresholds | None:
    """One version of a tier; None where it has none such. One query."""
    rows = ThresholdSet.objects.filter(tier=tier_id, number=number).select_related("by")
    return next((_version(row) for row in rows.order_by("pk")), None)
