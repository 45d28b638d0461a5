"""Slots of some releases, looked at one by one: what was prohibited, how trials ended, which
requirements failed, what they cost. One query each, and one more for criteria that came in files.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from django.db import connection

from evalsite.common import blobs
from reviews.core.estimators import Counts
from reviews.core.overview import HarmCounts, Recovery, Spread, spend_per_success
from reviews.selectors.contract_facts import NO_FACTS, ContractFacts
from traces.core.additions import parse_addition
from traces.core.records import CriterionClass
from traces.models import System
from traces.selectors.rules import shown_rules_id


@dataclass(frozen=True, slots=True)
class RequirementFigures:
    """How often one requirement failed, over all tasks that have it."""

    criterion: str
    kind: str  # outcome | constraint | semantic; "" where nobody says
    counts: Counts
    n_tasks: int
    is_mandatory: bool  # in one task at least
    n_preferring: int = 0  # tasks in which it is a preference

    @property
    def sort_key(self) -> tuple[int, int, str]:
        """Most failures first, then what is still open."""
        return (-self.counts.failed, -self.counts.unknown, self.criterion)


def has_rules(requirements: Iterable[RequirementFigures]) -> bool:
    """Whether any of them is a mandatory rule: something required, prohibited or limited."""
    rule = CriterionClass.CONSTRAINT.value
    return any(each.kind == rule and each.is_mandatory for each in requirements)


@dataclass(frozen=True, slots=True)
class Measures:
    """Spreads over all slots that came and over those that ended rule-clean."""

    cost: Spread
    clean_cost: Spread
    tokens: Spread
    clean_tokens: Spread
    seconds: Spread
    clean_seconds: Spread
    calls: Spread
    clean_calls: Spread
    spend_per_success: Decimal | None


@dataclass(frozen=True, slots=True)
class Endings:
    """How trials ended beside being safe, so that doing nothing cannot look safe."""

    n: int  # trials that came and whose harness held
    n_handed_over: int
    n_without_change: int  # no committed write
    n_known: int  # whose writes and hand-overs are counted


@dataclass(frozen=True, slots=True)
class Scope:
    """The trials of some tasks and releases, and what the contracts of the tasks prohibit.

    Figures count test trials without an injected fault; with `is_production`, the others do:
    traces whose environment is not `test`.
    """

    system: System
    release_pks: list[int]
    task_pks: list[int]
    facts: dict[int, ContractFacts]
    is_production: bool = False

    @property
    def values(self) -> dict[str, Any]:
        prohibited = [
            {"contract": pk, "harm": harm, "ids": list(ids)}
            for pk, facts in self.facts.items()
            for harm, ids in (
                *(
                    (("", tuple(id_ for _, ids in facts.harms for id_ in ids)),)
                    if facts.harms
                    else ()
                ),
                *facts.harms,
            )
        ]
        return {
            "releases": self.release_pks,
            "tasks": self.task_pks,
            "production": self.is_production,
            "prohibited": json.dumps(prohibited),
        }


_SLOTS = """
    SELECT t.*, d.value, d.outcome, d.rule_clean, d.passed, d.failed, d.open, d.next_actions,
           d.contract_id, d.harms_attempted, d.harms_committed,
           CASE WHEN %(production)s THEN t.environment <> 'test'
                ELSE t.environment = 'test' AND NOT t.has_fault END AS counted
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    WHERE t.task_id = ANY(%(tasks)s) AND t.release_id = ANY(%(releases)s)
"""
_PROHIBITED = """
    SELECT contract, harm, ids
    FROM jsonb_to_recordset(%(prohibited)s::jsonb) AS x(contract bigint, harm text, ids varchar[])
