"""Test databases: each carries the number of its process in its name, and is a copy.

Making all tables takes longer than most tests. It is done once on a server; a digest of what the
tables come from is in the name of the database that holds them and no rows of tests.
"""

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from django.conf import settings
from django.core.management import call_command
from django.db import connections
from psycopg import sql

_NAME = re.compile(r"(?:test|making)_(\d+)_")
_PROJECT = Path(__file__).resolve().parents[2]
_TABLES = "tables_"
_LOCK = 0x7E57DB


def drop_abandoned_test_databases() -> None:
    """Drop every test database whose process has ended."""
    with _server() as server:
        for name in _names(server):
            made_by = _NAME.match(name)
            if made_by and not Path(f"/proc/{made_by[1]}").exists():
                _drop(server, name)


@contextmanager
def own_database() -> Iterator[None]:
    """All tables of the project, empty, in a database that is this process's own."""
    name = f"test_{os.getpid()}_{settings.DATABASE_ADDRESS.name}"
    copy_tables(name)
    try:
        with _connected_to(name):
            yield
    finally:
        with _server() as server:
            _drop(server, name)


def copy_tables(name: str) -> None:
    """A database of that name with all tables, empty."""
    wanted = _TABLES + _digest()
    with _server() as server:
        server.execute("select pg_advisory_lock(%s)", [_LOCK])
        if wanted not in _names(server):
            _make(server, wanted)
        copying = sql.SQL("create database {} template {}")
        server.execute(copying.format(sql.Identifier(name), sql.Identifier(wanted)))


def _make(server: psycopg.Connection, wanted: str) -> None:
    """Make the tables, and drop those of other states of the project."""
    for name in _names(server):
        if name.startswith(_TABLES):
            _drop(server, name)
    unfinished = f"making_{os.getpid()}_{wanted}"
    server.execute(sql.SQL("create database {}").format(sql.Identifier(unfinished)))
    with _connected_to(unfinished):
        call_command("migrate", verbosity=0, interactive=False)
    renaming = sql.SQL("alter database {} rename to {}")
    server.execute(renaming.format(sql.Identifier(unfinished), sql.Identifier(wanted)))


def _drop(server: psycopg.Connection, name: str) -> None:
    dropping = sql.SQL("drop database if exists {} with (force)")
    server.execute(dropping.format(sql.Identifier(name)))


def _names(server: psycopg.Connection) -> list[str]:
    return [name for (name,) in server.execute("select datname from pg_database")]


@contextmanager
def _server() -> Iterator[psycopg.Connection]:
    if settings.EMBEDDED_POSTGRES is not None:
        settings.EMBEDDED_POSTGRES.start()
    with psycopg.connect(settings.DATABASE_ADDRESS.dsn(), autocommit=True) as server:
        yield server


@contextmanager
def _connected_to(name: str) -> Iterator[None]:
    """Django's connection leads to the database of that name."""
    connection = connections["default"]
    connection.close()
    before = connection.settings_dict["NAME"]
    connection.settings_dict["NAME"] = name
    settings.DATABASES["default"]["NAME"] = name
    try:
        yield
    finally:
        connection.close()
        connection.settings_dict["NAME"] = before
        settings.DATABASES["default"]["NAME"] = before


def _digest() -> str:
    """Of what tables come from: models, migrations, and the versions of all packages."""
    found = hashlib.sha256()
    for app in ("evalsite", "traces", "reviews"):
        for path in sorted((_PROJECT / app).rglob("*.py")):
            if {"migrations", "models", "models.py"} & set(path.parts):
                found.update(path.relative_to(_PROJECT).as_posix().encode() + b"\0")
                found.update(path.read_bytes() + b"\0")
    for more in ("requirements.lock", "evalsite/settings.py"):
        found.update((_PROJECT / more).read_bytes())
    return found.hexdigest()[:16]
