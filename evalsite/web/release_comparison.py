"""The part of a release's page that compares it with another release."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal

from evalsite.access import SystemRequest
from evalsite.common.formatting import NOTHING, counted, money_text
from evalsite.common.shell import Choice, Figure
from traces.core.paths import PathLevel
from traces.selectors.release_comparison import (
    ComparedReleases,
    ComparedTask,
    Flip,
    LeftOut,
    Moves,
    OtherRelease,
    PathChange,
    PathFate,
    ReleaseComparison,
    ReleaseSide,
    release_comparison,
    releases_with_trials,
)
from traces.selectors.releases import NO_RELEASE, ReleaseRow
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.levels import LEVEL_NAMES, ChosenLevel
from traces.web.rows import percent

_PLACE = "#comparison"


@dataclass(frozen=True, slots=True)
class _Pair:
    """Both releases, and what the address asks for."""

    now: ReleaseRow
    then: OtherRelease
    chosen: ChosenLevel
    everything: bool
    at: Addresses

    @property
    def here(self) -> str:
        return self.at.release(self.now.uuid)

    @property
    def values(self) -> dict[str, Value]:
        return {
            "against": self.then.uuid,
            **self.chosen.values,
            "all": "1" if self.everything else "",
        }

    @property
    def releases(self) -> list[str]:
        return [str(self.then.uuid), str(self.now.uuid)]


def comparison_part(request: SystemRequest, release: ReleaseRow) -> pages.ReleaseComparison:
    """A release against the one that the address names, or the one before it that has trials."""
    system = request.access.system
    at = Addresses.of(system.slug)
    others = [each for each in releases_with_trials(system.pk) if each.pk != release.pk]
    chosen = ChosenLevel.of(request.GET, default=PathLevel.SEQUENCE)
    then = _other(request, release, others)
    links = tuple(
        Choice(
            _name(each),
            address(
                at.release(release.uuid), {"against": each.uuid, **chosen.values}, place=_PLACE
            ),
            is_current=each == then,
        )
        for each in others
    )
    if then is None or not release.n_tasks:
        return pages.ReleaseComparison(
            sentence=_nothing_words(release, others), others=links, others_label="Compare with"
        )
    pair = _Pair(release, then, chosen, request.GET.get("all") == "1", at)
    found = release_comparison(
        ComparedReleases(system.pk, release.pk, then.pk, system.shown_rules_id, chosen.key),
        everything=pair.everything,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    return pages.ReleaseComparison(
        sentence=_sentence(found),
        others=links,
        others_label=f"Against {_name(then)}",
        now=release.label,
        then=pages.Link(_name(then), at.release(then.uuid)),
        figures=_figures(found),
        tools_new=found.tools_new,
        tools_gone=found.tools_gone,
        n_more_tools=found.n_tools_new
        + found.n_tools_gone
        - len(found.tools_new)
        - len(found.tools_gone),
        level_words=_level_words(chosen),
        shown=_shown(found, pair),
        rows=tuple(_row(task, pair) for task in found.tasks),
        rows_words=_rows_words(found, pair),
        pager=pager_of(found, pair.here, pair.values, place=_PLACE),
        left_out=tuple(_left_out(task, pair) for task in found.left_out),
        left_out_words=_left_out_words(found),
    )


def _name(release: OtherRelease) -> str:
    return release.name or NO_RELEASE


def _other(
    request: SystemRequest, release: ReleaseRow, others: Sequence[OtherRelease]
) -> OtherRelease | None:
    """The release that is asked for; else the newest one before this that bears a name."""
    asked = uuid_of(request.GET.get("against", ""))
    named = next((each for each in others if each.uuid == asked), None)
    before = (each for each in others if each.pk < release.pk and not each.is_unversioned)
    return named or next(before, None)


def _nothing_words(release: ReleaseRow, others: Sequence[OtherRelease]) -> str:
    if not release.n_tasks:
        return "This release has no trial to compare yet."
    if others:
        return "None before it: no earlier release has trials. Choose one to compare with."
    return "None before it: no other release has trials to compare with."


def _sentence(found: ReleaseComparison) -> str:
    """What changed, over all compared tasks."""
    if not found.n_tasks:
        return "No task was tried in both at the same version."
    verb = "passes" if found.n_other_paths == 1 else "pass"
    parts = [
        f"{found.n_other_paths:,} of {counted(found.n_tasks, 'task')} {verb} by other paths",
        f"{counted(found.n_to_fail, 'flip')} to fail, {found.n_to_pass:,} to pass",
        *_rate_words(found),
    ]
    if not (found.n_tools_new or found.n_tools_gone):
        parts.append("the same tools")
    if found.n_tools_new:
        parts.append(counted(found.n_tools_new, "new tool"))
    if found.n_tools_gone:
        parts.append(f"{counted(found.n_tools_gone, 'tool')} no longer used")
    return "; ".join(parts) + "."


def _rate_words(found: ReleaseComparison) -> list[str]:
    """How many tasks pass less or more often without a flip, and how many are graded no more."""
    words: list[str] = []
    noun = "other task" if found.n_to_fail or found.n_to_pass else "task"
    for n, way in ((found.n_less_often, "less often"), (found.n_more_often, "more often")):
        if n:
            who = f"{n:,}" if words else counted(n, noun)
            words.append(f"{who} {'passes' if n == 1 else 'pass'} {way}")
    parts = [", ".join(words)] if words else []
    if n := found.n_no_longer_graded:
        parts.append(f"{counted(n, 'task')} {'is' if n == 1 else 'are'} no longer graded")
    return parts


def _figures(found: ReleaseComparison) -> tuple[Figure, ...]:
    then, now = found.then, found.now
    return (
        Figure(
            "Passed of graded",
            percent(now.n_pass, now.n_graded),
            detail=f"{percent(then.n_pass, then.n_graded)} there",
            help=f"Over the compared tasks: {now.n_pass:,} / {now.n_graded:,} / {now.n_run:,} "
            f"passed / graded / run here, {then.n_pass:,} / {then.n_graded:,} / {then.n_run:,} "
            "there.",
        ),
        Figure(
            "Flips to fail",
            f"{found.n_to_fail:,}",
            detail=f"of {counted(found.n_tasks, 'task')}",
            state="fail" if found.n_to_fail else "",
            help="Tasks that always passed there and fail here at least once.",
        ),
        Figure(
            "Flips to pass",
            f"{found.n_to_pass:,}",
            detail=f"of {counted(found.n_tasks, 'task')}",
            help="Tasks that always failed there and pass here at least once.",
        ),
        Figure(
            "Pass by other paths",
            f"{found.n_other_paths:,}",
            detail=f"{found.n_gone:,} gone, {found.n_new:,} new, {found.n_kept:,} kept",
            help="Tasks that pass in both, with a passing path gone or new; then the passing "
            "paths of all compared tasks.",
        ),
        _moves_figure(
            "Tool calls",
            found.calls,
            help="Tasks that pass in both, by what became of the median tool calls of their "
            "passing trials.",
        ),
        _moves_figure(
            "Cost",
            found.cost,
            help="Tasks with passing trials of known cost in both, by what became of the median "
            "cost of those trials.",
        ),
    )


def _moves_figure(label: str, moves: Moves, *, help: str) -> Figure:  # noqa: A002 - as in `Figure`
    """In how many tasks a median fell, rose or stayed: "lower in 9 of 10 tasks, higher in 1"."""
    ways = ((moves.n_lower, "lower"), (moves.n_higher, "higher"), (moves.n_same, "the same"))
    told = [f"{way} in {n:,}" for n, way in ways if n]
    if not told:
        return Figure(label, NOTHING, detail="no task has it in both", help=help)
    first, *rest = told
    detail = ", ".join((f"of {counted(moves.n_tasks, 'task')}", *rest))
    return Figure(label, first, detail=detail, help=help)


def _number(value: Decimal | None) -> str:
    if value is None:
        return NOTHING
    text = f"{value:,.1f}"
    return text.removesuffix(".0")


def _change(
    then: Decimal | None,
    now: Decimal | None,
    shown: Callable[[Decimal | None], str],
    *,
    is_share: bool = False,
) -> pages.Change:
    """Both values with the difference in words: as a share of the earlier one, or as it is."""
    words = ""
    if then is not None and now is not None:
        if then == now:
            words = "the same"
        elif not is_share:
            words = f"{shown(abs(now - then))} {'more' if now > then else 'fewer'}"
        elif then:
            share = f"{100 * abs(now - then) / then:,.0f}%"
            words = f"{'< 1%' if share == '0%' else share} {'more' if now > then else 'less'}"
    return pages.Change(shown(then), shown(now), words)


def _level_words(chosen: ChosenLevel) -> str:
    """At which level paths are compared: the switch of the page's paths chooses it."""
    messages = "with messages" if chosen.messages else "tool calls only"
    return f"Paths at level {LEVEL_NAMES[chosen.level].lower()}, {messages}, as chosen above."


