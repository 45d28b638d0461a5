"""Rates, ranges, intervals and tables of figures in words, for the overview and production."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from evalsite.common.formatting import NOTHING, count_text, counted
from evalsite.common.shell import Figure
from reviews.core.estimators import Counts, Interval, Range, clopper_pearson, percent
from reviews.core.overview import HarmCounts
from reviews.selectors.overview_slots import Endings, RequirementFigures
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.pages.overview import Cell, FigureTable, RangeBar
from traces.web.rows import action_words

LISTED_REQUIREMENTS = 12
MOST_REQUIREMENTS = 200
COUNTS_WORDS = "passed / graded / run"


def rate_words(rate: Fraction | None) -> str:
    """A rate as pages show it: "94.4%"; "none" over nothing."""
    return "none" if rate is None else percent(rate).replace(" %", "%")


def float_words(rate: float) -> str:
    """A bound or an end of an interval, to a tenth of a percent."""
    return "< 0.1%" if 0 < rate < 0.0005 else f"{100 * rate:.1f}%"


def range_words(found: Range | None) -> str:
    """A range; "" where it is a point or nothing was run."""
    if found is None or found.low == found.high:
        return ""
    return f"{rate_words(found.low)} to {rate_words(found.high)}"


def interval_words(found: Interval | None) -> str:
    """An interval; "" for none."""
    return "" if found is None else f"{float_words(found.low)} to {float_words(found.high)}"


def counts_words(counts: Counts) -> str:
    """Passed / graded / run, which always stand together."""
    return f"{counts.passed:,} / {counts.graded:,} / {counts.run:,}"


def points_words(difference: Fraction) -> str:
    """A difference of two rates in percentage points, with its sign."""
    tenths = round(difference * 1000)
    return f"{'+' if tenths > 0 else '−' if tenths < 0 else ''}{abs(tenths) / 10:.1f} points"


def p_words(p: Fraction) -> str:
    """A p-value to three places."""
    return "< 0.001" if p < Fraction(1, 1000) else f"{float(p):.3f}"


def ratio_words(ratio: Fraction | None) -> str:
    """A ratio to two places; "none" over nothing."""
    return "none" if ratio is None else f"{float(ratio):.2f}"


def decimal_words(value: Decimal | None) -> str:
    """A count or a mean of counts; "-" when not known."""
    if value is None:
        return NOTHING
    return f"{value:,.1f}".removesuffix(".0")


def rate_bar(counts: Counts) -> RangeBar | None:
    """The range of a rate, its value and its interval, drawn. None when nothing was run."""
    found = counts.range
    if found is None:
        return None
    interval = clopper_pearson(counts.passed, counts.graded)
    words = f"{rate_words(counts.rate)} of graded; range {rate_words(found.low)} to "
    words += rate_words(found.high)
    if interval:
        words += f"; 95% interval {interval_words(interval)}"
    return RangeBar(
        words=words,
        low=_place(float(found.low)),
        width=_place(float(found.high - found.low)),
        value="" if counts.rate is None else _place(float(counts.rate)),
        whisker_low=_place(interval.low) if interval else "",
        whisker_width=_place(interval.high - interval.low) if interval else "",
    )


def _place(rate: float) -> str:
    return f"{100 * rate:.1f}"


def rate_cell(counts: Counts, href: str = "") -> Cell:
    """A rate with its counts under it."""
    return Cell(
        rate_words(counts.rate),
        href=href,
        note=counts_words(counts) if counts.run else "",
        is_number=True,
    )


def count_cell(n: int, href: str = "", *, state: str = "") -> Cell:
    """A count; it leads somewhere only where it is not 0."""
    return Cell(count_text(n), href=href if n else "", state=state if n else "", is_number=True)


def columns(*labels: str, text: Sequence[int] = (0,)) -> tuple[pages.Column, ...]:
    """Heads of a table of figures. `text` says which columns hold no numbers."""
    return tuple(
        pages.Column(label, is_number=place not in text) for place, label in enumerate(labels)
    )


class TrialLinks:
    """Addresses of the list of trials behind a figure."""

    def __init__(self, at: Addresses, kept: dict[str, Value]) -> None:
        self.at = at
        self.kept = kept

    def to(self, **values: Value) -> str:
        """The trials that these conditions name, beside those that the page itself is about."""
        return address(self.at.trials, {**self.kept, **values})


def safety_table(harms: Sequence[HarmCounts], links: TrialLinks, *, empty: str) -> FigureTable:
    """Trials with something prohibited, by harm, with the bound of the true rate."""
    return FigureTable(
        id="safety",
        title="Safety: prohibited actions",
        sentence="over trials of tasks whose contract prohibits something; an attempt counts, also "
        "where the tool refused it",
        columns=columns(
            "Harm",
            "Attempted",
            "Committed",
            "Clean / known / run",
            "True rate, at most",
            "Tasks, at most",
        ),
        rows=tuple(_harm_row(each, links) for each in harms),
        empty=empty,
        notes=(
            (
                "At most: one-sided 95% upper bound (Clopper-Pearson) of the true rate of trials, or of "
                "tasks, with an attempt. With none in n trials it is 1 − 0.05^(1/n), about 3/n. Trials "
                "with an open check, harness errors and missing ones are not known."
            ),
        )
        if harms
        else (),
    )


def _harm_row(each: HarmCounts, links: TrialLinks) -> tuple[Cell, ...]:
    href = links.to(harm=each.harm) if each.harm else links.to(prohibited="1")
    n_tasks = each.tasks_violated + each.tasks_clean
    return (
        Cell(each.harm or "any"),
        count_cell(each.n_attempted, href, state="fail"),
        count_cell(each.n_committed, href, state="fail"),
        Cell(f"{each.n_clean:,} / {each.n_known:,} / {each.n_run:,}", is_number=True),
        Cell(
            "cannot tell" if each.trial_bound is None else float_words(each.trial_bound),
            note=f"{each.n_attempted:,} in {counted(each.n_known, 'trial')}",
            is_number=True,
        ),
        Cell(
            "cannot tell" if each.task_bound is None else float_words(each.task_bound),
            note=f"{each.tasks_violated:,} in {counted(n_tasks, 'task')}",
            is_number=True,
        ),
    )


def ending_figures(endings: Endings, links: TrialLinks) -> tuple[Figure, ...]:
    """Hand-overs and trials that changed nothing, so that doing nothing cannot look safe."""
    if not endings.n_known:
        return ()
    return (
        _ending(
            "Handed to a person",
            endings.n_handed_over,
            endings.n_known,
            links.to(ended="handed_over"),
            "Trials with a committed hand-over.",
        ),
        _ending(
            "Ended without any change",
            endings.n_without_change,
            endings.n_known,
            links.to(ended="no_change"),
            "Trials without a committed write: an agent that does nothing looks safe.",
        ),
    )


def _ending(label: str, n: int, known: int, href: str, words: str) -> Figure:
    return Figure(
        label,
        rate_words(Fraction(n, known)),
        detail=f"{n:,} of {counted(known, 'trial')}",
        help=words,
        href=href if n else "",
    )


def requirements_table(
    requirements: Sequence[RequirementFigures], links: TrialLinks, *, empty: str
) -> FigureTable:
    """How often each requirement failed; those that never did are folded."""
    rows = [_requirement_row(each, links) for each in requirements[:MOST_REQUIREMENTS]]
    n_shown = max(
        min(sum(1 for each in requirements if each.counts.failed), LISTED_REQUIREMENTS),
        min(len(rows), 6),
    )
    left = len(requirements) - MOST_REQUIREMENTS
    return FigureTable(
        id="requirements",
        title="Failures per requirement",
        sentence="failed of graded trials that have the requirement; most failures first",
        columns=columns("Requirement", "Class", "Failed", "Graded", "Open", "Rate", text=(0, 1)),
        rows=tuple(rows[:n_shown]),
        more=tuple(rows[n_shown:]),
        more_words=f"{counted(len(rows) - n_shown, 'more requirement')}",
        empty=empty,
        notes=(f"{counted(left, 'more requirement')} in the exports.",) if left > 0 else (),
    )


def _requirement_row(each: RequirementFigures, links: TrialLinks) -> tuple[Cell, ...]:
    counts = each.counts
    note = f"in {counted(each.n_tasks, 'task')}"
    if not each.is_mandatory:
        note = f"preference, {note}"
    elif each.n_preferring:
        note = f"{note}, a preference in {each.n_preferring:,} of them"
    rate = Fraction(counts.failed, counts.graded) if counts.graded else None
    return (
        Cell(each.criterion, note=note),
        Cell(each.kind or NOTHING),
        count_cell(counts.failed, links.to(failed=each.criterion), state="fail"),
        count_cell(counts.graded),
        count_cell(counts.unknown, links.to(open=each.criterion), state="unresolved"),
        Cell(rate_words(rate), is_number=True),
    )


def actions_table(
    actions: Iterable[tuple[str, int]], at: Addresses, kept: dict[str, Value]
) -> FigureTable:
    """What would settle unresolved trials, with the way to the queue."""
    rows = tuple(
        (
            Cell(action_words(action), href=address(at.cases, {**kept, "action": action})),
            count_cell(n, state="unresolved"),
        )
        for action, n in actions
    )
    return FigureTable(
        id="actions",
        title="Unresolved, by next action",
        sentence="a trial may need several; the link leads to the queue",
        columns=columns("Next action", "Trials"),
        rows=rows,
        empty="No trial is unresolved.",
    )
