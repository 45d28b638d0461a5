"""How many values behind a release's gate are not as they were first entered."""

from __future__ import annotations

from dataclasses import dataclass

from django.db import connection


@dataclass(frozen=True, slots=True)
class ChangedValues:
    """What was corrected, decided again, added or tried again; all of it is still there to read."""

    n_corrections: int  # verdicts of people
    n_adjudications: int  # that replaced an earlier one
    n_additions: int  # evidence that trials did not record
    n_attempts: int  # earlier attempts at a trial, which ended in a harness error
    n_left_out: int  # runs

    @property
    def total(self) -> int:
        """All of them."""
        return (
            self.n_corrections
            + self.n_adjudications
            + self.n_additions
            + self.n_attempts
            + self.n_left_out
        )


_CHANGED = """
WITH ran AS MATERIALIZED (
    SELECT t.id, t.run_id, t.task_id, t.label FROM traces_trial t WHERE t.release_id = %(release)s
)
SELECT
  (SELECT count(*) FROM reviews_verdict v JOIN ran ON ran.id = v.trial_id
   WHERE v.corrects_id IS NOT NULL),
  (SELECT count(*) FROM reviews_adjudication a JOIN ran ON ran.id = a.trial_id
   WHERE a.replaces_id IS NOT NULL),
  (SELECT count(*) FROM traces_evidenceaddition e JOIN ran ON ran.id = e.trial_id),
  (SELECT count(*) FROM ran) - (SELECT count(*) FROM
      (SELECT DISTINCT run_id, task_id, label FROM ran) slots),
  (SELECT count(*) FROM reviews_runexclusion x JOIN traces_run r ON r.id = x.run_id
   WHERE r.release_id = %(release)s
   AND NOT EXISTS (SELECT FROM reviews_exclusionend e WHERE e.exclusion_id = x.id))
"""


def changed_values(release_pk: int) -> ChangedValues:
    """What is not as it was first entered on the trials and runs of a release. One query."""
    with connection.cursor() as cursor:
        cursor.execute(_CHANGED, {"release": release_pk})
        return ChangedValues(*cursor.fetchone())
