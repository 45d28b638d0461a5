"""Django's `migrate`, made safe to run in several places at once."""

from typing import Any

from django.core.management import CommandError
from django.core.management.commands import migrate
from django.db import connection

from evalsite.database import DatabaseUnreachableError, direct_connection

_LOCK = 0x6576616C73697465 >> 1
# A migration that waits for a lock makes every later query on that table wait behind it.
_LOCK_TIMEOUT = "15s"


class Command(migrate.Command):
    def execute(self, *args: Any, **options: Any) -> str | None:
        # Before the system checks, as these use the database too.
        try:
            guard = direct_connection()
        except DatabaseUnreachableError as error:
            raise CommandError(str(error)) from None
        with guard:
            # A connection of its own: it is held although migrations commit, and a kill drops it.
            guard.execute("select pg_advisory_lock(%s)", [_LOCK])
            return super().execute(*args, **options)

    def handle(self, *args: Any, **options: Any) -> str | None:
        with connection.cursor() as cursor:
            cursor.execute(f"set lock_timeout = '{_LOCK_TIMEOUT}'")
        try:
            super().handle(*args, **options)
        finally:
            if connection.connection is not None and not connection.connection.closed:
                with connection.cursor() as cursor:
                    cursor.execute("reset lock_timeout")
        return None
