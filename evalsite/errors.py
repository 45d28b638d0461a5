"""What the site answers when something is wrong, and where browsers report it."""

from __future__ import annotations

import json
import logging
import sys

from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from django.views.defaults import server_error as standard_server_error

from evalsite.access import public
from evalsite.embedded.postgres import EmbeddedPostgresError

log = logging.getLogger("evalsite.csp")

RETRY_SECONDS = 5
_LONGEST_REPORT = 64 * 1024
_LONGEST_WORD = 200


def server_error(request: HttpRequest) -> HttpResponse:
    """503 with a time to come again while the database or the disk is away, else 500.

    Django calls it while the exception is being handled, wherever it was raised.
    """
    away = OperationalError | InterfaceError | EmbeddedPostgresError | OSError
    if isinstance(sys.exc_info()[1], away):
        answer = render(request, "503.html", status=503)
        answer["Retry-After"] = str(RETRY_SECONDS)
        return answer
    return standard_server_error(request)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:  # noqa: ARG001 - by name
    """400, without a look at the body: reading it may be what went wrong."""
    return render(request, "400.html", status=400)


@csrf_exempt  # the browser itself sends the report, without a token; nothing is stored
@require_POST
@public
def csp_report(request: HttpRequest) -> HttpResponse:
    """Takes a browser's report that something on a page broke the Content-Security-Policy."""
    body = request.read(_LONGEST_REPORT)
    try:
        report = json.loads(body).get("csp-report", {})
        # The name of a directive is the browser's own; everything else may come from a trace.
        directive = str(report.get("effective-directive") or report.get("violated-directive"))
    except (ValueError, AttributeError, RecursionError):
        directive = "unreadable"
    log.warning("policy broken", extra={"directive": directive[:_LONGEST_WORD]})
    return HttpResponse(status=204)
