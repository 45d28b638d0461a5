"""What the words of a command line name, or one sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from django.conf import settings
from django.core.management import CommandError
from django.db import ProgrammingError
from psycopg.errors import UndefinedTable

from traces.models import Release, System, User
from traces.selectors.systems import releases_named, system_named


def system_or_error(name: str) -> System:
    """The system of that address or name."""
    try:
        system = system_named(name)
    except ProgrammingError as error:
        if not isinstance(error.__cause__, UndefinedTable):
            raise
        raise CommandError(
            f"The database has no tables yet. `python3 manage.py up` makes them; where it runs "
            f"already, EVALSITE_DATA must name the folder that it uses, not "
            f"{settings.EVALSITE_DATA}."
            if settings.EMBEDDED_POSTGRES
            else "The database has no tables yet: `python3 manage.py migrate` makes them."
        ) from None
    if system:
        return system
    raise CommandError(f"There is no system {name!r}; `ingest` makes one with its first evidence.")


def person_or_error(username: str, *, hint: str = "") -> User:
    """The person of that user name."""
    try:
        return User.objects.get(username=username)
    except User.DoesNotExist:
        raise CommandError(f"There is no person {username!r}.{hint}") from None


def releases_or_error(system: System, names: Sequence[str]) -> list[Release]:
    """The releases of those names."""
    found, missing = releases_named(system, names)
    if missing:
        raise CommandError(f"{system.slug} has no release {missing[0]!r}.")
    return found
