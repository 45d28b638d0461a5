"""The gate of a release."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def gate_page(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def gate_refresh(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def gate_report(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def gate_json(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def gate_check(request: SystemRequest, release: UUID, tier: UUID, kind: str) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
