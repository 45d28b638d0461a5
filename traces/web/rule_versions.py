"""One version of the rules: what it changes, deciding on it, and the work on it."""

from __future__ import annotations

from dataclasses import dataclass

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import time_text
from evalsite.common.shell import Crumb
from traces.core.rule_changes import RuleChange
from traces.core.rule_effects import parse_effect
from traces.core.rule_words import rule_sentence
from traces.core.rules import ArgumentRule, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import RulesOutcome, RulesPreview, RulesVersion
from traces.permissions.rules import (
    OWN_PROPOSAL,
    approval_refusal,
    decision_refusal,
    overtaken_sentence,
    withdrawal_refusal,
)
from traces.selectors.rules import rules_in
from traces.selectors.rules_history import VersionRow, version_row
from traces.services.rules import RulesError, decide_rules, restart_work, stop_work, withdraw_rules
from traces.tasks import hint_recompute
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.polling import polled
from traces.web.rule_forms import DecideForm, WithdrawForm
from traces.web.rule_kinds import KIND_WORDS
from traces.web.rule_rows import (
    SHOWN_CHANGES,
    change_lines,
    change_of,
    effect_view,
    version_badge,
    version_work,
    work_facts,
)
from traces.web.shell import system_shell

SHOWN_RULES = 300


@dataclass(frozen=True, slots=True)
class _Found:
    """A version with all that its page reads."""

    row: VersionRow
    stored: RulesVersion
    preview: RulesPreview | None


@require_GET
@in_system()
def rules_version(request: SystemRequest, number: int) -> HttpResponse:
    """One version: what it changes, what it does, who decided."""
    return _answer(request, _found(request, number))


@require_POST
@in_system(Act.APPROVE)
def rules_decide(request: SystemRequest, number: int) -> HttpResponse:
    """Approve or reject a proposed version."""
    found = _found(request, number)
    form = DecideForm(request.POST)
    if not form.is_valid():
        return _answer(request, found, decide=form)
    outcome = RulesOutcome(form.cleaned_data["outcome"])
    try:
        decide_rules(
            found.stored,
            outcome=outcome,
            reason=form.cleaned_data["reason"],
            by=request.access.user,
            now=timezone.now(),
        )
    except RulesError as error:
        return _answer(request, found, decide=form, error=str(error))
    if outcome is RulesOutcome.APPROVED:
        hint_recompute(found.stored.pk)
    return _to_version(request, number)


@require_POST
@in_system(Act.RECOMPUTE)
def rules_withdraw(request: SystemRequest, number: int) -> HttpResponse:
    """Withdraw a proposal of one's own."""
    found = _found(request, number)
    form = WithdrawForm(request.POST)
    if not form.is_valid():
        return _answer(request, found, withdraw=form)
    try:
        withdraw_rules(
            found.stored,
            reason=form.cleaned_data["reason"],
            by=request.access.user,
            now=timezone.now(),
        )
    except RulesError as error:
        return _answer(request, found, withdraw=form, error=str(error))
    return _to_version(request, number)


@require_POST
@in_system(Act.RECOMPUTE)
def rules_work(request: SystemRequest, number: int) -> HttpResponse:
    """Stop or restart the work on an approved version."""
    found = _found(request, number)
    if found.row.work is None:
        return _answer(request, found, error=f"Nobody works on version {number}.")
    act = request.POST.get("act", "")
    try:
        if act == "stop":
            stop_work(found.stored, by=request.access.user, now=timezone.now())
        elif act == "restart":
            restart_work(found.stored, by=request.access.user, now=timezone.now())
            hint_recompute(found.stored.pk)
        else:
            return _answer(request, found, error="Say whether to stop or to restart the work.")
    except RulesError as error:
        return _answer(request, found, error=str(error))
    return _to_version(request, number)


def _to_version(request: SystemRequest, number: int) -> HttpResponse:
    return redirect("rules-version", slug=request.access.system.slug, number=number)


def _found(request: SystemRequest, number: int) -> _Found:
    system = request.access.system
    row = version_row(system.pk, number)
    if row is None:
        raise Http404("There is no such version of the rules in this system.")
    versions = RulesVersion.objects.select_related("system", "based_on__system", "created_by")
    return _Found(
        row,
        versions.get(pk=row.pk),
        RulesPreview.objects.filter(proposed_as=row.pk).first(),
    )


