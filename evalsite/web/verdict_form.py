"""A person gives a verdict."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system


@require_http_methods(["GET", "POST"])
@in_system(Act.REVIEW)
def verdict_form(request: SystemRequest, trial: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
