"""Who may sign a release, and why not. Each rule is one sentence, the same on page, API and log.

An owner signs who brought none of the evidence and decided nothing of it: threshold sets, tiers,
runs left out and re-evaluations are the owners' own task and keep nobody from signing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from traces.core.contracts.reading import read_contract
from traces.models import Role, User

NOT_AN_OWNER = "Only an owner of this system signs its releases."
UPLOADED = (
    "You uploaded evidence of this release, or verdicts on it; an owner who brought none of it "
    "signs it."
)
DECLARED = "You declared a run of this release; an owner who declared none signs it."
WROTE_CONTRACT = (
    "You proposed a contract that this release is decided by; an owner who wrote none of them "
    "signs it."
)
APPROVED_CONTRACT = (
    "You approved a contract that this release is decided by; an owner who approved none of them "
    "signs it."
)
WROTE_RUBRIC = (
    "You wrote a rubric that this release is decided by; an owner who wrote none of them signs it."
)
ADJUDICATED = "You decided a dispute of this release; an owner who decided none signs it."
LABELLED = (
    "You labelled trials that a judge of this release is calibrated by, or brought such labels in; "
    "an owner who did neither signs it."
)
ASKED_JUDGE = (
    "You had a judge asked about trials of this release; an owner who had none asked signs it."
)
GAVE_VERDICTS = "You gave a verdict on a trial of this release; an owner who gave none signs it."
VOUCHED = (
    "You vouched for verdicts or labels that this release rests on; an owner who vouched for none "
    "signs it."
)
MARKED = (
    "You marked a check of a task of this release, or withdrew such a mark; an owner who did "
    "neither signs it."
)
MOVED = (
    "You made a task of this release, or put one into another split; an owner who did neither "
    "signs it."
)
ADDED = "You added evidence to a trial of this release; an owner who added none signs it."

SIGNED_ALREADY = "You signed this already; a second owner signs beside you."
SAID_ALREADY = "You said exactly this of exactly this evidence already."
OTHER_DIGEST = (
    "Another owner signed other evidence: the two signatures must cover one digest. Declare the "
    "first one void, or sign what it covers."
)
OTHER_TERMS = (
    "Another owner signed under other words: two owners sign the same meaning, use, scope, expiry "
    "date and waiver, each with a reason of their own."
)
OWNER_TOO_LATE = (
    "You are an owner only since after the first run of this release began; the second signature "
    "is by somebody who was one before."
)

_RULES = (
    ("is_owner", NOT_AN_OWNER),
    ("uploaded", UPLOADED),
    ("declared", DECLARED),
    ("wrote_contract", WROTE_CONTRACT),
    ("approved_contract", APPROVED_CONTRACT),
    ("wrote_rubric", WROTE_RUBRIC),
    ("adjudicated", ADJUDICATED),
    ("labelled", LABELLED),
    ("asked_judge", ASKED_JUDGE),
    ("gave_verdicts", GAVE_VERDICTS),
    ("vouched", VOUCHED),
    ("marked", MARKED),
    ("moved", MOVED),
    ("added", ADDED),
)

_TRIALS = """
    SELECT t.* FROM traces_run r JOIN traces_trial t ON t.run_id = r.id
    WHERE r.release_id = %(release)s
"""
# Verdicts of judges that were calibrated on a criterion, with the criterion as it stood.
_JUDGED = """
    SELECT DISTINCT c.criterion_id, c.criterion_digest FROM reviews_calibration c
    WHERE c.system_id = %(system)s AND c.status = 'calibrated' AND EXISTS (
        SELECT FROM reviews_verdict v JOIN of_release t ON t.id = v.trial_id
        WHERE v.grader_version_id = c.grader_version_id AND v.criterion_id = c.criterion_id)
"""
_OF_SETS = """
    reviews_calibrationset s JOIN judged j ON j.criterion_id = s.criterion_id
        AND j.criterion_digest IS NOT DISTINCT FROM s.criterion_digest
"""
_CONFLICTS = f"""
WITH of_release AS ({_TRIALS}),
     judged AS MATERIALIZED ({_JUDGED}),
     tasks AS (
        SELECT task_id FROM of_release
        UNION SELECT d.task_id FROM traces_run r JOIN traces_runtask d ON d.run_id = r.id
        WHERE r.release_id = %(release)s),
     rubrics AS (
        SELECT DISTINCT b.name FROM reviews_rubricversion w JOIN reviews_rubric b
          ON b.id = w.rubric_id
        WHERE b.system_id = %(system)s AND w.by_id = %(user)s AND w.created_at <= %(now)s),
     keys AS (SELECT id FROM traces_apikey WHERE user_id = %(user)s),
     uploads AS (
        SELECT id, release_id FROM traces_upload WHERE system_id = %(system)s
        AND (by_id = %(user)s OR api_key_id IN (SELECT id FROM keys)))
