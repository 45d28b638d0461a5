"""Test databases carry the number of the process that made them in their name."""

import re
from pathlib import Path

import psycopg
from django.conf import settings

_NAME = re.compile(r"test_(\d+)_")


def drop_abandoned_test_databases() -> None:
    """Drop every test database whose process has ended."""
    address = settings.DATABASE_ADDRESS
    if settings.EMBEDDED_POSTGRES is not None:
        settings.EMBEDDED_POSTGRES.start()
    with psycopg.connect(address.dsn(), autocommit=True) as connection:
        names = [name for (name,) in connection.execute("select datname from pg_database")]
        for name in names:
            made_by = _NAME.match(name)
            if made_by and not Path(f"/proc/{made_by[1]}").exists():
                connection.execute(f'drop database if exists "{name}" with (force)')
