"""Marks on releases whose gate has to be computed anew. Both apps set them, so the SQL stands here."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from django.db import connection

from evalsite.common.hints import hint_gates

# Evidence that names no version belongs to no release that a gate is about. A release that was
# approved is what others of its system are compared with.
_TOUCH = """
INSERT INTO reviews_releasegate AS g
    (release_id, revision, computed_revision, touched_at, state, sentence, digest, version,
     n_tries, failure)
SELECT id, 1, 0, %(now)s, '', '', '', 0, 0, ''
FROM traces_release WHERE NOT is_unversioned AND (
    id = ANY(%(releases)s)
    OR system_id IN (
        SELECT system_id FROM reviews_signoff
        WHERE release_id = ANY(%(releases)s) AND meaning LIKE 'approved%%'
    ) AND EXISTS (SELECT FROM reviews_releasegate o WHERE o.release_id = traces_release.id)
) ORDER BY id
ON CONFLICT (release_id) DO UPDATE SET
    revision = g.revision + 1, touched_at = excluded.touched_at, n_tries = 0, failure = ''
RETURNING release_id, revision = computed_revision + 1
"""
_LOCK_RELEASES = """
SELECT id FROM traces_release WHERE id = ANY(%s) ORDER BY id FOR NO KEY UPDATE
"""
_LOCK_SYSTEM = "SELECT pg_advisory_xact_lock(hashtextextended('evalsite.ingest', %s))"


def touch_gates(release_pks: Iterable[int], *, now: datetime) -> tuple[int, ...]:
    """Say that what the gates of some releases rest on may be another from now on. One statement.

    Part of the transaction of the change, which holds the locks of `lock_evidence`. When it has
    committed a worker is told of the releases whose gate was up to date until now, which are
    returned; of the others a hint is on its way.
    """
    wanted = sorted(set(release_pks))
    if not wanted:
        return ()
    with connection.cursor() as cursor:
        cursor.execute(_TOUCH, {"releases": wanted, "now": now})
        fresh = tuple(sorted(pk for pk, is_first in cursor.fetchall() if is_first))
    hint_gates(fresh)
    return fresh


def lock_evidence(system_pk: int, release_pks: Iterable[int]) -> None:
    """Take the locks of every writer of the releases' evidence until the transaction ends.

    The releases in the order of their ids, then the system's: the same as
    `traces.services.trials.ingest_locks`, for whoever may not use that.
    """
    with connection.cursor() as cursor:
        cursor.execute(_LOCK_RELEASES, [sorted(set(release_pks))])
        cursor.execute(_LOCK_SYSTEM, [system_pk])


_RELEASES_OF_TASKS = """
SELECT release_id FROM traces_trial WHERE task_id = ANY(%(tasks)s) UNION
SELECT r.release_id FROM traces_runtask d JOIN traces_run r ON r.id = d.run_id
WHERE d.task_id = ANY(%(tasks)s)
"""


def releases_of_tasks(task_pks: Iterable[int]) -> tuple[int, ...]:
    """The releases with trials of some tasks, or with a run that declared them."""
    with connection.cursor() as cursor:
        cursor.execute(_RELEASES_OF_TASKS, {"tasks": sorted(set(task_pks))})
        return tuple(sorted(row[0] for row in cursor.fetchall()))


def releases_of(system_pk: int) -> tuple[int, ...]:
    """The releases of a system, in the order in which they are locked."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id FROM traces_release WHERE system_id = %s ORDER BY id", [system_pk]
        )
        return tuple(row[0] for row in cursor.fetchall())
