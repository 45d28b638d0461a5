"""Match modes and trajectory metrics of a task's trials against a reference."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.formatting import NOTHING, counted
from evalsite.common.shell import Choice, Crumb, Figure, Option
from evalsite.web.task_filters import TaskFilters
from evalsite.web.task_tabs import TaskTab, task_tabs
from reviews.selectors.references import AcceptedReference, accepted_references
from traces.core.canonical import nfc
from traces.core.matching import ArgumentsMatch, Match
from traces.core.paths import PathLevel
from traces.core.rules import RuleSet
from traces.selectors.diagnostics import MatchedPath, TaskDiagnostics, diagnostics_of
from traces.selectors.paths import key_name
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules import rules_of
from traces.selectors.task_detail import (
    ChosenTrials,
    ComparedTrial,
    TaskDetail,
    compared_trials,
    path_groups,
    task_detail,
)
from traces.selectors.trial_list import ListedTrial, TrialFilter, listed_trials
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import text_in, uuid_of
from traces.web.levels import LEVEL_NAMES, ChosenLevel
from traces.web.rows import STATES, trial_label
from traces.web.shell import system_shell
from traces.web.tool_names import ToolLook, tool_looks
from traces.web.work_notices import work_notices

LISTED_TRIALS = 60
LISTED_TOOLS = 200
MOST_CELLS = 40

_ARGUMENTS = {
    ArgumentsMatch.NAMES: (
        "Names only",
        "Two calls match when they name the same tool.",
    ),
    ArgumentsMatch.EXACT: (
        "Arguments exact",
        "Two calls match when they name the same tool and their arguments are equal.",
    ),
    ArgumentsMatch.RULES: (
        "By the rules",
        "Two calls match when they name the same tool and the argument rules make them equal.",
    ),
}
# So that the reference's own path is here the one that was accepted.
_ARGUMENTS_OF_LEVEL = {
    PathLevel.EXACT: ArgumentsMatch.EXACT,
    PathLevel.EQUIVALENT: ArgumentsMatch.RULES,
    PathLevel.EFFECTS: ArgumentsMatch.RULES,
}
_COMPARED_AT = {
    ArgumentsMatch.NAMES: PathLevel.SEQUENCE,
    ArgumentsMatch.EXACT: PathLevel.EXACT,
    ArgumentsMatch.RULES: PathLevel.EQUIVALENT,
}


@dataclass(frozen=True, slots=True)
class _Held:
    """A mode or metric that holds or does not."""

    label: str
    help: str
    of: Callable[[Match], bool]


_MODES = (
    _Held(
        "Strict",
        "Message by message the same calls. Inside one message their order does not matter.",
        lambda match: match.strict,
    ),
    _Held(
        "Unordered",
        "The same calls, each as often, in any order.",
        lambda match: match.unordered,
    ),
    _Held(
        "Subset",
        "No call beyond the reference; some of its calls may be missing.",
        lambda match: match.subset,
    ),
    _Held(
        "Superset",
        "Every call of the reference, in any order; there may be more. As a metric it is called "
        "any-order.",
        lambda match: match.superset,
    ),
)
_METRICS = (
    _Held(
        "Exact",
        "The same calls in the same order, however they are spread over messages.",
        lambda match: match.exact,
    ),
    _Held(
        "In order",
        "Every call of the reference in its order; there may be others between them.",
        lambda match: match.in_order,
    ),
    _Held(
        "Any order",
        "Every call of the reference, in any order: the same as superset.",
        lambda match: match.any_order,
    ),
)
_PRECISION = "How many of the calls made match a call of the reference, one to one."
_RECALL = "How many of the reference's calls were made, one to one."


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for."""

    filters: TaskFilters
    level: ChosenLevel  # of the other views, kept for the way back
    arguments: ArgumentsMatch | None  # None: as the reference suggests
    reference: UUID | None
    tool: str

    @classmethod
    def of(cls, request: SystemRequest, task: TaskDetail) -> _Asked:
        asked = request.GET.get("arguments", "")
        return cls(
            filters=TaskFilters.of(request, task),
            level=ChosenLevel.of(request.GET, default=PathLevel.SEQUENCE),
            arguments=ArgumentsMatch(asked) if asked in set(ArgumentsMatch) else None,
            reference=uuid_of(request.GET.get("reference", "")),
            tool=nfc(text_in(request, "tool")),
        )

    @property
    def shared(self) -> dict[str, Value]:
        """What all views of the task keep."""
        return {**self.level.values, **self.filters.values}


@dataclass(frozen=True, slots=True)
class _Reference:
    """The trajectory that all others are matched with."""

    value: UUID  # in the address
    name: str
    words: str
    trial: UUID
    trajectory: int
    arguments: ArgumentsMatch = ArgumentsMatch.NAMES  # unless the address says otherwise


