"""Families of tasks, their splits, and exposures."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def family_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.CONTRIBUTE)
def change_split(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.CONTRIBUTE)
def note_exposure(request: SystemRequest, task: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
