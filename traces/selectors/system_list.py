"""The systems of a person, with what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db import connection


@dataclass(frozen=True, slots=True)
class SystemRow:
    """A system that a person is a member of."""

    slug: str
    name: str
    description: str
    source_note: str
    role: str
    n_tasks: int
    n_releases: int
    n_run: int
    n_pass: int
    n_graded: int
    last_upload_at: datetime | None


def systems_of_person(user_pk: int) -> tuple[SystemRow, ...]:
    """The person's systems by name, in one query. Figures leave out split `tuning`."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.slug, s.name, s.description, s.source_note, m.role,"
            " (SELECT count(*) FROM traces_task t WHERE t.system_id = s.id),"
            " (SELECT count(*) FROM traces_release r WHERE r.system_id = s.id),"
            " coalesce(f.n_run, 0), coalesce(f.n_pass, 0), coalesce(f.n_graded, 0),"
            " (SELECT u.received_at FROM traces_upload u WHERE u.system_id = s.id"
            "  ORDER BY u.id DESC LIMIT 1)"
            " FROM traces_member m JOIN traces_system s ON s.id = m.system_id,"
            " LATERAL (SELECT sum(x.n_run) AS n_run, sum(x.n_pass) AS n_pass,"
            "  sum(x.n_pass + x.n_fail) AS n_graded FROM traces_taskfigures x"
            "  JOIN traces_task t ON t.id = x.task_id"
            "  WHERE t.system_id = s.id AND x.release_id IS NULL AND t.split <> 'tuning') f"
            " WHERE m.user_id = %s ORDER BY s.name, s.id",
            [user_pk],
        )
        return tuple(SystemRow(*row) for row in cursor.fetchall())


MOST_CASES = 10_000
"""The menu counts no further, so that every page stays fast."""


@dataclass(frozen=True, slots=True)
class SystemMenu:
    """What the frame of a page tells of a person's systems."""

    rows: tuple[tuple[int, str, str, str], ...]  # id, name, address and role
    n_proposals: int  # versions of the current system's rules that wait for a decision
    n_contract_proposals: int  # the same of its contracts
    n_cases: int  # open ones, counted up to `MOST_CASES`
    n_disputes: int  # open ones that decide something, counted up to `MOST_CASES`
    n_alerts: int  # prohibited actions that no owner has noted, counted up to `MOST_CASES`


def menu_of_systems(user_pk: int, *, current: int | None, n: int) -> SystemMenu:
    """The person's first systems by name, and what waits in the current one, in one query.

    Every page asks for it, so it goes past the ORM.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT s.id, s.name, s.slug, m.role,"
            " (SELECT count(*) FROM traces_rulesversion v WHERE v.system_id = %s"
            "  AND v.based_on_id IS NOT NULL AND NOT EXISTS"
            "  (SELECT FROM traces_rulesdecision d WHERE d.rules_id = v.id)),"
            " (SELECT count(*) FROM traces_contractproposal p WHERE p.system_id = %s"
            "  AND NOT EXISTS"
            "  (SELECT FROM traces_contractdecision d WHERE d.proposal_id = p.id)),"
            " (SELECT count(*) FROM (SELECT FROM reviews_case c WHERE c.system_id = %s"
            "  AND c.state = 'open' LIMIT %s) w),"
            " (SELECT count(*) FROM (SELECT FROM reviews_dispute x WHERE x.system_id = %s"
            "  AND x.state = 'open' AND x.decides LIMIT %s) w),"
            " (SELECT count(*) FROM (SELECT FROM reviews_gatealert a WHERE a.system_id = %s"
            "  AND NOT EXISTS (SELECT FROM reviews_alertseen n WHERE n.alert_id = a.id)"
            "  LIMIT %s) w)"
            " FROM traces_member m JOIN traces_system s ON s.id = m.system_id"
            " WHERE m.user_id = %s ORDER BY s.name, s.id LIMIT %s",
            [
                *(current, current, current, MOST_CASES),
                *(current, MOST_CASES, current, MOST_CASES),
                *(user_pk, n),
            ],
        )
        rows = cursor.fetchall()
        waiting = rows[0][4:] if rows else (0, 0, 0, 0, 0)
        return SystemMenu(tuple(row[:4] for row in rows), *waiting)
