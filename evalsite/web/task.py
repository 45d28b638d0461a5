"""A task: figures, path groups at one level, what merged by which rule, and its trials."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import assert_never
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common import blobs
from evalsite.common.formatting import counted, money_text
from evalsite.common.shell import Choice, Crumb, Figure, Option
from evalsite.web.estimates import estimate_text
from evalsite.web.task_history import history_lines
from evalsite.web.task_tabs import TaskTab, task_tabs
from reviews.core.accepted_paths import GroupStanding, standing_of_group
from reviews.core.estimators import pass_at_k, pass_hat_k
from reviews.selectors.accepted import GroupFacts, GroupStandings, group_standings
from traces.core.paths import PathLevel
from traces.core.records import Disposition
from traces.core.rules import RuleSet
from traces.core.text_marks import clean_text
from traces.selectors.families import task_history
from traces.selectors.path_layout import LaidStep, PathLayout, path_layout
from traces.selectors.paths import key_name
from traces.selectors.releases import ReleaseName, release_names
from traces.selectors.rules import rules_of
from traces.selectors.task_detail import (
    PAGE_GROUPS,
    ChosenTrials,
    GroupRow,
    TaskDetail,
    TaskSummary,
    VersionRow,
    path_groups,
    task_detail,
    task_summary,
)
from traces.selectors.trial_list import TrialFilter, TrialPage, listed_trials
from traces.web import aligned, pages
from traces.web.addresses import Addresses, Value, address
from traces.web.aligned import PathMarks
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.levels import ChosenLevel, path_switches
from traces.web.rows import rate_figure, trial_row
from traces.web.shell import system_shell
from traces.web.tool_names import tool_looks
from traces.web.work_notices import work_notices

MOST_OVERLAID = 12
_LONGEST_TEXT = 600
_OVERLAYS = {"fail": Disposition.FAIL, "unresolved": Disposition.UNRESOLVED}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    chosen: ChosenLevel
    releases: tuple[ReleaseName, ...]
    version: VersionRow | None
    overlay: tuple[str, ...]
    skip: int  # paths before the first one that is shown
    picked: frozenset[str]

    @classmethod
    def of(
        cls, request: SystemRequest, task: TaskDetail, releases: Sequence[ReleaseName]
    ) -> _Asked:
        query = request.GET
        wanted = {uuid_of(value) for value in query.getlist("release")}
        overlay = {word for value in query.getlist("overlay") for word in value.split(",")}
        version = number_in(request, "version")
        place = number_in(request, "from") or 1
        return cls(
            chosen=ChosenLevel.of(query, default=PathLevel.SEQUENCE),
            releases=tuple(each for each in releases if each.uuid in wanted),
            version=task.version(version) if version is not None else None,
            overlay=tuple(word for word in _OVERLAYS if word in overlay),
            skip=min(max(place - 1, 0), 10**6) // PAGE_GROUPS * PAGE_GROUPS,
            picked=frozenset(value.hex for v in query.getlist("side") if (value := uuid_of(v))),
        )

    @property
    def filters(self) -> dict[str, Value]:
        return {
            "release": [str(release.uuid) for release in self.releases],
            "version": self.version.number if self.version else None,
        }

    @property
    def values(self) -> dict[str, Value]:
        return {
            **self.chosen.values,
            **self.filters,
            "overlay": ",".join(self.overlay),
        }

    def trials(self, task: TaskDetail, rules_pk: int | None) -> ChosenTrials:
        return ChosenTrials(
            task.pk,
            rules_pk,
            tuple(release.pk for release in self.releases),
            self.version.pk if self.version else None,
        )


@require_GET
@in_system()
def task_page(request: SystemRequest, task: UUID) -> HttpResponse:
    """One task with its paths."""
    system = request.access.system
    found = task_detail(system.pk, task)
    if found is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(system.slug)
    releases = release_names(system.pk)
    asked = _Asked.of(request, found, releases)
    chosen = asked.trials(found, system.shown_rules_id)
    summary = task_summary(chosen)
    groups, overlaid = _groups(chosen, asked)
    standings = group_standings(
        chosen, path_key=asked.chosen.key, keys=tuple(group.key for group in groups)
    )
    rules = rules_of(system)
    layout = path_layout(
        aligned.members_of(groups),
        aligned.members_of(overlaid),
        level=asked.chosen.level,
        messages=asked.chosen.messages,
        rules=rules,
        task_id=found.task_id,
    )
    trials = listed_trials(
        TrialFilter(
            system.pk,
            task_pk=found.pk,
            version_pk=chosen.version_pk,
            release_pks=chosen.release_pks,
        ),
        after=number_in(request, "after"),
        before=number_in(request, "before"),
        path_key=asked.chosen.key,
        rules_pk=system.shown_rules_id,
    )
    here = at.task(found.uuid)
    form = at.accept(found.uuid) if request.access.may(Act.CONTRIBUTE) else ""
    marks = _marks(groups, standings, releases, form, asked.chosen)
    shown = _aligned(layout, groups, overlaid, asked, summary, releases, at, here, rules, marks)
    page = pages.TaskPage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=_crumbs(request, found, asked, at),
        task_id=found.task_id,
        title=found.title,
        text=_text(found),
        facts=_facts(found, asked),
        history=history_lines(task_history(found.pk), at),
        contract_url=at.contract_of(found.uuid),
        tabs=task_tabs(
            at,
            found.uuid,
            current=TaskTab.PATHS,
            values={**asked.chosen.values, **asked.filters},
        ),
        figures=_figures(
            summary,
            standings,
            asked.chosen,
            register=address(at.register(found.uuid), {**asked.chosen.values, **asked.filters}),
        ),
        action=here,
        releases=tuple(
            Option(str(each.uuid), each.label, is_selected=each in asked.releases)
            for each in releases
        ),
        releases_label=_releases_label(asked.releases, releases),
        hidden=_hidden({**asked.values, "release": None}),
        versions=_versions(found, asked, here),
        switches=path_switches(
            asked.chosen,
            href=lambda level: address(here, {**asked.values, **level}),
            counts=summary.paths_at,
        ),
        overlay=_overlay_choices(summary, asked, here),
        aligned=shown,
        merges=aligned.merges(layout.merges, groups),
        merges_words=_merges_words(layout, request, asked.chosen),
        compare_url=at.compare(found.uuid) if len(groups) + len(overlaid) > 1 else "",
        compare_hidden=_hidden({**asked.chosen.values, **asked.filters}),
        trials=_trial_rows(trials, groups, at),
        trials_pager=pager_of(trials, here, asked.values, place="#trials"),
        trials_words=_trials_words(summary),
        notices=(*work_notices(system.pk), *_notices(found, summary, asked)),
        empty=None if groups else _empty(summary, asked, here),
    )
    return render(request, "traces/task_detail.html", {"page": page})


def _groups(
    chosen: ChosenTrials, asked: _Asked
) -> tuple[tuple[GroupRow, ...], tuple[GroupRow, ...]]:
    finer = key_name(PathLevel.EXACT, messages=asked.chosen.messages)
    groups = path_groups(
        chosen, path_key=asked.chosen.key, finer_key=finer, skip=asked.skip, n=PAGE_GROUPS
    )
    if not asked.overlay:
        return groups, ()
    return groups, path_groups(
        chosen,
        path_key=asked.chosen.key,
        finer_key=finer,
        dispositions=[_OVERLAYS[word] for word in asked.overlay],
        n=MOST_OVERLAID,
    )


def _aligned(
    layout: PathLayout,
    groups: Sequence[GroupRow],
    overlaid: Sequence[GroupRow],
    asked: _Asked,
    summary: TaskSummary,
    releases: Sequence[ReleaseName],
    at: Addresses,
    here: str,
    rules: RuleSet,
    marks: Mapping[UUID, PathMarks],
) -> pages.AlignedView:
    looks = tool_looks(layout.tools, rules)
    names = {release.pk: release.label for release in releases}

    def shown(
        rows: Sequence[GroupRow], cells: Sequence[tuple[LaidStep | None, ...]]
    ) -> tuple[pages.PathGroup, ...]:
        return aligned.path_groups(
            rows,
            cells,
            at=at,
            looks=looks,
            releases=names,
            chosen=asked.chosen,
            n_pass=summary.n_pass,
            picked=asked.picked,
            not_comparable=layout.not_comparable if rows is groups else (),
            marks=marks if rows is groups else None,
        )

    n_paths = summary.paths_at(asked.chosen.key)
    last = asked.skip + len(groups)
    others = {"fail": summary.n_fail, "unresolved": summary.n_unresolved}
    n_overlaid = sum(others[word] for word in asked.overlay)
    return pages.AlignedView(
        words=_aligned_words(asked, n_paths, last),
        columns=tuple(range(1, layout.n_columns + 1)),
        groups=shown(groups, layout.rows),
        overlaid=shown(overlaid, layout.overlaid),
        tools=tuple(look.key for look in looks.values()),
        more=_more(asked, n_paths, last, here),
        note=aligned.layout_note(
            layout, n_more_overlaid=n_overlaid - sum(group.n_trials for group in overlaid)
        ),
        compares_arguments=asked.chosen.level.compares_arguments,
    )


def _marks(
    groups: Sequence[GroupRow],
    standings: GroupStandings,
    releases: Sequence[ReleaseName],
    form: str,
    chosen: ChosenLevel,
) -> dict[UUID, PathMarks]:
    """What accepted paths, earlier releases and flags say of each path. `form` accepts paths."""
    newest = next((r.label for r in releases if r.pk == standings.newest_release), "")
    marks: dict[UUID, PathMarks] = {}
    for group in groups:
        facts = standings.groups.get(group.key)
        if facts is None:  # its trials changed between two queries
            continue
        standing = standing_of_group(
            n_trials=facts.n_trials,
            n_covered=facts.n_covered,
            is_first_seen=standings.has_earlier and facts.first_release == standings.newest_release,
        )
        is_open = form and standing is not GroupStanding.ACCEPTED
        values: dict[str, Value] = {"trial": group.trials[0].uuid, **chosen.values}
        marks[group.key] = PathMarks(
            badges=(*_standing_badge(standing, newest), *_flag_badge(facts)),
            accept_url=address(form, values) if is_open else "",
        )
    return marks


def _standing_badge(standing: GroupStanding, newest: str) -> tuple[pages.Badge, ...]:
    match standing:
        case GroupStanding.ACCEPTED:
            return (pages.Badge(standing.value, "pass"),)
        case GroupStanding.PARTLY:
            return (pages.Badge(standing.value, "working"),)
        case GroupStanding.NEW:
            return (pages.Badge(f"new in {newest}", "unresolved"),)
        case GroupStanding.NOT_ACCEPTED:
            return ()
        case _:
            assert_never(standing)


def _flag_badge(facts: GroupFacts) -> tuple[pages.Badge, ...]:
    return (pages.Badge(f"flagged {facts.n_flagged:,}", "waiting"),) if facts.n_flagged else ()


def _aligned_words(asked: _Asked, n_paths: int, last: int) -> str:
    words = asked.chosen.words(n_paths)
    if asked.skip or last < n_paths:
        return f"{words}, {asked.skip + 1} to {last}"
    return f"{words}, most trials first"


def _more(asked: _Asked, n_paths: int, last: int, here: str) -> pages.Link | None:
    if last < n_paths:
        href = address(here, {**asked.values, "from": last + 1})
        return pages.Link(f"The next of {asked.chosen.words(n_paths)}", href)
    if asked.skip:
        return pages.Link("From the first path on", address(here, asked.values))
    return None


def _crumbs(
    request: SystemRequest, task: TaskDetail, asked: _Asked, at: Addresses
) -> tuple[Crumb, ...]:
    release = str(asked.releases[0].uuid) if len(asked.releases) == 1 else ""
    tasks = address(at.tasks, {**asked.chosen.values, "release": release})
    crumbs = [Crumb(request.access.system.name, at.tasks), Crumb("Tasks", tasks)]
    if task.family:
        crumbs.append(
            Crumb(task.family, address(at.tasks, {**asked.chosen.values, "family": task.family}))
        )
    return (*crumbs, Crumb(task.task_id))


def _text(task: TaskDetail) -> str:
    """What the task asks, as far as its definition says so."""
    if not task.definition:
        return ""
    definition = blobs.unpack(task.definition)
    if not isinstance(definition, dict):
        return ""
    text = _first_text(definition, ("input", "instruction", "user_scenario", "description"))
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


_TELLING = (
    "instructions",
    "reason_for_call",
    "task_instructions",
    "instruction",
    "input",
    "purpose",
)


def _first_text(definition: Mapping[str, object], names: Sequence[str]) -> str:
    for name in names:
        value = definition.get(name)
        if isinstance(value, str) and value.strip():
            return clean_text(value.strip())
        if isinstance(value, dict) and (text := _first_text(value, _TELLING)):
            return text
        if value and name == "input":
            return clean_text(json.dumps(value, ensure_ascii=False, default=str))
    return ""


def _facts(task: TaskDetail, asked: _Asked) -> tuple[str, ...]:
    facts = [f"task {task.task_id}"]
    if task.family:
        facts.append(f"family {task.family}")
    facts.append(f"split {task.split.replace('_', ' ')}" if task.split else "no split")
    if asked.version:
        facts.append(f"version {asked.version.number}")
    return tuple(facts)


def _figures(
    summary: TaskSummary, standings: GroupStandings, chosen: ChosenLevel, *, register: str
) -> tuple[Figure, ...]:
    n_graded, n_pass = summary.n_graded, summary.n_pass
    figures = [
        Figure(
            "Trials",
            f"{summary.n_run:,}",
            detail=counted(summary.n_error, "harness error"),
            help="Last attempts, without production traces and injected faults.",
        ),
        rate_figure(n_pass, n_graded, summary.n_run),
        Figure(
            "Unresolved",
            f"{summary.n_unresolved:,}",
            state="unresolved" if summary.n_unresolved else "",
            help="Trials that no verdict decides yet.",
        ),
    ]
    if n_graded:
        hat = pass_hat_k(n_graded, n_pass, n_graded)
        one = pass_at_k(n_graded, n_pass, 1)
        figures.append(
            Figure(
                f"pass^{n_graded}",
                estimate_text(hat),
                detail=f"pass@1 {estimate_text(one)}",
                help=f"The chance that all of {n_graded} trials pass, over its graded trials.",
            )
        )
    known = (
        ""
        if summary.n_costs == n_pass
        else f", known for {summary.n_costs} of {n_pass} passing trials"
    )
    figures += [
        Figure(
            "Cost per success",
            money_text(summary.cost_median),
            detail=f"p95 {money_text(summary.cost_p95)}" if summary.n_costs else "not recorded",
            help=f"Median over passing trials, and their 95th percentile{known}.",
        ),
        Figure(
            "Passing paths",
            f"{summary.paths_at(chosen.key):,}",
            detail=chosen.words(summary.paths_at(chosen.key)).partition(" ")[2],
            help="Distinct paths of the passing trials at the chosen level.",
        ),
        Figure(
            "Accepted paths",
            f"{standings.n_accepted:,} of {standings.n_paths:,}",
            help="Paths here whose trials are all covered by accepted paths of the task.",
            href=register,
        ),
    ]
    return tuple(figures)


def _releases_label(chosen: Sequence[ReleaseName], every: Sequence[ReleaseName]) -> str:
    if not chosen:
        return "All releases"
    return chosen[0].label if len(chosen) == 1 else f"{len(chosen)} of {len(every)} releases"


def _hidden(values: Mapping[str, Value]) -> tuple[pages.Hidden, ...]:
    hidden: list[pages.Hidden] = []
    for name, value in values.items():
        if value is None or value == "":
            continue
        if isinstance(value, str | int | UUID):
            hidden.append(pages.Hidden(name, str(value)))
        else:
            hidden.extend(pages.Hidden(name, item) for item in value)
    return tuple(hidden)


def _versions(task: TaskDetail, asked: _Asked, here: str) -> tuple[Choice, ...]:
    if len(task.versions) < 2:
        return ()
    everything = Choice(
        "All versions",
        address(here, {**asked.values, "version": None}),
        is_current=asked.version is None,
        count=sum(version.n_trials for version in task.versions),
        help="Browsing takes all versions of the task together.",
    )
    return (
        everything,
        *(
            Choice(
                f"Version {version.number}",
                address(here, {**asked.values, "version": version.number}),
                is_current=version == asked.version,
                count=version.n_trials,
            )
            for version in reversed(task.versions)
        ),
    )


def _overlay_choices(summary: TaskSummary, asked: _Asked, here: str) -> tuple[Choice, ...]:
    """Passing trials alone, or others laid over them; each choice turns its kind on or off."""
    if not (summary.n_fail or summary.n_unresolved):
        return ()

    def turned(word: str) -> str:
        kept = [each for each in _OVERLAYS if (each in asked.overlay) != (each == word)]
        return address(here, {**asked.values, "overlay": ",".join(kept)})

    return (
        Choice(
            "Passing only",
            address(here, {**asked.values, "overlay": None}),
            is_current=not asked.overlay,
        ),
        *(
            Choice(
                f"+ {label}",
                turned(word),
                is_current=word in asked.overlay,
                count=n,
                help="Lay them over, to see where they leave the passing paths.",
            )
            for word, label, n in (
                ("fail", "failing", summary.n_fail),
                ("unresolved", "unresolved", summary.n_unresolved),
            )
            if n
        ),
    )


def _merges_words(layout: PathLayout, request: SystemRequest, chosen: ChosenLevel) -> str:
    version = request.access.system.shown_rules
    rules = f"Rules version {version.number} of this system." if version else "No rules yet."
    if layout.merges:
        return rules
    if chosen.level is PathLevel.EXACT:
        return f"{rules} At this level arguments are compared as they are."
    return f"{rules} They made nothing the same in the paths shown."


def _trial_rows(
    trials: TrialPage, groups: Sequence[GroupRow], at: Addresses
) -> tuple[pages.TrialRow, ...]:
    names = {group.key: aligned.path_name(group.rank) for group in groups}
    return tuple(trial_row(trial, at, paths=names) for trial in trials.rows)


def _trials_words(summary: TaskSummary) -> str:
    words = counted(summary.n_run, "trial")
    if summary.n_left_out:
        words += f" and {summary.n_left_out:,} of production or with an injected fault"
    return f"{words}, in the order in which they came"


def _notices(task: TaskDetail, summary: TaskSummary, asked: _Asked) -> tuple[pages.Notice, ...]:
    notices: list[pages.Notice] = []
    if asked.version is None and sum(v.n_trials > 0 for v in task.versions) > 1:
        n = len(task.versions)
        notices.append(pages.Notice(f"All {n} versions of this task are taken together here."))
    if summary.n_not_comparable:
        notices.append(
            pages.Notice(
                f"{counted(summary.n_not_comparable, 'passing trial')} made a call whose "
                "arguments were not recorded: where arguments count, each is a path of its own.",
                level="warning",
            )
        )
    if summary.n_left_out:
        notices.append(
            pages.Notice(
                f"{counted(summary.n_left_out, 'trial')} of production or with an injected fault "
                "stand in no figure and no path here."
            )
        )
    return tuple(notices)


def _empty(summary: TaskSummary, asked: _Asked, here: str) -> pages.Empty:
    if asked.skip:
        return pages.Empty(
            heading="No path here",
            sentence="There are fewer paths than that.",
            act=pages.Link("From the first path on", address(here, asked.values)),
        )
    if not summary.n_run:
        return pages.Empty(
            heading="No trial here",
            sentence="No trial of this task is of the chosen releases and version.",
            act=pages.Link("All trials of the task", address(here, asked.chosen.values))
            if asked.releases or asked.version
            else None,
        )
    return pages.Empty(
        heading="No passing path",
        sentence=f"None of {counted(summary.n_run, 'trial')} passed. Lay the failing and "
        "unresolved ones over each other to see what they did.",
        act=pages.Link("Show them", address(here, {**asked.values, "overlay": "fail,unresolved"}))
        if (summary.n_fail or summary.n_unresolved) and not asked.overlay
        else None,
    )
