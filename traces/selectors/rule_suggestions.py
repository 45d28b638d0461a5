"""Rules that the passing paths of a system suggest, and how often its rules applied.

Two looks at the tasks, each a batch at a time: see `traces.core.rule_search`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple
from uuid import UUID

from django.db import connection

from traces.core.paths import CallTexts
from traces.core.rule_search import MOST_CALLS, Counts, Findings, PathCall, Row, SeenCall
from traces.core.rule_suggestions import RuleSuggestions
from traces.core.rules import ArgumentRule, RuleSet
from traces.core.trajectory import ArgumentsForm
from traces.models import RulesVersion, System
from traces.selectors.rule_reach import (
    BATCH,
    PASSED,
    PassedTask,
    Progress,
    RulesMovedError,
    in_batches,
    passed_tasks,
)
from traces.selectors.rules import rules_in
from traces.selectors.trajectories import MESSAGE, StoredCall, stored_calls, stored_steps

_CALLS_AT_ONCE = 5_000

_SEEN = f"""
WITH taken AS (
    SELECT DISTINCT t.task_id, t.trajectory_id {PASSED} AND t.task_id = ANY(%(tasks)s)
), made AS (
    SELECT a.task_id, s.call, min(j.id) AS first, max(j.id) AS last
    FROM taken a JOIN traces_trajectory j ON j.id = a.trajectory_id
    CROSS JOIN unnest(j.steps) AS s(call) WHERE s.call <> 0 GROUP BY a.task_id, s.call
), ranked AS (
    SELECT m.task_id, m.first, m.last, c.id, c.tool_id, c.form, c.arguments,
           row_number() OVER (PARTITION BY m.task_id, c.tool_id ORDER BY c.id) AS place
    FROM made m JOIN traces_distinctcall c ON c.id = m.call
)
SELECT r.task_id, t.name, r.form, r.arguments, r.first, r.last
FROM ranked r JOIN traces_tool t ON t.id = r.tool_id
WHERE r.place <= %(most)s ORDER BY r.task_id, r.id
"""  # noqa: S608 - made of constants

# One trajectory of each path that is told apart with agent messages, of sequences with several.
_SEVERAL = f"""
WITH taken AS (
    SELECT DISTINCT t.task_id, t.trajectory_id {PASSED} AND t.task_id = ANY(%(tasks)s)
), keyed AS (
    SELECT a.task_id, a.trajectory_id, p.sequence, p.equivalent, p.equivalent_msg
    FROM taken a
    JOIN traces_trajectory j ON j.id = a.trajectory_id AND j.is_comparable
    JOIN traces_trajectorypaths p ON p.trajectory_id = a.trajectory_id AND p.rules_id = %(rules)s
), several AS (
    SELECT task_id, sequence FROM keyed
    GROUP BY task_id, sequence HAVING count(DISTINCT equivalent) > 1
)
SELECT DISTINCT ON (k.task_id, k.sequence, k.equivalent_msg)
       k.task_id, k.sequence, k.equivalent, k.trajectory_id
