"""From a draft to a decision on it."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def contract_preview(request: SystemRequest, preview: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.CONTRIBUTE)
def contract_propose(request: SystemRequest, preview: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def contract_proposal(request: SystemRequest, number: int) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.APPROVE)
def contract_decide(request: SystemRequest, number: int) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def contract_withdraw(request: SystemRequest, number: int) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