@require_GET
@in_system()
def task_diagnostics(request: SystemRequest, task: UUID) -> HttpResponse:
    """How the trials compare with one reference; never a gate."""
    system = request.access.system
    found = task_detail(system.pk, task)
    if found is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(system.slug)
    asked = _Asked.of(request, found)
    rules = rules_of(system)
    accepted = accepted_references(found.pk)
    reference = _reference(asked, accepted, ChosenTrials(found.pk, system.shown_rules_id))
    suggested = reference.arguments if reference else ArgumentsMatch.NAMES
    arguments = asked.arguments or suggested
    stored = diagnostics_of(
        asked.filters.trials(system.shown_rules_id),
        reference.trajectory if reference else None,
        arguments=arguments,
        rules=rules,
        task_id=found.task_id,
    )
    others = listed_trials(TrialFilter(system.pk, task_pk=found.pk), n=LISTED_TRIALS).rows
    tool = asked.tool if asked.tool in stored.tools else next(iter(stored.tools), "")
    values: dict[str, Value] = {
        **asked.shared,
        "arguments": asked.arguments.value if asked.arguments else "",
        "reference": str(reference.value) if reference else "",
        "tool": tool if tool == asked.tool else "",
    }
    here = at.diagnostics(found.uuid)
    page = pages.DiagnosticsPage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=_crumbs(system.name, found, asked, at),
        tabs=task_tabs(at, found.uuid, current=TaskTab.DIAGNOSTICS, values=asked.shared),
        task_id=found.task_id,
        title=found.title,
        facts=_facts(found, asked),
        action=here,
        hidden=_hidden({**values, "reference": None, "tool": None}),
        release_hidden=_hidden({**values, "release": None}),
        references=_references(accepted, others, reference),
        tools=tuple(
            Option(name, name, is_selected=name == tool) for name in _listed_tools(stored, tool)
        ),
        releases=asked.filters.release_options,
        releases_label=asked.filters.releases_label,
        versions=asked.filters.version_choices(here, values),
        arguments=tuple(
            Choice(
                label,
                address(here, {**values, "arguments": each.value}),
                is_current=each is arguments,
                help=words,
            )
            for each, (label, words) in _ARGUMENTS.items()
        ),
        reference=_shown_reference(reference, stored, rules, at) if reference else None,
        figures=_figures(stored) if reference else (),
        words=f"{counted(len(stored.rows), 'path')}, most trials first",
        groups=_columns(tool),
        rows=tuple(
            _row(path, reference, tool, asked, arguments, values, at) for path in stored.rows
        )
        if reference
        else (),
        note=_note(stored),
        notices=(*work_notices(system.pk), *_notices(stored, asked)),
        empty=_empty(stored, reference, asked, here),
    )
    return render(request, "traces/task_diagnostics.html", {"page": page})


def _reference(
    asked: _Asked, accepted: Sequence[AcceptedReference], everything: ChosenTrials
) -> _Reference | None:
    """What the address names, else the first accepted path, else the largest passing path.

    The filter does not change it, so that releases can be looked at against one reference.
    """
    column = key_name(PathLevel.SEQUENCE, messages=False)
    for path in accepted:
        if path.uuid == asked.reference:
            return _of_accepted(path)
    if asked.reference is not None:
        trials = compared_trials(everything, [asked.reference], path_key=column)
        if asked.reference in trials:
            return _of_trial(trials[asked.reference])
    if accepted:
        return _of_accepted(accepted[0])
    for group in path_groups(everything, path_key=column, finer_key=column, n=1):
        first = group.trials[0].uuid
        trial = compared_trials(everything, [first], path_key=column)[first]
        words = (
            "the first trial that passed"
            if group.n_trials == 1
            else f"first of {group.n_trials:,} trials on the largest passing path"
        )
        return _of_trial(trial, words)
    return None


def _of_accepted(path: AcceptedReference) -> _Reference:
    trial = trial_label(path.trial_label, path.trial_attempt)
    return _Reference(
        value=path.uuid,
        name=f"Accepted path {path.number}",
        words=f"level {LEVEL_NAMES[path.level].lower()}, shown by trial {trial} of "
        f"{path.release_name or NO_RELEASE}",
        trial=path.trial_uuid,
        trajectory=path.trajectory,
        arguments=_ARGUMENTS_OF_LEVEL.get(path.level, ArgumentsMatch.NAMES),
    )


def _of_trial(trial: ComparedTrial, words: str = "") -> _Reference:
    return _Reference(
        value=trial.uuid,
        name=_trial_name(trial.label, trial.attempt, trial.release_name),
        words=words or STATES[trial.value].replace("-", " "),
        trial=trial.uuid,
        trajectory=trial.trajectory,
    )


