"""One's own account: password and devices."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import public, signed_in


@require_GET
@signed_in
def account_page(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@signed_in
def account_password(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@signed_in
def device_end(request: HttpRequest, device: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@signed_in
def devices_end_others(request: HttpRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@public
def invitation_take(request: HttpRequest, invitation: UUID, secret: str) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
