"""The audit log of a system."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def audit_log(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def audit_event(request: SystemRequest, seq: int) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def audit_csv(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def audit_json(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
