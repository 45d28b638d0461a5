"""Not built yet."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def vouch_list(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def vouch_for(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
