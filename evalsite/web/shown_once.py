"""A secret on its way from the form that made it to the one page that shows it.

It travels in the session, not in an address, and is forgotten when it has been shown.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.http import HttpRequest

_KEPT: Final = timedelta(minutes=10)


def keep_secret(request: HttpRequest, what: str, secret: str, *, now: datetime) -> None:
    """Keep a secret for the next page that asks for it."""
    request.session[f"fresh-{what}"] = [secret, now.isoformat()]


def take_secret(request: HttpRequest, what: str, *, now: datetime) -> str:
    """The secret that was kept, once; "" without one."""
    kept = request.session.pop(f"fresh-{what}", None)
    if kept is None:
        return ""
    secret, at = kept
    return str(secret) if now - datetime.fromisoformat(at) < _KEPT else ""
