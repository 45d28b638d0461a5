"""What drafted or regraded contracts do to dispositions, as pages show it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from uuid import UUID

from evalsite.common.formatting import counted
from reviews.core.regrades import (
    NOT_DECIDED,
    PreviewResult,
    RegradeResult,
    TaskEffect,
    Transition,
)
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of

LISTED_TASKS = 100
LISTED_EXAMPLES = 3
_LISTED_REASONS = 3
_STATES = {"pass", "fail", "unresolved", "harness-error"}
_WORDS = {NOT_DECIDED: "not decided", "harness_error": "harness error"}


def disposition_words(value: str) -> str:
    """A disposition in words."""
    return _WORDS.get(value, value)


def _badge(value: str) -> pages.Badge:
    state = value.replace("_", "-")
    return pages.Badge(disposition_words(value), state if state in _STATES else "")


def preview_effect(
    result: PreviewResult,
    tasks: Mapping[str, UUID],
    at: Addresses,
    *,
    is_past: bool,
) -> pages.ContractEffect:
    """What drafts would do. `tasks` gives the address of each task that exists."""
    changed = [task for task in result.tasks if task.n_changed]
    return pages.ContractEffect(
        heading="Dispositions that it was to change"
        if is_past
        else "Dispositions that would change",
        headline=effect_headline(result, is_past=is_past),
        words=_words(result),
        nothing="Every stored trial keeps its disposition.",
        moves=tuple(_moves(each for task in result.tasks for each in task.transitions)),
        tasks=tuple(_task_row(task, tasks, at) for task in changed[:LISTED_TASKS]),
        n_more_tasks=max(0, len(changed) - LISTED_TASKS),
        warnings=tuple(_warnings(result)),
    )


def regrade_effect(
    result: RegradeResult, tasks: Mapping[str, UUID], at: Addresses
) -> pages.ContractEffect:
    """What a regrade did so far."""
    changed = [task for task in result.tasks if task.n_changed]
    n, trials = result.n_changed, counted(result.n_trials, "trial")
    return pages.ContractEffect(
        heading="Dispositions that changed",
        headline=f"{n:,} of {trials} came out otherwise" if n else "No disposition changed",
        words=f"{trials.capitalize()} of {counted(len(result.tasks), 'task')} decided anew, all "
        "releases together. No trial was run again.",
        nothing="Every stored trial kept its disposition.",
        moves=tuple(_moves(each for task in result.tasks for each in task.transitions)),
        tasks=tuple(_task_row(task, tasks, at, verb="changed") for task in changed[:LISTED_TASKS]),
        n_more_tasks=max(0, len(changed) - LISTED_TASKS),
        warnings=tuple(f"Task {task.task_id}: {task.note}" for task in result.tasks if task.note),
    )


def effect_headline(result: PreviewResult, *, is_past: bool = False) -> str:
    """What drafts would do, in a sentence: "12 of 40 trials would be decided otherwise"."""
    if not result.n_trials:
        return "No stored trial is decided by these contracts yet"
    if not result.n_changed:
        return f"No disposition {'was to' if is_past else 'would'} change"
    verb = "were to" if is_past else "would"
    trials = counted(result.n_trials, "trial")
    return f"{result.n_changed:,} of {trials} {verb} be decided otherwise"


def _words(result: PreviewResult) -> str:
    trials, tasks = counted(result.n_trials, "stored trial"), counted(len(result.tasks), "task")
    return f"{trials} of {tasks}, all releases together."


def _moves(transitions: Iterable[Transition]) -> Iterator[pages.Move]:
    """How many trials go from which disposition to which, the most frequent first."""
    counts: Counter[tuple[str, str]] = Counter()
    for each in transitions:
        if each.is_change:
            counts[each.before, each.after] += each.n_trials
    for (before, after), n in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield pages.Move(_badge(before), _badge(after), n)


def _task_row(
    task: TaskEffect, tasks: Mapping[str, UUID], at: Addresses, *, verb: str = "change"
) -> pages.ContractEffectRow:
    identity = tasks.get(task.task_id)
    return pages.ContractEffectRow(
        task=pages.Link(task.task_id, at.contract_of(identity) if identity else ""),
        counts=f"{task.n_changed:,} of {counted(task.n_trials, 'trial')} {verb}",
        moves=tuple(_detailed_moves(task, at)),
        newly_failing=", ".join(
            f"{each.criterion} ({each.n_trials:,})" for each in task.newly_failing
        ),
    )


def _detailed_moves(task: TaskEffect, at: Addresses) -> Iterator[pages.Move]:
    for each in task.transitions:
        if not each.is_change:
            continue
        named = ", ".join(
            f"{reason.criterion} ({reason.n_trials:,})" for reason in each.reasons[:_LISTED_REASONS]
        )
        examples = [uuid for uuid in map(uuid_of, each.examples) if uuid]
        yield pages.Move(
            _badge(each.before),
            _badge(each.after),
            each.n_trials,
            why=f"{'fails' if each.after == 'fail' else 'open'}: {named}" if named else "",
            examples=tuple(
                pages.Link(f"example {n}", at.trial(uuid))
                for n, uuid in enumerate(examples[:LISTED_EXAMPLES], 1)
            ),
        )


def _warnings(result: PreviewResult) -> Iterator[str]:
    for tool in result.unknown_tools:
        tasks = ", ".join(tool.task_ids[:_LISTED_REASONS])
        yield (
            f"No stored trace has called {tool.name}, which the contract of {tasks} names: a "
            "prohibition on it never fails, and what is required of it never passes."
        )
