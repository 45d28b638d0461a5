"""From a draft to a decision on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb
from evalsite.web.contract_effects import effect_headline, preview_effect
from evalsite.web.contract_rows import (
    change_of,
    decision_words,
    grader_test_rows,
    grader_tests_words,
    proposal_badge,
)
from evalsite.web.contract_tabs import proposals_url
from reviews.core.contract_drafts import contract_of_text, grader_tests_of, unmet_tests_sentence
from reviews.core.regrades import GraderTest, PreviewResult, parse_preview
from reviews.models import Regrade
from reviews.permissions.contracts import (
    OWN_PROPOSAL,
    decision_refusal,
    moved_sentence,
    open_proposals_for,
    other_proposals,
    overtaken_sentence,
    proposal_refusal,
    withdrawal_refusal,
)
from reviews.selectors.contracts import (
    ProposalRow,
    TaskContract,
    VersionRow,
    proposal_row,
    task_contracts,
    texts_of,
    versions_of_proposal,
)
from reviews.services.contracts import (
    LONGEST_REASON,
    ContractFindingsError,
    ContractsError,
    decide_contracts,
    draft_contracts,
    propose_contracts,
    withdraw_contracts,
)
from traces.models import ContractOutcome, ContractPreview, ContractProposal, WorkState
from traces.selectors.rules_work import percent_done
from traces.tasks import hint_contract_preview, hint_regrade
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.polling import polled
from traces.web.preview_work import preview_work
from traces.web.rule_rows import work_badge
from traces.web.shell import system_shell

LISTED_DRAFTS = 30
"""Contracts of a preview or proposal that are shown with their differences."""


class _Reason(forms.CharField):
    """A sentence that says why."""

    def __init__(self, *, label: str, help_text: str = "") -> None:
        super().__init__(
            label=label,
            help_text=help_text,
            max_length=LONGEST_REASON,
            widget=forms.Textarea(attrs={"rows": 3}),
            error_messages={"required": "Say why, in a sentence."},
        )


class ProposeForm(forms.Form):
    """The reason of a proposal."""

    reason = _Reason(
        label="Why should this hold?", help_text="A reviewer or an owner reads it and decides."
    )


class DecideForm(forms.Form):
    """Approve or reject, and why."""

    outcome = forms.ChoiceField(
        choices=[
            (each.value, each.value)
            for each in (ContractOutcome.APPROVED, ContractOutcome.REJECTED)
        ],
        widget=forms.HiddenInput,
        error_messages={"required": "Approve or reject."},
    )
    reason = _Reason(label="Why?")


class WithdrawForm(forms.Form):
    """Why a proposal is taken back."""

    reason = _Reason(label="Why do you withdraw it?")


# The preview of a draft


@require_GET
@in_system()
def contract_preview(request: SystemRequest, preview: UUID) -> HttpResponse:
    """What drafted contracts would change."""
    return _preview_answer(request, _stored_preview(request, preview), ProposeForm())


@require_POST
@in_system(Act.CONTRIBUTE)
def contract_propose(request: SystemRequest, preview: UUID) -> HttpResponse:
    """Propose the previewed contracts; or preview them again on what is in effect now."""
    stored = _stored_preview(request, preview)
    if request.POST.get("act") == "again":
        return _previewed_again(request, stored)
    form = ProposeForm(request.POST)
    if not form.is_valid():
        return _preview_answer(request, stored, form)
    try:
        proposal = propose_contracts(
            stored, reason=form.cleaned_data["reason"], by=request.access.user, now=timezone.now()
        )
    except ContractsError as error:
        return _preview_answer(request, stored, form, error=_said(error))
    return redirect("contract-proposal", slug=request.access.system.slug, number=proposal.number)


def _said(error: ContractsError) -> str:
    """A refusal in one sentence, with its place where it is about a text."""
    if isinstance(error, ContractFindingsError):
        first = error.findings[0]
        task = f"task {first.task_id}, " if first.task_id else ""
        return f"{task}{first.place}: {first.sentence}".capitalize()
    return str(error)


def _previewed_again(request: SystemRequest, stored: ContractPreview) -> HttpResponse:
    try:
        fresh = draft_contracts(
            stored.system, list(stored.texts.values()), by=request.access.user, now=timezone.now()
        )
    except ContractsError as error:
        return _preview_answer(request, stored, ProposeForm(), error=_said(error))
    hint_contract_preview(fresh.pk)
    return redirect("contract-preview", slug=request.access.system.slug, preview=fresh.uuid)


def _stored_preview(request: SystemRequest, identity: UUID) -> ContractPreview:
    previews = ContractPreview.objects.select_related("system", "by")
    stored = previews.filter(system=request.access.system, uuid=identity).first()
    if stored is None:
        raise Http404("There is no such preview in this system.")
    return stored


def _preview_answer(
    request: SystemRequest, preview: ContractPreview, form: ProposeForm, *, error: str = ""
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    here = at.contract_preview(preview.uuid)
    may_propose = access.may(Act.CONTRIBUTE)
    result = parse_preview(preview.result) if preview.result else None
    tasks = task_contracts(access.system.pk, list(preview.texts))
    proposed = ContractProposal.objects.filter(preview=preview).first()
    refusal = access.refusal(Act.CONTRIBUTE) or proposal_refusal(preview, access.user)
    if not refusal and result is not None:
        refusal = unmet_tests_sentence(result.grader_tests)
    moved = "" if proposed or not result else moved_sentence(preview)
    drafts = _drafts_of_preview(preview, tasks, result, at, may_edit=may_propose)
    if proposed:  # its page says what it changes; other versions may be in effect by now
        drafts = tuple(
            replace(draft, badge=pages.Badge("proposed"), change=None) for draft in drafts
        )
    others = () if proposed else open_proposals_for(access.system.pk, list(preview.texts))
    page = pages.ContractPreviewPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb("Preview"),
        ),
        heading=_preview_heading(preview, result),
        sentence=f"{counted(len(preview.texts), 'contract')}, previewed by "
        f"{preview.by.printed_name} on {time_text(preview.asked_at)}."
        + ("" if proposed else " Nothing changes before somebody else approves it."),
        notices=(
            *((pages.Notice(moved, level="warning"),) if moved else ()),
            *(pages.Notice(other.sentence) for other in others),
        ),
        work=_preview_work(preview, result),
        effect=preview_effect(result, _addresses(tasks), at, is_past=False) if result else None,
        drafts=drafts,
        n_more_drafts=len(preview.texts) - len(drafts),
        poll_url=here if preview.is_open else "",
        refresh_url=here,
        form=form if not refusal or form.is_bound else None,
        action=f"{here}propose",
        error=error,
        why_not="" if preview.is_open or moved else refusal,
        proposed=pages.Link(f"Proposal {proposed.number}", at.contract_proposal(proposed.number))
        if proposed
        else None,
        again_label=_again_label(preview, result, moved, access.user.pk)
        if may_propose and not proposed
        else "",
        leave_url=at.contracts,
    )
    status = 422 if form.is_bound or error else 200
    answer = render(request, "traces/contract_preview.html", {"page": page}, status=status)
    return polled(request, answer, is_moving=bool(page.poll_url))


def _addresses(tasks: Mapping[str, TaskContract]) -> dict[str, UUID]:
    return {task_id: task.uuid for task_id, task in tasks.items()}


def _preview_heading(preview: ContractPreview, result: PreviewResult | None) -> str:
    if result is not None:
        return effect_headline(result)
    if preview.state == WorkState.FAILED.value:
        return "The preview could not be worked out"
    return "What would these contracts change?"


def _preview_work(preview: ContractPreview, result: PreviewResult | None) -> pages.Work | None:
    n_total = preview.n_total
    so_far = (
        "The stored trials are being counted."
        if n_total is None
        else f"{preview.n_done:,} of {counted(n_total, 'trial')} decided."
    )
    return preview_work(preview, is_known=result is not None, what="the contracts", so_far=so_far)


def _again_label(
    preview: ContractPreview, result: PreviewResult | None, moved: str, user_pk: int
) -> str:
    """Why one would preview the same contracts again; "" for no reason."""
    if preview.is_open:
        return ""
    if moved:
        return "Preview them on what is in effect now"
    if result is None:
        return "Preview them again"
    return "" if preview.by_id == user_pk else "Make a preview of my own"


def _drafts_of_preview(
    preview: ContractPreview,
    tasks: Mapping[str, TaskContract],
    result: PreviewResult | None,
    at: Addresses,
    *,
    may_edit: bool,
) -> tuple[pages.DraftedTask, ...]:
    tests: dict[str, list[GraderTest]] = {}
    for test in result.grader_tests if result else ():
        tests.setdefault(test.task_id, []).append(test)
    # Those in which a test is not met come first, then in the order of the tasks.
    unmet = {test.task_id for test in result.unmet} if result else set()
    ordered = sorted(
        preview.texts,
        key=lambda task_id: (
            task_id not in unmet,
            tasks[task_id].sort_key if task_id in tasks else "",
            task_id,
        ),
    )[:LISTED_DRAFTS]
    return tuple(
        _drafted(
            task_id,
            preview.texts[task_id],
            tasks.get(task_id),
            at,
            tests=tests.get(task_id, []) if result else None,
            edit_url=_edit_url(preview, task_id, tasks, at) if may_edit else "",
        )
        for task_id in ordered
    )


def _edit_url(
    preview: ContractPreview, task_id: str, tasks: Mapping[str, TaskContract], at: Addresses
) -> str:
    task = tasks[task_id].uuid if task_id in tasks else ""
    return address(at.contract_form, {"task": task, "preview": preview.uuid, "of": task_id})


def _drafted(
    task_id: str,
    text: str,
    task: TaskContract | None,
    at: Addresses,
    *,
    tests: Sequence[GraderTest] | None,
    edit_url: str,
) -> pages.DraftedTask:
    before = task.text if task else ""
    number = task.number if task else None
    return pages.DraftedTask(
        task=pages.Link(task_id, at.contract_of(task.uuid) if task else ""),
        badge=_draft_badge(task),
        change=change_of(before, text, before=number),
        tests=grader_test_rows(tests or ()),
        tests_words="" if tests is None else grader_tests_words(tests),
        edit_url=edit_url,
    )


def _draft_badge(task: TaskContract | None) -> pages.Badge:
    if task is None:
        return pages.Badge("new task", "waiting")
    if task.number is None:
        return pages.Badge("first contract", "waiting")
    return pages.Badge(f"changes version {task.number}")


# The proposal


@dataclass(frozen=True, slots=True)
class _Found:
    """A proposal with all that its page reads."""

    row: ProposalRow
    stored: ContractProposal
    preview: ContractPreview | None


@require_GET
@in_system()
def contract_proposal(request: SystemRequest, number: int) -> HttpResponse:
    """Proposed contracts: what they change, and who decides."""
    return _proposal_answer(request, _found(request, number))


@require_POST
@in_system(Act.APPROVE)
def contract_decide(request: SystemRequest, number: int) -> HttpResponse:
    """Approve or reject proposed contracts."""
    found = _found(request, number)
    form = DecideForm(request.POST)
    if not form.is_valid():
        return _proposal_answer(request, found, decide=form)
    outcome = ContractOutcome(form.cleaned_data["outcome"])
    try:
        decide_contracts(
            found.stored,
            outcome=outcome,
            reason=form.cleaned_data["reason"],
            by=request.access.user,
            now=timezone.now(),
        )
    except ContractsError as error:
        return _proposal_answer(request, found, decide=form, error=_said(error))
    if outcome is ContractOutcome.APPROVED:
        hint_regrade(Regrade.objects.get(proposal=found.stored).pk)
    return _to_proposal(request, number)


@require_POST
@in_system(Act.RECOMPUTE)
def contract_withdraw(request: SystemRequest, number: int) -> HttpResponse:
    """Withdraw a proposal of one's own; or preview overtaken contracts again."""
    found = _found(request, number)
    if request.POST.get("act") == "again":
        return _proposed_again(request, found)
    form = WithdrawForm(request.POST)
    if not form.is_valid():
        return _proposal_answer(request, found, withdraw=form)
    try:
        withdraw_contracts(
            found.stored,
            reason=form.cleaned_data["reason"],
            by=request.access.user,
            now=timezone.now(),
        )
    except ContractsError as error:
        return _proposal_answer(request, found, withdraw=form, error=_said(error))
    return _to_proposal(request, number)


