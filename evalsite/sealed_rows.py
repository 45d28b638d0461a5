"""Digests of the stored rows that a sign-off rests on, as they are sealed in it and found again.

The digest of one row is that of `evalsite.common.row_digests`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from django.db import connection

from evalsite.common import row_digests
from evalsite.common.row_digests import COLUMNS_VERSION, row_digest_sql

SEAL_VERSION = COLUMNS_VERSION

LASTING: Mapping[str, str] = {
    "traces_system": "id uuid slug name",
    # A release that was named before its first record gets its version record with that one.
    "traces_release": "id uuid system_id name is_unversioned",
    "traces_runtask": "id run_id task_id",
    "traces_task": "id uuid system_id task_id",
}
"""What never changes of rows that are no evidence of their own, key first."""

WORDS: Mapping[str, str] = {
    "traces_system": "system",
    "traces_release": "release",
    "traces_run": "run",
    "traces_runtask": "declared task",
    "traces_task": "task",
    "traces_taskversion": "task version",
    "traces_upload": "upload",
    "traces_contractproposal": "contract proposal",
    "traces_contractversion": "contract version",
    "traces_contractdecision": "decision on contracts",
    "traces_splitchange": "change of split",
    "reviews_adjudication": "adjudication",
    "reviews_vouch": "vouch for verdict",
    "reviews_gatereevaluation": "re-evaluation",
    "reviews_runexclusion": "run left out",
    "reviews_exclusionconfirmation": "confirmation of a run left out",
    "reviews_exclusionend": "end of a run left out",
    "reviews_calibration": "calibration",
    "reviews_setvouch": "vouch for labels",
    "reviews_label": "label",
    "reviews_checkmark": "mark",
    "reviews_checkmarkwithdrawal": "withdrawal of mark",
    "reviews_rubricversion": "rubric version",
    "reviews_signoff": "sign-off",
    "reviews_signoffvoid": "void of sign-off",
    "reviews_risktier": "risk tier",
    "reviews_tierretirement": "retirement of tier",
    "reviews_tierassignment": "tier of a task",
    "reviews_thresholdset": "threshold set",
}


def digest_sql(table: str, alias: str) -> str:
    """The expression for a row's digest, in hex."""
    columns = LASTING.get(table)
    return row_digest_sql(table, columns.split() if columns else None, alias=alias)


def key_column(table: str) -> str:
    """The column that tells rows of a table apart."""
    columns = LASTING.get(table)
    return columns.split()[0] if columns else row_digests.key_column(table)


_TRIAL_SEALS = """
SELECT t.uuid::text,
    encode(sha256(convert_to(concat_ws('|',
        {trial}, json_build_array(k.task_id, u.uuid, u.name, e.uuid, v.number)::text,
        (SELECT {record} FROM traces_trialrecord o WHERE o.trial_id = t.id),
        (SELECT {trajectory} FROM traces_trajectory j WHERE j.id = t.trajectory_id),
        (SELECT string_agg({chunk}, ',' ORDER BY c.first_step, c.id)
         FROM traces_transcriptchunk c WHERE c.trial_id = t.id)), 'UTF8')), 'hex')
FROM traces_trial t
JOIN traces_task k ON k.id = t.task_id
JOIN traces_taskversion v ON v.id = t.task_version_id
JOIN traces_run u ON u.id = t.run_id
JOIN traces_release e ON e.id = t.release_id
WHERE t.run_id IN (SELECT id FROM traces_run WHERE release_id = %(release)s)
ORDER BY t.uuid::text
"""
_VERDICT_SEALS = """
SELECT t.uuid::text, count(*),
    encode(sha256(convert_to(string_agg(
        {verdict} || json_build_array(g.kind, g.name, gv.version, cr.name)::text, ',' ORDER BY v.id
    ), 'UTF8')), 'hex')
FROM traces_trial t
JOIN reviews_verdict v ON v.trial_id = t.id AND v.id <= %(last)s
LEFT JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
LEFT JOIN reviews_grader g ON g.id = gv.grader_id
LEFT JOIN reviews_criterion cr ON cr.id = v.criterion_id
WHERE t.run_id IN (SELECT id FROM traces_run WHERE release_id = %(release)s)
GROUP BY t.uuid
"""
_ADDITION_SEALS = """
SELECT a.uuid::text, t.uuid::text, {addition}
FROM traces_trial t JOIN traces_evidenceaddition a ON a.trial_id = t.id
WHERE t.run_id IN (SELECT id FROM traces_run WHERE release_id = %(release)s)
ORDER BY t.uuid::text, a."order"
"""


