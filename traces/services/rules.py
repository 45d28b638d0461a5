"""Rules on their way: preview, proposal, decision, and the work that an approval asks for.

Each act locks the system's row and checks again inside the transaction. Callers send the hint.
"""

from __future__ import annotations

import json
import logging
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from traces.core.canonical import canonical_text
from traces.core.rule_changes import (
    RuleChange,
    RuleChangeError,
    change_document,
    changed,
    parse_change,
)
from traces.core.rule_documents import parse_rule_set, rule_data, rule_set_document
from traces.core.text_marks import clean_text
from traces.core.values import Json, JsonObject
from traces.models import (
    RulesDecision,
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesSuggestions,
    RulesVersion,
    System,
    User,
    WorkState,
)
from traces.permissions.rules import (
    approval_refusal,
    decision_refusal,
    draft_refusal,
    proposal_refusal,
    restart_refusal,
    stop_refusal,
    unfit_to_restart,
    withdrawal_refusal,
)
from traces.selectors.rules import newest_approved, rules_in, shown_rules

log = logging.getLogger("evalsite.rules")

LONGEST_REASON = 4_000  # characters
LONGEST_RULE = 64_000  # characters of one rule as JSON text


class RulesError(Exception):
    """A refusal, with its sentence for people."""


@transaction.atomic
def start_preview(system: System, change: RuleChange, *, by: User, now: datetime) -> RulesPreview:
    """A draft of a change on the newest approved version; a worker finds out what it would do."""
    _lock(system)
    _refuse(draft_refusal(system, by), system, by)
    _check_size(change)
    base = newest_approved(system)
    try:
        rules = changed(rules_in(base), change)
    except RuleChangeError as error:
        raise RulesError(str(error)) from None
    document = rule_set_document(rules)
    findings = parse_rule_set(document)[1]
    if findings:
        raise RulesError(findings[0].sentence)
    preview = RulesPreview.objects.create(
        system=system,
        base=base,
        change=_stored(change_document(change)),
        document=_stored(document),
        by=by,
        asked_at=now,
        touched_at=now,
    )
    _note("rules preview asked for", system, by, preview=str(preview.uuid), base=base.number)
    return preview


def _check_size(change: RuleChange) -> None:
    """Refuse rules that no page could show."""
    for rule in change.put:
        if len(rule.reason) > LONGEST_REASON:
            raise RulesError(f"A reason has at most {LONGEST_REASON:,} characters.")
        if len(canonical_text(rule_data(rule))) > LONGEST_RULE:
            raise RulesError(f"A rule has at most {LONGEST_RULE:,} characters, values included.")


def preview_again(made: RulesVersion | RulesPreview, *, by: User, now: datetime) -> RulesPreview:
    """The same change on the newest approved version, as a preview of its own."""
    if made.change is None:
        raise RulesError(f"Version {_number(made)} was made whole: it is no change of another.")
    change, findings = parse_change(made.change)
    if findings:
        raise ValueError(f"{made} holds no whole change: {findings[0].sentence}")
    return start_preview(made.system, change, by=by, now=now)


def _number(made: RulesVersion | RulesPreview) -> int:
    return made.number if isinstance(made, RulesVersion) else made.base.number


@transaction.atomic
def propose_rules(preview: RulesPreview, *, reason: str, by: User, now: datetime) -> RulesVersion:
    """Make a version of a previewed change; it waits for somebody else's decision."""
    system = _lock(preview.system)
    preview = (
        RulesPreview.objects.select_for_update(of=("self",))
        .select_related("system", "base__system", "by", "proposed_as")
        .get(pk=preview.pk)
    )
    _refuse(proposal_refusal(preview, by), system, by)
    last = RulesVersion.objects.filter(system=system).aggregate(last=Max("number"))["last"]
    version = RulesVersion.objects.create(
        system=system,
        number=(last or 0) + 1,
        document=preview.document,
        based_on=preview.base,
        change=preview.change,
        reason=_reason(reason),
        created_by=by,
    )
    RulesPreview.objects.filter(pk=preview.pk).update(proposed_as=version, touched_at=now)
    _record("rules.proposed", version, by, now, reason=version.reason)
    _note("rules proposed", system, by, rules=version.number, preview=str(preview.uuid))
    return version


@transaction.atomic
def decide_rules(
    version: RulesVersion, *, outcome: RulesOutcome, reason: str, by: User, now: datetime
) -> RulesDecision:
    """Approve or reject a proposed version. An approval asks for the work that brings it in force."""
    system = _lock(version.system)
    match outcome:
        case RulesOutcome.APPROVED:
            _refuse(approval_refusal(version, by), system, by)
        case RulesOutcome.REJECTED:
            _refuse(decision_refusal(version, by), system, by)
        case RulesOutcome.WITHDRAWN:
            raise ValueError("a version is withdrawn by `withdraw_rules`")
    decision = _decide(version, outcome, reason, by, now)
    if outcome is RulesOutcome.APPROVED:
        RulesJob.objects.create(rules=version, asked_at=now, touched_at=now)
    _record(f"rules.{outcome.value}", version, by, now, decision=decision)
    _note(f"rules {outcome}", system, by, rules=version.number)
    return decision


