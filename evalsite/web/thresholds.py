"""Risk tiers and their thresholds."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def tier_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def tier_new(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def tier_page(request: SystemRequest, tier: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def threshold_version(request: SystemRequest, tier: UUID, number: int) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def tier_retire(request: SystemRequest, tier: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
