"""Contracts: the list, one task, one version."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Choice, Crumb, Option
from evalsite.web.contract_rows import (
    body_of,
    change_of,
    decision_words,
    marks_by_criterion,
    proposal_line,
    proposal_link,
    version_badge,
    version_line,
)
from evalsite.web.contract_tabs import CONTRACTS, PROPOSALS, contract_tabs, proposals_url
from reviews.core.contract_drafts import contract_of_text
from reviews.permissions.contracts import OtherProposal, open_proposals_for
from reviews.selectors.contracts import (
    ContractFilter,
    ContractRow,
    ContractState,
    ContractTotals,
    VersionRow,
    contract_page,
    contract_totals,
    contracts_in_effect,
    drafts_of,
    marks_of,
    n_open_proposals,
    proposal_page,
    version_before,
    version_in_effect,
    version_page,
    version_row,
)
from traces.core.contracts.writing import join_documents
from traces.models import Task
from traces.services.families import SPLIT_WORDS
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, text_in
from traces.web.downloads import attachment
from traces.web.shell import system_shell

_STATE_WORDS = {
    ContractState.ALL: "All tasks",
    ContractState.IN_EFFECT: "With contract",
    ContractState.NONE: "Without",
    ContractState.WAITING: "Waiting",
}
_STATE_HELP = {
    ContractState.ALL: "",
    ContractState.IN_EFFECT: "Tasks whose trials are decided by a contract.",
    ContractState.NONE: "Tasks whose trials are decided by whatever verdicts came with them.",
    ContractState.WAITING: "Tasks for which a contract waits for a decision or is not in effect yet.",
}
YAML = "application/yaml; charset=utf-8"


@require_GET
@in_system()
def contract_list(request: SystemRequest) -> HttpResponse:
    """The tasks with their contracts, or the proposals."""
    if request.GET.get("view") == "proposals":
        return _proposals(request)
    access = request.access
    at = Addresses.of(access.system.slug)
    word = request.GET.get("state", "")
    chosen = ContractFilter(
        access.system.pk,
        state=ContractState(word) if word in set(ContractState) else ContractState.ALL,
        family=text_in(request, "family"),
        words=text_in(request, "q"),
    )
    found = contract_page(
        chosen, after=number_in(request, "after"), before=number_in(request, "before")
    )
    totals = contract_totals(chosen)
    may_propose = access.may(Act.CONTRIBUTE)
    kept = _kept(chosen)
    page = pages.ContractListPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Contracts")),
        tabs=contract_tabs(at, CONTRACTS, n_open=n_open_proposals(access.system.pk)),
        sentence=_sentence(totals),
        states=tuple(_states(chosen, totals, at)),
        families=(
            Option("", "All families", is_selected=not chosen.family),
            *(Option(name, name, name == chosen.family) for name in totals.families),
        )
        if totals.families
        else (),
        query=chosen.words,
        action=at.contracts,
        hidden=(pages.Hidden("state", chosen.state.value),)
        if chosen.state is not ContractState.ALL
        else (),
        clear_url=address(at.contracts, {"state": kept["state"]})
        if chosen.family or chosen.words
        else "",
        rows=tuple(_row(row, at) for row in found.rows),
        drafts=_drafts(access, at) if may_propose else (),
        pager=pager_of(found, at.contracts, kept),
        empty=None if found.rows else _empty(chosen, totals, access, at),
        new_url=at.contract_form if may_propose else "",
        load_url=at.contract_load if may_propose else "",
        export_url=at.contract_export if totals.n_in_effect else "",
        schema_url=reverse("contract-schema"),
        why_not=access.refusal(Act.CONTRIBUTE),
    )
    return render(request, "traces/contract_list.html", {"page": page})


def _kept(chosen: ContractFilter) -> dict[str, Value]:
    state = "" if chosen.state is ContractState.ALL else chosen.state.value
    return {"state": state, "family": chosen.family, "q": chosen.words}


def _states(chosen: ContractFilter, totals: ContractTotals, at: Addresses) -> Iterator[Choice]:
    for state, words in _STATE_WORDS.items():
        values = {**_kept(chosen), "state": "" if state is ContractState.ALL else state.value}
        yield Choice(
            words,
            address(at.contracts, values),
            is_current=state is chosen.state,
            count=totals.of(state),
            help=_STATE_HELP[state],
        )


def _sentence(totals: ContractTotals) -> str:
    if not totals.n_all:
        return "A contract says what a task requires, so that every trial is decided from evidence."
    if not totals.n_none:
        return "Every task has a contract in effect, which decides its trials."
    return (
        f"{totals.n_in_effect:,} of {counted(totals.n_all, 'task')} with a contract in effect. "
        "Trials of the others are decided by the verdicts that came with them."
    )


def _row(row: ContractRow, at: Addresses) -> pages.ContractLine:
    if row.version is not None:
        badge = pages.Badge(f"version {row.number}", "pass")
    else:
        badge = pages.Badge("no contract")
    waiting = None
    if row.waiting is not None:
        words = "approved, not in effect yet" if row.is_waiting_approved else "waits for a decision"
        waiting = pages.Link(f"proposal {row.waiting}", at.contract_proposal(row.waiting), words)
    return pages.ContractLine(
        task=pages.Link(row.task_id, at.contract_of(row.uuid)),
        title=row.title,
        family=row.family,
        split=SPLIT_WORDS.get(row.split, row.split) if row.split else "",
        n_trials=row.n_trials,
        badge=badge,
        waiting=waiting,
    )


def _drafts(access: Access, at: Addresses) -> tuple[pages.Link, ...]:
    return tuple(
        pages.Link(
            f"{draft.tasks[0]} and {counted(len(draft.tasks) - 1, 'more task')}"
            if len(draft.tasks) > 1
            else draft.tasks[0],
            at.contract_preview(draft.uuid),
            title=time_text(draft.asked_at),
        )
        for draft in drafts_of(access.system.pk, access.user.pk)
    )


def _empty(
    chosen: ContractFilter, totals: ContractTotals, access: Access, at: Addresses
) -> pages.Empty:
    if chosen.family or chosen.words:
        clear = pages.Link("Show all tasks", at.contracts)
        return pages.Empty("No task fits", "No task has that family and words.", clear)
    if totals.n_all and chosen.state is ContractState.WAITING:
        return pages.Empty("Nothing waits", "No contract waits for a decision or for its regrade.")
    if totals.n_all and chosen.state is ContractState.IN_EFFECT:
        return pages.Empty(
            "No contract in effect",
            "Open a task below “Without” and write its contract: a draft is made from the task's "
            "definition.",
            pages.Link("Tasks without a contract", address(at.contracts, {"state": "without"})),
        )
    if totals.n_all:
        return pages.Empty("Every task has a contract", "Nothing is left to write here.")
    if access.may(Act.CONTRIBUTE):
        return pages.Empty(
            "No task yet",
            "Upload trials, and their tasks appear here; or write the contract of a task that is "
            "still to be tried.",
            pages.Link("Write a contract", at.contract_form),
        )
    return pages.Empty("No task yet", "An engineer uploads trials or writes a first contract.")


def _proposals(request: SystemRequest) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    only_open = request.GET.get("state") == "open"
    found = proposal_page(
        access.system.pk,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
        only_open=only_open,
    )
    n_open = n_open_proposals(access.system.pk)
    kept: dict[str, Value] = {"view": "proposals", "state": "open" if only_open else ""}
    page = pages.ProposalListPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb("Proposals"),
        ),
        tabs=contract_tabs(at, PROPOSALS, n_open=n_open),
        states=(
            Choice("All", proposals_url(at), is_current=not only_open),
            Choice(
                "Waiting",
                address(at.contracts, {"view": "proposals", "state": "open"}),
                is_current=only_open,
                count=n_open,
                help="Proposals on which nobody has decided.",
            ),
        ),
        rows=tuple(proposal_line(row, at) for row in found.rows),
        pager=pager_of(found, at.contracts, kept),
        empty=None if found.rows else _no_proposal(access, at, only_open=only_open),
    )
    return render(request, "traces/contract_proposals.html", {"page": page})


def _no_proposal(access: Access, at: Addresses, *, only_open: bool) -> pages.Empty:
    if only_open:
        every = pages.Link("All proposals", proposals_url(at))
        return pages.Empty("Nothing waits", "Somebody has decided on every proposal.", every)
    if access.may(Act.CONTRIBUTE):
        return pages.Empty(
            "No proposal yet",
            "Write a contract, see what it would change, and propose it; a reviewer or an owner "
            "decides.",
            pages.Link("Write a contract", at.contract_form),
        )
    return pages.Empty("No proposal yet", "An engineer of this system proposes contracts.")


@require_GET
@in_system()
def contract_detail(request: SystemRequest, task: UUID) -> HttpResponse:
    """The contract of a task: the version in effect, and its history."""
    access = request.access
    stored = Task.objects.filter(system=access.system, uuid=task).first()
    if stored is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(access.system.slug)
    here = at.contract_of(stored.uuid)
    current = version_in_effect(access.system.pk, stored.pk)
    marks = marks_of(stored.pk)
    history = version_page(
        access.system.pk,
        stored.pk,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    others = open_proposals_for(access.system.pk, [stored.task_id])
    may_propose = access.may(Act.CONTRIBUTE)
    edit_url = address(at.contract_form, {"task": stored.uuid}) if may_propose else ""
    contract = contract_of_text(current.text) if current else None
    page = pages.ContractDetailPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb(stored.task_id),
        ),
        heading=stored.title or stored.task_id,
        sentence=_detail_sentence(current),
        badge=version_badge(current) if current else pages.Badge("no contract"),
        notices=tuple(pages.Notice(_waits(other)) for other in others),
        proposals=tuple(proposal_link(other.number, at) for other in others),
        task=pages.Link(stored.task_id, at.task(stored.uuid)),
        body=body_of(current.text, at, marks=marks) if current else None,
        empty=None if current else _no_contract(edit_url),
        fixture_marks=marks_by_criterion(contract, marks, at).get("", ()) if contract else (),
        history=tuple(version_line(row, at) for row in history.rows),
        pager=pager_of(history, here, {}, place="#history"),
        edit_url=edit_url,
        why_not=access.refusal(Act.CONTRIBUTE),
        file_url=address(at.contract_export, {"task": stored.uuid}) if current else "",
    )
    return render(request, "traces/contract_detail.html", {"page": page})


def _waits(other: OtherProposal) -> str:
    if other.is_approved:
        return f"Proposal {other.number} is approved: its version comes into effect once all trials are graded."
    return f"Proposal {other.number} waits for a decision by a reviewer or an owner."


def _detail_sentence(current: VersionRow | None) -> str:
    if current is None:
        return "Trials of this task are decided by the verdicts that came with them."
    decided = decision_words(current.outcome, current.decided_by)
    return (
        f"Version {current.number} decides the trials of this task. Proposed by "
        f"{current.by_name}, {decided}, {time_text(current.decided_at)}."
    )


def _no_contract(edit_url: str) -> pages.Empty:
    sentence = (
        "A contract says in which state the environment must be left, what must have happened and "
        "what must not. "
    )
    if not edit_url:
        return pages.Empty("No contract yet", f"{sentence}An engineer of this system writes it.")
    return pages.Empty(
        "No contract yet",
        f"{sentence}A first draft is made from what the task's definition says.",
        pages.Link("Write its contract", edit_url),
    )


@require_GET
@in_system()
def contract_version(request: SystemRequest, version: UUID) -> HttpResponse:
    """One version: what it changes, and all that it says."""
    access = request.access
    row = version_row(access.system.pk, version)
    if row is None:
        raise Http404("There is no such version of a contract in this system.")
    at = Addresses.of(access.system.slug)
    before = version_before(row, access.system.pk)
    may_propose = access.may(Act.CONTRIBUTE)
    page = pages.ContractVersionPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb(row.task_id, at.contract_of(row.task_uuid)),
            Crumb(f"Version {row.number}"),
        ),
        heading=f"Version {row.number}",
        sentence=f"The contract of task {row.task_id}, as {row.by_name} proposed it on "
        f"{time_text(row.created_at)}.",
        badge=version_badge(row),
        facts=tuple(_version_facts(row, before, at)),
        reason=row.reason,
        change=change_of(before.text, row.text, before=before.number) if before else None,
        body=body_of(row.text, at),
        edit_url=address(at.contract_form, {"task": row.task_uuid, "version": row.uuid})
        if may_propose
        else "",
        file_url=address(at.contract_export, {"version": row.uuid}),
    )
    return render(request, "traces/contract_version.html", {"page": page})


def _version_facts(
    row: VersionRow, before: VersionRow | None, at: Addresses
) -> Iterator[pages.Fact]:
    yield pages.Fact("Task", row.task_id, at.contract_of(row.task_uuid))
    link = proposal_link(row.proposal, at)
    yield pages.Fact("Proposed in", link.label, link.href)
    if before is None:
        yield pages.Fact("Based on", "no contract: it is the first")
    else:
        yield pages.Fact("Based on", f"version {before.number}", at.contract_version(before.uuid))
    if row.outcome:
        words = decision_words(row.outcome, row.decided_by).capitalize()
        yield pages.Fact("Decision", f"{words}, {time_text(row.decided_at)}")
    if row.regrade:
        yield pages.Fact("Trials graded in", f"regrade {row.regrade}", at.regrade(row.regrade))
    yield pages.Fact("Digest", row.digest.hex)


@require_GET
@in_system()
def contract_export(request: SystemRequest) -> HttpResponseBase:
    """Contracts as a file: all that are in effect, of one task, or one version."""
    system = request.access.system
    if "version" in request.GET:
        row = version_row(system.pk, _uuid_or_404(request.GET["version"]))
        if row is None:
            raise Http404("There is no such version of a contract in this system.")
        return _file(row.text, f"{row.task_id}.v{row.number}.yaml")
    if "task" in request.GET:
        task = Task.objects.filter(system=system, uuid=_uuid_or_404(request.GET["task"])).first()
        current = version_in_effect(system.pk, task.pk) if task else None
        if current is None:
            raise Http404("No such task of this system has a contract in effect.")
        return _file(current.text, f"{current.task_id}.yaml")
    texts = [each.text for each in contracts_in_effect(system.pk)]
    return _file(join_documents(texts), f"{system.slug}.contracts.yaml")


def _file(text: str, name: str) -> HttpResponseBase:
    return attachment([text.encode()], file_name=name, content_type=YAML)


def _uuid_or_404(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError:
        raise Http404("There is no such address.") from None
