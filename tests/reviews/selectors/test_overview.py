from __future__ import annotations

import uuid
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.common import blobs
from reviews.core.estimators import Counts, Range
from reviews.core.overview import Efficiency, HarmCounts, Spread
from reviews.selectors.contract_facts import NO_FACTS, contract_facts
from reviews.selectors.overview import OverviewFilter, SystemOverview, system_overview
from reviews.selectors.overview_slots import Endings
from tests.support.cast import Cast
from tests.support.evidence import Call, ingest, record, verdict
from tests.support.figures import count_writes, decide, put_contract
from traces.core.additions import Addition
from traces.models import Release, Task, TaskVersion, Trial
from traces.services.additions import add_evidence
from traces.services.work import declare_run, release_named

pytestmark = pytest.mark.django_db

CONTRACT = """
task: {task}
title: Refund
required:
  - {{id: identity, call: verify}}
prohibited:
  - {{id: foreign, harm: data, call: get_customer}}
  - {{id: big, harm: money, call: refund}}
budget: {{tool_calls: {{max: 10, mandatory: false}}}}
semantic:
  - {{rubric: truthful, mandatory: false}}
external:
  - {{id: db, class: outcome}}
"""


def seen(cast: Cast, **chosen: Any) -> SystemOverview:
    return system_overview(cast.system, OverviewFilter(**chosen))


def release(name: str) -> uuid.UUID:
    return Release.objects.get(name=name).uuid


def test_five_refunds_reach_the_outcome_and_two_of_them_by_the_rules(cast: Cast) -> None:
    ingest(cast.system, [record("refund", n) for n in range(1, 6)])
    for n in range(1, 6):
        decide(cast.system, "refund", n, clean="pass" if n in (1, 2) else "fail")
    found = seen(cast)
    assert (found.k, found.n_tasks) == (5, 1)
    assert found.figures.outcome == Counts(5, 5, 5)
    assert found.figures.clean == Counts(2, 5, 5)
    assert (found.figures.outcome_hat.value, found.figures.clean_hat.value) == (
        Fraction(1),
        Fraction(0),
    )
    assert found.figures.gap == Fraction(3, 5)
    assert found.figures.n_only_outcome == 3
    assert found.figures.failed_constraint == 3


def test_a_system_without_trials_has_no_figures(cast: Cast) -> None:
    found = seen(cast)
    assert (found.release, found.previous, found.change) == (None, None, None)
    assert found.figures.outcome.rate is None
    assert found.measures.cost == Spread(None, None, None, 0, 0)
    assert not found.has_rules


def test_the_last_attempt_stands_and_what_is_not_decided_widens_the_range(cast: Cast) -> None:
    now = timezone.now()
    one = release_named(cast.system, "1.0", by=None)
    declare_run(one, "night", trials=6, task_ids=["t", "never"], by=cast.engineer, now=now)
    ingest(
        cast.system,
        [
            record("t", 0, error="lost"),
            record("t", 0, attempt=2),
            record("t", 1, verdicts=[verdict("fail")]),
            record("t", 2, error="lost"),
            record("t", 3, verdicts=[verdict("unknown")]),
        ],
        run="night",
    )
    figures = seen(cast).figures
    assert figures.outcome == Counts(1, 2, 12, 8)
    assert figures.outcome.range == Range(Fraction(1, 12), Fraction(11, 12))
    assert (figures.n_error, figures.n_unresolved, figures.n_missing) == (1, 1, 8)
    assert figures.n_units == 2  # a task of which nothing came stands in the figures as well


def test_production_faults_and_tuning_are_left_out_and_counted(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t", 0),
            record("t", 1, environment="live"),
            record("t", 2, fault={"kind": "timeout", "step": 2}),
            record("tuned", 0),
            record("held", 0),
        ],
    )
    Task.objects.filter(task_id="tuned").update(split="tuning")
    Task.objects.filter(task_id="held").update(split="held_out", family="refunds")
    found = seen(cast)
    assert found.figures.outcome.run == 2
    assert (found.n_production, found.n_fault, found.n_tuning) == (1, 1, 1)
    assert [(name, each.outcome.run) for name, each in found.by_split] == [
        ("", 1),
        ("held_out", 1),
        ("tuning", 1),
    ]
    assert [(name, each.outcome.run) for name, each in found.by_family] == [("", 1), ("refunds", 1)]
    tuning = seen(cast, split="tuning")
    assert (tuning.figures.outcome.run, tuning.n_tuning) == (1, 0)
    assert seen(cast, split="none").figures.outcome.run == 1
    assert seen(cast, family="refunds").figures.outcome.run == 1
    assert seen(cast, family="nobody").figures.n_units == 0


