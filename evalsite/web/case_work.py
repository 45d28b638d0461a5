"""What people do to a case."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_POST
@in_system(Act.WORK)
def case_assign(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.WORK)
def cases_assign(request: SystemRequest) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.WORK)
def case_due(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.FLAG)
def case_comment(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.WORK)
def case_set_aside(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.WORK)
def case_take_up(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")


@require_POST
@in_system(Act.WORK)
def case_rerun(request: SystemRequest, case: UUID) -> HttpResponse:  # noqa: ARG001
    raise Http404("There is no such page yet.")
