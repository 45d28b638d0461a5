"""What owners do about a gate."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_POST
@in_system(Act.OWN)
def gate_reevaluate(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def run_leave_out(request: SystemRequest, run: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def run_confirm(request: SystemRequest, run: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def run_take_in(request: SystemRequest, run: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