def _proposed_again(request: SystemRequest, found: _Found) -> HttpResponse:
    versions = versions_of_proposal(request.access.system.pk, found.row.number)
    try:
        fresh = draft_contracts(
            found.stored.system,
            [version.text for version in versions],
            by=request.access.user,
            now=timezone.now(),
        )
    except ContractsError as error:
        return _proposal_answer(request, found, error=_said(error))
    hint_contract_preview(fresh.pk)
    return redirect("contract-preview", slug=request.access.system.slug, preview=fresh.uuid)


def _to_proposal(request: SystemRequest, number: int) -> HttpResponse:
    return redirect("contract-proposal", slug=request.access.system.slug, number=number)


def _found(request: SystemRequest, number: int) -> _Found:
    system = request.access.system
    row = proposal_row(system.pk, number)
    if row is None:
        raise Http404("There is no such proposal in this system.")
    stored = ContractProposal.objects.select_related("system", "preview").get(pk=row.pk)
    return _Found(row, stored, stored.preview)


def _proposal_answer(
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
    here = at.contract_proposal(row.number)
    versions = versions_of_proposal(access.system.pk, row.number)
    result = parse_preview(found.preview.result) if found.preview and found.preview.result else None
    tests = result.grader_tests if result else _tests_of(versions[:LISTED_DRAFTS])
    overtaken = overtaken_sentence(stored) if row.is_open else ""
    refusal = _decision_refusal(request, found)
    may_propose = access.may(Act.CONTRIBUTE)
    drafts = tuple(_proposed_drafts(access.system.pk, versions, tests, at))
    tasks = {version.task_id: version.task_uuid for version in versions}
    page = pages.ContractProposalPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb("Proposals", proposals_url(at)),
            Crumb(f"Proposal {row.number}"),
        ),
        heading=f"Proposal {row.number}",
        sentence=_proposal_sentence(row, access.user.pk),
        badge=proposal_badge(row),
        notices=tuple(_notices(row, stored, overtaken)),
        error=error,
        facts=tuple(_facts(row, at)),
        reason=row.reason,
        work=_regrade_work(row, at),
        effect=preview_effect(result, tasks, at, is_past=not row.is_open) if result else None,
        effect_words="" if result else "What it would change was not kept.",
        drafts=drafts,
        n_more_drafts=len(versions) - len(drafts),
        poll_url=here if row.regrade_state in (WorkState.WAITING, WorkState.WORKING) else "",
        refresh_url=here,
        decide=(decide or DecideForm()) if row.is_open else None,
        decide_url=f"{here}decide",
        decide_refusal=refusal,
        approve_refusal=(overtaken or unmet_tests_sentence(tests)) if row.is_open else "",
        withdraw=(withdraw or WithdrawForm())
        if access.may(Act.RECOMPUTE) and not withdrawal_refusal(stored, access.user)
        else None,
        withdraw_url=f"{here}withdraw",
        again_label="Preview them on what is in effect now" if overtaken and may_propose else "",
    )
    status = 422 if error or decide or withdraw else 200
    answer = render(request, "traces/contract_proposal.html", {"page": page}, status=status)
    return polled(request, answer, is_moving=bool(page.poll_url))


