"""Connections to the site's database beside those of Django."""

from typing import Any, Final

import psycopg
from django.conf import settings
from django.db import connection

# libpq waits for ever for an address that swallows packets.
_CONNECT_SECONDS: Final = 5


class DatabaseUnreachableError(Exception):
    """The database does not let us in; the text is one sentence for people."""


def direct_connection() -> "psycopg.Connection[tuple[Any, ...]]":
    """A connection of its own to the database that Django uses, in autocommit.

    Django's pool would try again for half a minute before it says that nobody answers.

    Raises:
        DatabaseUnreachableError: nobody answers within seconds, or we are refused.
        EmbeddedPostgresError: the embedded server does not start.
    """
    # Starts the embedded server, and knows the name of a test database.
    address = connection.get_connection_params()
    options: dict[str, Any] = {
        "connect_timeout": _CONNECT_SECONDS,
        **dict(settings.DATABASE_ADDRESS.options),
    }
    try:
        return psycopg.connect(
            host=address.get("host", ""),
            port=address.get("port", settings.DATABASE_ADDRESS.port),
            user=address.get("user", ""),
            password=address.get("password", ""),
            dbname=address.get("dbname", ""),
            autocommit=True,
            **options,
        )
    except psycopg.Error as error:
        first = (str(error).strip().splitlines() or ["no message"])[0]
        raise DatabaseUnreachableError(f"The database cannot be used: {first}") from None
