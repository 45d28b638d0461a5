"""What a loader that decides nothing would reach on this machine, with the rows just written.

Three such loaders, each one process and one transaction, the best of some rounds:

- *made*: read the file, parse each record, dump and compress its messages as the stored rows have
  them, and COPY the same rows, value by value, into tables with the same indexes. This is the
  limit that an ingest is compared with.
- *ready*: read and parse, and COPY the same rows as bytes that lie ready: the server alone.
- *records*: read, parse and COPY each record as one jsonb row, as a first attempt would.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from django.db import connection, transaction
from psycopg import Cursor, sql

from evalsite.common import blobs

_BLOCK = 1024 * 1024
_ROUNDS = 3


@dataclass(frozen=True, slots=True)
class BareLimit:
    """The seconds that one of the bare loaders took."""

    name: str
    seconds: float
    processor_seconds: float  # of this process, in `seconds`


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows of one table, as values and as bytes in a file."""

    table: str
    types: list[str]
    values: list[tuple[Any, ...]]
    file: Path


_Loader: TypeAlias = Callable[[Cursor[Any], Path, list[_Rows]], None]


def bare_limits(file: Path, tables: Iterable[str], folder: Path) -> tuple[BareLimit, ...]:
    """Time the bare loaders with the rows that some tables hold and the file they came from."""
    rows = [_rows_of(table, folder / f"{table}.rows") for table in tables]
    loaders = {"made": _load_made, "ready": _load_ready, "records": _load_records}
    return tuple(
        BareLimit(name, *min(_timed(load, file, rows) for _ in range(_ROUNDS)))
        for name, load in loaders.items()
    )


def _rows_of(table: str, file: Path) -> _Rows:
    name = sql.Identifier(table)
    with connection.connection.cursor() as cursor:
        values = cursor.execute(sql.SQL("SELECT * FROM {}").format(name)).fetchall()
        types = cursor.execute(
            "SELECT t.typname FROM pg_attribute a JOIN pg_type t ON t.oid = a.atttypid"
            " WHERE a.attrelid = %s::regclass AND a.attnum > 0 AND NOT a.attisdropped"
            " ORDER BY a.attnum",
            [table],
        ).fetchall()
        statement = sql.SQL("COPY {} TO STDOUT (FORMAT BINARY)").format(name)
        with file.open("wb") as out, cursor.copy(statement) as copy:
            out.writelines(copy)
    return _Rows(table, [_type_name(name) for (name,) in types], values, file)


def _type_name(name: str) -> str:
    return f"{name[1:]}[]" if name.startswith("_") else name


def _timed(load: _Loader, file: Path, rows: list[_Rows]) -> tuple[float, float]:
    """Seconds until a loader has committed, into empty tables, and those of the processor."""
    with connection.connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS bare CASCADE")
        cursor.execute("CREATE SCHEMA bare")
        cursor.execute("CREATE TABLE bare.record (id bigint PRIMARY KEY, content jsonb)")
        for each in rows:
            like = sql.SQL("CREATE TABLE bare.{0} (LIKE public.{0} INCLUDING ALL)")
            cursor.execute(like.format(sql.Identifier(each.table)))
            if load is _load_made:
                _add_foreign_keys(cursor, each.table)
    began, processor = time.perf_counter(), time.process_time()
    with transaction.atomic(), connection.connection.cursor() as cursor:
        load(cursor, file, rows)
    return time.perf_counter() - began, time.process_time() - processor


def _add_foreign_keys(cursor: Cursor[Any], table: str) -> None:
    """Those of the real table, to the real tables, where the rows that they name are."""
    keys = cursor.execute(
        "SELECT format('ALTER TABLE bare.%%I ADD %%s', conrelid::regclass, pg_get_constraintdef(oid))"
        " FROM pg_constraint WHERE conrelid = %s::regclass AND contype = 'f'",
        [table],
    ).fetchall()
    for (statement,) in keys:
        cursor.execute(statement)


def _load_made(cursor: Cursor[Any], file: Path, rows: list[_Rows]) -> None:
    with file.open("rb") as lines:
        for line in lines:
            blobs.pack(json.loads(line)["messages"])
    for each in rows:
        with cursor.copy(_into(each.table)) as copy:
            copy.set_types(each.types)
            for row in each.values:
                copy.write_row(row)


def _load_ready(cursor: Cursor[Any], file: Path, rows: list[_Rows]) -> None:
    with file.open("rb") as lines:
        for line in lines:
            json.loads(line)
    for each in rows:
        with cursor.copy(_into(each.table)) as copy, each.file.open("rb") as source:
            while block := source.read(_BLOCK):
                copy.write(block)


def _load_records(cursor: Cursor[Any], file: Path, _rows: list[_Rows]) -> None:
    with file.open("rb") as lines, cursor.copy("COPY bare.record FROM STDIN") as copy:
        for number, line in enumerate(lines):
            copy.write_row((number, json.dumps(json.loads(line))))


def _into(table: str) -> sql.Composed:
    return sql.SQL("COPY bare.{} FROM STDIN (FORMAT BINARY)").format(sql.Identifier(table))
