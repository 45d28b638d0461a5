"""The editor of a tier's thresholds."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def threshold_edit(request: SystemRequest, tier: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
