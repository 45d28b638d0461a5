"""Work on an approved rules version, as the pages say that they still show the one before."""

from __future__ import annotations

from django.db import connection

from traces.models import WorkState

# The newest version after the shown one that has work which did not come to its end.
_WORK = """
SELECT v.number, j.state, j.n_done, j.n_total, shown.number
FROM traces_system s
JOIN traces_rulesversion shown ON shown.id = s.shown_rules_id
JOIN traces_rulesversion v ON v.system_id = s.id AND v.number > shown.number
JOIN traces_rulesjob j ON j.rules_id = v.id AND j.state <> 'done'
WHERE s.id = %s ORDER BY v.number DESC LIMIT 1
"""


def work_notice(system_id: int) -> str:
    """What a page that shows paths says while an approved version is not in force yet; else ""."""
    with connection.cursor() as cursor:
        cursor.execute(_WORK, [system_id])
        found = cursor.fetchone()
    if found is None:
        return ""
    number, state, n_done, n_total, shown = found
    still = f"This page still shows version {shown}."
    match WorkState(state):
        case WorkState.CANCELLED:
            return f"The work on rules version {number} was stopped. {still}"
        case WorkState.FAILED:
            return f"Rules version {number} could not be worked out. {still}"
        case WorkState.WAITING:
            return f"Rules version {number} waits to be worked out. {still}"
        case _:
            percent = percent_done(n_done, n_total)
            so_far = "" if percent is None else f": {percent} %"
            return f"Rules version {number} is being worked out{so_far}. {still}"


def percent_done(n_done: int, n_total: int | None) -> int | None:
    """How much is done of work that goes on: never 100 before its end, None while not counted."""
    if n_total is None:
        return None
    return 0 if n_total == 0 else min(99, 100 * n_done // n_total)