def trial_rows(release_pk: int) -> dict[str, str]:
    """The digest of each trial of a release with its record, transcript and trajectory."""
    sql = _TRIAL_SEALS.format(
        trial=digest_sql("traces_trial", "t"),
        record=digest_sql("traces_trialrecord", "o"),
        trajectory=digest_sql("traces_trajectory", "j"),
        chunk=digest_sql("traces_transcriptchunk", "c"),
    )
    return dict(fetched(sql, {"release": release_pk}))


def verdict_rows(release_pk: int, *, last: int) -> dict[str, tuple[int, str]]:
    """How many verdicts each trial has up to one, and the digest of all of them."""
    sql = _VERDICT_SEALS.format(verdict=digest_sql("reviews_verdict", "v"))
    rows = fetched(sql, {"release": release_pk, "last": last})
    return {trial: (n, digest) for trial, n, digest in rows}


def addition_rows(release_pk: int) -> list[tuple[str, str, str]]:
    """UUID, trial and digest of each addition of evidence."""
    sql = _ADDITION_SEALS.format(addition=digest_sql("traces_evidenceaddition", "a"))
    return fetched(sql, {"release": release_pk})


def last_verdict(release_pk: int) -> int:
    """The highest id of a verdict on a trial of a release; 0 without one."""
    sql = """SELECT coalesce(max(v.id), 0) FROM traces_trial t
             JOIN reviews_verdict v ON v.trial_id = t.id WHERE t.run_id IN
             (SELECT id FROM traces_run WHERE release_id = %(release)s)"""
    ((last,),) = fetched(sql, {"release": release_pk})
    return int(last)


_OF_RUNS = "run_id IN (SELECT id FROM traces_run WHERE release_id = %(release)s)"
_TRIALS = f"SELECT id FROM traces_trial WHERE {_OF_RUNS}"  # noqa: S608
_TASKS = (
    f"SELECT task_id FROM traces_trial WHERE {_OF_RUNS}"  # noqa: S608
    f" UNION SELECT task_id FROM traces_runtask WHERE {_OF_RUNS}"
)
_TIERS = "SELECT id FROM reviews_risktier WHERE system_id = %(system)s"
_VERSIONS = "SELECT id FROM traces_contractversion WHERE uuid = ANY(%(contracts)s::uuid[])"
_PROPOSALS = (
    "SELECT proposal_id FROM traces_contractversion WHERE uuid = ANY(%(contracts)s::uuid[])"
)
_CALIBRATED = "SELECT criterion_id FROM reviews_calibration WHERE system_id = %(system)s"
_SETS = f"""SELECT id FROM reviews_calibrationset WHERE system_id = %(system)s
    AND criterion_id IN ({_CALIBRATED})"""  # noqa: S608
_EXCLUSIONS = f"SELECT id FROM reviews_runexclusion WHERE {_OF_RUNS}"  # noqa: S608
_SIGNED = "SELECT id FROM reviews_signoff WHERE system_id = %(system)s"

