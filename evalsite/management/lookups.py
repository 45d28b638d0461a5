"""What the words of a command line name, or one sentence that says what is wrong."""

from __future__ import annotations

from collections.abc import Sequence

from django.core.management import CommandError

from traces.models import Release, System, User
from traces.selectors.systems import releases_named, system_named


def system_or_error(name: str) -> System:
    """The system of that address or name."""
    if system := system_named(name):
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
