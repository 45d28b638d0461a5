"""Signing a release, and what was signed."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def sign_page(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def signature_list(request: SystemRequest, release: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def signature_page(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_GET
@in_system(Act.READ)
def attestation(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def sign_off_void(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
