"""Database triggers that keep evidence append-only."""

from __future__ import annotations

import pgtrigger


def append_only(table: str) -> list[pgtrigger.Trigger]:
    """Triggers that refuse UPDATE, DELETE and TRUNCATE on a table of evidence.

    `table` names the evidence in the error that the database raises. A correction or a
    withdrawal is a new row (docs/design.md section 8).
    """
    refuse = f"RAISE EXCEPTION 'evalsite: {table} is append-only, % refused', TG_OP;"
    return [
        pgtrigger.Trigger(
            name="append_only",
            operation=pgtrigger.Update | pgtrigger.Delete,
            when=pgtrigger.Before,
            func=refuse,
        ),
        pgtrigger.Trigger(
            name="append_only_truncate",
            level=pgtrigger.Statement,
            operation=pgtrigger.Truncate,
            when=pgtrigger.Before,
            func=refuse,
        ),
    ]
