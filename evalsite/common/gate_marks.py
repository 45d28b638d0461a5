"""Marks on releases whose gate has to be computed anew. Both apps set them, so the SQL stands here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

# Evidence that names no version belongs to no release that a gate is about.
_TOUCH = """
INSERT INTO reviews_releasegate AS g
    (release_id, revision, computed_revision, touched_at, state, sentence, digest, version,
     n_tries, failure)
SELECT id, 1, 0, %(now)s, '', '', '', 0, 0, ''
FROM traces_release WHERE id = ANY(%(releases)s) AND NOT is_unversioned ORDER BY id
ON CONFLICT (release_id) DO UPDATE SET
    revision = g.revision + 1, touched_at = excluded.touched_at, n_tries = 0, failure = ''
RETURNING release_id, revision = computed_revision + 1
"""


def touch_gates(release_pks: Iterable[int], *, now: datetime) -> tuple[int, ...]:
    """Say that what the gates of some releases rest on may be another from now on. One statement.

    Part of the transaction of the change, which holds `ingest_locks` of the system. Returns the
    releases whose gate was up to date until now: those to send a hint about. Of the others a hint
    is on its way.
    """
    wanted = sorted(set(release_pks))
    if not wanted:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_TOUCH, {"releases": wanted, "now": now})
        return tuple(sorted(pk for pk, is_first in cursor.fetchall() if is_first))
