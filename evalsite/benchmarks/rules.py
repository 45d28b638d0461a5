"""How fast rules are previewed, suggested and worked out, beside a bare read of what they look at.

The bare read fetches the path keys, steps and calls of all passing trials in one go and does
nothing with them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from django.db import connection
from django.utils import timezone

from evalsite.benchmarks.ingest import ingest_file, write_trials
from evalsite.benchmarks.measuring import peak_memory, reset_peak_memory
from evalsite.rules_reach import work_out_preview
from evalsite.rules_work import recompute
from traces.core.rule_changes import RuleChange
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import Role, RulesOutcome, RulesVersion, System, Trajectory, User
from traces.selectors.rule_reach import PASSED, rules_effect
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import rules_of, shown_rules
from traces.services.people import create_system, set_member
from traces.services.rules import decide_rules, propose_rules, start_preview

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
    unit: str  # what is counted: passing trials, or trajectories of all trials
    n_items: int
    seconds: float
    processor_seconds: float  # of this process, the database's not among them
    bare_seconds: float
    peak_bytes: int

    @property
    def per_second(self) -> float:
        """Items that are looked at in a second."""
        return self.n_items / self.seconds


def measure_rules(folder: Path, *, n_trials: int, n_tasks: int) -> tuple[RulesResult, ...]:
    """Fill a system and measure previews of a rule and of tool kinds, suggestions, and the work
    that brings an approved version in force.
    """
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
    version = approved_version(system, RuleChange(put=(_CALCULATOR, _HAND_OVER), kinds=_KINDS))
    n_trajectories = Trajectory.objects.filter(task__system=system).count()
    return (
        *(
            _measured(name, act, unit="passing trials", n_items=n_passed, bare_seconds=bare)
            for name, act in work.items()
        ),
        _measured(
            "work on an approved version",
            lambda: recompute(version.pk),
            unit="trajectories",
            n_items=n_trajectories,
            bare_seconds=bare,
        ),
    )


def approved_version(system: System, change: RuleChange) -> RulesVersion:
    """A version that waits for its work: previewed, proposed and approved by two people."""
    now = timezone.now()
    engineer, owner = (
        _member(system, f"{role.value} of {system.slug}", role)
        for role in (Role.ENGINEER, Role.OWNER)
    )
    preview = start_preview(system, change, by=engineer, now=now)
    work_out_preview(preview.pk)
    version = propose_rules(preview, reason="benchmark", by=engineer, now=now)
    decide_rules(version, outcome=RulesOutcome.APPROVED, reason="benchmark", by=owner, now=now)
    return version


def _member(system: System, name: str, role: Role) -> User:
    person, _ = User.objects.get_or_create(username=name)
    set_member(system, person, role)
    return person


def _preview(system: System, base: RuleSet, changed: RuleSet) -> object:
    return rules_effect(system, base, changed, progress=_keep_quiet)


def _keep_quiet(n_done: int, n_total: int) -> None:
    """Progress is for the pages."""


def _measured(
    name: str, act: Callable[[], object], *, unit: str, n_items: int, bare_seconds: float
) -> RulesResult:
    reset_peak_memory()
    began, processor = time.perf_counter(), time.process_time()
    act()
    return RulesResult(
        name=name,
        unit=unit,
        n_items=n_items,
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
