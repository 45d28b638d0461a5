"""Where a task comes from and whether it is still unseen, as lines under its head."""

from __future__ import annotations

from collections.abc import Iterable

from evalsite.common.formatting import counted, time_text
from traces.selectors.families import TaskHistory
from traces.web import pages
from traces.web.addresses import Addresses


def history_lines(history: TaskHistory, at: Addresses) -> tuple[pages.Link, ...]:
    """The origin of a task and its newest exposure, each with the trial that it names."""
    return tuple(_lines(history, at))


def _lines(history: TaskHistory, at: Addresses) -> Iterable[pages.Link]:
    if history.origin_uuid is not None:
        words = f"made from trial {history.origin_label} of task {history.origin_task}"
        by = f"{history.made_by}, {time_text(history.made_at)}"
        yield pages.Link(words, at.trial(history.origin_uuid), by)
    exposure = history.exposure
    if exposure is not None:
        words = f"{counted(history.n_exposed, 'exposure')}, {exposure.by_name}: {exposure.reason}"
        trial = exposure.trial_uuid
        yield pages.Link(words, at.trial(trial) if trial else "", time_text(exposure.at))
