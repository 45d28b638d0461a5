"""Not built yet."""

from __future__ import annotations

from uuid import UUID

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def dispute_page(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system(Act.REVIEW)
def dispute_effect(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def dispute_draft(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def dispute_undo(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def dispute_skip(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def dispute_decide(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
