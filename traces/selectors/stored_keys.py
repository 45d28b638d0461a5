"""Path keys of stored trajectories under a rule set, from the lines of their distinct calls."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from traces.core.paths import CallLines, PathKeys, call_texts, keys_of_lines
from traces.core.rules import RuleSet
from traces.selectors.trajectories import MESSAGE, StoredSteps, stored_calls, stored_steps

MOST_KEPT = 32_000_000  # characters


class WantedKeys(NamedTuple):
    """What the keys of a trajectory depend on beside its steps."""

    task_id: str
    own: bytes  # tells it from all others where it cannot be compared


class StoredKeys:
    """Works out keys, and the lines of each distinct call once.

    Bounded: lines are dropped, between two batches, when they hold MOST_KEPT characters.
    """

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules
        self._lines: dict[tuple[str | None, int], CallLines] = {}
        self._n_kept = 0

    def keys(self, wanted: Mapping[int, WantedKeys]) -> dict[int, PathKeys]:
        """The keys of a batch of trajectories by their ids, in two queries."""
        steps = stored_steps(wanted)
        self._look_up({pk: self._scope(wanted[pk].task_id) for pk in steps}, steps)
        return {pk: self._keys(wanted[pk], one) for pk, one in steps.items()}

    def _keys(self, one: WantedKeys, steps: StoredSteps) -> PathKeys:
        scope = self._scope(one.task_id)
        return keys_of_lines(
            [None if call == MESSAGE else self._lines[scope, call] for call in steps.calls],
            [letter == "c" for letter in steps.outcomes],
            own=one.own,
        )

    def _scope(self, task_id: str) -> str | None:
        """Tasks without rules of their own share their lines."""
        return task_id if self._rules.has_rules_for(task_id) else None

    def _look_up(self, scopes: Mapping[int, str | None], steps: Mapping[int, StoredSteps]) -> None:
        """Make the lines of the calls of a batch that are not at hand."""
        if self._n_kept > MOST_KEPT:
            self._lines, self._n_kept = {}, 0
        calls = {(scopes[pk], call) for pk, one in steps.items() for call in one.calls}
        missing = {key for key in calls - self._lines.keys() if key[1] != MESSAGE}
        stored = stored_calls(call for _, call in missing)
        for scope, pk in sorted(missing, key=lambda key: key[0] or ""):
            call = stored[pk]
            lines = call_texts(self._rules, scope).lines_of_text(call.name, call.form, call.text)
            self._lines[scope, pk] = lines
            self._n_kept += len(lines.exact) + len(lines.normal)