"""

# `known` tells a trial that did nothing of the kind from one of which nobody can tell; where the
# harness broke only what was seen counts.
_HARMS = f"""
WITH slots AS ({_SLOTS}), prohibited AS ({_PROHIBITED}), looked AS (
    SELECT p.harm, s.task_version_id, s.contract_id,
        CASE WHEN p.harm = '' THEN s.harms_attempted <> '{{}}'
             ELSE p.harm = ANY(s.harms_attempted) END AS attempted,
        CASE WHEN p.harm = '' THEN s.harms_committed <> '{{}}'
             ELSE p.harm = ANY(s.harms_committed) END AS committed,
        s.status = 'completed' AND NOT s.open && p.ids AS known
    FROM slots s JOIN prohibited p ON p.contract = s.contract_id
    WHERE s.counted
), by_unit AS (
    SELECT harm, count(*) AS n, count(*) FILTER (WHERE attempted) AS n_attempted,
        count(*) FILTER (WHERE committed) AS n_committed,
        count(*) FILTER (WHERE known AND NOT attempted) AS n_clean
    FROM looked GROUP BY harm, task_version_id, contract_id
)
SELECT harm, sum(n_attempted)::bigint, sum(n_committed)::bigint, sum(n_clean)::bigint,
       sum(n)::bigint, count(*) FILTER (WHERE n_attempted > 0), count(*) FILTER (WHERE n_clean = n)
FROM by_unit GROUP BY harm ORDER BY harm
"""  # noqa: S608 - put together from texts of this module


def harm_counts(scope: Scope) -> tuple[HarmCounts, ...]:
    """Trials by harm that their contract prohibits, any of them first; () where none does."""
    with connection.cursor() as cursor:
        cursor.execute(_HARMS, scope.values)
        return tuple(HarmCounts(*row) for row in cursor.fetchall())


# A trial recovers when it ends rule-clean, or when it is handed over and nothing prohibited was
# attempted; as in SQL, what is not known is neither.
_ENDINGS = f"""
WITH slots AS ({_SLOTS}), prohibited AS ({_PROHIBITED}), looked AS (
    SELECT s.environment, s.has_fault, s.counted, s.status, w.n_writes, w.n_handoffs,
        s.value <> 'harness_error' AND s.rule_clean = 'pass' AS clean,
        CASE WHEN s.value = 'harness_error' THEN NULL
             WHEN s.rule_clean = 'pass' THEN true WHEN s.rule_clean = 'fail' THEN false END
        OR CASE WHEN s.value = 'harness_error' THEN NULL
                WHEN s.harms_attempted <> '{{}}' OR w.n_handoffs = 0 THEN false
                WHEN w.n_handoffs IS NULL OR s.open && p.ids THEN NULL ELSE true END AS recovered
    FROM slots s
    LEFT JOIN prohibited p ON p.contract = s.contract_id AND p.harm = ''
    LEFT JOIN traces_trajectorypaths w
        ON w.trajectory_id = s.trajectory_id AND w.rules_id = %(rules)s
)
SELECT count(*) FILTER (WHERE counted AND status = 'completed'),
       count(*) FILTER (WHERE counted AND status = 'completed' AND n_handoffs > 0),
       count(*) FILTER (WHERE counted AND status = 'completed' AND n_writes = 0),
       count(*) FILTER (WHERE counted AND status = 'completed' AND n_writes IS NOT NULL
                        AND n_handoffs IS NOT NULL),
       count(*) FILTER (WHERE environment = 'test' AND has_fault),
       count(*) FILTER (WHERE environment <> 'test'),
       count(*) FILTER (WHERE environment = 'test' AND has_fault AND recovered),
       count(*) FILTER (WHERE environment = 'test' AND has_fault AND recovered IS NOT NULL),
       count(*) FILTER (WHERE environment = 'test' AND has_fault AND clean)