def _tests_of(versions: Sequence[VersionRow]) -> tuple[GraderTest, ...]:
    """The grader tests of proposed contracts, run now, where what the preview found is gone."""
    contracts = [contract_of_text(version.text) for version in versions]
    return tuple(test for each in contracts if each is not None for test in grader_tests_of(each))


def _decision_refusal(request: SystemRequest, found: _Found) -> str:
    """Why the person may not decide."""
    if not found.row.is_open:
        return ""
    access = request.access
    return access.refusal(Act.APPROVE) or decision_refusal(found.stored, access.user)


def _proposal_sentence(row: ProposalRow, user_pk: int) -> str:
    contracts = counted(row.n_tasks, "contract")
    if row.is_open:
        waits = (
            OWN_PROPOSAL
            if row.by_pk == user_pk
            else "A reviewer or an owner decides, who neither proposed them nor brought evidence."
        )
        return f"{contracts}, proposed by {row.by_name}. {waits}"
    decided = decision_words(row.outcome, row.decided_by)
    return f"{contracts}, proposed by {row.by_name} and {decided}."


def _notices(row: ProposalRow, stored: ContractProposal, overtaken: str) -> Iterator[pages.Notice]:
    if overtaken:
        yield pages.Notice(overtaken, level="warning")
    if row.is_open:
        yield from (pages.Notice(other.sentence) for other in other_proposals(stored))


