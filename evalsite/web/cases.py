"""The queue of cases, and one case."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import count_text, counted
from evalsite.common.shell import Crumb, Option, Pager
from evalsite.web.case_filters import SPLITS, CaseFilters
from evalsite.web.case_page import case_page
from evalsite.web.case_reasons import TrialReasons, reasons_of
from evalsite.web.case_words import ACTIONS, age_text, due_of, next_steps, short_action, today_of
from reviews.models import CaseState
from reviews.selectors.case_history import rerun_asks
from reviews.selectors.cases import (
    CasePage,
    CaseTotals,
    ListedCase,
    Place,
    case_of,
    case_totals,
    listed_cases,
)
from traces.core.records import Disposition
from traces.models import Role
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.cases import CaseListPage, CaseRow, NextStep
from traces.web.rows import STATES, trial_label
from traces.web.shell import system_shell

MOST_REASONS = 2  # tags in a row of the queue
NO_CASE = "There is no such case in this system."
_SUB = (
    "Each is a trial that the evidence does not decide. It closes by itself when its next action "
    "is done."
)


@require_GET
@in_system()
def case_list(request: SystemRequest) -> HttpResponse:
    """The queue: what waits, why, what is to do next, and who does it."""
    access = request.access
    now = timezone.now()
    at = Addresses.of(access.system.slug)
    filters = CaseFilters.of(request, now=now)
    found = listed_cases(
        filters.chosen,
        after=Place.of(request.GET.get("after", "")),
        before=Place.of(request.GET.get("before", "")),
    )
    totals = case_totals(filters.chosen, person_pk=access.user.pk)
    reasons = reasons_of([row.trial_pk for row in found.rows if row.next_actions])
    asked = rerun_asks([row.pk for row in found.rows])
    is_waiting = filters.state == "open"
    page = CaseListPage(
        shell=system_shell(access, section="Cases"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Cases")),
        heading=heading_of(totals) if is_waiting else _past_heading(totals, filters.state),
        sub=_SUB,
        tabs=filters.tabs(totals, at),
        who=filters.who_choices(at, me=access.user.printed_name),
        who_label=filters.who_label(),
        releases=filters.release_choices(at),
        release_label=filters.release.label if filters.release else "all",
        filter=filters.form(at),
        rows=tuple(
            _row(each, reasons.get(each.trial_pk), filters, access, at, now, each.pk in asked)
            for each in found.rows
        ),
        pager=_pager(found, filters, at),
        is_waiting=is_waiting,
        assign_url=f"{at.assign_cases}{_here(request, filters)}" if is_waiting else "",
        may_take=access.role in (Role.ENGINEER, Role.REVIEWER),
        workers=tuple(
            Option(str(each.uuid), f"{each.name} ({each.role.value})") for each in filters.workers
        ),
        why_not=access.refusal(Act.WORK),
        empty=None if found.rows else _nothing(totals, filters, at),
    )
    return render(request, "reviews/case_list.html", {"page": page})


def heading_of(totals: CaseTotals) -> str:
    """How many cases wait in the system, and how many of them for the person."""
    if not totals.n_open:
        return "No case waits"
    waits = "case waits" if totals.n_open == 1 else "cases wait"
    mine = f"{count_text(totals.n_mine)} of them for you" if totals.n_mine else "none for you yet"
    if totals.n_mine == totals.n_open:
        mine = "for you" if totals.n_open == 1 else "all for you"
    return f"{count_text(totals.n_open)} {waits}, {mine}"


def _past_heading(totals: CaseTotals, state: str) -> str:
    """How many cases there are of a kind that does not only wait."""
    words = {"closed": "closed", "set_aside": "set aside"}.get(state, "in all")
    return f"{counted(totals.n, 'case')} {words}" if totals.n else f"No case {words}"


def _here(request: SystemRequest, filters: CaseFilters) -> str:
    """The query of this very page, to come back to it."""
    place = {name: request.GET[name] for name in ("after", "before") if name in request.GET}
    return filters.query(**{k: v for k, v in place.items() if Place.of(v)})


def _row(
    case: ListedCase,
    reasons: TrialReasons | None,
    filters: CaseFilters,
    access: Access,
    at: Addresses,
    now: datetime,
    is_rerun_asked: bool,  # noqa: FBT001 - a cell of the row
) -> CaseRow:
    is_mine = case.assignee_pk == access.user.pk
    is_waiting = case.state is CaseState.OPEN
    why, detail = _why(case, reasons)
    return CaseRow(
        id=f"case-{case.uuid}",
        value=f"{case.uuid}:{case.assignee_uuid or ''}",
        trial=pages.Link(
            f"{case.task_id} · trial {trial_label(case.label, case.attempt)}",
            f"{at.case(case.uuid)}{filters.query()}",
        ),
        title=case.task_title,
        below=tuple(
            each
            for each in (
                case.release_name or NO_RELEASE,
                case.family,
                SPLITS.get(case.split, case.split),
            )
            if each
        ),
        why=why,
        why_detail=detail,
        steps=_steps(case, reasons),
        who="you" if is_mine else case.assignee_name or case.worked_by,
        is_role=case.assignee_pk is None,
        age=age_text(case.closed_at or case.opened_at, now),
        opened_at=case.closed_at or case.opened_at,
        due=due_of(case.due_on, today_of(now), is_waiting=is_waiting),
        state=None if is_waiting else _state(case),
        is_mine=is_mine,
        n_comments=case.n_comments,
        is_rerun_asked=is_rerun_asked,
    )


def _steps(case: ListedCase, reasons: TrialReasons | None) -> tuple[NextStep, ...]:
    """What is to do next; of a closed case, what was."""
    if not case.next_actions:
        return (NextStep("Was", ACTIONS[case.action].name.lower()),)
    return next_steps(
        case.next_actions,
        reasons.standings if reasons else (),
        missing=reasons.missing if reasons else (),
    )


def _why(case: ListedCase, reasons: TrialReasons | None) -> tuple[tuple[pages.Badge, ...], str]:
    """Why a case is one, in a few words, and the criteria or the error behind it."""
    if case.disposition == Disposition.HARNESS_ERROR.value:
        return (pages.Badge(short_action(case.action), "harness-error"),), case.error
    if not case.next_actions:
        return (), ""
    if reasons and reasons.short:
        words = tuple(dict.fromkeys(reasons.short))
        badges = tuple(pages.Badge(each, "unresolved") for each in words[:MOST_REASONS])
        more = len(words) - len(badges)
        names = ", ".join(case.why)
        return badges, f"{names}; {counted(more, 'more reason')}" if more else names
    missing = reasons.missing if reasons else ()
    if missing:
        return (pages.Badge("evidence missing", "unresolved"),), ", ".join(missing)
    said = short_action(case.action) if case.why else "nothing is required of it"
    return (pages.Badge(said, "unresolved"),), ", ".join(case.why)


def _state(case: ListedCase) -> pages.Badge:
    if case.state is CaseState.SET_ASIDE:
        return pages.Badge("set aside")
    disposition = Disposition(case.disposition)
    return pages.Badge(disposition.value.replace("_", " "), STATES[disposition])


def _pager(found: CasePage, filters: CaseFilters, at: Addresses) -> Pager:
    before, after = found.previous_before, found.next_after
    values = filters.values
    return Pager(
        previous_url=address(at.cases, {**values, "before": str(before)}) if before else "",
        next_url=address(at.cases, {**values, "after": str(after)}) if after else "",
    )


def _nothing(totals: CaseTotals, filters: CaseFilters, at: Addresses) -> pages.Empty:
    if filters.is_filtered:
        return pages.Empty(
            heading="No case is like that",
            sentence="Take a filter away, or look at closed cases too.",
            act=pages.Link("All cases", address(at.cases, {"state": "all"})),
        )
    match filters.state:
        case "closed":
            return pages.Empty(
                "No closed case", "A case that was settled stays here with its history."
            )
        case "set_aside":
            return pages.Empty(
                "No case is set aside", "Whoever works on cases sets one aside with a reason."
            )
        case _:
            sentence = (
                "Every trial so far is decided by its evidence."
                if not totals.n_open
                else "Go back to the first page."
            )
            return pages.Empty("No case waits", sentence, act=pages.Link("All trials", at.trials))


@require_GET
@in_system()
def case_detail(request: SystemRequest, case: UUID) -> HttpResponse:
    """One case: why it waits, and the way to do each of its next actions."""
    found = case_of(request.access.system.pk, case)
    if found is None:
        raise Http404(NO_CASE)
    page = case_page(request, found, CaseFilters.of(request, now=timezone.now()))
    return render(request, "reviews/case_detail.html", {"page": page})
