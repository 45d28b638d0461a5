"""Production traces of a system: those whose environment is not `test`.

They are graded and decided as trials are, and enter no figure of a release. Counts are of all
releases together unless one is chosen.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from reviews.core.estimators import Counts
from reviews.core.overview import HarmCounts
from reviews.selectors.contract_facts import facts_of_contracts
from reviews.selectors.overview_slots import (
    Endings,
    RequirementFigures,
    Scope,
    endings,
    harm_counts,
    has_rules,
    requirement_figures,
)
from reviews.selectors.overview_units import counted_tasks
from traces.models import System
from traces.selectors.releases import ReleaseName, release_names

MOST_ENVIRONMENTS = 50


@dataclass(frozen=True, slots=True)
class EnvironmentCounts:
    """The traces of one environment by what they come to."""

    environment: str
    n_pass: int
    n_fail: int
    n_unresolved: int
    n_error: int
    clean_passed: int
    clean_graded: int
    n_violating: int  # with a prohibited attempt

    @property
    def n_run(self) -> int:
        """All of them."""
        return self.n_pass + self.n_fail + self.n_unresolved + self.n_error

    @property
    def passing(self) -> Counts:
        """Every requirement passed."""
        return Counts(self.n_pass, self.n_pass + self.n_fail, self.n_run)

    @property
    def clean(self) -> Counts:
        """Rule-clean."""
        return Counts(self.clean_passed, self.clean_graded, self.n_run)


@dataclass(frozen=True, slots=True)
class ProductionFigures:
    """What production traces come to."""

    releases: tuple[ReleaseName, ...]  # newest first, all of the system
    release: ReleaseName | None  # None: all of them together
    environments: tuple[EnvironmentCounts, ...]  # most traces first, at most `MOST_ENVIRONMENTS`
    n_environments: int
    total: EnvironmentCounts
    harms: tuple[HarmCounts, ...]
    endings: Endings
    requirements: tuple[RequirementFigures, ...]
    actions: tuple[tuple[str, int], ...]

    @property
    def has_rules(self) -> bool:
        """Whether anything but the outcome and rubrics decides these traces."""
        return has_rules(self.requirements)


# A slot counts as in evalsite.projections.
_ENVIRONMENTS = """
SELECT t.environment, count(*) FILTER (WHERE d.value = 'pass'),
       count(*) FILTER (WHERE d.value = 'fail'), count(*) FILTER (WHERE d.value = 'unresolved'),
       count(*) FILTER (WHERE d.value = 'harness_error'),
       count(*) FILTER (WHERE d.value <> 'harness_error' AND d.rule_clean = 'pass'),
       count(*) FILTER (WHERE d.value <> 'harness_error' AND d.rule_clean IN ('pass', 'fail')),
       count(*) FILTER (WHERE d.harms_attempted <> '{}')
FROM traces_trial t JOIN traces_trialdisposition d ON d.trial_id = t.id AND d.stands
WHERE t.system_id = %(system)s AND t.environment <> 'test' AND t.release_id = ANY(%(releases)s)
GROUP BY t.environment ORDER BY count(*) DESC, t.environment
"""


def production_figures(system: System, release: UUID | None = None) -> ProductionFigures:
    """What production traces of a system, or of one release, come to."""
    names = release_names(system.pk)
    chosen = next((name for name in names if name.uuid == release), None)
    release_pks = [chosen.pk] if chosen else [name.pk for name in names]
    if release and not chosen:
        release_pks = []
    with connection.cursor() as cursor:
        cursor.execute(_ENVIRONMENTS, {"system": system.pk, "releases": release_pks})
        rows = [EnvironmentCounts(*row) for row in cursor.fetchall()]
    tasks = counted_tasks(system.pk)
    scope = Scope(
        system,
        release_pks,
        sorted(tasks),
        facts_of_contracts(task.contract_pk for task in tasks.values()),
        is_production=True,
    )
    folded = requirement_figures(scope)
    return ProductionFigures(
        releases=names,
        release=chosen,
        environments=tuple(rows[:MOST_ENVIRONMENTS]),
        n_environments=len(rows),
        total=_total(rows),
        harms=harm_counts(scope),
        endings=endings(scope).endings,
        requirements=folded.requirements,
        actions=folded.actions,
    )


def _total(rows: list[EnvironmentCounts]) -> EnvironmentCounts:
    return EnvironmentCounts(
        "",
        sum(each.n_pass for each in rows),
        sum(each.n_fail for each in rows),
        sum(each.n_unresolved for each in rows),
        sum(each.n_error for each in rows),
        sum(each.clean_passed for each in rows),
        sum(each.clean_graded for each in rows),
        sum(each.n_violating for each in rows),
    )
