"""The public keys that signatures are verified with."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET

from evalsite.access import signed_in


@require_GET
@signed_in
def signing_keys(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
