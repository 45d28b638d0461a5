"""Locks on a piece of work that a killed process cannot leave behind."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from django.db import connection


@contextlib.contextmanager
def exclusive(purpose: str, key: int) -> Iterator[bool]:
    """Whether nobody else holds the lock now; where so it is held inside the `with`.

    It belongs to the database connection, and goes with it.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(hashtextextended(%s, %s))", [purpose, key])
        taken = bool(cursor.fetchone()[0])
    try:
        yield taken
    finally:
        if taken:
            with contextlib.suppress(Exception), connection.cursor() as cursor:
                cursor.execute(
                    "SELECT pg_advisory_unlock(hashtextextended(%s, %s))", [purpose, key]
                )
