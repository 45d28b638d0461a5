"""The members of a system."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system(Act.READ)
def member_list(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def member_invite(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def member_role(request: SystemRequest, person: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def member_remove(request: SystemRequest, person: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.OWN)
def invitation_revoke(request: SystemRequest, invitation: UUID) -> HttpResponse:  # noqa: ARG001
    """Not made yet."""
    raise Http404("There is no such page yet.")
