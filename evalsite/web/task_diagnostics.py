"""Match modes and trajectory metrics of a task's trials against a reference."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system


@require_GET
@in_system()
def task_diagnostics(request: SystemRequest, task: UUID) -> HttpResponse:
    """How the trials compare with one reference; never a gate."""
    raise Http404("Not here yet.")