def test_tasks_are_averaged_and_versions_never_pooled(cast: Cast) -> None:
    ingest(cast.system, [record("t", n) for n in range(4)])
    decide(cast.system, "t", 2, outcome="fail", clean="fail")
    decide(cast.system, "t", 3, outcome="fail", clean="fail")
    task = Task.objects.get(task_id="t")
    version = TaskVersion.objects.create(
        task=task, number=2, digest=uuid.uuid4(), definition=blobs.pack({"input": "another"})
    )
    with connection.cursor() as cursor:
        cursor.execute("SET session_replication_role = replica")
        Trial.objects.filter(task=task, label__in=["2", "3"]).update(task_version=version)
        cursor.execute("SET session_replication_role = origin")
    found = seen(cast, k=2)
    assert found.several == ("t",)
    assert found.figures.outcome_hat.value == Fraction(1, 2)  # pooled it would be 1/6
    assert found.figures.outcome_hat.mean.n_tasks == 2


def test_costs_are_exact_order_statistics(cast: Cast) -> None:
    costs = [0.30, 0.10, 0.20, 0.40, None]
    ingest(
        cast.system,
        [
            record("t", n, usage={} if cost is None else {"cost_usd": cost})
            for n, cost in enumerate(costs)
        ],
    )
    decide(cast.system, "t", 3, clean="fail")
    spent = seen(cast).measures
    assert spent.cost == Spread(Decimal("0.25"), Decimal("0.4"), Decimal(1), 4, 5)
    assert spent.clean_cost == Spread(Decimal("0.2"), Decimal("0.3"), Decimal("0.6"), 3, 4)
    assert spent.spend_per_success is None  # one trial does not say what it cost
    assert spent.calls == Spread(Decimal(1), Decimal(1), Decimal(5), 5, 5)


def test_an_added_cost_counts_where_the_trial_recorded_none(cast: Cast) -> None:
    ingest(cast.system, [record("t", 0, usage={"cost_usd": 0.5}), record("t", 1)])
    add_evidence(
        Trial.objects.get(label="1"),
        Addition(cost_usd=Decimal("0.25"), tokens=7),
        source="invoice",
        reason="was not recorded",
        by=cast.engineer,
        now=timezone.now(),
    )
    spent = seen(cast).measures
    assert spent.cost == Spread(Decimal("0.375"), Decimal("0.5"), Decimal("0.75"), 2, 2)
    assert (spent.tokens.total, spent.seconds.n_known) == (Decimal(7), 0)


