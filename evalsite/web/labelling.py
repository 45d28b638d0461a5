"""Not built yet."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def label_page(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def label_draft(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def label_undo(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def label_skip(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def label_extend(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