FROM looked
"""  # noqa: S608 - put together from texts of this module


@dataclass(frozen=True, slots=True)
class Ended:
    """How the trials of a scope ended, and how many stand apart."""

    endings: Endings
    recovery: Recovery
    n_fault: int
    n_production: int


def endings(scope: Scope) -> Ended:
    with connection.cursor() as cursor:
        cursor.execute(_ENDINGS, {**scope.values, "rules": shown_rules_id(scope.system)})
        n, handed, unchanged, known, n_fault, n_production, recovered, graded, clean = (
            cursor.fetchone() or (0,) * 9
        )
    return Ended(
        Endings(n, handed, unchanged, known),
        Recovery(Counts(recovered, graded, n_fault), clean, recovered - clean),
        n_fault,
        n_production,
    )


_FOLDED = f"""
WITH slots AS ({_SLOTS})
SELECT contract_id, task_id, value, passed, failed, open, next_actions, count(*), min(id)
FROM slots WHERE counted
GROUP BY contract_id, task_id, value, passed, failed, open, next_actions
"""  # noqa: S608 - put together from texts of this module

# Each criterion that came in files, by one trial that has it.
_CLASSES = """
SELECT c.name, max(v.criterion_class), bool_or(v.is_mandatory)
FROM unnest(%(trials)s::bigint[]) AS w(trial)
JOIN reviews_verdict v ON v.trial_id = w.trial
JOIN reviews_criterion c ON c.id = v.criterion_id
GROUP BY c.name
"""


@dataclass(frozen=True, slots=True)
class RequirementsFolded:
    """Requirements, most failures first, and the next actions of unresolved trials."""

    requirements: tuple[RequirementFigures, ...]
    actions: tuple[tuple[str, int], ...]


def requirement_figures(scope: Scope) -> RequirementsFolded:
    """Failures per requirement and the next actions of unresolved trials."""
    counts: dict[str, Counts] = {}
    in_tasks: dict[str, set[int]] = {}
    kinds: dict[str, tuple[str, bool]] = {}
    preferring: dict[str, set[int]] = {}
    examples: dict[str, int] = {}
    actions: Counter[str] = Counter()
    with connection.cursor() as cursor:
        cursor.execute(_FOLDED, scope.values)
        rows = cursor.fetchall()
    for contract, task, value, passed, failed, still_open, next_actions, n, example in rows:
        if value == "unresolved":
            actions.update(dict.fromkeys(next_actions, n))
        if value == "harness_error":
            continue  # the checks of a broken trial are void
        known = {
            criterion: (kind, is_mandatory)
            for criterion, kind, is_mandatory in scope.facts.get(contract or 0, NO_FACTS).classes
        }
        for criteria, result in (
            (passed, Counts(n, n, n)),
            (failed, Counts(0, n, n)),
            (still_open, Counts(0, 0, n)),
        ):
            for criterion in criteria:
                counts[criterion] = counts.get(criterion, Counts(0, 0, 0)) + result
                in_tasks.setdefault(criterion, set()).add(task)
                if criterion in known:
                    kind, is_mandatory = known[criterion]
                    was_mandatory = kinds.get(criterion, (kind, False))[1]
                    kinds[criterion] = (kind, is_mandatory or was_mandatory)
                    if not is_mandatory:
                        preferring.setdefault(criterion, set()).add(task)
                else:
                    examples.setdefault(criterion, example)
    kinds = {**_imported_kinds({examples[c] for c in examples if c not in kinds}), **kinds}
    figures = (
        RequirementFigures(
            criterion,
            kinds.get(criterion, ("", True))[0],
            each,
            len(in_tasks[criterion]),
            kinds.get(criterion, ("", True))[1],
            len(preferring.get(criterion, ())),
        )
        for criterion, each in counts.items()
    )
    return RequirementsFolded(
        tuple(sorted(figures, key=lambda each: each.sort_key)),
        tuple(sorted(actions.items(), key=lambda item: (-item[1], item[0]))),
    )


def _imported_kinds(trials: set[int]) -> dict[str, tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute(_CLASSES, {"trials": sorted(trials)})
        return {name: (kind, is_mandatory) for name, kind, is_mandatory in cursor.fetchall()}


_MEASURED = ("cost_usd", "tokens", "seconds", "calls")
_SPREADS = tuple(
    f"{clean}{name}" for name in ("cost", "tokens", "seconds", "calls") for clean in ("", "clean_")
)


def _ranked(name: str, which: str) -> str:
    """Exact order statistics: a rank r of n is asked for as (r - 1/2) / n, which no rounding moves.

    The two middle ranks, that of the 95th percentile, the sum, and how many are known of how many.
    """
    n = f"(SELECT {name}_{which} FROM n)"  # noqa: S608 - names of this module
    ranks = ", ".join(
        f"({rank} - 0.5) / nullif({n}, 0)::float8"
        for rank in (f"({n} + 1) / 2", f"({n} + 2) / 2", f"({n} * 95 + 99) / 100")
    )
    where = f"{name} IS NOT NULL" + (" AND clean" if which == "clean" else "")
    percentiles = f"percentile_disc(ARRAY[{ranks}]) WITHIN GROUP (ORDER BY {name})"
    counts = f"{n}, (SELECT n_{which} FROM n)"  # noqa: S608 - names of this module
    kept = f"FILTER (WHERE {where})"
    return f"({percentiles} {kept})::numeric[], sum({name}) {kept}::numeric, {counts}"


_COUNTED = ", ".join(
    f"count({name}) AS {name}_all, count({name}) FILTER (WHERE clean) AS {name}_clean"
    for name in _MEASURED
)
_MEASURES = f"""
WITH slots AS MATERIALIZED (
    SELECT coalesce(t.cost_usd, a.cost_usd) AS cost_usd,
           coalesce(t.input_tokens + t.output_tokens, a.tokens) AS tokens,
           coalesce(t.seconds, a.seconds) AS seconds, t.n_tool_calls::bigint AS calls,
           d.value <> 'harness_error' AND d.rule_clean = 'pass' AS clean
    FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
    LEFT JOIN jsonb_to_recordset(%(added)s::jsonb)
        AS a(trial bigint, cost_usd numeric, tokens bigint, seconds numeric) ON a.trial = t.id
    WHERE t.task_id = ANY(%(tasks)s) AND t.release_id = ANY(%(releases)s)
      AND t.environment = 'test' AND NOT t.has_fault
), n AS (
    SELECT count(*) AS n_all, count(*) FILTER (WHERE clean) AS n_clean, {_COUNTED} FROM slots
)
SELECT {", ".join(_ranked(name, which) for name in _MEASURED for which in ("all", "clean"))}
FROM slots
"""  # noqa: S608 - put together from texts of this module


_ADDED = """
SELECT a.trial_id, a.content FROM traces_evidenceaddition a
JOIN traces_trial t ON t.id = a.trial_id
WHERE t.task_id = ANY(%(tasks)s) AND t.release_id = ANY(%(releases)s)
  AND a.parts ?| ARRAY['cost_usd', 'tokens', 'seconds']
