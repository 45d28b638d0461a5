"""Two paths or trials of a task side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb, Option
from traces.core.comparison import (
    FOLDED_FROM,
    ArgumentDifference,
    ComparedPair,
    Comparison,
    PairKind,
    compare,
)
from traces.core.paths import PathLevel, step_labels
from traces.core.shown_json import shown_json
from traces.core.trajectory import (
    ArgumentsForm,
    CallOutcome,
    Trajectory,
    TrajectoryCall,
    TrajectoryMessage,
)
from traces.selectors.releases import NO_RELEASE, release_names
from traces.selectors.rule_choices import rule_argument
from traces.selectors.rules import rules_of
from traces.selectors.task_detail import (
    ChosenTrials,
    ComparedTrial,
    GroupRow,
    TaskDetail,
    compared_trials,
    path_groups,
    task_detail,
)
from traces.selectors.trajectories import (
    agent_step_numbers,
    stored_calls,
    stored_steps,
    trajectory_with_steps,
)
from traces.selectors.trial_list import ListedTrial, TrialFilter, listed_trials
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.aligned import RULE_NAMES, path_name
from traces.web.asking import number_in, uuid_of
from traces.web.levels import ChosenLevel, path_switches
from traces.web.rows import STATES, trial_label
from traces.web.shell import system_shell
from traces.web.tool_names import ToolLook, tool_looks
from traces.web.work_notices import work_notices

MOST_ROWS = 400
MOST_PATHS = 500
LISTED_PATHS = 40
LISTED_TRIALS = 60
_LONGEST_VALUE = 300
_FORM_NOTES = {
    ArgumentsForm.ABSENT: "The arguments were not recorded.",
    ArgumentsForm.INVALID: "Not JSON: kept as it came.",
}
_MOST_ARGUMENTS = 40
_MOST_RULES = 3  # links for one argument that differs in several places
_LONGEST_CARRIED = 1_500  # characters of two values in an address


@dataclass(frozen=True, slots=True)
class _Side:
    """A path, or a single trial, and the trial that stands for it."""

    value: str  # in the address
    name: str
    words: str
    trial: ComparedTrial
    trajectory: Trajectory


@require_GET
@in_system()
def task_compare(request: SystemRequest, task: UUID) -> HttpResponse:
    """Two paths or trials, aligned step by step."""
    system = request.access.system
    found = task_detail(system.pk, task)
    if found is None:
        raise Http404("There is no such task in this system.")
    at = Addresses.of(system.slug)
    asked = _Asked.of(request, found, system.shown_rules_id)
    groups = path_groups(
        asked.trials, path_key=asked.chosen.key, finer_key=asked.chosen.key, n=MOST_PATHS
    )
    rules = rules_of(system)
    left, right = _sides(asked, groups)
    comparison = compare(
        left.trajectory,
        right.trajectory,
        rules,
        found.task_id,
        messages=asked.chosen.messages,
        names=(left.name, right.name),
    )
    looks = tool_looks(
        (
            *step_labels(left.trajectory, messages=False),
            *step_labels(right.trajectory, messages=False),
        ),
        rules,
    )
    maker = _RuleMaker(at, found.uuid) if request.access.may(Act.CONTRIBUTE) else None
    rows = _rows(comparison, left, right, looks, at, asked.chosen, maker)
    others = listed_trials(TrialFilter(system.pk, task_pk=found.pk), n=LISTED_TRIALS)
    here = at.compare(found.uuid)
    switches = _switches(asked, left, right, here)
    page = pages.ComparePage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=_crumbs(system.name, found, asked, at),
        title=f"{left.name} against {right.name}",
        divergence=_divergence(comparison),
        divergence_href=f"#row-{comparison.divergence.row + 1}"
        if comparison.divergence and comparison.divergence.row < len(rows)
        else "",
        n_different=sum(not row.is_equal for row in rows),
        n_equal=sum(row.is_equal for row in rows),
        levels=switches.levels,
        more_levels=switches.more_levels,
        messages=switches.messages,
        action=here,
        hidden=tuple(
            pages.Hidden(name, str(value)) for name, value in _flat(asked.values) if value
        ),
        left=_side(left, groups, others.rows, at),
        right=_side(right, groups, others.rows, at),
        swap_url=address(here, {**asked.values, "side": [right.value, left.value]}),
        stretches=_stretches(rows),
        notices=work_notices(system.pk),
        note=_note(comparison),
    )
    return render(request, "traces/compare.html", {"page": page})


@dataclass(frozen=True, slots=True)
class _Asked:
    """What the address asks for: two sides, a level, and which trials make the paths."""

    chosen: ChosenLevel
    sides: tuple[UUID, ...]
    as_paths: bool  # a side that names a passing trial stands for its path
    trials: ChosenTrials
    filters: Mapping[str, Value]

    @classmethod
    def of(cls, request: SystemRequest, task: TaskDetail, rules_pk: int | None) -> _Asked:
        query = request.GET
        given = [*query.getlist("side"), query.get("a", ""), query.get("b", "")]
        sides = [value for text in given if (value := uuid_of(text))]
        wanted = {uuid_of(value) for value in query.getlist("release")} - {None}
        releases = (
            [each for each in release_names(request.access.system.pk) if each.uuid in wanted]
            if wanted
            else []
        )
        number = number_in(request, "version")
        version = task.version(number) if number is not None else None
        return cls(
            chosen=ChosenLevel.of(query, default=PathLevel.SEQUENCE),
            sides=tuple(sides[:2]),
            as_paths=query.get("as") == "paths",
            trials=ChosenTrials(
                task.pk,
                rules_pk,
                tuple(release.pk for release in releases),
                version.pk if version else None,
            ),
            filters={
                "release": [str(release.uuid) for release in releases],
                "version": version.number if version else None,
            },
        )

    @property
    def values(self) -> dict[str, Value]:
        return {**self.chosen.values, **self.filters}


def _flat(values: Mapping[str, Value]) -> list[tuple[str, str]]:
    pairs: list[tuple[str, str]] = []
    for name, value in values.items():
        if isinstance(value, list):
            pairs.extend((name, str(item)) for item in value)
        else:
            pairs.append((name, "" if value is None else str(value)))
    return pairs


def _sides(asked: _Asked, groups: Sequence[GroupRow]) -> tuple[_Side, _Side]:
    by_key = {group.key: group for group in groups}
    wanted = _wanted(asked.sides, groups)
    firsts = [by_key[side].trials[0].uuid if side in by_key else side for side in wanted]
    trials = compared_trials(asked.trials, firsts, path_key=asked.chosen.key)
    if not all(first in trials for first in firsts):
        raise Http404("There is no such path or trial of this task.")
    steps = stored_steps(trials[first].trajectory for first in firsts)
    calls = stored_calls(call for each in steps.values() for call in each.calls)
    sides: list[_Side] = []
    for side, first in zip(wanted, firsts, strict=True):
        trial = trials[first]
        is_path = side in by_key or (asked.as_paths and trial.value.value == "pass")
        group = by_key.get(trial.key) if is_path else None
        sides.append(
            _Side(
                value=trial.key.hex if group else trial.uuid.hex,
                name=f"Path {path_name(group.rank)}" if group else _trial_name(trial),
                words=_words(trial, group),
                trial=trial,
                trajectory=trajectory_with_steps(
                    steps[trial.trajectory], calls, agent_step_numbers(trial.pk)
                ),
            )
        )
    left, right = sides
    if left.name == right.name and left.value != right.value:
        return _of_release(left), _of_release(right)
    return left, right


def _of_release(side: _Side) -> _Side:
    """The side with its trial's release in its name: each release has a trial 0."""
    return replace(side, name=f"{side.name} of {side.trial.release_name or NO_RELEASE}")


