"""Digests of stored rows: SHA-256 over named columns, made by the database.

The text of a row is a JSON array of its table, the version below and its columns: times in UTC with
microseconds, bytes by their own SHA-256, numbers as PostgreSQL prints them. Columns are named, so
that a column of later migrations changes no digest. Whoever changes a list raises the version and
keeps the old list beside it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from django.apps import apps
from django.db import connection, models

COLUMNS_VERSION = 1

RowRef = tuple[str, int]
"""A row by its table and its key."""

COLUMNS: Mapping[str, str] = {
    "traces_memberchange": "id system_id user_id old new reason by_id changed_at",
    "traces_rulesversion": "id uuid system_id number document based_on_id change reason created_at"
    " created_by_id",
    "traces_rulesdecision": "rules_id outcome reason by_id decided_at",
    "traces_release": "id uuid system_id name is_unversioned details",
    "traces_run": "id uuid release_id name begun_at declared_at declared_by_id declared_trials",
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
    "traces_taskorigin": "task_id trial_id reason by_id made_at",
    "traces_heldoutexposure": "id uuid system_id task_id trial_id reason by_id noted_at",
    "traces_contractproposal": "id uuid system_id number reason created_at created_by_id",
    "traces_contractversion": "id uuid proposal_id task_id number text digest based_on_id",
    "traces_contractdecision": "proposal_id outcome reason by_id decided_at",
    "traces_splitchange": "id system_id family task_id old new reason by_id changed_at",
    "reviews_acceptedpath": "id uuid task_id number level messages trajectory_id trial_id rules_id"
    " key reason by_id accepted_at",
    "reviews_acceptedpathwithdrawal": "path_id reason by_id withdrawn_at",
    "reviews_verdict": "id trial_id grader_version_id criterion_id criterion_class is_mandatory"
    " value raw_word key score rationale cited_steps overrides extra digest evidence_digest"
    " upload_id line by_id contract_id criterion_digest evidence_order corrects_id created_at",
    "reviews_adjudication": "id uuid system_id trial_id criterion_id criterion_digest"
    " rubric_version contract_id ruling reason cited_steps seen evidence_order evidence_digest"
    " replaces_id is_by_party by_id decided_at",
    "reviews_vouch": "verdict_id reason by_id vouched_at",
    "reviews_caseevent": "id case_id kind text detail by_id at",
    "reviews_disputeskip": "id dispute_id by_id reason at",
    "reviews_flag": "id uuid system_id trial_id code key reason criterion by_id raised_at",
    "reviews_flagclosing": "flag_id reason by_id closed_at",
    "reviews_gatereevaluation": "id uuid release_id number reason by_id made_at",
    "reviews_runexclusion": "id uuid run_id reason by_id left_out_at",
    "reviews_exclusionconfirmation": "exclusion_id reason by_id confirmed_at",
    "reviews_exclusionend": "exclusion_id reason by_id ended_at",
    "reviews_gatealert": "id uuid system_id release_id trial_id harm tier_name raised_at",
    "reviews_alertseen": "alert_id note by_id seen_at",
    "reviews_calibration": "id system_id grader_version_id criterion_id criterion_digest"
    " rubric_version status why figures read_at valid_until by_id",
    "reviews_probebatch": "id uuid system_id number criterion_id criterion_digest rubric_version"
    " question may_fall seed reason by_id made_at",
    "reviews_setvouch": "set_id reason by_id vouched_at",
    "reviews_label": "id item_id by_id labeller round value reason cited_steps verdict_id"
    " adjudication_id given_at",
    "reviews_revelation": "id trial_id criterion_id by_id where at",
    "reviews_checkmark": "id uuid system_id task_id criterion criterion_digest mark reason trial_id"
    " by_id marked_at",
    "reviews_checkmarkwithdrawal": "mark_id reason by_id withdrawn_at",
    "reviews_rubricversion": "id rubric_id version text reason by_id created_at",
    "reviews_evidencemanifest": "id digest content",
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
"""What never changes of a row of each table, its key first."""

_UTC = """to_char({0} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')"""


def key_column(table: str) -> str:
    """The column that tells the rows of a table apart."""
    return COLUMNS[table].split()[0]


def row_digest_sql(table: str, columns: Sequence[str] | None = None, *, alias: str) -> str:
    """The SQL expression for the digest of a row, in hex. Without `columns` those listed above."""
    return _expression(table, tuple(columns or COLUMNS[table].split()), alias)


@cache
def _expression(table: str, columns: tuple[str, ...], alias: str) -> str:
    fields = _fields(table)
    texts = [_text_of(f'{alias}."{name}"', fields[name]) for name in columns]
    parts = ", ".join([f"'{table}'", str(COLUMNS_VERSION), *texts])
    return f"encode(sha256(convert_to(json_build_array({parts})::text, 'UTF8')), 'hex')"


def _fields(table: str) -> dict[str, models.Field[Any, Any]]:
    model = next(each for each in apps.get_models() if each._meta.db_table == table)  # noqa: SLF001
    return {str(field.column): field for field in model._meta.concrete_fields}  # noqa: SLF001


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


def row_digests(rows: Iterable[RowRef]) -> dict[RowRef, str]:
    """The digests of named rows as they are now. Absent ones are left out. One query a table."""
    keys: dict[str, set[int]] = defaultdict(set)
    for table, pk in rows:
        keys[table].add(pk)
    found: dict[RowRef, str] = {}
    with connection.cursor() as cursor:
        for table, wanted in sorted(keys.items()):
            key = key_column(table)
            cursor.execute(
                f'SELECT x."{key}", {row_digest_sql(table, alias="x")} FROM {table} x'  # noqa: S608
                f' WHERE x."{key}" = ANY(%s)',
                [sorted(wanted)],
            )
            found |= {(table, pk): digest for pk, digest in cursor.fetchall()}
    return found
