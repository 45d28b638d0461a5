"""Flags: the list, one flag with its closing, and flagging a trial."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def flag_list(request: SystemRequest) -> HttpResponse:
    """The flags of a system, newest first."""
    raise Http404("Not here yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system()
def flag_detail(request: SystemRequest, flag: UUID) -> HttpResponse:
    """One flag; POST closes it with a reason."""
    raise Http404("Not here yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.FLAG)
def flag_new(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Flag a trial with a reason."""
    raise Http404("Not here yet.")
