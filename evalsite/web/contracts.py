"""Contracts: the list, one task, one version."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def contract_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def contract_detail(request: SystemRequest, task: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def contract_version(request: SystemRequest, version: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_GET
@in_system()
def contract_export(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
