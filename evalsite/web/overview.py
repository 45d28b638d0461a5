"""The overview of a system: one page that leadership can read, and the same as CSV and JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from django.http import Http404, HttpResponse, HttpResponseBase, JsonResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import NOTHING, counted, duration_text, money_text
from evalsite.common.shell import Choice, Crumb, Figure, Option
from evalsite.web.overview_change import change_part
from evalsite.web.overview_words import (
    COUNTS_WORDS,
    TrialLinks,
    actions_table,
    columns,
    count_cell,
    counts_words,
    decimal_words,
    ending_figures,
    interval_words,
    points_words,
    range_words,
    rate_bar,
    rate_cell,
    rate_words,
    ratio_words,
    requirements_table,
    safety_table,
)
from reviews.api.overview import overview_csv_lines, overview_document
from reviews.charts.overview import RateLine, rates_over_releases
from reviews.core.estimators import Counts, clopper_pearson
from reviews.core.overview import MOST_K, Slice, Spread, TaskMean
from reviews.selectors.overview import (
    MOST_RELEASES,
    OverviewFilter,
    SystemOverview,
    system_overview,
)
from traces.models import Split
from traces.selectors.trial_list import TrialScope
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, text_in, uuid_of
from traces.web.downloads import attachment
from traces.web.pages.overview import (
    BigNumber,
    Cell,
    FigureTable,
    Gap,
    OverviewPage,
)
from traces.web.pages.overview import OverviewFilter as FilterForm
from traces.web.shell import system_shell
from traces.web.work_notices import work_notices

SPLIT_WORDS = {
    Split.TUNING.value: "tuning",
    Split.HELD_OUT.value: "held out",
    Split.REGRESSION.value: "regression",
    "none": "no split",
}
_NAMED = 5


@require_GET
@in_system()
def overview(request: SystemRequest) -> HttpResponse:
    """The figures of a release of a system, each with what it is a figure of."""
    found = system_overview(request.access.system, asked_of(request))
    return render(request, "reviews/overview.html", {"page": _page(request.access, found)})


@require_GET
@in_system()
def overview_csv(request: SystemRequest) -> HttpResponseBase:
    """The same figures as a table, one figure a line; safe to open in a spreadsheet."""
    found = _found(request)
    lines = (line.encode() for line in overview_csv_lines(found))
    name = f"{request.access.system.slug}-overview.csv"
    return attachment(lines, file_name=name, content_type="text/csv; charset=utf-8")


@require_GET
@in_system()
def overview_json(request: SystemRequest) -> HttpResponse:
    """The same figures as `manage.py overview --json` prints them."""
    return JsonResponse(overview_document(_found(request)))


def asked_of(request: SystemRequest) -> OverviewFilter:
    """What the query of an address asks for. Nonsense in it asks for nothing."""
    k = number_in(request, "k")
    split = request.GET.get("split", "")
    return OverviewFilter(
        release=uuid_of(request.GET.get("release", "")),
        family=text_in(request, "family", most=200),
        split=split if split in SPLIT_WORDS else "",
        k=k if k and k <= MOST_K else None,
    )


def _found(request: SystemRequest) -> SystemOverview:
    asked = asked_of(request)
    found = system_overview(request.access.system, asked)
    if asked.release and found.release is None:
        raise Http404("There is no such release in this system.")
    return found


@dataclass(frozen=True, slots=True)
class _View:
    """What the parts of the page need: the figures, and where links lead."""

    found: SystemOverview
    at: Addresses

    @property
    def values(self) -> dict[str, Value]:
        """The choices, as the address has them."""
        chosen, release = self.found.chosen, self.found.release
        return {
            "release": release.uuid if chosen.release and release else "",
            "family": chosen.family,
            "split": chosen.split,
            "k": chosen.k,
        }

    @property
    def links(self) -> TrialLinks:
        """The trials that the figures of this release count."""
        return self.links_of()

    def links_of(self, **other: Value) -> TrialLinks:
        chosen, release = self.found.chosen, self.found.release
        is_tuning = chosen.split == Split.TUNING.value
        kept: dict[str, Value] = {
            "release": release.uuid if release else "",
            "scope": (TrialScope.TUNING if is_tuning else TrialScope.FIGURES).value,
            "family": chosen.family,
            "split": chosen.split,
        }
        return TrialLinks(self.at, {**kept, **other})


def _page(access: Access, found: SystemOverview) -> OverviewPage:
    system = access.system
    at = Addresses.of(system.slug)
    view = _View(found, at)
    name = f", release {found.release.label}" if found.release else ""
    head = OverviewPage(
        shell=system_shell(access, section="Overview"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Overview")),
        title=f"{system.name}{name}",
        sentence=_sentence(found),
        filter=_filter(view),
    )
    if not found.figures.n_units:
        return replace(
            head,
            notices=tuple(work_notices(system.pk)),
            empty=_empty(access, view),
            splits=_slices(view, "splits", "By split", found.by_split) if found.by_split else None,
        )
    change = change_part(found, at, k=found.k)
    return replace(
        head,
        notices=(*work_notices(system.pk), *_notices(found)),
        gap=_gap(view),
        numbers=(_outcome(view), _clean(view), _cost(found), _recovery(view)),
        safety=safety_table(
            found.harms,
            view.links,
            empty="Cannot tell: no contract of these tasks says what is prohibited.",
        ),
        beside=ending_figures(found.endings, view.links),
        classes=_classes(view),
        requirements=requirements_table(
            found.requirements, view.links, empty="None: no trial here was graded on anything."
        ),
        actions=actions_table(
            found.actions,
            at,
            {"release": found.release.uuid if found.release else "", "family": found.chosen.family},
        ),
        effort=_effort(found),
        chart=_chart(found),
        releases=_releases(view),
        families=_slices(view, "families", "By family", found.by_family),
        splits=_slices(view, "splits", "By split", found.by_split),
        change=change,
        change_words=""
        if change
        else "This is the first release with trials: there is none before it to compare with.",
        csv_url=address(f"{at.root}overview.csv", view.values),
        json_url=address(f"{at.root}overview.json", view.values),
    )


def _sentence(found: SystemOverview) -> str:
    if not found.figures.n_units:
        return "How the agent does, in figures that never stand without their counts."
    contracts = (
        "all of them decided by contracts"
        if found.n_contract_tasks == found.n_tasks
        else f"{found.n_contract_tasks:,} of them decided by a contract"
        if found.n_contract_tasks
        else "none of them with a contract yet"
    )
    chosen = found.chosen
    of = "".join(
        (
            f" of family {chosen.family}" if chosen.family else "",
            f" of split {SPLIT_WORDS[chosen.split]}" if chosen.split else "",
        )
    )
    return (
        f"{counted(found.figures.outcome.run, 'trial')} of "
        f"{counted(found.n_tasks, 'task')}{of}, {contracts}."
    )


def _filter(view: _View) -> FilterForm:
    found = view.found
    chosen = found.chosen
    release = str(found.release.uuid) if found.release else ""
    splits = [split or "none" for split in found.choices.splits]
    return FilterForm(
        action=view.at.overview,
        releases=tuple(
            Option(str(each.uuid), each.label, is_selected=str(each.uuid) == release)
            for each in found.choices.releases
        ),
        families=(
            Option("", "All families", is_selected=not chosen.family),
            *(Option(f, f, is_selected=f == chosen.family) for f in found.choices.families),
        )
        if found.choices.families
        else (),
        splits=(
            Option("", "All but tuning", is_selected=not chosen.split),
            *(Option(each, SPLIT_WORDS[each], is_selected=each == chosen.split) for each in splits),
        )
        if any(found.choices.splits)
        else (),
        hidden=(pages.Hidden("k", str(chosen.k)),) if chosen.k else (),
        clear_url=view.at.overview if any(view.values.values()) else "",
    )


def _notices(found: SystemOverview) -> tuple[pages.Notice, ...]:
    left_out = [
        words
        for n, words in (
            (found.n_production, f"{counted(found.n_production, 'production trace')}"),
            (found.n_fault, f"{counted(found.n_fault, 'trial')} with an injected fault"),
            (found.n_tuning, f"{counted(found.n_tuning, 'trial')} of split tuning"),
        )
        if n
    ]
    notices: list[pages.Notice] = []
    if left_out:
        notices.append(
            pages.Notice(
                f"Left out of the figures here: {', '.join(left_out)}. Trials with an injected "
                "fault stand in the recovery rate alone."
            )
        )
    if found.chosen.split == Split.TUNING.value:
        notices.append(
            pages.Notice(
                "Split tuning is what the agent was built on: it says nothing about new cases."
            )
        )
    if found.several:
        named = ", ".join(found.several[:_NAMED])
        more = f" and {found.n_several - _NAMED:,} more" if found.n_several > _NAMED else ""
        verb = "has" if found.n_several == 1 else "have"
        notices.append(
            pages.Notice(
                f"{counted(found.n_several, 'task')} {verb} trials of several task or contract "
                "versions. Versions are never pooled: in pass^k and in comparisons each counts as "
                f"a task of its own. {named}{more}."
            )
        )
    return tuple(notices)


def _empty(access: Access, view: _View) -> pages.Empty:
    if view.found.chosen.family or view.found.chosen.split or view.found.by_release:
        return pages.Empty(
            heading="No trial is like that",
            sentence="This release has no trial that figures count in what you chose. "
            "Take a filter away, or choose another release.",
            act=pages.Link("All of the newest release", view.at.overview),
        )
    if view.found.n_tuning or view.found.n_fault or view.found.n_production:
        return pages.Empty(
            heading="No trial that figures count",
            sentence="All trials here are production traces, of split tuning, or with an injected "
            "fault. None of these enter the figures of a release.",
            act=pages.Link("All trials", view.at.trials),
        )
    may_upload = access.may(Act.CONTRIBUTE)
    return pages.Empty(
        heading="No trial yet",
        sentence="Figures come with trials. Upload traces of your agent, then write a contract for "
        "each task, so that it is decided what the agent must do and must never do."
        if may_upload
        else f"Figures come with trials. {access.refusal(Act.CONTRIBUTE)}",
        act=pages.Link("Upload traces", view.at.new_upload) if may_upload else None,
    )


# --- the four numbers


def _gap(view: _View) -> Gap:
    found, figures = view.found, view.found.figures
    outcome, clean = figures.outcome, figures.clean
    reached = f"{outcome.passed:,} of {counted(outcome.graded, 'trial')} reached the outcome"
    if not outcome.graded:
        sentence = "Cannot tell how many trials reached the outcome: none is decided."
    elif not found.has_rules:
        sentence = f"{reached}. Whether by the rules, nobody can tell: no rule is checked."
    else:
        sentence = f"{reached}, {clean.passed:,} of {clean.graded:,} by the rules."
    detail, link = "", None
    if not found.has_rules:
        detail = (
            "Rules are what a contract requires, prohibits and limits. Until there are contracts, "
            "a right outcome by a wrong way looks like a success."
        )
        link = pages.Link("Write contracts", view.at.contracts)
    elif figures.gap is not None:
        broke = counted(figures.n_only_outcome, "trial")
        detail = (
            f"{points_words(-figures.gap)} from outcome rate to rule-clean rate: {broke} reached "
            "the outcome and broke a rule on the way."
            if figures.n_only_outcome
            else "No trial reached the outcome by breaking a rule."
        )
        if figures.n_only_outcome:
            link = pages.Link("Show them", view.links.to(outcome="pass", clean="fail"))
    return Gap(
        sentence=sentence,
        detail=detail,
        outcome=_counts(outcome),
        clean=_counts(clean) if found.has_rules else None,
        outcome_bar=rate_bar(outcome),
        clean_bar=rate_bar(clean) if found.has_rules else None,
        link=link,
    )


def _counts(counts: Counts) -> pages.Counts:
    return pages.Counts(counts.passed, counts.graded, counts.run)


def _outcome(view: _View) -> BigNumber:
    counts = view.found.figures.outcome
    return BigNumber(
        label="Outcome rate",
        value=rate_words(counts.rate),
        detail=f"{counts_words(counts)} {COUNTS_WORDS}",
        bar=rate_bar(counts),
        lines=_rate_lines(counts),
        second=_hat_words(view.found.figures.outcome_hat),
        second_lines=_hat_lines(view.found.figures.outcome_hat),
        links=_rate_links(view, counts, "outcome"),
        help="Trials that left the environment in the required state.",
    )


def _clean(view: _View) -> BigNumber:
    found = view.found
    counts = found.figures.clean
    if not found.has_rules:
        return BigNumber(
            label="Rule-clean rate",
            value="none",
            detail="no rule is checked",
            lines=("Needs contracts, or constraint criteria from files.",),
            links=(pages.Link("Write contracts", view.at.contracts),),
            switch=_switch(view),
            switch_label="k of pass^k",
        )
    return BigNumber(
        label="Rule-clean rate",
        value=rate_words(counts.rate),
        detail=f"{counts_words(counts)} {COUNTS_WORDS}",
        bar=rate_bar(counts),
        lines=_rate_lines(counts),
        second=_hat_words(found.figures.clean_hat),
        second_lines=_hat_lines(found.figures.clean_hat),
        links=_rate_links(view, counts, "clean"),
        help="Outcome reached, every required action done, nothing prohibited, budget kept.",
        switch=_switch(view),
        switch_label="k of pass^k",
    )


def _switch(view: _View) -> tuple[Choice, ...]:
    most = min(view.found.most_k, MOST_K)
    if most == 1:
        return ()
    wanted = sorted({1, 2, 3, 4, 5, 8, 10, most, view.found.k} & set(range(1, most + 1)))
    return tuple(
        Choice(
            f"{k}",
            address(view.at.overview, {**view.values, "k": k}),
            is_current=k == view.found.k,
            help=f"the chance that all of {counted(k, 'trial')} of a task pass",
        )
        for k in wanted
    )


def _rate_lines(counts: Counts) -> tuple[str, ...]:
    lines = [f"range {words}" for words in [range_words(counts.range)] if words]
    interval = interval_words(clopper_pearson(counts.passed, counts.graded))
    if interval:
        lines.append(f"95% interval {interval}")
    return tuple(lines)


def _hat_words(hat: TaskMean) -> str:
    return f"pass^{hat.k} {rate_words(hat.value)}"


def _hat_lines(hat: TaskMean) -> tuple[str, ...]:
    """What pass^k is a mean of, and which tasks have too few trials for it."""
    mean, few = hat.mean, hat.mean.left_out
    lines: list[str] = []
    if mean.value is not None:
        interval = f"; 95% {interval_words(hat.interval)}" if hat.interval else ""
        lines.append(f"mean over {counted(mean.n_tasks, 'task')}{interval}")
    over_slots = range_words(hat.range)
    if over_slots:
        lines.append(f"range {over_slots}, over slots")
    if few:
        named = ", ".join(few[:_NAMED]) + (f" and {len(few) - _NAMED:,} more" * (len(few) > _NAMED))
        have = "has" if len(few) == 1 else "have"
        lines.append(
            f"{counted(len(few), 'task')} {have} fewer than {counted(hat.k, 'graded trial')}: {named}"
        )
    return tuple(lines)


def _rate_links(view: _View, counts: Counts, name: str) -> tuple[pages.Link, ...]:
    links: list[pages.Link] = []
    if counts.failed:
        links.append(pages.Link(f"{counts.failed:,} failed", view.links.to(**{name: "fail"})))
    undecided = counts.unknown - counts.missing
    if undecided:
        links.append(pages.Link(f"{undecided:,} not decided", view.links.to(**{name: "unknown"})))
    return tuple(links)


def _cost(found: SystemOverview) -> BigNumber:
    spent = found.measures
    if not spent.cost.n_known:
        return BigNumber(
            label="Cost per successful trial",
            value="none",
            detail="no trial says what it cost",
            help="A successful trial is a rule-clean one.",
        )
    clean = spent.clean_cost
    success = "rule-clean trial" if found.has_rules else "trial with the outcome"
    successes = "rule-clean trials" if found.has_rules else "trials with the outcome"
    lines = [
        f"all trials: median {money_text(spent.cost.median)}, 95th {money_text(spent.cost.p95)}",
        f"spend per success {_spend(found)}",
        *_known(clean, successes),
        *_known(spent.cost, "trials"),
    ]
    return BigNumber(
        label="Cost per successful trial",
        value="none" if clean.median is None else money_text(clean.median),
        detail=f"median; 95th percentile {money_text(clean.p95)}; "
        f"{counted(clean.n_known, success, successes)}",
        lines=tuple(lines),
        help=f"Median and 95th percentile (nearest rank) over {successes}. Spend per success: the "
        "cost of all trials, divided by these.",
    )


def _spend(found: SystemOverview) -> str:
    spent = found.measures
    if spent.spend_per_success is not None:
        return money_text(spent.spend_per_success)
    return (
        "none: no trial succeeded"
        if not found.figures.clean.passed
        else "cannot tell: some costs are unknown"
    )


def _known(spread: Spread, noun: str) -> tuple[str, ...]:
    if spread.n_known == spread.n:
        return ()
    return (f"cost known for {spread.n_known:,} of {spread.n:,} {noun}",)


def _recovery(view: _View) -> BigNumber:
    recovery = view.found.recovery
    counts = recovery.counts
    if not counts.run:
        return BigNumber(
            label="Recovery rate",
            value="none",
            detail="no trial with an injected fault",
            help="Trials with an injected fault that end rule-clean, or are handed to a person "
            "with nothing prohibited.",
        )
    links = view.links_of(scope=TrialScope.FAULT.value)
    return BigNumber(
        label="Recovery rate",
        value=rate_words(counts.rate),
        detail=f"{counts_words(counts)} recovered / graded / run",
        bar=rate_bar(counts),
        lines=(
            *_rate_lines(counts),
            f"{recovery.n_clean:,} rule-clean, {recovery.n_handed_over:,} handed to a person",
        ),
        links=(pages.Link(f"{counted(counts.run, 'trial')} with a fault", links.to()),),
        help="Trials with an injected fault that end rule-clean, or are handed to a person with "
        "nothing prohibited. They stand in no other figure.",
    )


# --- failures, effort


def _classes(view: _View) -> tuple[Figure, ...]:
    figures = view.found.figures
    n = figures.passing.graded

    def failed(label: str, count: int, name: str, words: str) -> Figure:
        return Figure(
            label,
            f"{count:,}",
            detail=f"of {n:,} graded",
            state="fail" if count else "",
            help=words,
            href=view.links.to(**{"class": name}) if count else "",
        )

    return (
        failed("Outcome failures", figures.failed_outcome, "outcome", "The wrong end state."),
        failed(
            "Constraint violations",
            figures.failed_constraint,
            "constraint",
            "A required action left out, something prohibited, or a budget overrun.",
        )
        if view.found.has_rules
        else Figure("Constraint violations", "none", detail="no rule is checked"),
        failed(
            "Semantic failures",
            figures.failed_semantic,
            "semantic",
            "What was said, as people and calibrated judges decided it.",
        ),
        Figure(
            "Unresolved",
            f"{figures.n_unresolved:,}",
            detail=f"of {figures.passing.run:,} run",
            state="unresolved" if figures.n_unresolved else "",
            href=view.links.to(disposition="unresolved") if figures.n_unresolved else "",
        ),
        Figure(
            "Harness errors",
            f"{figures.n_error:,}",
            detail=f"of {figures.passing.run:,} run",
            state="harness-error" if figures.n_error else "",
            help="The harness broke: no evidence about the agent.",
            href=view.links.to(disposition="harness_error") if figures.n_error else "",
        ),
        Figure(
            "Missing",
            f"{figures.n_missing:,}",
            detail="declared, never came",
            state="unresolved" if figures.n_missing else "",
            href=view.at.runs if figures.n_missing else "",
        ),
    )


def _effort(found: SystemOverview) -> FigureTable:
    spent, efficiency = found.measures, found.efficiency
    success, head = (
        ("are rule-clean", "Rule-clean") if found.has_rules else ("reached the outcome", "Outcome")
    )
    rows = (
        ("Tool calls", spent.calls, spent.clean_calls, decimal_words),
        ("Tokens, in and out", spent.tokens, spent.clean_tokens, decimal_words),
        ("Seconds", spent.seconds, spent.clean_seconds, duration_text),
        ("Cost", spent.cost, spent.clean_cost, money_text),
    )
    notes = [
        "Medians and 95th percentiles (nearest rank) are over trials that recorded the measure."
    ]
    if efficiency.ratio is not None:
        left_out = (
            f"; {counted(efficiency.n_left_out, 'task')} without a passing path that makes a call "
            "left out"
            if efficiency.n_left_out
            else ""
        )
        notes.insert(
            0,
            f"Step efficiency: trials make {ratio_words(efficiency.ratio)} times the tool calls of "
            f"the shortest passing path of their task (mean over "
            f"{counted(efficiency.n_tasks, 'task')}{left_out}).",
        )
    return FigureTable(
        id="effort",
        title="Effort: steps, tokens, time, cost",
        sentence=f"over all trials, and over those that {success}",
        columns=columns(
            "Measure", "All: median", "All: 95th", f"{head}: median", f"{head}: 95th", "Known"
        ),
        rows=tuple(
            (
                Cell(name),
                Cell(words(every.median), is_number=True),
                Cell(words(every.p95), is_number=True),
                Cell(words(clean.median), is_number=True),
                Cell(words(clean.p95), is_number=True),
                Cell(f"{every.n_known:,} / {every.n:,}", is_number=True),
            )
            for name, every, clean, words in rows
        ),
        notes=tuple(notes),
    )


# --- releases, families, splits


def _slice_columns(first: str, k: int) -> tuple[pages.Column, ...]:
    return columns(
        first,
        "Outcome",
        "Range",
        "Rule-clean",
        "Range",
        f"pass^{k}",
        "Outcome failures",
        "Constraint violations",
        "Semantic failures",
        "Unresolved",
        "Harness errors",
        "Missing",
        text=(0, 2, 4),
    )


def _slice_cells(found: SystemOverview, each: Slice) -> tuple[Cell, ...]:
    hat = each.clean_hat if found.has_rules else each.outcome_hat
    tasks = counted(hat.mean.n_tasks, "task")
    return (
        rate_cell(each.outcome),
        Cell("", bar=rate_bar(each.outcome)),
        rate_cell(each.clean) if found.has_rules else Cell(NOTHING, is_number=True),
        Cell("", bar=rate_bar(each.clean) if found.has_rules else None),
        Cell(
            rate_words(hat.value),
            note=f"over {tasks}" if hat.value is not None else "",
            is_number=True,
        ),
        _failed_cell(each.failed_outcome, each),
        _failed_cell(each.failed_constraint, each)
        if found.has_rules
        else Cell(NOTHING, is_number=True),
        _failed_cell(each.failed_semantic, each),
        count_cell(each.n_unresolved, state="unresolved"),
        count_cell(each.n_error, state="harness-error"),
        count_cell(each.n_missing, state="unresolved"),
    )


def _failed_cell(count: int, each: Slice) -> Cell:
    """A number of failures, with what it is a part of."""
    return replace(count_cell(count, state="fail"), note=f"of {each.passing.graded:,}")


def _releases(view: _View) -> FigureTable:
    found = view.found
    return FigureTable(
        id="releases",
        title="By release",
        sentence=f"the newest {MOST_RELEASES} with trials, from old to new; "
        f"pass^{found.k} of {'rule-clean' if found.has_rules else 'the outcome'}",
        columns=_slice_columns("Release", found.k),
        rows=tuple(
            (
                Cell(
                    each.release.label,
                    href=address(view.at.overview, {**view.values, "release": each.release.uuid}),
                    note="shown here" if each.release == found.release else "",
                ),
                *_slice_cells(found, each.figures),
            )
            for each in found.by_release
        ),
    )


def _slices(view: _View, name: str, title: str, slices: Sequence[tuple[str, Slice]]) -> FigureTable:
    found = view.found
    is_split = name == "splits"

    def link(value: str) -> str:
        if is_split:
            return address(view.at.overview, {**view.values, "split": value or "none"})
        return address(view.at.overview, {**view.values, "family": value}) if value else ""

    def label(value: str) -> str:
        if is_split:
            return SPLIT_WORDS[value or "none"]
        return value or "no family"

    return FigureTable(
        id=name,
        title=title,
        sentence="tuning stands in no other figure of this page" if is_split else "of this release",
        columns=_slice_columns("Split" if is_split else "Family", found.k),
        rows=tuple(
            (Cell(label(value), href=link(value)), *_slice_cells(found, each))
            for value, each in slices
        ),
    )


def _chart(found: SystemOverview) -> pages.Chart | None:
    if len(found.by_release) < 2:
        return None
    lines = [
        _line("outcome rate", "accent", "dot", [each.figures.outcome for each in found.by_release])
    ]
    if found.has_rules:
        lines.append(
            _line(
                "rule-clean rate",
                "pass",
                "solid",
                [each.figures.clean for each in found.by_release],
            )
        )
    labels = tuple(each.release.label for each in found.by_release)
    return pages.Chart(
        id="chart-releases",
        title="Rates over releases",
        sentence="passed of graded trials; the bars reach from “all unknown ones fail” to “all pass”",
        figure=rates_over_releases(labels, tuple(lines)),
        columns=("Release", *(line.name for line in lines)),
        rows=tuple(
            (label, *("none" if (v := line.values[at]) is None else f"{v:.1f}%" for line in lines))
            for at, label in enumerate(labels)
        ),
    )


def _line(name: str, token: str, dash: str, counts: Sequence[Counts]) -> RateLine:
    def shown(value: Fraction | None) -> float | None:
        return None if value is None else round(100 * float(value), 2)

    return RateLine(
        name,
        token,
        dash,
        tuple(shown(each.rate) for each in counts),
        tuple(shown(each.range.low) if each.range else None for each in counts),
        tuple(shown(each.range.high) if each.range else None for each in counts),
    )