def _wanted(sides: Sequence[UUID], groups: Sequence[GroupRow]) -> list[UUID]:
    """Two sides: what the address names, filled up with the largest paths."""
    keys = [group.key for group in groups]
    firsts = {group.key: group.trials[0].uuid for group in groups}
    wanted = list(sides)
    for key in keys:
        if len(wanted) >= 2:
            break
        if key not in wanted and firsts[key] not in wanted:
            wanted.append(key)
    if not wanted:
        raise Http404("This task has no path to compare.")
    return [*wanted, wanted[-1]][:2]


def _trial_name(trial: ComparedTrial) -> str:
    return f"Trial {trial_label(trial.label, trial.attempt)}"


def _words(trial: ComparedTrial, group: GroupRow | None) -> str:
    shown = f"trial {trial_label(trial.label, trial.attempt)} of {trial.release_name or NO_RELEASE}"
    if group is None:
        return shown[0].upper() + shown[1:]
    releases = counted(len(group.release_pks), "release")
    return f"{counted(group.n_trials, 'trial')} of {releases}; shown: {shown}"


def _switches(asked: _Asked, left: _Side, right: _Side, here: str) -> pages.PathSwitches:
    """The level switch. Sides go along as trials, since a path has another key at each level."""
    trials = [left.trial.uuid.hex, right.trial.uuid.hex]
    are_paths = asked.as_paths or left.value != trials[0] or right.value != trials[1]
    return path_switches(
        asked.chosen,
        href=lambda level: address(
            here,
            {
                **asked.filters,
                **level,
                "side": trials,
                "as": "paths" if are_paths else "",
            },
        ),
    )