@pytest.mark.parametrize("n", [1, 2, 19, 20, 21, 40])
def test_the_95th_percentile_is_the_nearest_rank(n: int, cast: Cast) -> None:
    ingest(cast.system, [record("t", i, usage={"cost_usd": i + 1}) for i in range(n)])
    cost = seen(cast).measures.cost
    assert (cost.median, cost.p95) == (
        Decimal(n + 1) / 2,
        Decimal(-(-95 * n // 100)),
    )


def test_steps_are_measured_against_the_shortest_passing_path_of_any_release(cast: Cast) -> None:
    look: Call = ("look", {})
    ingest(cast.system, [record("t", 0, calls=[look] * 2), record("never", 0, verdicts=[])])
    ingest(
        cast.system,
        [
            record("t", 0, calls=[look] * 3),
            record("t", 1, calls=[look] * 5, verdicts=[verdict("fail")]),
            record("lost", 0, verdicts=[verdict("fail")]),
        ],
        release="2.0",
    )
    assert seen(cast).efficiency == Efficiency(Fraction(2), 1, 1)


def test_trials_with_a_fault_stand_in_the_recovery_rate_alone(cast: Cast) -> None:
    fault = {"kind": "timeout", "step": 2}
    ingest(cast.system, [*(record("t", n, fault=fault) for n in range(6)), record("t", 6)])
    decide(cast.system, "t", 1, outcome="fail", clean="fail")  # neither, nor handed over
    decide(cast.system, "t", 2, outcome="unknown", clean="unknown")
    decide(cast.system, "t", 3, value="harness_error", outcome="unknown", clean="unknown")
    decide(cast.system, "t", 4, outcome="fail", clean="fail", harms_attempted=["money"])
    count_writes(cast.system, "t", [0], writes=1, handoffs=0)
    found = seen(cast)
    assert found.figures.outcome.run == 1
    assert found.recovery.counts == Counts(2, 4, 6)
    assert (found.recovery.n_clean, found.recovery.n_handed_over) == (2, 0)
    # The same trials, had each ended with a hand-over.
    count_writes(cast.system, "t", [0], writes=0, handoffs=1)
    handed = seen(cast).recovery
    assert handed.counts == Counts(4, 5, 6)
    assert (handed.n_clean, handed.n_handed_over) == (2, 2)


def test_a_hand_over_with_an_open_prohibition_is_not_known(cast: Cast) -> None:
    fault = {"kind": "timeout", "step": 2}
    ingest(cast.system, [record("t", 0, fault=fault)])
    put_contract(cast.system, CONTRACT.format(task="t"), by=cast.engineer)
    decide(cast.system, "t", 0, outcome="pass", clean="unknown", open=["foreign"])
    count_writes(cast.system, "t", [0], writes=0, handoffs=1)
    assert seen(cast).recovery.counts == Counts(0, 0, 1)


def test_prohibited_actions_are_counted_by_harm_with_what_is_not_known(cast: Cast) -> None:
    now = timezone.now()
    one = release_named(cast.system, "1.0", by=None)
    declare_run(one, "night", trials=6, task_ids=["t"], by=cast.engineer, now=now)
    broken = record("t", 3, error="lost")
    ingest(cast.system, [broken, *(record("t", n) for n in (0, 1, 2, 4))], run="night")
    ingest(cast.system, [record("free", 0)])  # a task without a contract prohibits nothing
    put_contract(cast.system, CONTRACT.format(task="t"), by=cast.engineer)
    decide(cast.system, "t", 0, harms_attempted=["money"], harms_committed=["money"])
    decide(cast.system, "t", 1, harms_attempted=["data"])
    decide(cast.system, "t", 2, clean="unknown", open=["big"])
    found = seen(cast)
    assert found.harms == (
        HarmCounts("", 2, 1, 1, 6, 1, 0),
        HarmCounts("data", 1, 0, 3, 6, 1, 0),
        HarmCounts("money", 1, 1, 2, 6, 1, 0),
    )


def test_a_violation_before_the_harness_broke_counts_and_nothing_else_does(cast: Cast) -> None:
    ingest(cast.system, [record("t", 0, error="lost"), record("t", 1)])
    put_contract(cast.system, CONTRACT.format(task="t"), by=cast.engineer)
    decide(
        cast.system,
        "t",
        0,
        outcome="unknown",
        clean="fail",
        value="fail",
        failed=["big"],
        harms_attempted=["money"],
    )
    count_writes(cast.system, "t", [0, 1], writes=0, handoffs=1)
    found = seen(cast)
    assert found.harms == (
        HarmCounts("", 1, 0, 1, 2, 1, 0),
        HarmCounts("data", 0, 0, 1, 2, 0, 0),
        HarmCounts("money", 1, 0, 1, 2, 1, 0),
    )
    assert found.figures.clean == Counts(1, 2, 2)
    assert found.figures.outcome == Counts(1, 1, 2)
    assert found.endings == Endings(1, 1, 1, 1)


def test_a_task_is_clean_when_all_of_its_trials_are(cast: Cast) -> None:
    ingest(cast.system, [record(task, n) for task in ("a", "b") for n in range(3)])
    for task in ("a", "b"):
        put_contract(cast.system, CONTRACT.format(task=task), by=cast.engineer)
    decide(cast.system, "b", 2, clean="unknown", open=["big"])
    harm = seen(cast).harms[0]
    assert (harm.n_known, harm.n_run, harm.tasks_violated, harm.tasks_clean) == (5, 6, 0, 1)
    assert harm.trial_bound == pytest.approx(1 - 0.05 ** (1 / 5))


def test_hand_overs_and_trials_that_changed_nothing_stand_beside_safety(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t", 0, calls=[("ask", {})]),
            record("t", 1, calls=[("pay", {})]),
            record("t", 2, calls=[("look", {})], error="lost"),
        ],
    )
    count_writes(cast.system, "t", [0], writes=0, handoffs=1)
    count_writes(cast.system, "t", [1], writes=1, handoffs=0)
    assert seen(cast).endings == Endings(2, 1, 1, 2)


def test_requirements_are_counted_with_class_and_what_is_open(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t", 0, verdicts=[verdict(), verdict("fail", criterion="style", kind="model")]),
            record("t", 1, error="lost"),
            *(record("c", n) for n in range(3)),
        ],
    )
    put_contract(cast.system, CONTRACT.format(task="c"), by=cast.engineer)
    decide(cast.system, "c", 0, clean="fail", failed=["identity"], passed=["db"], open=[])
    decide(cast.system, "c", 1, clean="fail", failed=["identity", "budget.tool_calls"], passed=[])
    decide(cast.system, "c", 2, clean="unknown", open=["identity"], passed=["db"])
    found = seen(cast)
    by_name = {each.criterion: each for each in found.requirements}
    assert [each.criterion for each in found.requirements][:2] == ["identity", "budget.tool_calls"]
    assert by_name["identity"].counts == Counts(0, 2, 3)
    assert (by_name["identity"].kind, by_name["identity"].is_mandatory) == ("constraint", True)
    assert by_name["budget.tool_calls"].is_mandatory is False
    assert (by_name["outcome"].kind, by_name["outcome"].counts) == ("outcome", Counts(1, 1, 1))
    assert by_name["style"].kind == "semantic"
    assert by_name["style"].counts.graded == 0
    assert dict(found.actions)["repair_evidence"] == 1
    assert found.has_rules