def _shown(found: ReleaseComparison, pair: _Pair) -> tuple[Choice, ...]:
    def href(everything: str) -> str:
        return address(pair.here, {**pair.values, "all": everything}, place=_PLACE)

    return (
        Choice(
            "Changed",
            href(""),
            is_current=not pair.everything,
            count=found.n_changed,
            help="Tasks whose rate of passed trials or whose passing paths are others.",
        ),
        Choice("All", href("1"), is_current=pair.everything, count=found.n_tasks),
    )


def _rows_words(found: ReleaseComparison, pair: _Pair) -> str:
    if found.tasks:
        return ""
    if not found.n_tasks:
        return "No task can be compared."
    if found.n_changed or pair.everything:
        return "No task stands behind that one."
    return "No task changed: the same rates, by the same passing paths."


def _row(task: ComparedTask, pair: _Pair) -> pages.ComparedTaskRow:
    return pages.ComparedTaskRow(
        task_id=task.task_id,
        title=task.title,
        href=address(
            pair.at.task(task.uuid),
            {**pair.chosen.values, "release": pair.releases, "overlay": "fail,unresolved"},
        ),
        badges=_badges(task),
        then=_counts(task.then),
        now=_counts(task.now),
        paths_words=_paths_words(task),
        paths=tuple(_path(path, pair) for path in task.paths),
        n_more_paths=task.n_paths - len(task.paths),
        calls=_change(task.calls_then, task.calls_now, _number),
        cost=_change(task.cost_then, task.cost_now, money_text, is_share=True),
        compare=_compare(task, pair),
    )


