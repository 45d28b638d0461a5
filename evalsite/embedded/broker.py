"""The broker of the embedded mode: kombu's PGMQ transport on the site's own database.

What it adds to the transport, all seen with kombu 5.7.0 and pgmq 1.1.4, which are pinned:

* its SQL is installed on first use (the pgmq package ships it; no server extension is needed);
* names of queues are cut to PGMQ's limit (`celery inspect` makes longer ones);
* a fanout with headers passes a delay, as the shipped SQL has no `send_topic(key, msg, headers)`;
* reply queues are bound in a table, as kombu binds direct exchanges in the memory of one process;
* queues are made one at a time: two processes that first declare the same one would both make its
  trigger, and one of them would end with an error.
"""

import hashlib
from importlib.resources import files
from typing import Any, Final

import psycopg
from kombu.transport import pgmq
from psycopg_pool import ConnectionPool

LONGEST_QUEUE_NAME: Final = 47
_INSTALL_LOCK: Final = 0x6576616C71
_QUEUE_LOCK: Final = _INSTALL_LOCK + 1
_REPLY_PREFIX: Final = "reply."


def short_queue_name(name: str) -> str:
    """A name that PGMQ takes: itself, or its start and a digest when it is too long."""
    if len(name) <= LONGEST_QUEUE_NAME:
        return name
    return name[:30] + "_" + hashlib.sha256(name.encode()).hexdigest()[:16]


def install(dsn: str) -> None:
    """Make PGMQ's tables and functions and the table of reply bindings, once per database."""
    with psycopg.connect(dsn) as connection:
        connection.execute("select pg_advisory_xact_lock(%s)", [_INSTALL_LOCK])
        if not _exists(connection, "pgmq.meta"):
            connection.execute((files("pgmq.sql") / "pgmq.sql").read_bytes())
        connection.execute(
            "create table if not exists pgmq.evalsite_reply (exchange text, routing_key text, "
            "queue text, primary key (exchange, routing_key, queue))"
        )


def _exists(connection: "psycopg.Connection[tuple[Any, ...]]", table: str) -> bool:
    row = connection.execute("select to_regclass(%s) is not null", [table]).fetchone()
    return bool(row and row[0])


class Channel(pgmq.Channel):
    def canonical_queue_name(self, queue_name: str) -> str:
        return short_queue_name(super().canonical_queue_name(queue_name))

    def _pgmq_send_kwargs(self, message: dict[str, Any]) -> dict[str, Any]:
        return {"delay": 0, **super()._pgmq_send_kwargs(message)}

    def _new_queue(self, queue: str, **kwargs: Any) -> None:
        with self._pool().connection() as guard, guard.transaction():
            guard.execute("select pg_advisory_xact_lock(%s)", [_QUEUE_LOCK])
            super()._new_queue(queue, **kwargs)  # type: ignore[no-untyped-call]

    def _queue_bind(self, exchange: str, routing_key: str, pattern: str, queue: str) -> None:
        super()._queue_bind(exchange, routing_key, pattern, queue)  # type: ignore[no-untyped-call]
        if exchange.startswith(_REPLY_PREFIX):
            self._execute(
                "insert into pgmq.evalsite_reply values (%s, %s, %s) on conflict do nothing",
                exchange,
                routing_key or "",
                queue,
            )

    def get_table(self, exchange: str) -> list[tuple[str, str, str]]:
        if not exchange.startswith(_REPLY_PREFIX):
            return super().get_table(exchange)
        sql = "select routing_key, queue from pgmq.evalsite_reply where exchange = %s"
        return [(key, key, queue) for key, queue in self._execute(sql, exchange)]

    def _delete(self, queue: str, *args: Any, **kwargs: Any) -> None:
        self._execute("delete from pgmq.evalsite_reply where queue = %s", queue)
        super()._delete(queue, *args, **kwargs)  # type: ignore[no-untyped-call]

    def _execute(self, sql: str, *values: str) -> list[tuple[Any, ...]]:
        with self._pool().connection() as connection:
            cursor = connection.execute(sql, values)
            return cursor.fetchall() if cursor.description else []

    def _pool(self) -> "ConnectionPool[psycopg.Connection[tuple[Any, ...]]]":
        pool = self.pgmq.pool
        if pool is None:
            raise RuntimeError("the connection to the broker is closed")
        return pool


class Transport(pgmq.Transport):
    Channel = Channel

    def _create_pgmq_client(self) -> Any:
        from django.conf import settings

        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.start()
        install(settings.DATABASE_ADDRESS.dsn())
        return super()._create_pgmq_client()
