"""Prohibited actions that block a release."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def alert_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def alert_seen(request: SystemRequest, alert: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
