"""Production traces: graded as trials are, and in no figure of a release."""

from __future__ import annotations

from django.http import HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import NOTHING, counted
from evalsite.common.shell import Crumb, Figure, Option
from evalsite.web.overview_words import (
    TrialLinks,
    actions_table,
    columns,
    count_cell,
    counts_words,
    ending_figures,
    rate_cell,
    rate_words,
    requirements_table,
    safety_table,
)
from reviews.selectors.production import (
    EnvironmentCounts,
    ProductionFigures,
    production_figures,
)
from traces.selectors.trial_list import TrialFilter, TrialScope, listed_trials
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import uuid_of
from traces.web.pages.overview import Cell, FigureTable, ProductionPage
from traces.web.rows import trial_row
from traces.web.shell import system_shell

LISTED_TRIALS = 20


@require_GET
@in_system()
def production(request: SystemRequest) -> HttpResponse:
    """What production traces come to, by environment and requirement, and the newest of them."""
    system = request.access.system
    found = production_figures(system, uuid_of(request.GET.get("release", "")))
    newest = listed_trials(
        TrialFilter(
            system.pk,
            release_pks=(found.release.pk,) if found.release else (),
            scope=TrialScope.PRODUCTION,
        ),
        newest_first=True,
        n=LISTED_TRIALS,
    )
    at = Addresses.of(system.slug)
    rows = tuple(trial_row(row, at) for row in newest.rows)
    return render(
        request, "reviews/production.html", {"page": _page(request.access, found, rows, at)}
    )


def _page(
    access: Access, found: ProductionFigures, rows: tuple[pages.TrialRow, ...], at: Addresses
) -> ProductionPage:
    kept: dict[str, Value] = {
        "scope": TrialScope.PRODUCTION.value,
        "release": found.release.uuid if found.release else "",
    }
    links = TrialLinks(at, kept)
    has_any = bool(found.total.n_run)
    return ProductionPage(
        shell=system_shell(access, section="Production"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Production")),
        sentence=f"{counted(found.total.n_run, 'trace')} from "
        f"{counted(found.n_environments, 'environment')} other than test. The same contracts "
        "decide them, and they enter no figure of a release."
        if has_any
        else "Traces from environments other than test. They enter no figure of a release.",
        releases=(
            Option("", "All releases", is_selected=found.release is None),
            *(
                Option(str(each.uuid), each.label, is_selected=each == found.release)
                for each in found.releases
            ),
        ),
        action=at.production,
        clear_url=at.production if found.release else "",
        figures=_figures(found, links) if has_any else (),
        environments=_environments(found, links) if has_any else None,
        safety=safety_table(
            found.harms,
            links,
            empty="Cannot tell: no contract of these tasks says what is prohibited.",
        )
        if has_any
        else None,
        beside=ending_figures(found.endings, links),
        requirements=requirements_table(
            found.requirements, links, empty="None: no trace here was graded on anything."
        )
        if has_any
        else None,
        actions=actions_table(found.actions, at, {"release": kept["release"]}) if has_any else None,
        rows=rows,
        all_url=links.to(),
        empty=None if has_any else _empty(access, found, at),
    )


def _figures(found: ProductionFigures, links: TrialLinks) -> tuple[Figure, ...]:
    total = found.total

    def count(label: str, n: int, state: str, disposition: str) -> Figure:
        return Figure(
            label,
            f"{n:,}",
            state=state if n else "",
            href=links.to(disposition=disposition) if n else "",
        )

    return (
        Figure(
            "Passed / graded / run",
            rate_words(total.passing.rate),
            detail=counts_words(total.passing),
            help="Of traces that people and code decided. Production traces are no random sample "
            "of tasks.",
        ),
        Figure("Rule-clean", rate_words(total.clean.rate), detail=counts_words(total.clean))
        if found.has_rules
        else Figure("Rule-clean", "none", detail="no rule is checked"),
        Figure(
            "With a prohibited attempt",
            f"{total.n_violating:,}",
            state="fail" if total.n_violating else "",
            href=links.to(prohibited="1") if total.n_violating else "",
        ),
        count("Failed", total.n_fail, "fail", "fail"),
        count("Unresolved", total.n_unresolved, "unresolved", "unresolved"),
        count("Harness errors", total.n_error, "harness-error", "harness_error"),
    )


def _environments(found: ProductionFigures, links: TrialLinks) -> FigureTable:
    left = found.n_environments - len(found.environments)
    return FigureTable(
        id="environments",
        title="By environment",
        sentence="as the traces name it",
        columns=columns(
            "Environment",
            "Passed / graded / run",
            "Rule-clean",
            "Prohibited attempts",
            "Failed",
            "Unresolved",
            "Harness errors",
        ),
        rows=tuple(
            _environment(each, links, has_rules=found.has_rules) for each in found.environments
        ),
        notes=(f"{counted(left, 'more environment')} with fewer traces.",) if left else (),
    )


def _environment(
    each: EnvironmentCounts, links: TrialLinks, *, has_rules: bool
) -> tuple[Cell, ...]:
    def of(**values: Value) -> str:
        return links.to(environment=each.environment, **values)

    return (
        Cell(each.environment, href=of()),
        rate_cell(each.passing),
        rate_cell(each.clean) if has_rules else Cell(NOTHING, is_number=True),
        count_cell(each.n_violating, of(prohibited="1"), state="fail"),
        count_cell(each.n_fail, of(disposition="fail"), state="fail"),
        count_cell(each.n_unresolved, of(disposition="unresolved"), state="unresolved"),
        count_cell(each.n_error, of(disposition="harness_error"), state="harness-error"),
    )


def _empty(access: Access, found: ProductionFigures, at: Addresses) -> pages.Empty:
    if found.release:
        return pages.Empty(
            heading="No production trace of this release",
            sentence="Another release may have some.",
            act=pages.Link("All releases", at.production),
        )
    may_upload = access.may(Act.CONTRIBUTE)
    return pages.Empty(
        heading="No production trace yet",
        sentence='A trace is one of production when its record says so: "environment": "live", or '
        "any word but test.",
        act=pages.Link("Upload traces", address(at.new_upload, {})) if may_upload else None,
    )
