"""Writing contracts: the editor and the file form."""

from __future__ import annotations

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system


@require_http_methods(["GET", "POST"])
@in_system(Act.CONTRIBUTE)
def contract_form(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_http_methods(["GET", "POST"])
@in_system(Act.CONTRIBUTE)
def contract_load(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
