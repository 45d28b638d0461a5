"""Which task is in which tier."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def tier_tasks(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def tier_assign(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
