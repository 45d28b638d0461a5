"""Accepted paths of a task: the register, accepting and withdrawing."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def accepted_paths(request: SystemRequest, task: UUID) -> HttpResponse:
    """The register of a task."""
    raise Http404("Not here yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def path_accept(request: SystemRequest, task: UUID) -> HttpResponse:
    """Accept a path with a level and a reason."""
    raise Http404("Not here yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def path_withdraw(request: SystemRequest, task: UUID, path: UUID) -> HttpResponse:
    """Withdraw an accepted path with a reason."""
    raise Http404("Not here yet.")
