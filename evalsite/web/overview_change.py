"""What changed since the release before, task by task, on the overview."""

from __future__ import annotations

from collections.abc import Sequence

from evalsite.common.formatting import counted
from evalsite.common.shell import Figure
from evalsite.web.overview_words import (
    columns,
    p_words,
    points_words,
    rate_words,
)
from reviews.core.overview import ReleaseChange, Unpaired
from reviews.core.paired import MONTE_CARLO_DRAWS, MONTE_CARLO_SEED, PairedFigures
from reviews.selectors.overview import SystemOverview
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.overview import Cell, FigureTable, OverviewChange, UnpairedTask

LISTED_FLIPS = 12
LISTED_UNPAIRED = 20
_REASONS = {
    "only_then": "not tried in this release",
    "only_now": "not tried in the release before",
    "other_task_version": "another version of the task",
    "other_contract": "decided by another contract version",
    "not_graded": "without a graded trial in one of the two",
}


def change_part(found: SystemOverview, at: Addresses, *, k: int) -> OverviewChange | None:
    """The comparison with the release before; None where there is none."""
    change, previous, release = found.change, found.previous, found.release
    if change is None or previous is None or release is None:
        return None
    here = [str(previous.uuid), str(release.uuid)]

    def tasks(names: Sequence[str]) -> tuple[pages.Link, ...]:
        return tuple(
            pages.Link(name, address(at.task(found.task_uuids[name]), {"release": here}))
            for name in names[:LISTED_FLIPS]
        )

    passing = change.passing
    return OverviewChange(
        previous=pages.Link(
            previous.label, address(at.release(release.uuid), {"against": previous.uuid})
        ),
        sentence=_sentence(change),
        figures=_figures(change, k, has_rules=found.has_rules),
        measures=_measures(found, change),
        families=_families(change),
        to_fail=tasks(passing.to_fail),
        to_pass=tasks(passing.to_pass),
        n_more_to_fail=max(len(passing.to_fail) - LISTED_FLIPS, 0),
        n_more_to_pass=max(len(passing.to_pass) - LISTED_FLIPS, 0),
        unpaired=tuple(
            UnpairedTask(
                pages.Link(each.unit.task, at.task(found.task_uuids[each.unit.task])),
                _REASONS[each.reason] + _version_words(each),
            )
            for each in change.unpaired[:LISTED_UNPAIRED]
        ),
        unpaired_words=_unpaired_words(change),
        method=_method(change),
    )


def _version_words(each: Unpaired) -> str:
    if each.reason == "other_task_version":
        return f": version {each.unit.version}"
    if each.reason == "other_contract":
        return f": contract {each.unit.contract}" if each.unit.contract else ": no contract"
    return ""


def _sentence(change: ReleaseChange) -> str:
    if not change.passing.n_tasks:
        return "Cannot tell: no task has graded trials of the same versions in both releases."
    to_fail, to_pass = len(change.passing.to_fail), len(change.passing.to_pass)
    over = f"over {counted(change.passing.n_tasks, 'task')} that both releases tried"
    if not to_fail and not to_pass:
        return f"No task flipped, {over}."
    fail = f"{counted(to_fail, 'task')} flipped to fail"
    return f"{fail}, {to_pass:,} to pass, {over}."


def _figures(change: ReleaseChange, k: int, *, has_rules: bool) -> tuple[Figure, ...]:
    then, now = change.then, change.now

    def classes(label: str, before: int, after: int) -> Figure:
        return Figure(
            label,
            f"{after:,}",
            detail=f"of {now.passing.graded:,}; {before:,} of {then.passing.graded:,} before",
            state="fail" if after > before else "",
        )

    return (
        classes("Outcome failures", then.failed_outcome, now.failed_outcome),
        classes("Constraint violations", then.failed_constraint, now.failed_constraint)
        if has_rules
        else Figure("Constraint violations", "none", detail="no rule is checked"),
        classes("Semantic failures", then.failed_semantic, now.failed_semantic),
        Figure(
            f"pass^{k}, {'rule-clean' if has_rules else 'outcome'}",
            rate_words((now.clean_hat if has_rules else now.outcome_hat).value),
            detail=f"{rate_words((then.clean_hat if has_rules else then.outcome_hat).value)} before",
        ),
    )


def _measures(found: SystemOverview, change: ReleaseChange) -> FigureTable:
    rows = [("Outcome", change.outcome)]
    if found.has_rules:
        rows.append(("Rule-clean", change.clean))
    rows.append(("Passed", change.passing))
    return FigureTable(
        id="change-measures",
        title="Means over tasks",
        sentence="each task counts once, however many trials it has",
        columns=_columns("Figure"),
        rows=tuple(_row(name, figures) for name, figures in rows),
    )


def _families(change: ReleaseChange) -> FigureTable | None:
    if not any(name for name, _ in change.families):
        return None
    return FigureTable(
        id="change-families",
        title="Passed, by family",
        sentence="a gain in one family can hide a loss in another",
        columns=_columns("Family"),
        rows=tuple(_row(name or "no family", figures) for name, figures in change.families),
    )


def _columns(first: str) -> tuple[pages.Column, ...]:
    return columns(
        first,
        "Tasks",
        "Before",
        "Now",
        "Difference",
        "To fail",
        "To pass",
        "p, sign flips",
        "p, McNemar",
    )


def _row(name: str, figures: PairedFigures) -> tuple[Cell, ...]:
    difference = figures.difference
    test = figures.test
    return (
        Cell(name),
        Cell(f"{figures.n_tasks:,}", is_number=True),
        Cell(rate_words(figures.then), is_number=True),
        Cell(rate_words(figures.now), is_number=True),
        Cell(
            "cannot tell" if difference is None else points_words(difference),
            state="fail" if difference is not None and difference < 0 else "",
            is_number=True,
        ),
        Cell(f"{len(figures.to_fail):,}", is_number=True),
        Cell(f"{len(figures.to_pass):,}", is_number=True),
        Cell(
            "cannot tell" if test is None else p_words(test.p),
            note="" if test is None or test.is_exact else "drawn",
            is_number=True,
        ),
        Cell("-" if figures.mcnemar is None else p_words(figures.mcnemar), is_number=True),
    )


def _method(change: ReleaseChange) -> str:
    tests = [figures.test for figures in (change.outcome, change.clean, change.passing)]
    drawn = any(test is not None and not test.is_exact for test in tests)
    how = (
        f"drawn {MONTE_CARLO_DRAWS:,} times with seed {MONTE_CARLO_SEED} where exact counting would "
        "take too long"
        if drawn
        else "exact"
    )
    return (
        f"p, sign flips: two-sided sign-flip permutation test on the differences of tasks, {how}. "
        "McNemar: exact, and only where each task has one graded trial in both releases. A small p "
        "says that chance alone would seldom give a difference as large; several tests at once find "
        "small ones by chance. Pairs have the same task version and the same contract version."
    )


def _unpaired_words(change: ReleaseChange) -> str:
    n = len(change.unpaired)
    if not n:
        return ""
    verb = "is" if n == 1 else "are"
    words = f"{counted(n, 'task')} {verb} not compared"
    return f"{words}; the first {LISTED_UNPAIRED} are listed" if n > LISTED_UNPAIRED else words