SELECT
  EXISTS (SELECT FROM traces_member m JOIN traces_user u ON u.id = m.user_id AND u.is_active
          WHERE m.system_id = %(system)s AND m.user_id = %(user)s AND m.role = '{Role.OWNER.value}'),
  EXISTS (SELECT FROM uploads WHERE release_id = %(release)s)
    OR EXISTS (SELECT FROM of_release t JOIN uploads p ON p.id = t.upload_id)
    OR EXISTS (SELECT FROM of_release t JOIN reviews_verdict v ON v.trial_id = t.id
               JOIN uploads p ON p.id = v.upload_id),
  EXISTS (SELECT FROM traces_run WHERE release_id = %(release)s AND declared_by_id = %(user)s),
  EXISTS (SELECT FROM traces_contractversion v JOIN traces_contractproposal p ON p.id = v.proposal_id
          WHERE v.id = ANY(%(contracts)s) AND p.created_by_id = %(user)s),
  EXISTS (SELECT FROM traces_contractversion v
          JOIN traces_contractdecision d ON d.proposal_id = v.proposal_id
          WHERE v.id = ANY(%(contracts)s) AND d.by_id = %(user)s),
  false,
  EXISTS (SELECT FROM of_release t JOIN reviews_adjudication a ON a.trial_id = t.id
          WHERE a.by_id = %(user)s),
  EXISTS (SELECT FROM {_OF_SETS} JOIN reviews_calibrationitem i ON i.set_id = s.id
          JOIN reviews_label l ON l.item_id = i.id
          WHERE s.system_id = %(system)s AND l.by_id = %(user)s)
    OR EXISTS (SELECT FROM {_OF_SETS}
               WHERE s.system_id = %(system)s AND s.is_imported AND s.by_id = %(user)s),
  EXISTS (SELECT FROM of_release t JOIN reviews_judgerunitem i ON i.trial_id = t.id
          JOIN reviews_judgerun j ON j.id = i.run_id
          WHERE i.verdict_id IS NOT NULL AND j.by_id = %(user)s),
  EXISTS (SELECT FROM of_release t JOIN reviews_verdict v ON v.trial_id = t.id
          WHERE v.by_id = %(user)s),
  EXISTS (SELECT FROM reviews_vouch w JOIN reviews_verdict v ON v.id = w.verdict_id
          JOIN of_release t ON t.id = v.trial_id WHERE w.by_id = %(user)s)
    OR EXISTS (SELECT FROM {_OF_SETS} JOIN reviews_setvouch w ON w.set_id = s.id
               WHERE s.system_id = %(system)s AND w.by_id = %(user)s),
  EXISTS (SELECT FROM reviews_checkmark k
          LEFT JOIN reviews_checkmarkwithdrawal w ON w.mark_id = k.id
          WHERE (k.by_id = %(user)s OR w.by_id = %(user)s)
          AND k.task_id IN (SELECT task_id FROM tasks)),
  EXISTS (SELECT FROM traces_taskorigin o JOIN tasks USING (task_id) WHERE o.by_id = %(user)s)
    OR EXISTS (SELECT FROM traces_splitchange c
               WHERE c.system_id = %(system)s AND c.by_id = %(user)s
               AND (c.task_id IN (SELECT task_id FROM tasks)
                    OR c.family IN (SELECT t.family FROM tasks JOIN traces_task t
                                    ON t.id = tasks.task_id WHERE t.family <> ''))),
  EXISTS (SELECT FROM of_release t JOIN traces_evidenceaddition a ON a.trial_id = t.id
          WHERE a.by_id = %(user)s OR a.api_key_id IN (SELECT id FROM keys)),
  ARRAY(SELECT name FROM rubrics),
  ARRAY(SELECT text FROM traces_contractversion
        WHERE id = ANY(%(contracts)s) AND EXISTS (SELECT FROM rubrics))
"""  # noqa: S608 - put together from texts of this module

# A role that was never changed is held since the person became a member.
_OWNER_SINCE = """
SELECT coalesce(
    (SELECT c.changed_at FROM traces_memberchange c
     WHERE c.system_id = m.system_id AND c.user_id = m.user_id AND c.new = m.role
     ORDER BY c.id DESC LIMIT 1), m.since)
FROM traces_member m
WHERE m.system_id = %(system)s AND m.user_id = %(user)s AND m.role = 'owner'
"""


@dataclass(frozen=True, slots=True)
class SignedRelease:
    """A release that somebody wants to sign, as far as the rules need it."""

    pk: int
    system_pk: int
    contracts: Sequence[int]  # contract versions that its gate applies


def why_not_sign(release: SignedRelease, user: User, *, now: datetime) -> str:
    """Why a person may not sign a release; "" when they may. One query."""
    found = _conflicts(release, user, now)
    if not found["is_owner"]:
        return NOT_AN_OWNER
    return next((sentence for rule, sentence in _RULES[1:] if found[rule]), "")


def why_not_second(release: SignedRelease, user: User, *, begun_at: datetime | None) -> str:
    """Why a person's signature cannot be the second of two; "" when it can. One query.

    `begun_at`: when the first run of the release began, left out or not.
    """
    with connection.cursor() as cursor:
        cursor.execute(_OWNER_SINCE, {"system": release.system_pk, "user": user.pk})
        row = cursor.fetchone()
    if row is None:
        return NOT_AN_OWNER
    return "" if begun_at is not None and row[0] < begun_at else OWNER_TOO_LATE


def _conflicts(release: SignedRelease, user: User, now: datetime) -> Mapping[str, bool]:
    values: dict[str, Any] = {
        "release": release.pk,
        "system": release.system_pk,
        "user": user.pk,
        "contracts": list(release.contracts),
        "now": now,
    }
    with connection.cursor() as cursor:
        cursor.execute(_CONFLICTS, values)
        *holds, rubrics, contracts = cursor.fetchone()
    found = dict(zip((rule for rule, _ in _RULES), holds, strict=True))
    found["wrote_rubric"] = any(not rubrics_of(text).isdisjoint(rubrics) for text in contracts)
    return found


@lru_cache(maxsize=1024)
def rubrics_of(text: str) -> frozenset[str]:
    """The rubrics that a contract's text asks for, however it is spelled."""
    contract = read_contract(text).contract
    return frozenset(rubric.id for rubric in contract.semantic) if contract else frozenset()