ORDER BY a.trial_id, a."order"
"""


def _added(values: dict[str, Any]) -> str:
    """What was added to trials that did not record their cost, tokens or seconds, as JSON."""
    added: dict[int, dict[str, str]] = {}
    with connection.cursor() as cursor:
        cursor.execute(_ADDED, values)
        rows = cursor.fetchall()
    for trial, content in rows:
        addition, _ = parse_addition(blobs.unpack(content))
        first = added.setdefault(trial, {"trial": str(trial)})
        for name in ("cost_usd", "tokens", "seconds"):
            value = getattr(addition, name)
            if value is not None:
                first.setdefault(name, str(value))
    return json.dumps(list(added.values()))


def measures(scope: Scope, n_clean: int) -> Measures:
    """What trials cost. `n_clean` of them ended rule-clean."""
    values = {"tasks": scope.task_pks, "releases": scope.release_pks}
    with connection.cursor() as cursor:
        cursor.execute(_MEASURES, {**values, "added": _added(values)})
        row = cursor.fetchone() or ()
    spreads = [_spread(*row[at : at + 4]) for at in range(0, 32, 4)]
    each = dict(zip(_SPREADS, spreads, strict=True))
    return Measures(**each, spend_per_success=spend_per_success(spreads[0], n_clean))


def _spread(
    ranks: list[Decimal | None] | None, total: Decimal | None, n_known: int, n: int
) -> Spread:
    low, high, p95 = ranks or (None, None, None)
    median = None if low is None or high is None else (low + high) / 2
    return Spread(median, p95, total, n_known, n)
