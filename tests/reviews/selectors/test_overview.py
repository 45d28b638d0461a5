from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest

from reviews.core.estimators import Counts
from reviews.core.overview import Spread
from reviews.selectors.overview import OverviewFilter, SystemOverview, system_overview
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.figures import count_writes, decide

pytestmark = pytest.mark.django_db


def seen(cast: Cast, **chosen: object) -> SystemOverview:
    return system_overview(cast.system, OverviewFilter(**chosen))  # type: ignore[arg-type]


def test_five_refunds_reach_the_outcome_and_two_of_them_by_the_rules(cast: Cast) -> None:
    ingest(cast.system, [record("refund", n) for n in range(1, 6)])
    for n in range(1, 6):
        is_clean = n in (1, 2)
        decide(cast.system, "refund", n, clean="pass" if is_clean else "fail")
    found = seen(cast)
    assert (found.k, found.n_tasks) == (5, 1)
    assert found.figures.outcome == Counts(5, 5, 5)
    assert found.figures.clean == Counts(2, 5, 5)
    assert found.figures.outcome_hat.value == 1
    assert found.figures.clean_hat.value == 0
    assert found.figures.gap == Fraction(3, 5)
    assert found.figures.n_only_outcome == 3


def test_a_system_without_trials_has_no_figures(cast: Cast) -> None:
    found = seen(cast)
    assert (found.release, found.previous, found.change) == (None, None, None)
    assert found.figures.outcome.rate is None
    assert found.measures.cost == Spread(None, None, None, 0, 0)


def test_costs_are_exact_order_statistics(cast: Cast) -> None:
    costs = ["0.30", "0.10", "0.20", "0.40", None]
    records = [
        record("t", n, **({} if cost is None else {"usage": {"cost_usd": float(cost)}}))
        for n, cost in enumerate(costs)
    ]
    ingest(cast.system, records)
    decide(cast.system, "t", 3, clean="fail")
    spent = seen(cast).measures
    assert spent.cost == Spread(Decimal("0.25"), Decimal("0.4"), Decimal(1), 4, 5)
    assert spent.clean_cost == Spread(Decimal("0.2"), Decimal("0.3"), Decimal("0.6"), 3, 4)
    assert spent.spend_per_success is None  # one trial does not say what it cost


def test_trials_with_a_fault_stand_in_the_recovery_rate_alone(cast: Cast) -> None:
    fault = {"kind": "timeout", "step": 2}
    ingest(cast.system, [record("t", n, fault=fault) for n in range(6)] + [record("t", 6)])
    decide(cast.system, "t", 0)  # rule-clean
    decide(cast.system, "t", 1, outcome="fail", clean="fail")  # neither, nor handed over
    decide(cast.system, "t", 2, outcome="unknown", clean="unknown")
    decide(cast.system, "t", 3, value="harness_error", outcome="unknown", clean="unknown")
    decide(cast.system, "t", 4, outcome="fail", clean="fail", harms_attempted=["money"])
    decide(cast.system, "t", 5)
    count_writes(cast.system, "t", [0], writes=1, handoffs=0)
    found = seen(cast)
    assert found.figures.outcome.run == 1
    assert found.n_fault == 6
    assert found.recovery.counts == Counts(2, 4, 6)
    assert (found.recovery.n_clean, found.recovery.n_handed_over) == (2, 0)
    # The same trials, had each ended with a hand-over.
    count_writes(cast.system, "t", [0], writes=0, handoffs=1)
    handed = seen(cast).recovery
    assert handed.counts == Counts(4, 5, 6)
    assert (handed.n_clean, handed.n_handed_over) == (2, 2)