FROM keyed k JOIN several s ON s.task_id = k.task_id AND s.sequence = k.sequence
ORDER BY k.task_id, k.sequence, k.equivalent_msg, k.trajectory_id
"""  # noqa: S608 - made of constants


def suggested_rules(
    system: System, version: RulesVersion, *, progress: Progress
) -> RuleSuggestions:
    """What the stored paths suggest on top of a version of the rules, which pages must show.

    Raises RulesMovedError where they show another one.
    """
    search = _Search(system, version)
    tasks = passed_tasks(system)
    n_looks = 2 * sum(task.n_passed for task in tasks)
    findings, n_done, n_paths = Findings(search.rules), 0, 0
    for batch in in_batches(tasks):
        for seen in search.seen_calls(batch):
            findings.look_at_calls(seen)
        for paths in search.several_paths(batch):
            n_paths += paths.n_paths
            for rows in paths.sequences:
                findings.look_at_paths(rows, paths.calls, paths.marks)
        n_done += sum(task.n_passed for task in batch)
        progress(n_done, n_looks)
    candidates, is_cut = findings.candidates()
    counts = Counts(candidates)
    for batch in in_batches(tasks if candidates else ()):
        for paths in search.several_paths(batch):
            rows = [row for sequence in paths.sequences for row in sequence]
            counts.look(paths.task_id, rows, paths.calls, paths.marks)
        n_done += sum(task.n_passed for task in batch)
        progress(n_done, n_looks)
    return RuleSuggestions(
        suggestions=counts.suggestions(findings),
        n_calls=_n_calls(system, search.rules),
        n_tasks=len(tasks),
        n_paths=n_paths,
        is_cut=is_cut,
    )


class _Paths(NamedTuple):
    """Paths of some sequences of one task, with their calls."""

    task_id: str
    sequences: list[list[Row]]
    n_paths: int
    calls: dict[int, PathCall]
    marks: dict[int, str]


class _Several(NamedTuple):
    """A row of the query."""

    task: int
    sequence: UUID
    equivalent: UUID
    trajectory: int


class _Search:
    """Reads what the search compares."""

    def __init__(self, system: System, version: RulesVersion) -> None:
        self.rules = rules_in(version)
        self._version = version.pk
        self._shown_by = System.objects.filter(pk=system.pk, shown_rules=version)
        self._ruled = {rule.tool for rule in self.rules.rules}

    def seen_calls(self, batch: Sequence[PassedTask]) -> Iterator[list[SeenCall]]:
        """The distinct calls of the passing trials of each task, some of each tool."""
        with connection.cursor() as cursor:
            cursor.execute(_SEEN, {"tasks": [task.pk for task in batch], "most": MOST_CALLS})
            rows = cursor.fetchall()
        for _, calls in groupby(rows, key=lambda row: row[0]):
            yield [
                SeenCall(PathCall(tool, ArgumentsForm(form), text), first, last)
                for _, tool, form, text, first, last in calls
            ]

    def several_paths(self, batch: Sequence[PassedTask]) -> Iterator[_Paths]:
        """The passing paths of sequences that have several of them, task by task."""
        with connection.cursor() as cursor:
            cursor.execute(_SEVERAL, {"tasks": [task.pk for task in batch], "rules": self._version})
            rows = [_Several(*row) for row in cursor.fetchall()]
        # Keys of a version that is no longer shown may be gone; until now they were whole.
        if not self._shown_by.exists():
            raise RulesMovedError
        names = {task.pk: task.task_id for task in batch}
        some: list[list[_Several]] = []
        for _, sequence in groupby(rows, key=attrgetter("task", "sequence")):
            some.append(list(sequence))
            if sum(map(len, some)) >= BATCH:
                yield from self._paths(names, some)
                some = []
        if some:
            yield from self._paths(names, some)

    def _paths(self, names: dict[int, str], sequences: list[list[_Several]]) -> Iterator[_Paths]:
        """The paths of some sequences, in two queries."""
        steps = stored_steps(row.trajectory for rows in sequences for row in rows)
        stored = stored_calls(call for one in steps.values() for call in one.calls)
        calls = {pk: PathCall(one.name, one.form, one.text) for pk, one in stored.items()}
        for task, of_task in groupby(sequences, key=lambda rows: rows[0].task):
            texts = CallTexts(self.rules, names[task])
            taken = list(of_task)
            paths = [[steps[row.trajectory].calls for row in rows] for rows in taken]
            yield _Paths(
                task_id=names[task],
                sequences=paths,
                n_paths=len({row.equivalent for rows in taken for row in rows}),
                calls=calls,
                marks={
                    pk: self._mark(pk, calls[pk], texts)
                    for pk in {pk for rows in paths for row in rows for pk in row}
                    if pk != MESSAGE
                },
            )

    def _mark(self, pk: int, call: PathCall, texts: CallTexts) -> str:
        # Without a rule on its tool each distinct call equals only itself.
        if call.tool not in self._ruled:
            return str(pk)
        return texts.lines_of_text(*call).normal


# How often the rules applied

_CALLS_OF_TOOL = """
SELECT digest, arguments FROM traces_distinctcall
WHERE tool_id = %(tool)s AND form = 'json'
  AND (%(after)s::uuid IS NULL OR digest > %(after)s) ORDER BY digest LIMIT %(n)s
"""
_CALLS_OF_TASK = """
SELECT DISTINCT c.id, t.name, c.arguments
FROM traces_task k JOIN traces_trajectory j ON j.task_id = k.id
CROSS JOIN unnest(j.steps) AS s(call) JOIN traces_distinctcall c ON c.id = s.call
JOIN traces_tool t ON t.id = c.tool_id
WHERE k.system_id = %(system)s AND k.task_id = %(task)s AND c.form = 'json' AND t.name = ANY(%(tools)s)
"""


def _n_calls(system: System, rules: RuleSet) -> tuple[int, ...]:
    """Of each rule, the distinct calls that it applied to: of the system, or of its task."""
    counts: Counter[ArgumentRule] = Counter()
    ruled = {rule.tool for rule in rules.rules if rule.task_id is None}
    for tool in system.tools.filter(name__in=ruled).order_by("pk"):
        for texts in _calls_of_tool(tool.pk):
            _count_uses(counts, rules, None, ((tool.name, text) for text in texts))
    for task_id in sorted({rule.task_id for rule in rules.rules if rule.task_id is not None}):
        tools = [rule.tool for rule in rules.rules if rule.task_id == task_id]
        with connection.cursor() as cursor:
            cursor.execute(_CALLS_OF_TASK, {"system": system.pk, "task": task_id, "tools": tools})
            _count_uses(counts, rules, task_id, ((row[1], row[2]) for row in cursor.fetchall()))
    return tuple(counts[rule] for rule in rules.rules)


def _calls_of_tool(tool: int) -> Iterator[list[str]]:
    after = None
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_CALLS_OF_TOOL, {"tool": tool, "after": after, "n": _CALLS_AT_ONCE})
            rows = cursor.fetchall()
        if not rows:
            return
        yield [text for _, text in rows]
        after = rows[-1][0]


def _count_uses(
    counts: Counter[ArgumentRule],
    rules: RuleSet,
    task_id: str | None,
    calls: Iterable[tuple[str, str]],
) -> None:
    """Count the rules of a scope; a task's calls follow rules of the system too."""
    texts = CallTexts(rules, task_id)
    for tool, text in calls:
        made = StoredCall(tool, ArgumentsForm.JSON, text).made("u", step=0)
        used = {use.rule for use in texts.uses(made)}
        counts.update(rule for rule in used if rule.task_id == task_id)
