"""Django's `migrate`, made safe to run in several places at once."""

from typing import Any

import psycopg
from django.conf import settings
from django.core.management.commands import migrate
from django.db import connection

_LOCK = 0x6576616C73697465 >> 1
# A migration that waits for a lock makes every later query on that table wait behind it.
_LOCK_TIMEOUT = "15s"


class Command(migrate.Command):
    def handle(self, *args: Any, **options: Any) -> str | None:
        connection.ensure_connection()
        address = connection.get_connection_params()
        dsn = psycopg.conninfo.make_conninfo(
            host=address.get("host", ""),
            port=address.get("port", settings.DATABASE_ADDRESS.port),
            user=address.get("user", ""),
            password=address.get("password", ""),
            dbname=address.get("dbname", ""),
            **dict(settings.DATABASE_ADDRESS.options),
        )
        with psycopg.connect(dsn, autocommit=True) as guard:
            # A connection of its own: it is held although migrations commit, and a kill drops it.
            guard.execute("select pg_advisory_lock(%s)", [_LOCK])
            with connection.cursor() as cursor:
                cursor.execute(f"set lock_timeout = '{_LOCK_TIMEOUT}'")
            try:
                super().handle(*args, **options)
            finally:
                if connection.connection is not None and not connection.connection.closed:
                    with connection.cursor() as cursor:
                        cursor.execute("reset lock_timeout")
        return None
