"""pass^k and pass@k over tasks, for pages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from reviews.core.estimators import pass_at_k, pass_hat_k
from traces.selectors.task_list import CountedTasks

MOST_K = 16  # that a chart shows


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over the tasks with at least k graded trials. `value` None: no task has."""

    k: int
    value: Fraction | None
    n_tasks: int
    n_left_out: int  # tasks with fewer than k graded trials


@lru_cache(maxsize=256)
def estimates(
    tasks: tuple[CountedTasks, ...], estimate: Callable[[int, int, int], Fraction | None]
) -> tuple[Estimate, ...]:
    """The means for k = 1 to the most graded trials of a task, at most `MOST_K`.

    The same as the means of `reviews.core.estimators`, over tasks that are counted together.
    """
    most = max((task.n_graded for task in tasks), default=0)
    return tuple(_estimate(tasks, k, estimate) for k in range(1, min(most, MOST_K) + 1))


def pass_hat_estimates(tasks: tuple[CountedTasks, ...]) -> tuple[Estimate, ...]:
    """pass^k: the chance that all of k trials pass."""
    return estimates(tasks, pass_hat_k)


def pass_at_estimates(tasks: tuple[CountedTasks, ...]) -> tuple[Estimate, ...]:
    """pass@k: the chance that at least one of k trials passes."""
    return estimates(tasks, pass_at_k)


def _estimate(
    tasks: Sequence[CountedTasks], k: int, estimate: Callable[[int, int, int], Fraction | None]
) -> Estimate:
    total, n_tasks, n_left_out = Fraction(0), 0, 0
    for task in tasks:
        value = estimate(task.n_graded, task.n_pass, k)
        if value is None:
            n_left_out += task.n_tasks
        else:
            total += value * task.n_tasks
            n_tasks += task.n_tasks
    return Estimate(k, total / n_tasks if n_tasks else None, n_tasks, n_left_out)


def estimate_text(value: Fraction | None) -> str:
    """An estimate as pages show it: "0.71", "-" for no data; never rounded up to 1."""
    if value is None:
        return "-"
    hundredths = round(value * 100)
    if hundredths == 100 and value < 1:
        hundredths = 99
    if hundredths == 0 and value > 0:
        return "< 0.01"
    return f"{hundredths / 100:.2f}"