def _side(
    side: _Side, groups: Sequence[GroupRow], others: Sequence[ListedTrial], at: Addresses
) -> pages.ComparedSide:
    options = [
        Option(
            group.key.hex,
            f"Path {path_name(group.rank)}, {counted(group.n_trials, 'trial')}",
            is_selected=group.key.hex == side.value,
        )
        for group in groups[:LISTED_PATHS]
    ]
    options += [
        Option(
            trial.uuid.hex,
            f"Trial {trial_label(trial.label, trial.attempt)} of "
            f"{trial.release_name or NO_RELEASE}, {STATES[trial.disposition]}",
            is_selected=trial.uuid.hex == side.value,
        )
        for trial in others
    ]
    if not any(option.is_selected for option in options):
        options.insert(0, Option(side.value, side.name, is_selected=True))
    return pages.ComparedSide(
        name=side.name,
        href=at.trial(side.trial.uuid),
        state=STATES[side.trial.value],
        words=side.words,
        options=tuple(options),
    )


def _rows(
    comparison: Comparison,
    left: _Side,
    right: _Side,
    looks: Mapping[str, ToolLook],
    at: Addresses,
    chosen: ChosenLevel,
    maker: _RuleMaker | None,
) -> list[pages.ComparedRow]:
    first = comparison.divergence.row if comparison.divergence else None
    return [
        pages.ComparedRow(
            number=number + 1,
            left=_step(left, pair.left, pair, looks, at, is_left=True),
            right=_step(right, pair.right, pair, looks, at, is_left=False, maker=maker),
            is_equal=_is_equal(pair, chosen),
            is_first_divergence=number == first,
        )
        for number, pair in enumerate(comparison.pairs[:MOST_ROWS])
    ]


def _is_equal(pair: ComparedPair, chosen: ChosenLevel) -> bool:
    if pair.kind is PairKind.SAME_BY_RULE:
        return chosen.level is not PathLevel.EXACT
    return pair.kind is PairKind.SAME


def _step(
    side: _Side,
    index: int | None,
    pair: ComparedPair,
    looks: Mapping[str, ToolLook],
    at: Addresses,
    *,
    is_left: bool,
    maker: _RuleMaker | None = None,
) -> pages.ComparedStep | None:
    if index is None:
        return None
    step = side.trajectory[index]
    href = at.step(side.trial.uuid, step.step)
    if isinstance(step, TrajectoryMessage):
        return pages.ComparedStep("", 0, "message", href=href, step=step.step)
    look = looks[step.name]
    note = _FORM_NOTES.get(step.form, "")
    if not pair.are_all_listed:
        note = "More arguments differ than are marked."
    return pages.ComparedStep(
        name=step.name,
        colour=look.colour,
        kind=look.kind,
        arguments=_arguments(step, pair.differences, is_left=is_left, maker=maker),
        is_rejected=step.outcome is CallOutcome.REJECTED,
        note=note,
        href=href,
        step=step.step,
    )


