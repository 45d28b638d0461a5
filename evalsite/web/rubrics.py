"""Not built yet."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def rubric_list(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_new(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system()
def rubric_page(request: SystemRequest, rubric: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_version(request: SystemRequest, rubric: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.WRITE_RUBRIC)
def rubric_request_close(request: SystemRequest, asked: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
