"""Production traces."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def production(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
