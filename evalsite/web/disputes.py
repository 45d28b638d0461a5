"""Not built yet."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def dispute_list(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system()
def disputes_csv(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system()
def decided_list(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