@transaction.atomic
def withdraw_rules(version: RulesVersion, *, reason: str, by: User, now: datetime) -> RulesDecision:
    """Take a proposal of one's own back."""
    system = _lock(version.system)
    _refuse(withdrawal_refusal(version, by), system, by)
    decision = _decide(version, RulesOutcome.WITHDRAWN, reason, by, now)
    _record("rules.withdrawn", version, by, now, decision=decision)
    _note("rules withdrawn", system, by, rules=version.number)
    return decision


def _decide(
    version: RulesVersion, outcome: RulesOutcome, reason: str, by: User, now: datetime
) -> RulesDecision:
    return RulesDecision.objects.create(
        rules=version, outcome=outcome.value, reason=_reason(reason), by=by, decided_at=now
    )


@transaction.atomic
def stop_work(version: RulesVersion, *, by: User, now: datetime) -> None:
    """Stop the work on an approved version; pages go on showing the version that they show.

    A worker that is at it ends at its next batch.
    """
    system = _lock(version.system)
    RulesJob.objects.select_for_update().filter(rules=version).first()
    _refuse(stop_refusal(version, by), system, by)
    RulesJob.objects.filter(rules=version).update(
        state=WorkState.CANCELLED.value,
        is_cancel_asked=True,
        cancelled_by=by,
        finished_at=now,
        touched_at=now,
    )
    _record("rules.work_stopped", version, by, now)
    _note("work on rules stopped", system, by, rules=version.number)


@transaction.atomic
def restart_work(version: RulesVersion, *, by: User | None = None, now: datetime) -> None:
    """Take up stopped or failed work behind its checkpoint. `by` None: the operator."""
    system = _lock(version.system)
    RulesJob.objects.select_for_update().filter(rules=version).first()
    refusal = unfit_to_restart(version) if by is None else restart_refusal(version, by)
    _refuse(refusal, system, by)
    RulesJob.objects.filter(rules=version).update(
        state=WorkState.WAITING.value,
        is_cancel_asked=False,
        cancelled_by=None,
        failure="",
        n_tries=0,
        finished_at=None,
        touched_at=now,
    )
    _record("rules.work_restarted", version, by, now)
    _note("work on rules taken up again", system, by, rules=version.number)


@transaction.atomic
def ask_suggestions(system: System, *, now: datetime) -> RulesSuggestions:
    """Ask for suggestions on top of the version that pages show.

    A search that waits already is not asked for twice. One that is at work finds its row waiting
    when it ends, and must leave it so: there is new evidence, which a new search sees.
    """
    rules = shown_rules(_lock(system))
    row, is_new = RulesSuggestions.objects.select_for_update().get_or_create(
        rules=rules, defaults={"asked_at": now, "touched_at": now}
    )
    if not is_new and row.state != WorkState.WAITING.value:
        row.state, row.failure, row.n_tries = WorkState.WAITING.value, "", 0
        row.n_done, row.n_total = 0, None
        row.asked_at = row.touched_at = now
        row.started_at = row.finished_at = None
        row.save()
    return row


def _lock(system: System) -> System:
    """The system's row, held until the transaction ends; evidence may still name it."""
    return (
        System.objects.select_for_update(no_key=True, of=("self",))
        .select_related("shown_rules")
        .get(pk=system.pk)
    )


def _refuse(sentence: str, system: System, by: User | None) -> None:
    """Refuse an act that a person may not do; the log says it in the sentence that they see."""
    if sentence:
        user = by.pk if by else None
        log.info("rules act refused", extra={"system": system.slug, "user": user, "why": sentence})
        raise RulesError(sentence)


def _reason(text: str) -> str:
    reason = clean_text(text).strip()
    if not reason:
        raise RulesError("Say why, in a sentence.")
    if len(reason) > LONGEST_REASON:
        raise RulesError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def _stored(document: JsonObject) -> JsonObject:
    """The document as jsonb keeps it, which holds no NUL, no half of a pair and only floats."""
    text = canonical_text(document)
    stored: JsonObject = json.loads(text)
    try:
        is_same = canonical_text(stored) == text
    except ValueError:  # a number became infinite
        is_same = False
    if not is_same:
        raise RulesError("A number in this rule has more digits than can be kept.")
    if not _is_clean(stored):
        raise RulesError("A rule holds no NUL and no half of a character pair.")
    return stored


def _is_clean(value: Json) -> bool:
    match value:
        case str():
            return clean_text(value) == value
        case list():
            return all(_is_clean(item) for item in value)
        case dict():
            return all(_is_clean(name) and _is_clean(item) for name, item in value.items())
        case _:
            return True


def _record(
    act: str,
    version: RulesVersion,
    by: User | None,
    now: datetime,
    *,
    decision: RulesDecision | None = None,
    reason: str = "",
) -> None:
    """One act on a version; what was decided gives its reason and its row."""
    is_proposal = act == "rules.proposed"
    record(
        act,
        system_pk=version.system_id,
        by_pk=by.pk if by else None,
        at=now,
        obj=AuditedObject("rules", str(version.number), f"Version {version.number} of the rules"),
        before={"state": "proposed"} if decision else None,
        after={"state": decision.outcome} if decision else None,
        reason=decision.reason if decision else reason,
        rows=[("traces_rulesdecision", version.pk)]
        if decision
        else [("traces_rulesversion", version.pk)] * is_proposal,
    )


def _note(act: str, system: System, by: User | None, **ids: object) -> None:
    user = by.pk if by else None  # None: the operator, by command
    log.info(act, extra={"system": system.slug, "user": user, **ids})
