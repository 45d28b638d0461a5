"""What holds for every answer of the site."""

from __future__ import annotations

from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

_FORM_BYTES = 1024 * 1024  # the other fields of an upload form


class AnswerMiddleware:
    """Refuses bodies that no page takes before they are read, and keeps answers out of caches.

    Stands behind the static files, which may be cached, and before everything that reads a body.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        answer = _too_large(request) if _is_too_large(request) else self.get_response(request)
        if not answer.has_header("Cache-Control"):
            answer["Cache-Control"] = "private, no-store"
        if answer.status_code == 429 and not answer.has_header("Retry-After"):
            # Only a sign-in that was tried too often says nothing of its own.
            answer["Retry-After"] = str(int(settings.AXES_COOLOFF_TIME.total_seconds()))
        patch_vary_headers(answer, ["HX-Request"])
        return answer


def _is_too_large(request: HttpRequest) -> bool:
    # The API counts for itself, as it reads.
    if request.path.startswith("/api/"):
        return False
    length = request.META.get("CONTENT_LENGTH") or "0"
    most = settings.EVALSITE_UPLOAD_MAX_BYTES + _FORM_BYTES
    return not (length.isascii() and length.isdigit()) or int(length[:19]) > most


def _too_large(request: HttpRequest) -> HttpResponse:
    answer = render(request, "413.html", status=413)
    answer["Connection"] = "close"
    return answer
