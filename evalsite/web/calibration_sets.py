"""Not built yet."""

from __future__ import annotations

from django.http import HttpResponse
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system


@require_GET
@in_system()
def set_list(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def set_new(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.ASK_JUDGES)
def label_import(request: SystemRequest) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system()
def set_page(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_GET
@in_system()
def set_export(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def set_vouch(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def item_withdraw(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")


@require_POST
@in_system(Act.REVIEW)
def set_close(request: SystemRequest, number: int) -> HttpResponse:
    """Not built yet."""
    return HttpResponse("")