def _answer(
    request: SystemRequest,
    found: _Found,
    *,
    decide: DecideForm | None = None,
    withdraw: WithdrawForm | None = None,
    error: str = "",
) -> HttpResponse:
    access = request.access
    row, stored = found.row, found.stored
    at = Addresses.of(access.system.slug)
    here = at.rules_version(row.number)
    rules = rules_in(stored)
    change = RuleChange() if row.change is None else change_of(row.change)
    lines = change_lines(change, rules_in(stored.based_on)) if stored.based_on else ()
    effect = parse_effect(found.preview.result) if found.preview and found.preview.result else None
    overtaken = overtaken_sentence(stored) if row.is_proposal else ""
    refusal, approve_refusal = _refusals(request, found)
    may_propose = access.may(Act.CONTRIBUTE)
    page = pages.RulesVersionPage(
        shell=system_shell(access, section="Rules"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Rules", at.rules),
            Crumb(f"Version {row.number}"),
        ),
        heading=_heading(row),
        sentence=_sentence(row, access.user.pk),
        badge=version_badge(row),
        notices=(pages.Notice(overtaken, level="warning"),) if overtaken else (),
        error=error,
        facts=_facts(row, at),
        reason=row.reason,
        changes=lines[:SHOWN_CHANGES],
        n_more_changes=max(0, len(lines) - SHOWN_CHANGES),
        work=version_work(row, at, why_not=access.refusal(Act.RECOMPUTE)),
        effect=effect_view(effect, change, at, is_past=row.outcome is not None) if effect else None,
        effect_words=_effect_words(row),
        rules=tuple(map(_rule_words, rules.rules[:SHOWN_RULES])),
        n_more_rules=max(0, len(rules.rules) - SHOWN_RULES),
        kinds=_kinds_words(rules),
        poll_url=here if row.work and row.work.is_open else "",
        refresh_url=here,
        decide=(decide or DecideForm()) if row.is_proposal else None,
        decide_url=f"{here}decide",
        decide_refusal=refusal,
        approve_refusal=approve_refusal,
        withdraw=(withdraw or WithdrawForm())
        if access.may(Act.RECOMPUTE) and not withdrawal_refusal(stored, access.user)
        else None,
        withdraw_url=f"{here}withdraw",
        form_action=at.rule_form,
        again=_again(row) if may_propose and overtaken else (),
        back=_back(row) if may_propose else (),
    )
    status = 422 if error or decide or withdraw else 200
    answer = render(request, "traces/rules_version.html", {"page": page}, status=status)
    return polled(request, answer, is_moving=bool(page.poll_url))


def _refusals(request: SystemRequest, found: _Found) -> tuple[str, str]:
    """Why the person may not decide, and why not approve."""
    if not found.row.is_proposal:
        return "", ""
    access = request.access
    refusal = access.refusal(Act.APPROVE) or decision_refusal(found.stored, access.user)
    return refusal, refusal or approval_refusal(found.stored, access.user)


def _heading(row: VersionRow) -> str:
    name = f"Rules version {row.number}"
    if row.is_proposal:
        return f"{name} is proposed"
    match row.outcome:
        case RulesOutcome.REJECTED:
            return f"{name} was rejected"
        case RulesOutcome.WITHDRAWN:
            return f"{name} was withdrawn"
        case _:
            pass
    if row.is_shown:
        return f"{name} is in force"
    if row.was_shown:
        return f"{name} was in force before"
    if row.number < row.shown_number:
        return f"{name} was approved and never in force"
    return f"{name} is approved"


def _sentence(row: VersionRow, user_pk: int) -> str:
    if row.is_proposal and row.by_pk == user_pk:
        return OWN_PROPOSAL
    if row.is_proposal:
        return "It waits for a reviewer or an owner who did not propose it."
    if row.outcome is None:
        return "The system was made with it."
    words = f"{row.outcome.value.capitalize()} by {row.decided_by}, {time_text(row.decided_at)}."
    is_coming = row.outcome is RulesOutcome.APPROVED and not row.is_shown and row.work
    if is_coming and row.number > row.shown_number:
        return f"{words} Pages show it as soon as all paths are worked out."
    return words


def _facts(row: VersionRow, at: Addresses) -> tuple[pages.Fact, ...]:
    facts = [
        pages.Fact("Proposed by" if row.based_on else "Made by", row.by_name or "the operator"),
        pages.Fact("When", time_text(row.created_at)),
    ]
    if row.based_on:
        based_on = f"version {row.based_on}"
        facts.append(pages.Fact("Changes", based_on, at.rules_version(row.based_on)))
    if row.outcome:
        facts += [
            pages.Fact(f"{row.outcome.value.capitalize()} by", row.decided_by),
            pages.Fact("When", time_text(row.decided_at)),
            pages.Fact("Why", row.decision_reason),
        ]
    return (*facts, *(work_facts(row.work) if row.work else ()))


def _effect_words(row: VersionRow) -> str:
    if row.is_whole:
        return ""
    return "What it does to the stored paths was not kept."


def _rule_words(rule: ArgumentRule) -> str:
    scope = "" if rule.task_id is None else f" Only task {rule.task_id}."
    return f"{rule_sentence(rule)}{scope}"


def _kinds_words(rules: RuleSet) -> tuple[pages.Fact, ...]:
    """The tools of each kind."""
    tools: dict[ToolKind, list[str]] = {}
    for tool, kind in rules.tool_kinds[:SHOWN_RULES]:
        tools.setdefault(kind, []).append(tool)
    return tuple(pages.Fact(KIND_WORDS[kind], ", ".join(names)) for kind, names in tools.items())


def _again(row: VersionRow) -> tuple[pages.Hidden, ...]:
    return (pages.Hidden("what", "again"), pages.Hidden("number", str(row.number)))


def _back(row: VersionRow) -> tuple[pages.Hidden, ...]:
    """What previews going back to this version; () where it is no earlier one."""
    if not row.was_shown or row.is_shown or row.number > row.shown_number:
        return ()
    return (pages.Hidden("what", "back"), pages.Hidden("number", str(row.number)))