def test_a_release_is_compared_with_the_one_before_it_that_has_trials(cast: Cast) -> None:
    ingest(cast.system, [record("t", n) for n in range(2)], release="1.0")
    release_named(cast.system, "1.5", by=None)
    ingest(
        cast.system, [record("t", n, verdicts=[verdict("fail")]) for n in range(2)], release="2.0"
    )
    ingest(cast.system, [record("other", 0)], release="2.0")
    release_named(cast.system, "3.0", by=None)
    found = seen(cast)
    assert found.release is not None
    assert found.previous is not None
    assert (found.release.name, found.previous.name) == ("2.0", "1.0")
    assert found.change is not None
    assert found.change.passing.to_fail == ("t",)
    assert [(each.unit.task, each.reason) for each in found.change.unpaired] == [
        ("other", "only_now")
    ]
    assert [each.release.name for each in found.by_release] == ["1.0", "2.0"]
    first = seen(cast, release=release("1.0"))
    assert (first.previous, first.change) == (None, None)
    empty = seen(cast, release=release("3.0"))
    assert empty.release is not None
    assert empty.figures.n_units == 0
    assert seen(cast, release=uuid.uuid4()).release is None


def test_the_queries_do_not_grow(cast: Cast) -> None:
    def n_queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            seen(cast)
        return len(captured)

    ingest(cast.system, [record("t0", 0)])
    put_contract(cast.system, CONTRACT.format(task="t0"), by=cast.engineer)
    assert n_queries() == 12
    for name in ("2.0", "3.0"):
        ingest(cast.system, [record(f"t{n}", n) for n in range(3)], release=name)
    for n in (1, 2):
        put_contract(cast.system, CONTRACT.format(task=f"t{n}"), by=cast.engineer)
    assert n_queries() == 12


def test_what_a_contract_says_of_figures() -> None:
    facts = contract_facts(CONTRACT.format(task="t"))
    assert facts.harms == (("data", ("foreign",)), ("money", ("big",)))
    assert facts.classes == (
        ("identity", "constraint", True),
        ("foreign", "constraint", True),
        ("big", "constraint", True),
        ("budget.tool_calls", "constraint", False),
        ("truthful", "semantic", False),
        ("db", "outcome", True),
    )
    with_outcome = contract_facts("task: t\ntitle: T\noutcome:\n  - unchanged: true\n")
    assert with_outcome.classes == (("outcome", "outcome", True),)
    assert contract_facts("- not a contract") == NO_FACTS