def _trial_name(label: str, attempt: int, release_name: str) -> str:
    return f"Trial {trial_label(label, attempt)} of {release_name or NO_RELEASE}"


def _references(
    accepted: Sequence[AcceptedReference],
    others: Sequence[ListedTrial],
    reference: _Reference | None,
) -> tuple[pages.ReferenceOptions, ...]:
    chosen = reference.value if reference else None
    paths = [
        Option(str(each.uuid), _of_accepted(each).name, is_selected=each.uuid == chosen)
        for each in accepted
    ]
    trials = [
        Option(
            str(each.uuid),
            f"{_trial_name(each.label, each.attempt, each.release_name)}, "
            f"{STATES[each.disposition].replace('-', ' ')}",
            is_selected=each.uuid == chosen,
        )
        for each in others
    ]
    if reference is None:
        trials.insert(0, Option("", "Choose a trial", is_selected=True))
    elif not any(option.is_selected for option in (*paths, *trials)):
        trials.insert(0, Option(str(reference.value), reference.name, is_selected=True))
    groups = (
        pages.ReferenceOptions("Accepted paths", tuple(paths)),
        pages.ReferenceOptions("Trials", tuple(trials)),
    )
    return tuple(group for group in groups if group.options)


def _listed_tools(stored: TaskDiagnostics, tool: str) -> tuple[str, ...]:
    listed = stored.tools[:LISTED_TOOLS]
    return listed if tool in listed or not tool else (*listed, tool)


def _shown_reference(
    reference: _Reference, stored: TaskDiagnostics, rules: RuleSet, at: Addresses
) -> pages.Reference:
    looks = tool_looks((name for calls in stored.reference_tools for name in calls), rules)
    messages: list[tuple[pages.PathCell, ...]] = []
    n_left = MOST_CELLS
    for calls in stored.reference_tools:
        if n_left <= 0:
            break
        messages.append(tuple(_cell(looks[name]) for name in calls[:n_left]))
        n_left -= len(calls)
    n_calls = sum(map(len, stored.reference_tools))
    has_frame = any(len(cells) > 1 for cells in messages)
    return pages.Reference(
        name=reference.name,
        words=reference.words,
        href=at.trial(reference.trial),
        messages=tuple(messages),
        calls=f"{counted(n_calls, 'call')} in {counted(len(stored.reference_tools), 'message')}"
        + (", a frame for calls of one message" if has_frame else ""),
        n_more=max(0, n_calls - MOST_CELLS),
    )


def _cell(look: ToolLook) -> pages.PathCell:
    return pages.PathCell(look.label, look.name, colour=look.colour, kind=look.kind)


def _figures(stored: TaskDiagnostics) -> tuple[Figure, ...]:
    """How many of the trials that are shown match in each mode."""
    rows = stored.rows
    n_pass, n_fail = sum(row.n_pass for row in rows), sum(row.n_fail for row in rows)
    n_shown = sum(row.n_trials for row in rows)
    figures: list[Figure] = []
    for mode in _MODES:
        held = [row for row in rows if row.match is not None and mode.of(row.match)]
        parts = [f"{sum(row.n_pass for row in held):,} of {n_pass:,} passing"] if n_pass else []
        if n_fail:
            parts.append(f"{sum(row.n_fail for row in held):,} of {n_fail:,} failing")
        figures.append(
            Figure(
                f"{mode.label} match",
                f"{sum(row.n_trials for row in held):,} of {n_shown:,}",
                detail=", ".join(parts),
                help=f"Trials that match. {mode.help}",
            )
        )
    return tuple(figures)


def _columns(tool: str) -> tuple[pages.MatchColumns, ...]:
    metrics = [
        *(pages.Column(each.label, help=each.help) for each in _METRICS),
        pages.Column("Precision", is_number=True, help=_PRECISION),
        pages.Column("Recall", is_number=True, help=_RECALL),
    ]
    if tool:
        words = "Single tool use: whether the tool that is chosen above was called at all."
        metrics.append(pages.Column("Uses tool", help=words))
    return (
        pages.MatchColumns(
            "Match modes", tuple(pages.Column(mode.label, help=mode.help) for mode in _MODES)
        ),
        pages.MatchColumns("Metrics", tuple(metrics)),
    )


