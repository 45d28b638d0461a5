"""What holds for every answer of the site."""

from __future__ import annotations

import re
import uuid
from collections.abc import Callable

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.utils.cache import patch_vary_headers

from evalsite.common.acting import Acting, Source, acting_as

_REQUEST_ID = re.compile(r"[A-Za-z0-9._:=/+-]{1,64}")
_FORM_BYTES = 1024 * 1024  # the other fields of an upload form


class ActingMiddleware:
    """Names each request, and says that what is done in it is done by a page or by the API.

    The name is in the log lines and audit events of the request, and in its answer. It is a proxy's
    own where the operator says in which header that comes, else a new one.
    """

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponseBase]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponseBase:
        source = Source.API if request.path.startswith("/api/") else Source.PAGE
        with acting_as(Acting(source, request_id=request_id_of(request))) as acting:
            answer = self.get_response(request)
        answer["X-Request-Id"] = acting.request_id
        return answer


def request_id_of(request: HttpRequest) -> str:
    """The proxy's name of a request where one is trusted and fit, else a new one."""
    header: str = settings.EVALSITE_REQUEST_ID_HEADER
    if header:
        given = request.headers.get(header, "")
        if _REQUEST_ID.fullmatch(given):
            return given
    return uuid.uuid4().hex


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