def _facts(row: ProposalRow, at: Addresses) -> Iterator[pages.Fact]:
    yield pages.Fact("Proposed by", row.by_name)
    yield pages.Fact("When", time_text(row.created_at))
    if row.preview:
        yield pages.Fact("Previewed in", "this preview", at.contract_preview(row.preview))
    if row.outcome:
        yield pages.Fact(f"{row.outcome.value.capitalize()} by", row.decided_by)
        yield pages.Fact("When", time_text(row.decided_at))
        yield pages.Fact("Why", row.decision_reason)
    if row.regrade:
        yield pages.Fact("Trials graded in", f"regrade {row.regrade}", at.regrade(row.regrade))


def _regrade_work(row: ProposalRow, at: Addresses) -> pages.Work | None:
    """The regrade of an approved proposal, while it has not come to its end."""
    if row.regrade is None or row.regrade_state in (None, WorkState.DONE):
        return None
    state = row.regrade_state
    n_total = row.regrade_total
    so_far = (
        "The trials are being counted."
        if n_total is None
        else f"{row.regrade_done:,} of {counted(n_total, 'trial')} graded."
    )
    is_open = state in (WorkState.WAITING, WorkState.WORKING)
    return pages.Work(
        heading=f"Regrade {row.regrade}",
        sentence=f"{so_far} Pages decide a task by the new contract once all its trials are "
        "graded.",
        badge=work_badge(state),
        percent=percent_done(row.regrade_done, n_total) if is_open else None,
        is_moving=is_open,
        href=at.regrade(row.regrade),
    )


def _proposed_drafts(
    system_id: int, versions: Sequence[VersionRow], tests: Sequence[GraderTest], at: Addresses
) -> Iterator[pages.DraftedTask]:
    shown = versions[:LISTED_DRAFTS]
    before = texts_of(system_id, [row.based_on for row in shown if row.based_on])
    for row in shown:
        earlier = before.get(row.based_on, "") if row.based_on else ""
        own = [test for test in tests if test.task_id == row.task_id]
        yield pages.DraftedTask(
            task=pages.Link(row.task_id, at.contract_of(row.task_uuid)),
            badge=pages.Badge(f"version {row.number}"),
            change=change_of(earlier, row.text, before=row.based_on_number),
            tests=grader_test_rows(own),
            tests_words=grader_tests_words(own),
            edit_url="",
            version_url=at.contract_version(row.uuid),
        )
