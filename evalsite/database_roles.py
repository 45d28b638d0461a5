"""Rights of the database role that web and worker connect as, which owns none of the tables.

The owner of the tables migrates. The other role reads and adds; it changes and deletes only rows
that are no evidence, and empties nothing. Which tables only grow is read from their triggers.
"""

from __future__ import annotations

from collections.abc import Iterator

from django.apps import apps
from django.db import connection
from psycopg import sql

_TRIGGER = "append_only"
LOCKED_ROWS = {"reviews_flag": "id", "traces_trial": "id"}
"""Tables that only grow and whose rows are locked. A lock needs the right to update some column:
that of the key, which the trigger refuses all the same."""


class RoleError(Exception):
    """The rights cannot be given; the message is a sentence for people."""


def append_only_tables() -> tuple[str, ...]:
    """The tables whose rows are never changed, by name."""
    return tuple(
        sorted(
            model._meta.db_table  # noqa: SLF001
            for model in apps.get_models()
            if any(t.name == _TRIGGER for t in getattr(model._meta, "triggers", ()))  # noqa: SLF001
        )
    )


def grants(role: str, *, database: str, tables: list[str]) -> list[str]:
    """The statements that give a role its rights on the tables of a database, in order."""
    who = sql.Identifier(role)
    grown = append_only_tables()
    kept = [name for name in tables if name not in grown]
    return [
        _text("REVOKE ALL ON ALL TABLES IN SCHEMA public FROM {who}", who=who),
        _text("REVOKE CREATE ON SCHEMA public FROM PUBLIC, {who}", who=who),
        _text(
            "GRANT CONNECT, TEMPORARY ON DATABASE {name} TO {who}",
            name=sql.Identifier(database),
            who=who,
        ),
        _text("GRANT USAGE ON SCHEMA public TO {who}", who=who),
        _text("GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA public TO {who}", who=who),
        _text(
            "GRANT SELECT, INSERT ON {tables} TO {who}",
            tables=_names(name for name in tables if name in grown),
            who=who,
        ),
        *(
            _text(
                "GRANT UPDATE ({key}) ON {table} TO {who}",
                key=sql.Identifier(key),
                table=sql.Identifier("public", table),
                who=who,
            )
            for table, key in LOCKED_ROWS.items()
        ),
        _text(
            "GRANT SELECT, INSERT, UPDATE, DELETE ON {tables} TO {who}",
            tables=_names(kept),
            who=who,
        ),
    ]


def broker_grants(role: str) -> list[str]:
    """The statements for the message queue in the database, where that is used."""
    who = sql.Identifier(role)
    return [
        _text("GRANT USAGE, CREATE ON SCHEMA pgmq TO {who}", who=who),
        _text("GRANT ALL ON ALL TABLES IN SCHEMA pgmq TO {who}", who=who),
        _text("GRANT ALL ON ALL SEQUENCES IN SCHEMA pgmq TO {who}", who=who),
    ]


def _text(template: str, **parts: sql.Composable) -> str:
    return sql.SQL(template).format(**parts).as_string()


def _names(tables: Iterator[str] | list[str]) -> sql.Composable:
    return sql.SQL(", ").join(sql.Identifier("public", name) for name in tables)


def statements(role: str) -> list[str]:
    """What gives a role its rights on this database.

    Raises:
        RoleError: there is no such role, it owns tables, or it is above all rights.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT current_database()")
        (database,) = cursor.fetchone()
        cursor.execute("SELECT rolsuper, rolreplication FROM pg_roles WHERE rolname = %s", [role])
        found = cursor.fetchone()
        if found is None:
            raise RoleError(f"There is no role {role!r}. Make it: CREATE ROLE {role} LOGIN …")
        if any(found):
            raise RoleError(f"The role {role!r} is a superuser or replicates: no right binds it.")
        cursor.execute(
            "SELECT tablename, pg_has_role(%s, tableowner, 'MEMBER') FROM pg_tables"
            " WHERE schemaname = 'public' ORDER BY tablename",
            [role],
        )
        rows = cursor.fetchall()
        cursor.execute("SELECT EXISTS (SELECT FROM pg_namespace WHERE nspname = 'pgmq')")
        (has_queue,) = cursor.fetchone()
    owned = [name for name, is_owner in rows if is_owner]
    if owned:
        raise RoleError(
            f"The role {role!r} owns {owned[0]}, or is a member of the role that does: "
            "an owner may do everything. Let another role own the tables and migrate."
        )
    made = grants(role, database=database, tables=[name for name, _ in rows])
    return [*made, *(broker_grants(role) if has_queue else [])]
