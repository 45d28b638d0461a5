"""Flags as lists, trials and accepted paths read them."""

from __future__ import annotations

from django.db import connection

_FLAGGED = """
SELECT DISTINCT t.trajectory_id
FROM traces_trial t
JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands AND d.value = 'pass'
JOIN reviews_flag f ON f.trial_id = t.id
LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
WHERE t.task_id = %s AND c.flag_id IS NULL
"""
_N_OPEN = """
SELECT count(*) FROM reviews_flag f LEFT JOIN reviews_flagclosing c ON c.flag_id = f.id
WHERE f.system_id = %s AND c.flag_id IS NULL
"""


def flagged_trajectories(task_pk: int) -> frozenset[int]:
    """Ids of the trajectories of passing trials that stand and carry an open flag.

    No path that holds one of them can be accepted. One query.
    """
    with connection.cursor() as cursor:
        cursor.execute(_FLAGGED, [task_pk])
        return frozenset(pk for (pk,) in cursor.fetchall())


def n_open_flags(system_pk: int) -> int:
    """How many flags of a system wait for somebody to look."""
    with connection.cursor() as cursor:
        cursor.execute(_N_OPEN, [system_pk])
        (n,) = cursor.fetchone()
        return int(n)
