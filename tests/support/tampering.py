"""Edits made directly in the database as superuser, past every trigger."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import Error, connection, transaction

from evalsite.common.row_digests import COLUMNS
from evalsite.sealed_rows import LASTING
from reviews.models import SignOff

MORE = {
    "evalsite_auditevent": "id uuid seq at actor_id actor_name role act object_kind object_id"
    " object_label before after reason source key_name request_id rows previous hash key_id tag",
    "evalsite_audithead": "id seq hash key_id tag",
    "reviews_grader": "id kind name",
    "reviews_graderversion": "id version",
    "reviews_criterion": "id name",
    "traces_task": "id uuid task_id split family",
}
# Another value of a column that is called {0}, by its type.
OTHER = {
    "text": "{0} || 'x'",
    "varchar": "left({0}, 1) || 'x' || substr({0}, 3)",
    "int2": "coalesce({0}, 0) + 1",
    "int4": "coalesce({0}, 0) + 1",
    "int8": "coalesce({0}, 0) + 1",
    "numeric": "coalesce({0}, 0) + 1",
    "bool": "NOT {0}",
    "uuid": "gen_random_uuid()",
    "date": "coalesce({0}, date '2099-01-01') + 1",
    "timestamptz": "coalesce({0}, now()) + interval '1 microsecond'",
    "bytea": "CASE WHEN length({0}) = 0 THEN '\\x00'::bytea"
    " ELSE set_byte({0}, length({0}) / 2, (get_byte({0}, length({0}) / 2) + 1) %% 256) END",
    "jsonb": "jsonb_build_array({0})",
    "_int4": "array_append({0}, 1)",
    "_int8": "array_append({0}, 1)",
    "_text": "array_append({0}, 'x')",
    "_varchar": "array_append({0}, 'x')",
}


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit: a column of a row that is another now, or "" where the row is gone."""

    table: str
    key: Any
    column: str
    trial: str  # UUID of the trial that the row belongs to; "" of none


def columns_of(table: str) -> list[str]:
    """The key of a table, and what is sealed of it."""
    return (MORE.get(table) or LASTING.get(table) or COLUMNS[table]).split()


@contextmanager
def as_superuser() -> Iterator[None]:
    """Undo all that happens inside, and let no trigger see it."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET LOCAL session_replication_role = replica")
        yield
        transaction.set_rollback(True)


Rows = dict[str, list[Any]]


def rows_that_matter(sign_off: SignOff) -> Rows:
    """The rows that a signature or the audit log covers, by table."""
    statement: Any = json.loads(base64.b64decode(json.loads(sign_off.envelope)["payload"]))
    found: Rows = {}
    for row in statement["predicate"]["sealed"]["rows"]:
        found.setdefault(row["table"], []).append(int(row["key"]))
    values = {"release": sign_off.release_id, "system": sign_off.system_id}
    with connection.cursor() as cursor:
        for table, sql in _COVERED.items():
            cursor.execute(sql, values)
            found[table] = [row[0] for row in cursor.fetchall()]
    return found


_TRIALS = "SELECT id FROM traces_trial WHERE release_id = %(release)s"
_VERDICTS = f"SELECT * FROM reviews_verdict WHERE trial_id IN ({_TRIALS})"
_COVERED = {
    "traces_trial": f"{_TRIALS} ORDER BY 1",
    "traces_trialrecord": f"{_TRIALS} ORDER BY 1",
    "traces_transcriptchunk": f"SELECT id FROM traces_transcriptchunk WHERE trial_id IN ({_TRIALS})"
    " ORDER BY 1",
    "reviews_verdict": f"SELECT id FROM ({_VERDICTS}) v ORDER BY 1",
    "reviews_graderversion": f"SELECT DISTINCT grader_version_id FROM ({_VERDICTS}) v ORDER BY 1",
    "reviews_grader": "SELECT DISTINCT g.grader_id FROM reviews_graderversion g"
    f" JOIN ({_VERDICTS}) v ON v.grader_version_id = g.id ORDER BY 1",
    "reviews_criterion": f"SELECT DISTINCT criterion_id FROM ({_VERDICTS}) v ORDER BY 1",
    "reviews_signoff": "SELECT id FROM reviews_signoff WHERE system_id = %(system)s ORDER BY 1",
    "reviews_signoffvoid": "SELECT sign_off_id FROM reviews_signoffvoid ORDER BY 1",
    "reviews_evidencemanifest": "SELECT DISTINCT manifest_id FROM reviews_signoff"
    " WHERE system_id = %(system)s ORDER BY 1",
    "evalsite_auditevent": "SELECT id FROM evalsite_auditevent"
    " WHERE system_id = %(system)s OR system_id IS NULL ORDER BY 1",
    "evalsite_audithead": "SELECT id FROM evalsite_audithead"
    " WHERE system_id = %(system)s OR system_id IS NULL ORDER BY 1",
}


def draw_edit(draw: random.Random, rows: Rows) -> Edit | None:
    """Make a drawn edit; None where the database's own rules refuse it."""
    table = draw.choice(sorted(table for table in rows if rows[table]))
    key, *others = columns_of(table)
    with connection.cursor() as cursor:
        chosen = draw.choice(rows[table])
        column = "" if draw.random() < 0.15 else draw.choice(others)
        trial = _trial_of(cursor, table, key, chosen)
        try:
            with transaction.atomic():
                changed = _change(cursor, table, key, chosen, column)
        except Error:
            return None
    return Edit(table, chosen, column, trial) if changed else None


def _change(cursor: Any, table: str, key: str, chosen: Any, column: str) -> bool:
    if not column:
        cursor.execute(f"DELETE FROM {table} WHERE {key} = %s", [chosen])
        return True
    cursor.execute(
        "SELECT udt_name FROM information_schema.columns WHERE table_name = %s AND column_name = %s",
        [table, column],
    )
    other = OTHER[cursor.fetchone()[0]].format(f'"{column}"')
    cursor.execute(
        f'UPDATE {table} SET "{column}" = {other} WHERE {key} = %s'
        f' AND ({other}) IS DISTINCT FROM "{column}"',
        [chosen],
    )
    return bool(cursor.rowcount == 1)


def _trial_of(cursor: Any, table: str, key: str, chosen: Any) -> str:
    if table == "traces_trial":
        cursor.execute("SELECT uuid FROM traces_trial WHERE id = %s", [chosen])
    elif table in ("traces_trialrecord", "traces_transcriptchunk", "reviews_verdict"):
        cursor.execute(
            f"SELECT t.uuid FROM {table} x JOIN traces_trial t ON t.id = x.trial_id"
            f" WHERE x.{key} = %s",
            [chosen],
        )
    else:
        return ""
    return str(cursor.fetchone()[0])
