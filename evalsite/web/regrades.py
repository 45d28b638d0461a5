"""Regrades: what grading stored trials again changed, apart from fresh runs."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from django import forms
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, duration_text, time_text
from evalsite.common.shell import Crumb, Pager
from evalsite.web.contract_effects import regrade_effect
from evalsite.web.contract_rows import proposal_link, tasks_words
from evalsite.web.contract_tabs import REGRADES, contract_tabs
from reviews.models import Regrade
from reviews.selectors.regrades import PAGE, RegradeRow, regrade_row, regrade_rows, tasks_by_id
from reviews.services.regrades import (
    LONGEST_REASON,
    RegradeError,
    restart_regrade,
    start_regrade,
    stop_regrade,
)
from traces.models import Task, WorkState
from traces.selectors.rules_work import percent_done
from traces.tasks import hint_regrade
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.polling import polled
from traces.web.rule_rows import work_badge
from traces.web.shell import system_shell


class RegradeForm(forms.Form):
    """Has all trials of the system, or those of one task, graded again."""

    task = forms.CharField(
        max_length=512,
        required=False,
        label="Task",
        help_text="Its id; empty for every task that has a contract.",
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        label="Why",
        widget=forms.Textarea(attrs={"rows": 2}),
        error_messages={"required": "Say why, in a sentence."},
    )


@require_GET
@in_system()
def regrade_list(request: SystemRequest) -> HttpResponse:
    """The regrades of a system, newest first."""
    return _list(request)


@require_POST
@in_system(Act.RECOMPUTE)
def regrade_new(request: SystemRequest) -> HttpResponse:
    """Have stored trials graded again under the contracts in effect."""
    system = request.access.system
    form = RegradeForm(request.POST)
    if not form.is_valid():
        return _list(request, form=form)
    tasks = Task.objects.filter(system=system)
    if named := form.cleaned_data["task"]:
        tasks = tasks.filter(task_id=named)
        if not tasks:
            form.add_error("task", "There is no task of this id in this system.")
            return _list(request, form=form)
    try:
        regrade = start_regrade(
            system,
            tasks=tasks,
            reason=form.cleaned_data["reason"],
            by=request.access.user,
            now=timezone.now(),
        )
    except RegradeError as error:
        return _list(request, form=form, error=str(error))
    hint_regrade(regrade.pk)
    return redirect("regrade-detail", slug=system.slug, number=regrade.number)


@require_GET
@in_system()
def regrade_detail(request: SystemRequest, number: int) -> HttpResponse:
    """One regrade: how far it is, and what it changed."""
    return _page(request, _found(request, number))


@require_POST
@in_system(Act.RECOMPUTE)
def regrade_work(request: SystemRequest, number: int) -> HttpResponse:
    """Stop a regrade, or take it up again."""
    row = _found(request, number)
    stored = Regrade.objects.select_related("system").get(pk=row.pk)
    act = request.POST.get("act", "")
    try:
        if act == "stop":
            stop_regrade(stored, by=request.access.user, now=timezone.now())
        elif act == "restart":
            restart_regrade(stored, by=request.access.user, now=timezone.now())
            hint_regrade(stored.pk)
        else:
            return _page(request, row, error="Say whether to stop or to restart the work.")
    except RegradeError as error:
        return _page(request, _found(request, number), error=str(error))
    return redirect("regrade-detail", slug=request.access.system.slug, number=number)


def _found(request: SystemRequest, number: int) -> RegradeRow:
    row = regrade_row(request.access.system, number)
    if row is None:
        raise Http404("There is no such regrade in this system.")
    return row


def _list(
    request: SystemRequest, *, form: RegradeForm | None = None, error: str = ""
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    before = number_in(request, "before")
    found = regrade_rows(access.system, before=before)
    rows = found[:PAGE]
    why_not = access.refusal(Act.RECOMPUTE)
    has_contract = Task.objects.filter(system=access.system, contract__isnull=False).exists()
    page = pages.RegradeListPage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb(REGRADES)),
        tabs=contract_tabs(at, REGRADES),
        rows=tuple(_line(row, at) for row in rows),
        pager=Pager(
            previous_url=at.regrades if before else "",
            next_url=address(at.regrades, {"before": rows[-1].number}) if len(found) > PAGE else "",
        ),
        empty=None if rows else _empty(before),
        form=(form or RegradeForm()) if has_contract and not why_not else None,
        action=at.new_regrade,
        error=error,
        why_not=why_not if has_contract else "",
    )
    status = 422 if form is not None else 200
    return render(request, "traces/regrade_list.html", {"page": page}, status=status)


def _empty(before: int | None) -> pages.Empty:
    if before:
        return pages.Empty("No regrade before that one", "Go back to the newest ones.")
    return pages.Empty(
        "Nothing was graded again",
        "When a proposal of contracts is approved, the stored trials of its tasks are graded under "
        "them, and what that changes stands here.",
    )


def _line(row: RegradeRow, at: Addresses) -> pages.RegradeLine:
    n_trials, n_changed = row.result.n_trials, row.result.n_changed
    return pages.RegradeLine(
        label=f"Regrade {row.number}",
        href=at.regrade(row.number),
        badge=work_badge(row.state),
        tasks=tasks_words(row.tasks, row.n_tasks),
        why=row.reason,
        by=row.by_name or "the operator",
        at=row.asked_at,
        proposal=proposal_link(row.proposal, at) if row.proposal else None,
        change=f"{n_changed:,} of {counted(n_trials, 'trial')} came out otherwise"
        if n_trials
        else "",
    )


def _page(request: SystemRequest, row: RegradeRow, *, error: str = "") -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    here = at.regrade(row.number)
    named = {task.task_id for task in row.result.tasks}
    tasks = tasks_by_id(access.system, named) if named else {}
    page = pages.RegradePage(
        shell=system_shell(access, section="Contracts"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Contracts", at.contracts),
            Crumb(REGRADES, at.regrades),
            Crumb(f"Regrade {row.number}"),
        ),
        heading=f"Regrade {row.number}",
        sentence=_sentence(row),
        badge=work_badge(row.state),
        error=error,
        work=_work(row, at, why_not=access.refusal(Act.RECOMPUTE)),
        poll_url=here if row.is_open else "",
        refresh_url=here,
        facts=tuple(_facts(row, at)),
        reason=row.reason,
        effect=regrade_effect(row.result, tasks, at) if row.result.tasks else None,
        effect_words=_nothing(row),
    )
    answer = render(
        request, "traces/regrade_detail.html", {"page": page}, status=422 if error else 200
    )
    return polled(request, answer, is_moving=bool(page.poll_url))


def _sentence(row: RegradeRow) -> str:
    tasks = counted(row.n_tasks, "task")
    if row.proposal:
        return (
            f"Stored trials of {tasks} graded under the contracts of proposal {row.proposal}. "
            "A task's new contract takes effect when all its trials are graded."
        )
    return f"Stored trials of {tasks} graded again under the contracts in effect."


def _nothing(row: RegradeRow) -> str:
    if row.is_open:
        return "What changes stands here as soon as the first task is done."
    return "Nothing took effect."


def _work(row: RegradeRow, at: Addresses, *, why_not: str) -> pages.Work | None:
    if row.state is WorkState.DONE:
        return None
    heading = {
        WorkState.WAITING: "It waits for a worker",
        WorkState.WORKING: "Trials are being graded",
        WorkState.CANCELLED: f"Stopped by {row.cancelled_by or 'the operator'}",
        WorkState.FAILED: "It could not be worked out",
    }[row.state]
    done = f"{row.n_tasks_done:,} of {counted(row.n_tasks, 'task')} decided anew."
    graded = (
        "" if row.n_total is None else f"{row.n_done:,} of {counted(row.n_total, 'trial')} graded. "
    )
    return pages.Work(
        heading=heading,
        sentence=f"{graded}{done} Pages show the other tasks as they were.",
        badge=work_badge(row.state),
        percent=percent_done(row.n_done, row.n_total) if row.is_open else None,
        is_moving=row.is_open,
        failure=row.failure,
        action=f"{at.regrade(row.number)}work",
        may_stop=not why_not and row.is_open,
        may_restart=not why_not and not row.is_open,
        why_not=why_not,
    )


def _facts(row: RegradeRow, at: Addresses) -> Iterator[pages.Fact]:
    yield pages.Fact("Approved by" if row.proposal else "Asked for by", row.by_name or "operator")
    yield pages.Fact("When", time_text(row.asked_at))
    if row.proposal:
        link = proposal_link(row.proposal, at)
        yield pages.Fact("Proposal", link.label, link.href)
    yield pages.Fact("Tasks", tasks_words(row.tasks, row.n_tasks))
    yield pages.Fact("Verdicts added", f"{row.n_verdicts:,}")
    yield from _took(row)


def _took(row: RegradeRow) -> tuple[pages.Fact, ...]:
    """How long finished work took, and at which rate."""
    if row.state is not WorkState.DONE or not row.started_at or not row.finished_at:
        return ()
    seconds = (row.finished_at - row.started_at).total_seconds()
    rate = f", {row.n_done / seconds:,.0f} a second" if seconds >= 1 and row.n_done else ""
    took = duration_text(Decimal(seconds))
    return (pages.Fact("Graded in", f"{took}: {counted(row.n_done, 'trial')}{rate}"),)