def _counts(side: ReleaseSide) -> pages.Counts:
    return pages.Counts(side.n_pass, side.n_graded, side.n_run)


def _badges(task: ComparedTask) -> tuple[pages.Badge, ...]:
    badges: list[pages.Badge] = []
    then, now = task.then, task.now
    if task.flip is Flip.TO_FAIL:
        badges.append(pages.Badge("flips to fail", "fail"))
    elif task.flip is Flip.TO_PASS:
        badges.append(pages.Badge("flips to pass", "pass"))
    elif then.n_graded and now.n_graded:
        before, after = then.n_pass * now.n_graded, now.n_pass * then.n_graded
        if before != after:
            badges.append(
                pages.Badge("passes more often" if after > before else "passes less often")
            )
    elif then.n_graded or now.n_graded:
        badges.append(pages.Badge("graded here only" if now.n_graded else "no longer graded"))
    if then.n_pass and now.n_pass and (task.n_gone or task.n_new):
        badges.append(pages.Badge("other paths"))
    return tuple(badges)


def _paths_words(task: ComparedTask) -> str:
    counts = ((task.n_gone, "gone"), (task.n_new, "new"), (task.n_kept, "kept"))
    return ", ".join(f"{n:,} {word}" for n, word in counts if n) or "none"


def _path(path: PathChange, pair: _Pair) -> pages.ComparedPath:
    by_side = (
        (path.n_then, path.trial_then, f"{counted(path.n_then, 'trial')} there"),
        (path.n_now, path.trial_now, f"{counted(path.n_now, 'trial')} here"),
    )
    return pages.ComparedPath(
        fate=path.fate.value,
        trials=", ".join(words for n, _, words in by_side if n),
        calls=_change(path.calls_then, path.calls_now, _number),
        cost=_change(path.cost_then, path.cost_now, money_text, is_share=True),
        links=tuple(
            pages.Link(words, pair.at.trial(trial)) for _, trial, words in by_side if trial
        ),
    )


def _compare(task: ComparedTask, pair: _Pair) -> pages.Link | None:
    """What tells most: for a flip a passing beside a failing trial, else two passing paths."""
    passed_then = next((path.trial_then for path in task.paths if path.trial_then), None)
    passed_now = next((path.trial_now for path in task.paths if path.trial_now), None)
    if task.flip is Flip.TO_FAIL and passed_then and task.failing_now:
        return _sides(task, pair, [passed_then.hex, task.failing_now.hex], "passing, failing")
    if task.flip is Flip.TO_PASS and passed_now and task.failing_then:
        return _sides(task, pair, [task.failing_then.hex, passed_now.hex], "failing, passing")
    by_fate = {path.fate: path.key.hex for path in reversed(task.paths)}
    left = by_fate.get(PathFate.GONE) or by_fate.get(PathFate.KEPT)
    right = by_fate.get(PathFate.NEW) or by_fate.get(PathFate.KEPT)
    if left and right and left != right:
        return _sides(task, pair, [left, right], "two passing paths")
    return None


def _sides(task: ComparedTask, pair: _Pair, sides: list[str], words: str) -> pages.Link:
    values = {**pair.chosen.values, "release": pair.releases, "side": sides}
    return pages.Link("Compare", address(pair.at.compare(task.uuid), values), title=words)


def _left_out(task: LeftOut, pair: _Pair) -> pages.LeftOutTask:
    return pages.LeftOutTask(
        pages.Link(task.task_id, address(pair.at.task(task.uuid), {"release": pair.releases})),
        _reason(task),
    )


def _reason(task: LeftOut) -> str:
    match task.reason:
        case "versions_differ":
            there, here = _versions(task.versions_then), _versions(task.versions_now)
            return f"other versions: {there} there, {here} here"
        case "other_versions":
            return f"{counted(task.n_trials, 'trial')} of other versions left out"
        case "only_then":
            return "not tried in this release"
        case "only_now":
            return "not tried in the other release"
        case _:
            return "split tuning"


def _versions(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _left_out_words(found: ReleaseComparison) -> str:
    if not found.n_left_out:
        return ""
    verb = "is" if found.n_left_out == 1 else "are"
    words = f"{counted(found.n_left_out, 'task')} {verb} left out, whole or in part"
    more = found.n_left_out - len(found.left_out)
    return f"{words}; the first {len(found.left_out)} are listed" if more else words
