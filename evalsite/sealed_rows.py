"""Digests of the stored rows that a sign-off rests on, as they are sealed in it and found again.

A row's digest is the SHA-256 of a JSON array of named columns, made by the database: times in UTC
with microseconds, bytes by their own SHA-256, numbers as PostgreSQL prints them. Columns are named,
so that a column of later migrations changes no digest; whoever changes a list raises the version
and keeps the old one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

from django.apps import apps
from django.db import connection, models

SEAL_VERSION = 1

_UTC = """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""

COLUMNS: Mapping[str, str] = {
    "traces_system": "id uuid slug name",
    "traces_release": "id uuid system_id name is_unversioned details",
    "traces_run": "id uuid release_id name begun_at declared_at declared_by_id declared_trials",
    "traces_runtask": "id run_id task_id",
    "traces_task": "id uuid system_id task_id",
    "traces_taskversion": "id task_id number digest definition created_at",
    "traces_upload": "id uuid system_id release_id run_name format_asked file_name size sha256"
    " stored_as door received_at by_id api_key_id",
    "traces_trial": "id uuid system_id release_id run_id task_id task_version_id trajectory_id"
    " label attempt status error environment external_id digest upload_id line n_messages"
    " n_tool_calls n_rejected cost_usd input_tokens output_tokens started_at ended_at seconds"
    " termination has_fault warnings created_at",
    "traces_trialrecord": "trial_id source_member source_offset source_length content",
    "traces_transcriptchunk": "id trial_id first_step n_steps content",
    "traces_trajectory": "id task_id digest steps outcomes groups is_comparable",
    "traces_evidenceaddition": "id uuid trial_id order parts content source reason digest by_id"
    " api_key_id added_at",
    "traces_contractproposal": "id uuid system_id number reason created_at created_by_id",
    "traces_contractversion": "id uuid proposal_id task_id number text digest based_on_id",
    "traces_contractdecision": "proposal_id outcome reason by_id decided_at",
    "traces_splitchange": "id system_id family task_id old new reason by_id changed_at",
    "reviews_verdict": "id trial_id grader_version_id criterion_id criterion_class is_mandatory"
    " value raw_word key score rationale cited_steps overrides extra digest evidence_digest"
    " upload_id line by_id contract_id criterion_digest evidence_order corrects_id created_at",
    "reviews_adjudication": "id uuid system_id trial_id criterion_id criterion_digest"
    " rubric_version contract_id ruling reason cited_steps seen evidence_order evidence_digest"
    " replaces_id is_by_party by_id decided_at",
    "reviews_vouch": "verdict_id reason by_id vouched_at",
    "reviews_gatereevaluation": "id uuid release_id number reason by_id made_at",
    "reviews_runexclusion": "id uuid run_id reason by_id left_out_at",
    "reviews_exclusionconfirmation": "exclusion_id reason by_id confirmed_at",
    "reviews_exclusionend": "exclusion_id reason by_id ended_at",
    "reviews_calibration": "id system_id grader_version_id criterion_id criterion_digest"
    " rubric_version status why figures read_at valid_until by_id",
    "reviews_setvouch": "set_id reason by_id vouched_at",
    "reviews_label": "id item_id by_id labeller round value reason cited_steps verdict_id"
    " adjudication_id given_at",
    "reviews_checkmark": "id uuid system_id task_id criterion criterion_digest mark reason"
    " trial_id by_id marked_at",
    "reviews_checkmarkwithdrawal": "mark_id reason by_id withdrawn_at",
    "reviews_rubricversion": "id rubric_id version text reason by_id created_at",
    "reviews_signoff": "id uuid system_id release_id manifest_id revision meaning by_id"
    " printed_name role signed_at intended_use scope expires_on reason next_action waived_tier"
    " waived_check n_needed key_id envelope",
    "reviews_signoffvoid": "sign_off_id reason by_id voided_at",
    "reviews_risktier": "id uuid system_id name description template made_by_id made_at",
    "reviews_tierretirement": "tier_id reason by_id retired_at",
    "reviews_tierassignment": "id system_id task_id tier_id reason by_id assigned_at",
    "reviews_thresholdset": "id uuid tier_id number document digest reason by_id made_at"
    " in_force_from",
}
"""What never changes of each row: all columns of append-only tables, the lasting ones of others."""

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


@cache
def digest_sql(table: str, alias: str) -> str:
    """The expression for a row's digest, in hex."""
    meta = next(m._meta for m in apps.get_models() if m._meta.db_table == table)  # noqa: SLF001
    fields = {field.column: field for field in meta.concrete_fields}
    parts = [_text_of(f'{alias}."{name}"', fields[name]) for name in COLUMNS[table].split()]
    return f"encode(sha256(convert_to(json_build_array({', '.join(parts)})::text, 'UTF8')), 'hex')"


def _text_of(column: str, field: models.Field[Any, Any]) -> str:
    match field:
        case models.DateTimeField():
            return _UTC.format(column)
        case models.DateField():
            return f"to_char({column}, 'YYYY-MM-DD')"
        case models.BinaryField():
            return f"encode(sha256({column}), 'hex')"
        case models.JSONField() | models.DecimalField():
            return f"{column}::text"
        case _:
            return column


def key_column(table: str) -> str:
    """The column that tells rows of a table apart."""
    return COLUMNS[table].split()[0]


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
