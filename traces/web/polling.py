"""Pages that ask again by themselves while work goes on."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils.cache import patch_vary_headers
from django_htmx.http import HttpResponseClientRefresh

MOVING = "rules-moving"
"""The element that asks: it alone changes while the work goes on, so that nobody loses their place."""


def polled(request: HttpRequest, answer: HttpResponse, *, is_moving: bool) -> HttpResponse:
    """The answer as it is; to the element that asks, once nothing moves, to load the page anew."""
    asks = request.headers.get("HX-Target") == MOVING
    final = HttpResponseClientRefresh() if asks and not is_moving else answer
    patch_vary_headers(final, ("HX-Request", "HX-Target"))
    return final
