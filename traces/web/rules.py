"""Argument rules and tool kinds of a system: in force, proposed, suggested, and their history."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def rules_page(request: SystemRequest) -> HttpResponse:
    """The rules in force, proposals, suggestions and the history."""
    raise Http404("Not here yet.")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def rule_form(request: SystemRequest) -> HttpResponse:
    """Make, change or drop a rule, or say the kind of a tool: leads to a preview."""
    raise Http404("Not here yet.")


@require_GET
@in_system()
def rules_preview(request: SystemRequest, preview: UUID) -> HttpResponse:
    """What a change would do to the stored paths."""
    raise Http404("Not here yet.")


@require_POST
@in_system(Act.CONTRIBUTE)
def rules_propose(request: SystemRequest, preview: UUID) -> HttpResponse:
    """Propose the previewed change as a version."""
    raise Http404("Not here yet.")


@require_GET
@in_system()
def rules_version(request: SystemRequest, number: int) -> HttpResponse:
    """One version: what it changes, what it does, who decided."""
    raise Http404("Not here yet.")


@require_POST
@in_system(Act.APPROVE)
def rules_decide(request: SystemRequest, number: int) -> HttpResponse:
    """Approve or reject a proposed version."""
    raise Http404("Not here yet.")


@require_POST
@in_system(Act.CONTRIBUTE)
def rules_withdraw(request: SystemRequest, number: int) -> HttpResponse:
    """Withdraw a proposal of one's own."""
    raise Http404("Not here yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def rules_work(request: SystemRequest, number: int) -> HttpResponse:
    """Stop or restart the work on an approved version."""
    raise Http404("Not here yet.")


@require_POST
@in_system(Act.RECOMPUTE)
def rules_suggest(request: SystemRequest) -> HttpResponse:
    """Look for suggestions anew."""
    raise Http404("Not here yet.")
