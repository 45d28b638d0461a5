"""The trials of a task matched with one reference trajectory, folded so that work is bounded."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from django.db import connection

from traces.core.matching import (
    ArgumentsMatch,
    ComparedCalls,
    Label,
    Match,
    call_label,
    match_of,
)
from traces.core.paths import PathLevel, call_texts
from traces.core.rules import RuleSet
from traces.core.trajectory import ArgumentsForm
from traces.selectors.paths import key_name
from traces.selectors.task_detail import LABEL_ORDER, SLOTS, ChosenTrials
from traces.selectors.trajectories import (
    MESSAGE,
    StoredCall,
    StoredSteps,
    stored_calls,
    stored_steps,
    tool_names_of,
)

MOST_ROWS = 200
MOST_CALLS = 100_000
"""Calls of all rows together that are matched; the first row always is."""

_LEVELS = {
    ArgumentsMatch.NAMES: PathLevel.SEQUENCE,
    ArgumentsMatch.EXACT: PathLevel.EXACT,
    ArgumentsMatch.RULES: PathLevel.EQUIVALENT,
}


@dataclass(frozen=True, slots=True)
class FirstTrial:
    """The trial that stands for a row."""

    uuid: UUID
    label: str
    attempt: int
    release_name: str


@dataclass(frozen=True, slots=True)
class MatchedPath:
    """Trials with the same calls in the same messages, and how they match the reference."""

    trial: FirstTrial
    trajectories: frozenset[int]  # one for each way in which agent messages stand between the calls
    release_pks: frozenset[int]
    n_pass: int
    n_fail: int
    n_unresolved: int
    calls: ComparedCalls
    match: Match | None  # None without a reference

    @property
    def n_trials(self) -> int:
        """Trials that are no harness error."""
        return self.n_pass + self.n_fail + self.n_unresolved


@dataclass(frozen=True, slots=True)
class TaskDiagnostics:
    """The rows, most trials first, with what was cut, and the reference's tools by message."""

    rows: tuple[MatchedPath, ...]
    n_trials: int  # of all rows, those that were cut among them
    n_cut: int  # trials of rows that were cut
    reference: ComparedCalls | None
    reference_tools: tuple[tuple[str, ...], ...]
    tools: tuple[str, ...]  # of the reference, then of the rows, in the order of their use


_ROWS = """
WITH s AS ({slots}), ordered AS (
    SELECT s.*, r.name AS release_name, p.{key} AS key, j.groups,
           row_number() OVER (ORDER BY {order}) AS place
    FROM s JOIN traces_release r ON r.id = s.release_id
    JOIN traces_trajectorypaths p ON p.trajectory_id = s.trajectory_id AND p.rules_id = %(rules)s
    JOIN traces_trajectory j ON j.id = s.trajectory_id
    WHERE counted AND s.value <> 'harness_error'
)
SELECT (array_agg(trajectory_id ORDER BY place))[1], (array_agg(n_tool_calls ORDER BY place))[1],
       (array_agg(uuid ORDER BY place))[1], (array_agg(label ORDER BY place))[1],
       (array_agg(attempt ORDER BY place))[1], (array_agg(release_name ORDER BY place))[1],
       array_agg(DISTINCT release_id),
       count(*) FILTER (WHERE value = 'pass'), count(*) FILTER (WHERE value = 'fail'),
       count(*) FILTER (WHERE value = 'unresolved'), (sum(count(*)) OVER ())::bigint
FROM ordered GROUP BY key, groups ORDER BY count(*) DESC, min(place) LIMIT %(n)s
"""


