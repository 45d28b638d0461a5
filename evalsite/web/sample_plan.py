"""How many trials a threshold needs."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def sample_plan(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
