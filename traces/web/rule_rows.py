"""Versions of rules, their work and their effect, as pages show them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from evalsite.common.formatting import counted, duration_text
from traces.core.paths import PathLevel
from traces.core.rule_changes import RuleChange, change_sentences, parse_change
from traces.core.rule_effects import (
    CHANGING_LEVELS,
    LevelCount,
    Regrouping,
    RulesEffect,
    TaskEffect,
)
from traces.core.rules import RuleSet
from traces.core.values import Json
from traces.models import RulesOutcome, WorkState
from traces.selectors.rules_history import VersionRow, WorkRow
from traces.selectors.rules_work import percent_done
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.levels import LEVEL_NAMES

LISTED_CHANGES = 3
SHOWN_CHANGES = 100
LISTED_TASKS = 50
SHOWN_REASON = 1_000  # characters of a rule's own reason
_LEVEL_HELP = {
    PathLevel.EFFECTS: "committed writes, in order",
    PathLevel.READS_ANY_ORDER: "neighbouring reads in any order",
    PathLevel.EQUIVALENT: "steps in order, arguments equal under the rules",
}


def version_badge(row: VersionRow) -> pages.Badge:
    """The state of a version in a word or two."""
    if row.is_proposal:
        return pages.Badge("proposed", "waiting")
    match row.outcome:
        case RulesOutcome.REJECTED:
            return pages.Badge("rejected", "fail")
        case RulesOutcome.WITHDRAWN:
            return pages.Badge("withdrawn")
        case _:
            pass
    if row.is_shown:
        return pages.Badge("in force", "pass")
    if row.work is None or row.was_shown:
        return pages.Badge("earlier")
    if row.number < row.shown_number:
        return pages.Badge("overtaken")
    return work_badge(row.work.state)


def work_badge(state: WorkState) -> pages.Badge:
    """The state of background work."""
    match state:
        case WorkState.WAITING:
            return pages.Badge("waiting for a worker", "waiting")
        case WorkState.WORKING:
            return pages.Badge("being worked out", "working")
        case WorkState.CANCELLED:
            return pages.Badge("stopped", "unresolved")
        case WorkState.FAILED:
            return pages.Badge("failed", "fail")
        case WorkState.DONE:
            return pages.Badge("done", "pass")


def version_line(row: VersionRow, at: Addresses) -> pages.VersionLine:
    """A version in a list."""
    sentences = listed_sentences(row.change)
    return pages.VersionLine(
        number=row.number,
        href=at.rules_version(row.number),
        badge=version_badge(row),
        reason=row.reason,
        by=row.by_name or "operator",
        at=row.created_at,
        changes=sentences[:LISTED_CHANGES],
        n_more_changes=max(0, len(sentences) - LISTED_CHANGES),
        decision=f"{row.outcome.value} by {row.decided_by}" if row.outcome else "",
        decided_at=row.decided_at,
        decision_reason=row.decision_reason,
    )


def listed_sentences(change: Json) -> tuple[str, ...]:
    """A stored change in sentences that need nothing of the version it was made on."""
    if change is None:
        return ()
    return change_sentences(change_of(change), RuleSet())


def change_lines(change: RuleChange, base: RuleSet) -> tuple[pages.ChangeLine, ...]:
    """What a change does to a rule set, each new rule with the reason that was given with it."""
    sentences = change_sentences(change, base)
    n_put = len(change.put)
    return (
        *(
            pages.ChangeLine(sentence, _bounded(rule.reason))
            for sentence, rule in zip(sentences[:n_put], change.put, strict=True)
        ),
        *map(pages.ChangeLine, sentences[n_put:]),
    )


def _bounded(reason: str) -> str:
    return reason if len(reason) <= SHOWN_REASON else f"{reason[: SHOWN_REASON - 1]}…"


def change_of(document: Json) -> RuleChange:
    """A stored change. Raises ValueError where it is not whole."""
    change, findings = parse_change(document)
    if findings:
        raise ValueError(findings[0].sentence)
    return change


def version_work(row: VersionRow, at: Addresses, *, why_not: str) -> pages.Work | None:
    """The work on an approved version, while it has not come to its end."""
    if row.work is None or row.work.state is WorkState.DONE:
        return None
    work = row.work
    is_overtaken = row.number < row.shown_number
    still = f"Pages still show version {row.shown_number}."
    heading, sentence = {
        WorkState.WAITING: (f"Version {row.number} waits for a worker", still),
        WorkState.WORKING: (f"Version {row.number} is being worked out", still),
        WorkState.CANCELLED: (
            f"The work on version {row.number} was stopped",
            f"Stopped by {work.stopped_by or 'the operator'}, {_so_far(work)}. {still}",
        ),
        WorkState.FAILED: (f"Version {row.number} could not be worked out", still),
    }[work.state]
    may_act = not why_not and not is_overtaken
    return pages.Work(
        heading=heading,
        sentence=f"{_so_far(work).capitalize()}. {still}" if work.is_open else sentence,
        badge=work_badge(work.state),
        percent=percent_done(work.n_done, work.n_total) if work.is_open else None,
        is_moving=work.is_open,
        failure=work.failure,
        href=at.rules_version(row.number),
        action=f"{at.rules_version(row.number)}work",
        may_stop=may_act and work.is_open,
        may_restart=may_act and not work.is_open,
        why_not=why_not,
    )


def _so_far(work: WorkRow) -> str:
    if work.n_total is None:
        return "nothing worked out yet"
    return f"{work.n_done:,} of {counted(work.n_total, 'trajectory', 'trajectories')} worked out"


def work_facts(work: WorkRow) -> tuple[pages.Fact, ...]:
    """How long finished work took, and at which rate."""
    if work.state is not WorkState.DONE or not work.started_at or not work.finished_at:
        return ()
    seconds = (work.finished_at - work.started_at).total_seconds()
    took = duration_text(Decimal(seconds))
    many = counted(work.n_done, "trajectory", "trajectories")
    rate = f", {work.n_done / seconds:,.0f} a second" if seconds >= 1 and work.n_done else ""
    return (pages.Fact("Worked out in", f"{took}: {many}{rate}"),)


def effect_view(
    effect: RulesEffect, change: RuleChange, at: Addresses, *, is_past: bool = False
) -> pages.Effect:
    """What a change does to the stored paths; in the past once somebody has decided on it."""
    shown = effect.tasks[:LISTED_TASKS]
    return pages.Effect(
        headline=effect_headline(effect),
        nothing=_nothing(effect, change),
        words=f"{counted(effect.n_trials, 'passing trial')} of {counted(effect.n_tasks, 'task')}, "
        "all releases and versions together.",
        is_past=is_past,
        levels=tuple(_level_rows(effect.levels)),
        tasks=tuple(_task_row(task, at) for task in shown),
        n_more_tasks=effect.n_tasks_changed - len(shown),
    )


_TELLING = (
    (PathLevel.EQUIVALENT, False),
    (PathLevel.READS_ANY_ORDER, False),
    (PathLevel.EFFECTS, False),
    (PathLevel.EQUIVALENT, True),
    (PathLevel.READS_ANY_ORDER, True),
)
"""Levels in the order in which a headline looks for one that changes."""


def effect_headline(effect: RulesEffect) -> str:
    """What a change does, in a sentence: "7 paths become 4 in 1 task at Equivalent"."""
    if not effect.n_tasks_changed:
        return "No passing path changes"
    for level, messages in _TELLING:
        total = effect.count(level, messages=messages)
        if total.n_before == total.n_after:
            continue
        name = f"{LEVEL_NAMES[level]}{', with agent messages' if messages else ''}"
        if effect.n_tasks_changed > len(effect.tasks):
            tasks = counted(effect.n_tasks_changed, "task")
            return (
                f"{counted(total.n_before, 'path')} of all tasks become {total.n_after:,} at "
                f"{name}; {tasks} change"
            )
        at = CHANGING_LEVELS.index((level, messages))
        moved = [task.levels[at] for task in effect.tasks]
        moved = [count for count in moved if count.n_before != count.n_after]
        before = sum(count.n_before for count in moved)
        after = sum(count.n_after for count in moved)
        verb = "becomes" if before == 1 else "become"
        return (
            f"{counted(before, 'path')} {verb} {after:,} in {counted(len(moved), 'task')} at {name}"
        )
    return (
        f"Paths are grouped anew in {counted(effect.n_tasks_changed, 'task')}; their number stays"
    )


def _nothing(effect: RulesEffect, change: RuleChange) -> str:
    """Why a change does nothing to the passing paths; "" where it does something."""
    if effect.n_tasks_changed:
        return ""
    if not effect.n_trials:
        return "No trial has passed yet, so there is no path to merge or split."
    if not change.put:
        return "No path merges or splits."
    return (
        "No path merges or splits. Where two values become equal, their paths still differ in "
        "something else, belong to different tasks, or did not pass."
    )


def _level_rows(counts: Sequence[LevelCount]) -> Iterator[pages.LevelRow]:
    by_key = {(count.level, count.messages): count for count in counts}
    for level, help_ in _LEVEL_HELP.items():
        plain, whole = by_key[level, False], by_key.get((level, True))
        yield pages.LevelRow(
            level=LEVEL_NAMES[level],
            help=help_,
            n_before=plain.n_before,
            n_after=plain.n_after,
            n_before_messages=whole.n_before if whole else None,
            n_after_messages=whole.n_after if whole else None,
        )


def _task_row(task: TaskEffect, at: Addresses) -> pages.TaskEffectRow:
    moved = [
        f"{LEVEL_NAMES[count.level]} {count.n_before:,} to {count.n_after:,}"
        for count in task.levels
        if count.n_before != count.n_after and not count.messages
    ]
    return pages.TaskEffectRow(
        task=pages.Link(
            task.task_id, address(at.task(task.uuid), {"level": PathLevel.EQUIVALENT.value})
        ),
        counts=", ".join(moved) or "with agent messages only",
        regroupings=tuple(_regrouping_rows(task.examples)),
        n_more=task.n_regroupings - len(task.examples),
    )


def _regrouping_rows(examples: Sequence[Regrouping]) -> Iterator[pages.RegroupingRow]:
    """Examples in their order; those that read alike as one, with how many they are."""
    for row, n in Counter(map(_regrouping_row, examples)).items():
        yield row if n == 1 else replace(row, times="twice" if n == 2 else f"{n} times")


def _regrouping_row(each: Regrouping) -> pages.RegroupingRow:
    verb = "becomes" if each.n_before == 1 else "become"
    return pages.RegroupingRow(
        words=f"{counted(each.n_before, 'path')} {verb} {each.n_after:,}",
        level=LEVEL_NAMES[each.level],
        trials=f"{_trials(each.before, each.n_before)} → {_trials(each.after, each.n_after)}",
        sentences=each.sentences,
    )


def _trials(listed: Sequence[int], n_paths: int) -> str:
    """Trials of each path: "5 + 2 + 1"; those that are not listed as dots."""
    more = " + …" if n_paths > len(listed) else ""
    return f"{' + '.join(map(str, listed))}{more}"
