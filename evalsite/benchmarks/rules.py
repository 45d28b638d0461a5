"""How fast previews and suggestions of rules are, beside a bare read of what they look at.

The bare read fetches the path keys, steps and calls of all passing trials in one go and does
nothing with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.db import connection

from evalsite.benchmarks.ingest import ingest_file, write_trials
from evalsite.benchmarks.measuring import peak_memory, reset_peak_memory
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import System
from traces.selectors.rule_reach import PASSED, rules_effect
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import rules_of, shown_rules
from traces.services.people import create_system

_WHY = ("benchmark", "evalsite")
_CALCULATOR = ArgumentRule("calculate", "expression", Arithmetic(), *_WHY)
_HAND_OVER = ArgumentRule("transfer_to_human_agents", "summary", Ignore(), *_WHY)
_KINDS = tuple(
    (tool, ToolKind.READ)
    for tool in ("calculate", "get_reservation_details", "get_user_details", "search_direct_flight")
)


@dataclass(frozen=True, slots=True)
class RulesResult:
    """What one piece of work on rules costs."""

    name: str
    n_trials: int  # that passed
    seconds: float
    processor_seconds: float  # of this process, the database's not among them
    bare_seconds: float
    peak_bytes: int

    @property
    def trials_per_second(self) -> float:
        """Passing trials that are looked at in a second."""
        return self.n_trials / self.seconds


def measure_rules(folder: Path, *, n_trials: int, n_tasks: int) -> tuple[RulesResult, ...]:
    """Fill a system and measure previews of a rule and of tool kinds, and suggestions."""
    system = create_system("rules", by=None)
    file = folder / "rules.jsonl"
    write_trials(file, n_trials=n_trials, n_tasks=n_tasks)
    ingest_file(system, file)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    system = System.objects.select_related("shown_rules").get(pk=system.pk)
    base = rules_of(system)
    work: dict[str, Callable[[], object]] = {
        "preview of a rule": lambda: _preview(system, base, RuleSet((_CALCULATOR,))),
        "preview of an ignored text": lambda: _preview(system, base, RuleSet((_HAND_OVER,))),
        "preview of tool kinds": lambda: _preview(system, base, RuleSet((), _KINDS)),
        "suggestions": lambda: suggested_rules(system, shown_rules(system), progress=_keep_quiet),
    }
    n_passed = _bare_read(system)
    began = time.perf_counter()
    _bare_read(system)
    bare = time.perf_counter() - began
    return tuple(_measured(name, act, n_passed, bare) for name, act in work.items())


def _preview(system: System, base: RuleSet, changed: RuleSet) -> object:
    return rules_effect(system, base, changed, progress=_keep_quiet)


def _keep_quiet(n_done: int, n_total: int) -> None:
    """Progress is for the pages."""


def _measured(
    name: str, act: Callable[[], object], n_passed: int, bare_seconds: float
) -> RulesResult:
    reset_peak_memory()
    began, processor = time.perf_counter(), time.process_time()
    act()
    return RulesResult(
        name=name,
        n_trials=n_passed,
        seconds=time.perf_counter() - began,
        processor_seconds=time.process_time() - processor,
        bare_seconds=bare_seconds,
        peak_bytes=peak_memory(),
    )


def _bare_read(system: System) -> int:
    """Fetch the rows of all passing trials and of their calls. Gives the number of trials."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, p.*, j.steps, j.outcomes"  # noqa: S608 - made of constants
            " FROM (SELECT t.id, t.trajectory_id " + PASSED + " AND t.system_id = %s) t"
            " JOIN traces_trajectory j ON j.id = t.trajectory_id"
            " JOIN traces_trajectorypaths p ON p.trajectory_id = j.id AND p.rules_id = %s",
            [system.pk, system.shown_rules_id],
        )
        n_passed = len(cursor.fetchall())
        cursor.execute(
            "SELECT c.id, c.form, c.arguments FROM traces_distinctcall c"
            " JOIN traces_tool t ON t.id = c.tool_id WHERE t.system_id = %s",
            [system.pk],
        )
        cursor.fetchall()
        return n_passed