def _row(
    path: MatchedPath,
    reference: _Reference,
    tool: str,
    asked: _Asked,
    arguments: ArgumentsMatch,
    values: Mapping[str, Value],
    at: Addresses,
) -> pages.MatchedRow:
    task = asked.filters.task.uuid
    level = ChosenLevel(_COMPARED_AT[arguments], messages=False)
    is_reference = reference.trajectory in path.trajectories
    n_bare = path.calls.n_not_comparable
    return pages.MatchedRow(
        trial=pages.Link(
            f"Trial {trial_label(path.trial.label, path.trial.attempt)}",
            at.trial(path.trial.uuid),
            title=_trial_name(path.trial.label, path.trial.attempt, path.trial.release_name),
        ),
        words=_row_words(path),
        n_pass=path.n_pass,
        n_fail=path.n_fail,
        n_unresolved=path.n_unresolved,
        n_calls=path.calls.n_calls,
        marks=() if path.match is None else tuple(_marks(path, path.match, tool)),
        is_reference=is_reference,
        note=_without_arguments(n_bare) if n_bare else "",
        compare_url=""
        if is_reference
        else address(
            at.compare(task),
            {**level.values, "side": [reference.trial.hex, path.trial.uuid.hex]},
        ),
        reference_url=""
        if is_reference
        else address(
            at.diagnostics(task),
            {**values, "arguments": arguments.value, "reference": str(path.trial.uuid)},
        ),
    )


def _row_words(path: MatchedPath) -> str:
    words = f"of {path.trial.release_name or NO_RELEASE}"
    if path.n_trials > 1:
        words += f", and {path.n_trials - 1:,} more"
    if len(path.release_pks) > 1:
        words += f" in {len(path.release_pks)} releases"
    return words


def _without_arguments(n: int) -> str:
    how = "was" if n == 1 else "were"
    return f"{counted(n, 'call')} {how} recorded without arguments and cannot match"


def _marks(path: MatchedPath, match: Match, tool: str) -> Iterator[pages.MatchMark]:
    """One for each of `_columns`."""
    for each in (*_MODES, *_METRICS):
        yield _mark(holds=each.of(match))
    yield _fraction(match.n_matched, match.n_calls, "This trajectory makes no call.")
    yield _fraction(match.n_matched, match.n_reference, "The reference makes no call.")
    if tool:
        yield _mark(holds=path.calls.uses(tool))


def _mark(*, holds: bool) -> pages.MatchMark:
    return pages.MatchMark("yes" if holds else "no", holds)


def _fraction(part: int, whole: int, undefined: str) -> pages.MatchMark:
    return (
        pages.MatchMark(f"{part:,}/{whole:,}")
        if whole
        else pages.MatchMark(NOTHING, help=undefined)
    )


def _note(stored: TaskDiagnostics) -> str:
    if not stored.n_cut:
        return ""
    return (
        f"The {len(stored.rows)} paths with the most trials are shown;"
        f" {stored.n_cut:,} of {stored.n_trials:,} trials took other ones, which count nowhere here."
    )


def _notices(stored: TaskDiagnostics, asked: _Asked) -> tuple[pages.Notice, ...]:
    notices: list[pages.Notice] = []
    if asked.filters.pools_versions:
        n = len(asked.filters.task.versions)
        notices.append(pages.Notice(f"All {n} versions of this task are taken together here."))
    n_bare = stored.reference.n_not_comparable if stored.reference else 0
    if n_bare:
        notices.append(
            pages.Notice(f"In the reference, {_without_arguments(n_bare)}.", level="warning")
        )
    return tuple(notices)


def _empty(
    stored: TaskDiagnostics, reference: _Reference | None, asked: _Asked, here: str
) -> pages.Empty | None:
    if not stored.rows:
        is_filtered = asked.filters.releases or asked.filters.version
        return pages.Empty(
            heading="No trial here",
            sentence="No trial that counts is of the chosen releases and version."
            if is_filtered
            else "This task has no trial that counts.",
            act=pages.Link("All trials of the task", here) if is_filtered else None,
        )
    if reference is None:
        return pages.Empty(
            heading="No reference yet",
            sentence="No path of this task is accepted and no trial passed. "
            "Choose a trial above, and the others are matched with it.",
        )
    return None


def _crumbs(system_name: str, task: TaskDetail, asked: _Asked, at: Addresses) -> tuple[Crumb, ...]:
    return (
        Crumb(system_name, at.tasks),
        Crumb("Tasks", address(at.tasks, asked.level.values)),
        Crumb(task.task_id, address(at.task(task.uuid), asked.shared)),
        Crumb("Diagnostics"),
    )


def _facts(task: TaskDetail, asked: _Asked) -> tuple[str, ...]:
    facts = [f"task {task.task_id}"]
    if task.family:
        facts.append(f"family {task.family}")
    if asked.filters.version:
        facts.append(f"version {asked.filters.version.number}")
    return tuple(facts)


def _hidden(values: Mapping[str, Value]) -> tuple[pages.Hidden, ...]:
    """What a form carries along of an address."""
    pairs = parse_qsl(address("", values).removeprefix("?"))
    return tuple(pages.Hidden(name, value) for name, value in pairs)
