"""What grading stored trials under other contract versions changes, counted by task.

The result of a preview and of a regrade, as stored documents and back. A document that another
version of the product wrote is read as far as it is understood.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from traces.core.values import Json, JsonObject, list_in, object_in, text_in

MOST_EXAMPLES = 20
"""Trials that are named for one transition."""

MOST_CRITERIA = 20
"""Criteria that are named for one transition or task; the most frequent ones."""

NOT_DECIDED = ""
"""The disposition of a trial that has none yet."""


@dataclass(frozen=True, slots=True)
class CriterionCount:
    """How many trials a criterion is named for."""

    criterion: str
    n_trials: int


@dataclass(frozen=True, slots=True)
class Transition:
    """Trials that were decided one way and are decided another way, or the same, now."""

    before: str  # a disposition; `NOT_DECIDED`
    after: str
    n_trials: int
    reasons: tuple[CriterionCount, ...]  # what failed or is open now, the most frequent first
    examples: tuple[str, ...]  # UUIDs of trials; none where nothing changed

    @property
    def is_change(self) -> bool:
        """Whether the disposition is another one."""
        return self.before != self.after


@dataclass(frozen=True, slots=True)
class TaskEffect:
    """What happens to the trials of one task."""

    task_id: str
    version: int | None  # number of the contract version; None: a draft
    n_trials: int
    transitions: tuple[Transition, ...]  # those that change first, the most frequent first
    newly_failing: tuple[CriterionCount, ...]  # criteria that did not fail before
    note: str = ""  # why nothing took effect, for people; "" where it did

    @property
    def n_changed(self) -> int:
        """Trials whose disposition is another one."""
        return sum(each.n_trials for each in self.transitions if each.is_change)


@dataclass(frozen=True, slots=True)
class PlantedCheck:
    """What one check of a grader test was expected to say, and said."""

    criterion: str
    expected: str
    found: str
    sentence: str = ""


@dataclass(frozen=True, slots=True)
class GraderTest:
    """One grader test of a contract, run."""

    task_id: str
    name: str
    is_met: bool
    checks: tuple[PlantedCheck, ...]  # those that are not as expected


@dataclass(frozen=True, slots=True)
class UnknownTool:
    """A tool that contracts name and that no stored trace of the system used."""

    name: str
    task_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class PreviewResult:
    """What drafted contracts would do."""

    tasks: tuple[TaskEffect, ...]  # in the order of the drafts
    grader_tests: tuple[GraderTest, ...]
    unknown_tools: tuple[UnknownTool, ...]

    @property
    def n_trials(self) -> int:
        """Stored trials of all tasks."""
        return sum(task.n_trials for task in self.tasks)

    @property
    def n_changed(self) -> int:
        """Trials whose disposition would be another one."""
        return sum(task.n_changed for task in self.tasks)

    @property
    def unmet(self) -> tuple[GraderTest, ...]:
        """Grader tests in which a check does not say what is expected."""
        return tuple(test for test in self.grader_tests if not test.is_met)


@dataclass(frozen=True, slots=True)
class RegradeResult:
    """What a regrade did so far."""

    tasks: tuple[TaskEffect, ...] = ()  # those that took effect, or were passed over, in order

    @property
    def n_trials(self) -> int:
        """Trials that were decided anew."""
        return sum(task.n_trials for task in self.tasks)

    @property
    def n_changed(self) -> int:
        """Trials whose disposition is another one."""
        return sum(task.n_changed for task in self.tasks)

    def with_task(self, effect: TaskEffect) -> RegradeResult:
        """The result with one task more."""
        return RegradeResult((*self.tasks, effect))


@dataclass(slots=True)
class _Tally:
    n_trials: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    examples: list[str] = field(default_factory=list)


class EffectCounter:
    """Counts what happens to the trials of one task."""

    def __init__(self) -> None:
        self._transitions: dict[tuple[str, str], _Tally] = {}
        self._newly_failing: Counter[str] = Counter()
        self.n_trials = 0

    def add(
        self,
        trial: str,
        *,
        before: str,
        after: str,
        failed_before: Iterable[str],
        failed: Sequence[str],
        is_open: Sequence[str],
    ) -> None:
        """Count one trial: its dispositions, and the criteria that failed or are open."""
        self.n_trials += 1
        tally = self._transitions.setdefault((before, after), _Tally())
        tally.n_trials += 1
        self._newly_failing.update(set(failed) - set(failed_before))
        if before == after:
            return
        match after:
            case "fail":
                tally.reasons.update(failed)
            case "unresolved":
                tally.reasons.update(is_open)
            case _:
                pass
        if len(tally.examples) < MOST_EXAMPLES:
            tally.examples.append(trial)

    def effect(self, task_id: str, *, version: int | None = None, note: str = "") -> TaskEffect:
        """What was counted."""
        found = [
            Transition(before, after, tally.n_trials, _counts(tally.reasons), tuple(tally.examples))
            for (before, after), tally in self._transitions.items()
        ]
        found.sort(key=lambda one: (not one.is_change, -one.n_trials, one.before, one.after))
        return TaskEffect(
            task_id, version, self.n_trials, tuple(found), _counts(self._newly_failing), note
        )


def _counts(counter: Mapping[str, int]) -> tuple[CriterionCount, ...]:
    ordered = sorted(counter.items(), key=lambda item: (-item[1], item[0]))
    return tuple(CriterionCount(*item) for item in ordered[:MOST_CRITERIA])


def preview_document(result: PreviewResult) -> JsonObject:
    """A preview's result as it is stored."""
    return {
        "tasks": [_task_document(task) for task in result.tasks],
        "grader_tests": [_test_document(test) for test in result.grader_tests],
        "unknown_tools": [[tool.name, list(tool.task_ids)] for tool in result.unknown_tools],
    }


