"""The queue of cases, and one case."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def case_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def case_detail(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
