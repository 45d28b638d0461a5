"""The risk tiers of a system with their thresholds, as `manage.py thresholds --json` prints them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.gate.thresholds import threshold_sentence, thresholds_document
from reviews.selectors.thresholds import TierRow, VersionOfThresholds, tiers_of


def tiers_document(
    tiers: Iterable[TierRow],
    *,
    slug: str,
    history: Mapping[int, Iterable[VersionOfThresholds]] | None = None,
) -> dict[str, Any]:
    """The tiers of a system: what is in force, what comes, and with `history` every version."""
    return {"system": slug, "tiers": [_tier(tier, history) for tier in tiers]}


def _tier(
    tier: TierRow, history: Mapping[int, Iterable[VersionOfThresholds]] | None
) -> dict[str, Any]:
    document = {
        "id": str(tier.uuid),
        "name": tier.name,
        "description": tier.description,
        "n_tasks": tier.n_tasks,
        "made_at": tier.made_at.isoformat(),
        "made_by": tier.made_by or None,
        "retired_at": tier.retired.at.isoformat() if tier.retired else None,
        "in_force": _version(tier.in_force) if tier.in_force else None,
        "to_come": [_version(each) for each in tier.to_come],
    }
    if history is not None:
        document["history"] = [_version(each) for each in history.get(tier.pk, ())]
    return document


def _version(version: VersionOfThresholds) -> dict[str, Any]:
    thresholds = version.thresholds
    return {
        "id": str(version.uuid),
        "version": version.number,
        "in_force_from": _time(version.in_force_from),
        "set_at": _time(version.made_at),
        "set_by": version.by_name or None,
        "reason": version.reason,
        "digest": version.digest,
        "thresholds": thresholds_document(thresholds) if thresholds else None,
        "sentences": [threshold_sentence(each) for each in thresholds.checks] if thresholds else [],
    }


def _time(at: datetime) -> str:
    return at.isoformat()


# --- API

_PROBLEMS = dict.fromkeys((401, 403, 404), OpenApiResponse(RefusedSerializer))


class TierList(ApiView):
    """The risk tiers of a system, with the thresholds in force in each and those to come."""

    @extend_schema(operation_id="v1_tiers_list", responses={200: OpenApiTypes.OBJECT, **_PROBLEMS})
    def get(self, request: Request, slug: str) -> Response:
        system = caller_of(request, slug).system
        tiers = tiers_of(system.pk, now=timezone.now())
        return Response(tiers_document(tiers, slug=system.slug))
