"""What the overview of a system reads: counts of slots by release and unit, in a fixed number of
queries whatever the system holds.

A slot counts as in `evalsite.projections`: its last attempt stands for it, a declared trial that
never came is run and unknown. Headline figures leave out split `tuning`, production traces and
trials with an injected fault. Rates and means over tasks are worked out in `reviews.core`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from reviews.core.overview import (
    Efficiency,
    HarmCounts,
    Recovery,
    ReleaseChange,
    Slice,
    Unit,
    UnitCounts,
    change_between,
    largest_k,
    slice_of,
    step_efficiency,
    unit_key,
    usual_k,
)
from reviews.selectors.contract_facts import ContractFacts, facts_of_contracts
from reviews.selectors.overview_slots import (
    Endings,
    Measures,
    RequirementFigures,
    Scope,
    endings,
    harm_counts,
    has_rules,
    measures,
    requirement_figures,
)
from reviews.selectors.overview_units import CountedTask, counted_tasks, counted_units
from traces.models import Split, System
from traces.selectors.releases import ReleaseName, release_names

MOST_RELEASES = 20  # in the part over time


@dataclass(frozen=True, slots=True)
class OverviewFilter:
    """Which trials. None and "" leave a choice open."""

    release: UUID | None = None  # None: the newest that has trials to count
    family: str = ""
    split: str = ""  # one of `Split`, or "none"; "" every split but tuning
    k: int | None = None  # None: the usual one


@dataclass(frozen=True, slots=True)
class ReleaseSlice:
    """The figures of one release."""

    release: ReleaseName
    figures: Slice


@dataclass(frozen=True, slots=True)
class OverviewChoices:
    """What the filters offer."""

    releases: tuple[ReleaseName, ...]  # newest first, all of the system
    families: tuple[str, ...]
    splits: tuple[str, ...]  # "" where tasks have none


@dataclass(frozen=True, slots=True)
class SystemOverview:
    """Every figure of the page of one release."""

    system: System
    chosen: OverviewFilter
    choices: OverviewChoices
    release: ReleaseName | None  # None: no release has a trial
    k: int
    most_k: int
    figures: Slice
    n_tasks: int
    n_contract_tasks: int  # of these: tasks decided by a contract
    n_several: int  # tasks that stand in several units
    several: tuple[str, ...]
    measures: Measures
    efficiency: Efficiency
    recovery: Recovery
    harms: tuple[HarmCounts, ...]  # the first one is for any harm; empty: nothing is prohibited
    endings: Endings
    requirements: tuple[RequirementFigures, ...]
    actions: tuple[tuple[str, int], ...]  # next actions of unresolved trials, most first
    by_release: tuple[ReleaseSlice, ...]  # oldest first
    by_family: tuple[tuple[str, Slice], ...]
    by_split: tuple[tuple[str, Slice], ...]  # tuning too, which stands in no other figure
    previous: ReleaseName | None
    change: ReleaseChange | None
    n_fault: int  # slots of the release that are left out, of the chosen tasks
    n_production: int
    n_tuning: int  # slots of split tuning, unless that is chosen
    task_uuids: dict[str, UUID]

    @property
    def has_rules(self) -> bool:
        """Whether anything but the outcome and rubrics decides these trials."""
        return has_rules(self.requirements)


def system_overview(system: System, chosen: OverviewFilter) -> SystemOverview:
    """The figures of one release of a system, and of all of its releases side by side."""
    tasks = counted_tasks(system.pk)
    names = release_names(system.pk)
    units = counted_units(system.pk, tasks)
    wanted = {task.pk for task in tasks.values() if _is_chosen(task, chosen)}
    counted = {
        release: [each for each in found if _is_unit_chosen(each.unit, chosen)]
        for release, found in units.items()
    }
    release = _chosen_release(names, counted, chosen.release)
    pk = release.pk if release else 0
    ours = counted.get(pk, [])
    k = chosen.k or usual_k([each.outcome for each in ours])
    facts = facts_of_contracts(tasks[task].contract_pk for task in wanted)
    scope = Scope(system, [pk], sorted(wanted), facts)
    figures = slice_of(ours, k)
    missing = _missing_by_harm(ours, tasks, facts)
    harms = tuple(
        replace(each, n_run=each.n_run + missing.get(each.harm, 0)) for each in harm_counts(scope)
    )
    handed = endings(scope)
    folded = requirement_figures(scope)
    spent = measures(scope, figures.clean.passed)
    previous = _previous(names, counted, release)
    by_task = Counter(each.unit.task for each in ours)
    several = tuple(sorted(task for task, n in by_task.items() if n > 1))
    all_of_release = units.get(pk, [])
    in_family = [e for e in all_of_release if not chosen.family or e.unit.family == chosen.family]
    return SystemOverview(
        system=system,
        chosen=chosen,
        choices=OverviewChoices(
            names,
            tuple(sorted({task.family for task in tasks.values() if task.family})),
            tuple(sorted({task.split for task in tasks.values()})),
        ),
        release=release,
        k=k,
        most_k=max(k, largest_k(each.outcome for each in ours)),
        figures=figures,
        n_tasks=len(by_task),
        n_contract_tasks=len({each.unit.task for each in ours if each.unit.contract}),
        n_several=len(several),
        several=several,
        measures=spent,
        efficiency=step_efficiency(ours, _shortest(counted.values())),
        recovery=handed.recovery,
        harms=harms,
        endings=handed.endings,
        requirements=folded.requirements,
        actions=folded.actions,
        by_release=tuple(
            ReleaseSlice(name, slice_of(counted[name.pk], k))
            for name in [name for name in reversed(names) if counted.get(name.pk)][-MOST_RELEASES:]
        ),
        by_family=_sliced(ours, k, lambda unit: unit.family),
        by_split=_sliced(in_family, k, lambda unit: unit.split),
        previous=previous,
        change=change_between(counted[previous.pk], ours, k) if previous else None,
        n_fault=handed.n_fault,
        n_production=handed.n_production,
        n_tuning=sum(
            each.n_run
            for each in in_family
            if each.unit.split == Split.TUNING.value and chosen.split != Split.TUNING.value
        ),
        task_uuids={task.task_id: task.uuid for task in tasks.values()},
    )


def _is_chosen(task: CountedTask, chosen: OverviewFilter) -> bool:
    return _is_in(task.family, task.split, chosen)


def _is_unit_chosen(unit: Unit, chosen: OverviewFilter) -> bool:
    return _is_in(unit.family, unit.split, chosen)


def _is_in(family: str, split: str, chosen: OverviewFilter) -> bool:
    if chosen.family and family != chosen.family:
        return False
    if chosen.split:
        return split == ("" if chosen.split == "none" else chosen.split)
    return split != Split.TUNING.value


def _chosen_release(
    names: Sequence[ReleaseName], counted: dict[int, list[UnitCounts]], asked: UUID | None
) -> ReleaseName | None:
    """The asked one, else the newest with something to count, else the newest."""
    if asked:
        return next((name for name in names if name.uuid == asked), None)
    with_trials = (name for name in names if counted.get(name.pk))
    return next(with_trials, names[0] if names else None)


def _previous(
    names: Sequence[ReleaseName],
    counted: dict[int, list[UnitCounts]],
    release: ReleaseName | None,
) -> ReleaseName | None:
    """The newest release before it that has something to count."""
    earlier = (name for name in names if release and name.pk < release.pk)
    return next((name for name in earlier if counted.get(name.pk)), None)


def _sliced(
    units: Sequence[UnitCounts], k: int, name_of: Callable[[Unit], str]
) -> tuple[tuple[str, Slice], ...]:
    groups: dict[str, list[UnitCounts]] = {}
    for each in units:
        groups.setdefault(name_of(each.unit), []).append(each)
    return tuple((name, slice_of(groups[name], k)) for name in sorted(groups))


def _shortest(releases: Iterable[Sequence[UnitCounts]]) -> dict[str, int | None]:
    """The tool calls of the shortest passing trial of each unit, over all releases."""
    shortest: dict[str, int | None] = {}
    for units in releases:
        for each in units:
            key = unit_key(each.unit)
            known = [n for n in (shortest.get(key), each.shortest) if n is not None]
            shortest[key] = min(known, default=None)
    return shortest


def _missing_by_harm(
    units: Iterable[UnitCounts], tasks: dict[int, CountedTask], facts: dict[int, ContractFacts]
) -> dict[str, int]:
    """The missing trials of tasks whose contract prohibits something of a harm, "" of any."""
    prohibited = {
        task.task_id: ("", *(harm for harm, _ in facts[task.contract_pk].harms))
        for task in tasks.values()
        if task.contract_pk in facts and facts[task.contract_pk].harms
    }
    missing: dict[str, int] = {}
    for each in units:
        for harm in prohibited.get(each.unit.task, ()) if each.n_missing else ():
            missing[harm] = missing.get(harm, 0) + each.n_missing
    return missing
