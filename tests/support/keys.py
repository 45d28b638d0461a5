"""API keys for tests, and the headers that carry them."""

from __future__ import annotations

from datetime import timedelta

from django.utils import timezone

from traces.models import ApiKey, Scope, System, User
from traces.services.people import create_api_key

BOTH = (Scope.INGEST, Scope.READ)


def new_key(
    system: System, by: User, scopes: tuple[Scope, ...] = BOTH, *, days: int = 1
) -> tuple[ApiKey, dict[str, str]]:
    """A key and the header that carries it, as Django's test client takes it."""
    made = create_api_key(
        system,
        by=by,
        name="test",
        scopes=scopes,
        expires_at=timezone.now() + timedelta(days=days),
    )
    return made.key, {"HTTP_AUTHORIZATION": f"Bearer {made.secret}"}


def header(system: System, by: User, *scopes: Scope) -> dict[str, str]:
    """The header of a new key."""
    return new_key(system, by, scopes or BOTH)[1]