WHERE: Mapping[str, str] = {
    "traces_system": "id = %(system)s",
    "traces_release": "id = %(release)s",
    "traces_run": "release_id = %(release)s",
    "traces_runtask": _OF_RUNS,
    "traces_task": f"id IN ({_TASKS})",
    "traces_taskversion": f"id IN (SELECT task_version_id FROM traces_trial WHERE {_OF_RUNS})",  # noqa: S608
    "traces_upload": f"id IN (SELECT upload_id FROM traces_trial WHERE {_OF_RUNS}"  # noqa: S608
    f" UNION SELECT upload_id FROM reviews_verdict WHERE trial_id IN ({_TRIALS}))",
    "traces_contractproposal": f"id IN ({_PROPOSALS})",
    "traces_contractversion": f"id IN ({_VERSIONS})",
    "traces_contractdecision": f"proposal_id IN ({_PROPOSALS})",
    "traces_splitchange": "system_id = %(system)s",
    "reviews_adjudication": f"trial_id IN ({_TRIALS})",
    "reviews_vouch": f"verdict_id IN (SELECT id FROM reviews_verdict WHERE trial_id IN ({_TRIALS}))",  # noqa: S608
    "reviews_gatereevaluation": "release_id = %(release)s",
    "reviews_runexclusion": _OF_RUNS,
    "reviews_exclusionconfirmation": f"exclusion_id IN ({_EXCLUSIONS})",
    "reviews_exclusionend": f"exclusion_id IN ({_EXCLUSIONS})",
    "reviews_calibration": "system_id = %(system)s",
    "reviews_setvouch": f"set_id IN ({_SETS})",
    "reviews_label": f"item_id IN (SELECT id FROM reviews_calibrationitem WHERE set_id IN ({_SETS}))",  # noqa: S608
    "reviews_checkmark": f"task_id IN ({_TASKS})",
    "reviews_checkmarkwithdrawal": f"mark_id IN (SELECT id FROM reviews_checkmark WHERE task_id IN ({_TASKS}))",  # noqa: S608
    "reviews_rubricversion": "rubric_id IN (SELECT id FROM reviews_rubric WHERE system_id = %(system)s)",
    "reviews_signoff": "system_id = %(system)s",
    "reviews_signoffvoid": f"sign_off_id IN ({_SIGNED})",
    "reviews_risktier": "system_id = %(system)s",
    "reviews_tierretirement": f"tier_id IN ({_TIERS})",
    "reviews_tierassignment": "system_id = %(system)s",
    "reviews_thresholdset": f"tier_id IN ({_TIERS})",
}
"""Which rows of a table a sign-off seals: those that are there when it is signed."""


def rows_to_seal(
    release_pk: int, system_pk: int, contracts: Iterable[str]
) -> list[tuple[str, str, str]]:
    """Table, key and digest of every row beside trials and verdicts that a release rests on."""
    values = {"release": release_pk, "system": system_pk, "contracts": list(contracts)}
    found: list[tuple[str, str, str]] = []
    for table, where in WHERE.items():
        key = key_column(table)
        sql = (
            f'SELECT x."{key}"::text, {digest_sql(table, "x")} FROM {table} x'  # noqa: S608
            f' WHERE {where} ORDER BY x."{key}"'
        )
        found += [(table, key_of, digest) for key_of, digest in fetched(sql, values)]
    return found


def rows_by_key(table: str, keys: Iterable[str]) -> dict[str, str]:
    """The digests of named rows of a table as they are now; what is missing is left out."""
    key = key_column(table)
    sql = (
        f'SELECT x."{key}"::text, {digest_sql(table, "x")} FROM {table} x'  # noqa: S608
        f' WHERE x."{key}" = ANY(%(keys)s)'
    )
    return dict(fetched(sql, {"keys": [int(each) for each in keys]}))


def fetched(sql: str, values: Mapping[str, Any]) -> list[Any]:
    """The rows of a query."""
    with connection.cursor() as cursor:
        cursor.execute(sql, values)
        rows: list[Any] = cursor.fetchall()
    return rows
