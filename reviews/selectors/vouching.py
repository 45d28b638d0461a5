"""Imported human verdicts: who gave them, in which upload, and whether somebody vouched."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import connection

MOST_GROUPS = 200
PAGE_VERDICTS = 50
LONGEST_RATIONALE = 600  # characters that the list reads of each


@dataclass(frozen=True, slots=True)
class VouchGroup:
    """The human verdicts of one person on one criterion in one upload."""

    grader_version: int
    grader: str
    version: str
    criterion: int
    criterion_name: str
    upload: int
    upload_uuid: UUID
    upload_name: str
    received_at: datetime
    uploader: str
    n: int
    n_pass: int
    n_fail: int
    n_trials: int
    n_vouched: int
    vouched_by: str  # who vouched last
    vouched_at: datetime | None

    @property
    def key(self) -> str:
        """What names the group in an address and a form."""
        return f"{self.grader_version}.{self.criterion}.{self.upload}"

    @property
    def n_waiting(self) -> int:
        """Verdicts that nobody vouched for."""
        return self.n - self.n_vouched


@dataclass(frozen=True, slots=True)
class ImportedVerdict:
    """One imported human verdict with its trial."""

    pk: int
    value: str
    raw_word: str
    rationale: str  # its beginning
    is_cut: bool
    task_id: str
    trial_uuid: UUID
    label: str
    release: str
    vouched_by: str
    vouched_at: datetime | None
    reason: str  # of the vouch


_NAME = "coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username)"
# Graders of kind human are few; their verdicts are found by upload: what a person gave in the
# product has none.
_GROUPS = f"""
SELECT v.grader_version_id, g.name, gv.version, v.criterion_id, c.name, v.upload_id, u.uuid,
       u.file_name, u.received_at, coalesce({_NAME}, ''),
       count(*), count(*) FILTER (WHERE v.value = 'pass'),
       count(*) FILTER (WHERE v.value = 'fail'), count(DISTINCT v.trial_id), count(w.verdict_id),
       coalesce((array_agg(q.name ORDER BY w.vouched_at DESC)
                 FILTER (WHERE w.verdict_id IS NOT NULL))[1], ''), max(w.vouched_at)
FROM reviews_grader g
JOIN reviews_graderversion gv ON gv.grader_id = g.id
JOIN reviews_verdict v ON v.grader_version_id = gv.id AND v.upload_id IS NOT NULL
JOIN reviews_criterion c ON c.id = v.criterion_id
JOIN traces_upload u ON u.id = v.upload_id
LEFT JOIN traces_user p ON p.id = u.by_id
LEFT JOIN reviews_vouch w ON w.verdict_id = v.id
LEFT JOIN LATERAL (SELECT {_NAME} AS name FROM traces_user p WHERE p.id = w.by_id) q ON true
WHERE g.system_id = %(system)s AND g.kind = 'human'
      AND (%(trial)s::bigint IS NULL OR v.trial_id = %(trial)s)
GROUP BY v.grader_version_id, g.name, gv.version, v.criterion_id, c.name, v.upload_id, u.uuid,
         u.file_name, u.received_at, p.id
ORDER BY count(*) = count(w.verdict_id), u.received_at DESC, g.name, c.name,
         v.grader_version_id, v.criterion_id, v.upload_id
LIMIT %(n)s
"""  # noqa: S608 - columns from here


def vouch_groups(system_pk: int, *, trial_pk: int | None = None) -> tuple[VouchGroup, ...]:
    """The imported human verdicts of a system by person, criterion and upload; one query.

    Those that wait come first, the newest upload first; `MOST_GROUPS` at most. With `trial_pk`
    only the verdicts on that trial are counted.
    """
    values = {"system": system_pk, "trial": trial_pk, "n": MOST_GROUPS}
    with connection.cursor() as cursor:
        cursor.execute(_GROUPS, values)
        return tuple(VouchGroup(*row) for row in cursor.fetchall())


_VERDICTS = f"""
SELECT v.id, v.value, v.raw_word, left(v.rationale, {LONGEST_RATIONALE}),
       length(v.rationale) > {LONGEST_RATIONALE}, k.task_id, t.uuid, t.label, r.name,
       coalesce({_NAME}, ''), w.vouched_at, coalesce(w.reason, '')
FROM reviews_verdict v
JOIN traces_trial t ON t.id = v.trial_id
JOIN traces_task k ON k.id = t.task_id
JOIN traces_release r ON r.id = t.release_id
LEFT JOIN reviews_vouch w ON w.verdict_id = v.id
LEFT JOIN traces_user p ON p.id = w.by_id
WHERE t.system_id = %s AND v.grader_version_id = %s AND v.criterion_id = %s AND v.upload_id = %s
      AND v.id > %s ORDER BY v.id LIMIT {PAGE_VERDICTS + 1}
"""  # noqa: S608


def verdicts_of_group(
    system_pk: int, group: tuple[int, int, int], *, after: int = 0
) -> tuple[tuple[ImportedVerdict, ...], int | None]:
    """A page of a group's verdicts in the order they came, and behind which one the next begins."""
    with connection.cursor() as cursor:
        cursor.execute(_VERDICTS, [system_pk, *group, after])
        rows = tuple(ImportedVerdict(*row) for row in cursor.fetchall())
    shown = rows[:PAGE_VERDICTS]
    return shown, shown[-1].pk if len(rows) > PAGE_VERDICTS else None