def _arguments(
    call: TrajectoryCall,
    differences: Sequence[ArgumentDifference],
    *,
    is_left: bool,
    maker: _RuleMaker | None,
) -> tuple[pages.ComparedArgument, ...]:
    if call.form is ArgumentsForm.ABSENT:
        return ()
    if not isinstance(call.arguments, dict) or call.form is ArgumentsForm.INVALID:
        text = (
            call.arguments
            if isinstance(call.arguments, str) and call.form is ArgumentsForm.INVALID
            else shown_json(call.arguments)
        )
        differs = any(difference.rule is None for difference in differences)
        return (pages.ComparedArgument("", _short(text), is_different=differs),)
    by_member: dict[str, list[ArgumentDifference]] = {}
    for difference in differences:
        by_member.setdefault(_member_of(difference.path), []).append(difference)
    links = {name: maker.links(call, found) if maker else () for name, found in by_member.items()}
    shown = [
        _argument(name, shown_json(value), by_member.get(name, ()), links.get(name, ()))
        for name, value in list(call.arguments.items())[:_MOST_ARGUMENTS]
    ]
    absent = [
        pages.ComparedArgument(
            name,
            "absent",
            is_different=found[0].rule is None,
            note=_by(found),
            rules=links[name],
        )
        for name, found in by_member.items()
        if name not in call.arguments and (found[0].left if is_left else found[0].right) is None
    ]
    return (*shown, *absent[:_MOST_ARGUMENTS])


def _argument(
    name: str,
    value: str,
    differences: Sequence[ArgumentDifference],
    rules: tuple[pages.Link, ...],
) -> pages.ComparedArgument:
    return pages.ComparedArgument(
        name,
        _short(value),
        is_different=any(difference.rule is None for difference in differences),
        note=_by(differences),
        rules=rules,
    )


@dataclass(frozen=True, slots=True)
class _RuleMaker:
    """Leads from a difference to the form that makes a rule of it."""

    at: Addresses
    task: UUID

    def links(
        self, call: TrajectoryCall, differences: Sequence[ArgumentDifference]
    ) -> tuple[pages.Link, ...]:
        """One link for each argument that differs without a rule, as a rule names it."""
        chosen: dict[str, ArgumentDifference] = {}
        for each in differences:
            if each.rule is None and len(chosen) < _MOST_RULES:
                chosen.setdefault(rule_argument(call.arguments, each.path), each)
        return tuple(
            pages.Link(each.name, self._href(call.name, argument, each))
            for argument, each in chosen.items()
        )

    def _href(self, tool: str, argument: str, each: ArgumentDifference) -> str:
        values: dict[str, Value] = {"tool": tool, "argument": argument, "near": self.task}
        if len(each.left or "") + len(each.right or "") <= _LONGEST_CARRIED:
            values |= {"left": each.left, "right": each.right}
        return address(self.at.rule_form, values)


def _by(differences: Sequence[ArgumentDifference]) -> str:
    kinds = {RULE_NAMES[d.rule.kind]: None for d in differences if d.rule is not None}
    return f"equal by rule {', '.join(kinds)}" if kinds else ""


def _member_of(path: str) -> str:
    parts = path.split("/")
    return parts[1].replace("~1", "/").replace("~0", "~") if len(parts) > 1 else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _stretches(rows: Sequence[pages.ComparedRow]) -> tuple[pages.ComparedStretch, ...]:
    stretches: list[pages.ComparedStretch] = []
    for is_equal, run in groupby(rows, key=lambda row: row.is_equal):
        part = tuple(run)
        folded = is_equal and len(part) >= FOLDED_FROM
        stretches.append(pages.ComparedStretch(is_equal, part, is_folded=folded))
    return tuple(stretches)


def _divergence(comparison: Comparison) -> str:
    if comparison.divergence is not None:
        if comparison.differ_only_within_messages:
            return f"{comparison.divergence.sentence} Only the order inside messages differs."
        return comparison.divergence.sentence
    if comparison.n_pairs(PairKind.SAME_BY_RULE):
        return "No divergence: they differ only where a rule makes arguments equal."
    return "No divergence: every step is the same."


def _note(comparison: Comparison) -> str:
    n_rows = len(comparison.pairs)
    if n_rows <= MOST_ROWS:
        return ""
    return f"Cut after {MOST_ROWS} of {n_rows:,} steps."


def _crumbs(system_name: str, task: TaskDetail, asked: _Asked, at: Addresses) -> tuple[Crumb, ...]:
    return (
        Crumb(system_name, at.tasks),
        Crumb("Tasks", address(at.tasks, asked.chosen.values)),
        Crumb(task.task_id, address(at.task(task.uuid), asked.values)),
        Crumb("Compare"),
    )
