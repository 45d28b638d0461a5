"""The trials of a task as a prefix tree."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def task_tree(request: SystemRequest, task: UUID) -> HttpResponse:
    """Where trials part, with what became of them."""
    raise Http404("Not here yet.")
