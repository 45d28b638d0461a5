"""Rows that several pages show."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from evalsite.common.shell import Figure
from traces.core.records import Disposition
from traces.core.text_marks import clean_text
from traces.selectors.releases import NO_RELEASE
from traces.selectors.runs import RunRow as StoredRun
from traces.selectors.trial_list import ListedTrial
from traces.web import pages
from traces.web.addresses import Addresses

_LONGEST_FACT = 400

STATES = {
    Disposition.PASS: "pass",
    Disposition.FAIL: "fail",
    Disposition.UNRESOLVED: "unresolved",
    Disposition.HARNESS_ERROR: "harness-error",
}
"""How pages name the shape and colour of a disposition."""


def trial_label(label: str, attempt: int) -> str:
    """A trial as lists name it."""
    return label if attempt == 1 else f"{label}, attempt {attempt}"


def action_words(action: str) -> str:
    """A next action as people say it."""
    return action.replace("_", " ")


def trial_row(
    trial: ListedTrial, at: Addresses, *, paths: dict[Any, str] | None = None
) -> pages.TrialRow:
    """A stored trial as lists show it. `paths` gives the names of paths by key."""
    return pages.TrialRow(
        label=trial_label(trial.label, trial.attempt),
        href=at.trial(trial.uuid),
        task=pages.Link(trial.task_id, at.task(trial.task_uuid)),
        release=pages.Link(trial.release_name or NO_RELEASE, at.release(trial.release_uuid)),
        run=pages.Link(trial.run_name, at.run(trial.run_uuid)),
        disposition=STATES[trial.disposition],
        detail=_detail(trial),
        path=(paths or {}).get(trial.path_key, "") if trial.disposition is Disposition.PASS else "",
        n_steps=trial.n_messages,
        n_tool_calls=trial.n_tool_calls,
        n_rejected=trial.n_rejected,
        cost_usd=trial.cost_usd,
        seconds=trial.seconds,
        at=trial.started_at,
    )


def _detail(trial: ListedTrial) -> str:
    if not trial.stands:
        return "an earlier attempt: a later one stands"
    match trial.disposition:
        case Disposition.PASS:
            return ""
        case Disposition.FAIL:
            return ", ".join(trial.failed_classes)
        case Disposition.HARNESS_ERROR:
            return trial.error
        case _:
            return action_words(trial.next_actions[0]) if trial.next_actions else ""


def run_row(run: StoredRun, at: Addresses) -> pages.RunRow:
    """A stored run as lists show it."""
    return pages.RunRow(
        name=run.name,
        href=at.run(run.uuid),
        release=pages.Link(run.release_name or NO_RELEASE, at.release(run.release_uuid)),
        begun_at=run.begun_at,
        is_declared=run.declared_at is not None,
        n_declared=run.n_declared,
        n_present=run.n_present,
        n_missing=run.n_missing,
        n_error=run.n_error,
        counts=pages.Counts(run.n_pass, run.n_graded, run.n_run),
    )


def counted_figures(
    *, n_pass: int, n_fail: int, n_unresolved: int, n_error: int, n_missing: int = 0
) -> tuple[Figure, ...]:
    """Rate, unresolved and harness errors, with passed / graded / run together."""
    n_graded = n_pass + n_fail
    n_run = n_graded + n_unresolved + n_error + n_missing
    figures = [
        rate_figure(n_pass, n_graded, n_run),
        Figure(
            "Unresolved",
            f"{n_unresolved:,}",
            state="unresolved" if n_unresolved else "",
            help="Trials that no verdict decides yet.",
        ),
        Figure(
            "Harness errors",
            f"{n_error:,}",
            state="harness-error" if n_error else "",
            help="Trials in which the harness broke: no evidence about the agent.",
        ),
    ]
    if n_missing:
        figures.append(
            Figure(
                "Missing",
                f"{n_missing:,}",
                state="unresolved",
                help="Declared trials that never came.",
            )
        )
    return tuple(figures)


def rate_figure(n_pass: int, n_graded: int, n_run: int) -> Figure:
    """The rate of passed of graded trials, with its range from "all unknown ones fail" to "all pass"."""
    unknown = n_run - n_graded
    between = (
        f" Between {percent(n_pass, n_run)} and {percent(n_pass + unknown, n_run)} of all run, "
        "whatever the others come to."
        if unknown
        else ""
    )
    return Figure(
        "Passed / graded / run",
        percent(n_pass, n_graded),
        detail=f"{n_pass:,} / {n_graded:,} / {n_run:,}",
        help=f"The rate of passed among graded trials.{between}",
    )


def percent(part: int, whole: int) -> str:
    """A rate as pages show it: "94.4%", "-" over nothing. It never rounds up to 100%."""
    if not whole:
        return "-"
    tenths = part * 1000 // whole if 2 * (part * 1000 % whole) < whole else part * 1000 // whole + 1
    if tenths == 1000 and part < whole:
        tenths = 999
    if tenths == 0 and part:
        return "< 0.1%"
    return f"{tenths // 10}.{tenths % 10}%"


def facts_of(details: str) -> tuple[pages.Fact, ...]:
    """The members of a JSON object as facts, nested ones by path."""
    value = _loaded(details)
    return tuple(_facts(value, "")) if isinstance(value, dict) else ()


def pretty(details: str) -> str:
    """JSON text laid out for reading; "" when there is none."""
    value = _loaded(details)
    return "" if value is None else clean_text(json.dumps(value, indent=2, ensure_ascii=False))


def _loaded(details: str) -> Any:
    return json.loads(details) if details else None


def _facts(value: dict[str, Any], place: str) -> Iterable[pages.Fact]:
    for name, item in value.items():
        here = f"{place}{name}"
        if isinstance(item, dict) and item and place.count(".") < 2:
            yield from _facts(item, f"{here}.")
        elif item not in (None, "", [], {}):
            text = item if isinstance(item, str) else json.dumps(item, ensure_ascii=False)
            shown = text if len(text) <= _LONGEST_FACT else f"{text[:_LONGEST_FACT]}…"
            yield pages.Fact(clean_text(here), clean_text(shown))
