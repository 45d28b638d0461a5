"""What a release's headline figures count, for telling what one more decision would change."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from django.db import connection


@dataclass(frozen=True, slots=True)
class ReleaseCounts:
    """Slots of a release that headline figures count. Missing ones are run and nothing else."""

    n_pass: int = 0
    n_graded: int = 0
    n_run: int = 0
    outcome_passed: int = 0
    outcome_graded: int = 0
    clean_passed: int = 0
    clean_graded: int = 0

    def moved(self, before: SlotValue, after: SlotValue) -> ReleaseCounts:
        """The counts once one slot comes to something else."""
        return replace(
            self,
            n_pass=self.n_pass + (after.value == "pass") - (before.value == "pass"),
            n_graded=self.n_graded + after.is_graded - before.is_graded,
            outcome_passed=self.outcome_passed
            + (after.told(after.outcome) == "pass")
            - (before.told(before.outcome) == "pass"),
            outcome_graded=self.outcome_graded
            + bool(after.told(after.outcome))
            - bool(before.told(before.outcome)),
            clean_passed=self.clean_passed
            + (after.told(after.rule_clean) == "pass")
            - (before.told(before.rule_clean) == "pass"),
            clean_graded=self.clean_graded
            + bool(after.told(after.rule_clean))
            - bool(before.told(before.rule_clean)),
        )


@dataclass(frozen=True, slots=True)
class SlotValue:
    """What figures count of one slot."""

    value: str  # of the disposition
    outcome: str
    rule_clean: str

    @property
    def is_graded(self) -> bool:
        """Whether it passed or failed."""
        return self.value in ("pass", "fail")

    def told(self, figure: str) -> str:
        """What a figure counts of it; "" where it is unknown for that, as after a broken harness."""
        return figure if figure in ("pass", "fail") and self.value != "harness_error" else ""


@dataclass(frozen=True, slots=True)
class CountedRelease:
    """The release of a trial, its counts, and why the trial is not among them."""

    name: str
    uuid: UUID
    counts: ReleaseCounts
    left_out: str  # "" when its figures count the trial


_COUNTS = """
WITH w AS (
    SELECT t.id, t.release_id, t.environment, t.has_fault, d.stands, k.split
    FROM traces_trial t JOIN traces_task k ON k.id = t.task_id
    LEFT JOIN traces_trialdisposition d ON d.trial_id = t.id WHERE t.id = %(trial)s
)
SELECT r.name, r.uuid, c.*, (
    SELECT coalesce(sum(x.n_missing), 0)::bigint FROM traces_taskfigures x
    JOIN traces_task k ON k.id = x.task_id
    WHERE x.release_id = r.id AND coalesce(k.split, '') <> 'tuning'),
    CASE WHEN NOT coalesce(w.stands, false) THEN 'later' WHEN w.split = 'tuning' THEN 'tuning'
         WHEN w.environment <> 'test' THEN 'production' WHEN w.has_fault THEN 'fault' ELSE '' END
FROM w JOIN traces_release r ON r.id = w.release_id, LATERAL (
    SELECT count(*) FILTER (WHERE d.value = 'pass'),
           count(*) FILTER (WHERE d.value IN ('pass', 'fail')), count(*),
           count(*) FILTER (WHERE d.value <> 'harness_error' AND d.outcome = 'pass'),
           count(*) FILTER (WHERE d.value <> 'harness_error' AND d.outcome IN ('pass', 'fail')),
           count(*) FILTER (WHERE d.value <> 'harness_error' AND d.rule_clean = 'pass'),
           count(*) FILTER (WHERE d.value <> 'harness_error' AND d.rule_clean IN ('pass', 'fail'))
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    JOIN traces_task k ON k.id = t.task_id
    WHERE t.release_id = r.id AND t.environment = 'test' AND NOT t.has_fault
        AND coalesce(k.split, '') <> 'tuning'
) c(n_pass, n_graded, n_run, o_passed, o_graded, c_passed, c_graded)
"""
_LEFT_OUT = {
    "": "",
    "later": "A later attempt stands for this trial, so no figure counts it.",
    "tuning": "The figures of a release leave split tuning out, and this task is of it.",
    "production": "The figures of a release leave production traces out, and this is one.",
    "fault": "The figures of a release leave trials with an injected fault out, and this is one.",
}


def counted_release(trial_pk: int) -> CountedRelease:
    """The release of a trial with its counts as they are now, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(_COUNTS, {"trial": trial_pk})
        name, identity, passed, graded, run, *others, n_missing, why = cursor.fetchone()
    counts = ReleaseCounts(passed, graded, run + n_missing, *others)
    return CountedRelease(name, identity, counts, _LEFT_OUT[why])


_ALIKE = """
SELECT count(*) FROM reviews_dispute d
WHERE d.system_id = %s AND d.state = 'open' AND d.criterion = %s AND d.rubric_version = %s
    AND d.criterion_digest IS NOT DISTINCT FROM %s AND d.trial_id <> %s
"""


def n_alike_disputes(
    system_pk: int, *, criterion: str, rubric_version: str, digest: UUID | None, but_trial: int
) -> int:
    """How many other open disputes ask the same under the same version of the rubric. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_ALIKE, [system_pk, criterion, rubric_version, digest, but_trial])
        found: int = cursor.fetchone()[0]
    return found