def parse_preview(document: Json) -> PreviewResult:
    """A stored preview's result."""
    found = object_in(document)
    return PreviewResult(
        tasks=tuple(_task(one) for one in list_in(found.get("tasks"))),
        grader_tests=tuple(_test(one) for one in list_in(found.get("grader_tests"))),
        unknown_tools=tuple(
            UnknownTool(text_in(_at(one, 0)), tuple(map(text_in, list_in(_at(one, 1)))))
            for one in list_in(found.get("unknown_tools"))
        ),
    )


def regrade_document(result: RegradeResult) -> JsonObject:
    """A regrade's result as it is stored."""
    return {"tasks": [_task_document(task) for task in result.tasks]}


def parse_regrade(document: Json) -> RegradeResult:
    """A stored regrade's result; None, as before it began: nothing so far."""
    return RegradeResult(tuple(_task(one) for one in list_in(object_in(document).get("tasks"))))


def _task_document(task: TaskEffect) -> JsonObject:
    return {
        "task": task.task_id,
        "version": task.version,
        "n_trials": task.n_trials,
        "transitions": [
            {
                "before": each.before,
                "after": each.after,
                "n_trials": each.n_trials,
                "reasons": _count_document(each.reasons),
                "examples": list(each.examples),
            }
            for each in task.transitions
        ],
        "newly_failing": _count_document(task.newly_failing),
        "note": task.note,
    }


def _count_document(counts: Sequence[CriterionCount]) -> list[Json]:
    return [[each.criterion, each.n_trials] for each in counts]


def _test_document(test: GraderTest) -> JsonObject:
    return {
        "task": test.task_id,
        "name": test.name,
        "is_met": test.is_met,
        "checks": [
            [check.criterion, check.expected, check.found, check.sentence] for check in test.checks
        ],
    }


def _task(document: Json) -> TaskEffect:
    found = object_in(document)
    version = found.get("version")
    return TaskEffect(
        task_id=text_in(found.get("task")),
        version=version if isinstance(version, int) else None,
        n_trials=_number(found.get("n_trials")),
        transitions=tuple(_transition(one) for one in list_in(found.get("transitions"))),
        newly_failing=_read_counts(found.get("newly_failing")),
        note=text_in(found.get("note")),
    )


def _transition(document: Json) -> Transition:
    found = object_in(document)
    return Transition(
        before=text_in(found.get("before")),
        after=text_in(found.get("after")),
        n_trials=_number(found.get("n_trials")),
        reasons=_read_counts(found.get("reasons")),
        examples=tuple(map(text_in, list_in(found.get("examples")))),
    )


def _read_counts(document: Json) -> tuple[CriterionCount, ...]:
    return tuple(
        CriterionCount(text_in(_at(one, 0)), _number(_at(one, 1))) for one in list_in(document)
    )


def _test(document: Json) -> GraderTest:
    found = object_in(document)
    return GraderTest(
        task_id=text_in(found.get("task")),
        name=text_in(found.get("name")),
        is_met=found.get("is_met") is True,
        checks=tuple(
            PlantedCheck(*(text_in(_at(one, place)) for place in range(4)))
            for one in list_in(found.get("checks"))
        ),
    )


def _at(value: Json, place: int) -> Json:
    return value[place] if isinstance(value, list) and place < len(value) else None


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