def diagnostics_of(
    chosen: ChosenTrials,
    reference: int | None,
    *,
    arguments: ArgumentsMatch,
    rules: RuleSet,
    task_id: str,
) -> TaskDiagnostics:
    """How the trials match the trajectory with the id `reference`, in three queries.

    Last attempts stand for their slots; harness errors, production traces and trials with an
    injected fault are left out.
    """
    query = _ROWS.format(
        slots=SLOTS, key=key_name(_LEVELS[arguments], messages=False), order=LABEL_ORDER
    )
    with connection.cursor() as cursor:
        cursor.execute(query, {**chosen.values, "n": MOST_ROWS})
        found = cursor.fetchall()
    n_trials = found[0][-1] if found else 0
    kept = _affordable(found)
    wanted = [row[0] for row in kept]
    stored = stored_steps(wanted if reference is None else [*wanted, reference])
    texts = _Labels.of(stored, arguments, rules, task_id)
    theirs = None if reference is None else texts.compared(stored[reference])
    rows: dict[tuple[tuple[Label, ...], ...], MatchedPath] = {}
    alone: list[MatchedPath] = []  # not comparable: equal to no other
    for row in kept:
        path = _path(row, texts.compared(stored[row[0]]), theirs)
        if path.calls.n_not_comparable:
            alone.append(path)
            continue
        known = rows.get(path.calls.messages)
        rows[path.calls.messages] = path if known is None else _joined(known, path)
    shown = sorted((*rows.values(), *alone), key=lambda path: -path.n_trials)
    used = [*([stored[reference]] if reference is not None else []), *(stored[pk] for pk in wanted)]
    return TaskDiagnostics(
        rows=tuple(shown),
        n_trials=n_trials,
        n_cut=n_trials - sum(path.n_trials for path in shown),
        reference=theirs,
        reference_tools=() if reference is None else texts.tools(stored[reference]),
        tools=tuple(dict.fromkeys(name for each in used for name in texts.tool_names(each))),
    )


def _affordable(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The first rows whose calls together are not too many."""
    kept: list[tuple[Any, ...]] = []
    n_calls = 0
    for row in found:
        n_calls += row[1]
        if kept and n_calls > MOST_CALLS:
            break
        kept.append(row)
    return kept


def _path(
    row: tuple[Any, ...], calls: ComparedCalls, reference: ComparedCalls | None
) -> MatchedPath:
    trajectory, _, uuid, label, attempt, release_name, releases, n_pass, n_fail, n_open, _ = row
    return MatchedPath(
        trial=FirstTrial(uuid, label, attempt, release_name),
        trajectories=frozenset((trajectory,)),
        release_pks=frozenset(releases),
        n_pass=n_pass,
        n_fail=n_fail,
        n_unresolved=n_open,
        calls=calls,
        match=None if reference is None else match_of(calls, reference),
    )


def _joined(path: MatchedPath, other: MatchedPath) -> MatchedPath:
    """Rows that differ in nothing but the agent messages between their calls."""
    return replace(
        path,
        trajectories=path.trajectories | other.trajectories,
        release_pks=path.release_pks | other.release_pks,
        n_pass=path.n_pass + other.n_pass,
        n_fail=path.n_fail + other.n_fail,
        n_unresolved=path.n_unresolved + other.n_unresolved,
    )


@dataclass(frozen=True, slots=True)
class _Labels:
    """What each distinct call is matched by, and its tool."""

    labels: Mapping[int, Label]
    names: Mapping[int, str]

    @classmethod
    def of(
        cls,
        stored: Mapping[int, StoredSteps],
        arguments: ArgumentsMatch,
        rules: RuleSet,
        task_id: str,
    ) -> _Labels:
        ids = {call for steps in stored.values() for call in steps.calls}
        if arguments is ArgumentsMatch.NAMES:
            calls = {
                pk: StoredCall(name, ArgumentsForm.ABSENT, "")
                for pk, name in tool_names_of(ids).items()
            }
        else:
            calls = stored_calls(ids)
        texts = call_texts(rules, task_id)
        return cls(
            {
                pk: call_label(call.made("u", step=0), arguments, texts)
                for pk, call in calls.items()
            },
            {pk: call.name for pk, call in calls.items()},
        )

    def compared(self, steps: StoredSteps) -> ComparedCalls:
        return ComparedCalls(
            tuple(tuple(self.labels[call] for call in calls) for calls in _by_message(steps)),
            frozenset(self.tool_names(steps)),
        )

    def tool_names(self, steps: StoredSteps) -> tuple[str, ...]:
        return tuple(self.names[call] for call in steps.calls if call != MESSAGE)

    def tools(self, steps: StoredSteps) -> tuple[tuple[str, ...], ...]:
        return tuple(tuple(self.names[call] for call in calls) for calls in _by_message(steps))


def _by_message(steps: StoredSteps) -> list[list[int]]:
    """The calls of each message that made some."""
    messages: dict[int, list[int]] = {}
    for call, group in zip(steps.calls, steps.groups, strict=True):
        if call != MESSAGE:
            messages.setdefault(group, []).append(call)
    return list(messages.values())
