"""Regrades: what grading stored trials again changed."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def regrade_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def regrade_new(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def regrade_detail(request: SystemRequest, number: int) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def regrade_work(request: SystemRequest, number: int) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
