"""Trials graded by contracts: checks stored once, dispositions by requirements, any order."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from decimal import Decimal
from functools import partial
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.after_review import add_evidence_to, evidence_locked
from evalsite.grading import ensure_graded
from evalsite.projections import decide_trials
from evalsite.rebuilding import rebuild
from evalsite.regrading import work_out_regrade
from reviews.core.checks.results import CHECKS_VERSION
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY, requirements_of
from reviews.models import Case, CheckMark, Criterion, Flag, Grader, GraderVersion, Verdict
from reviews.selectors.exports import ExportSelection, jsonl_lines
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.regrades import NOW, approved, contract_number, in_effect
from traces.core.additions import Addition
from traces.models import ContractVersion, Task, Trial, TrialDisposition, TrialFixture
from traces.selectors.contracts import contract_of_stored

pytestmark = pytest.mark.django_db

REFUND = """
task: t1
title: Refund
family: refunds
split: regression
facts: {order: A-1}
trial_facts: [customer]
outcome:
  - changes: {/refunds/0: done}
required:
  - {id: looked, call: get_order}
prohibited:
  - {id: foreign, harm: data, call: get_customer}
budget: {tool_calls: 3, cost_usd: {max: 1, mandatory: false}}
semantic:
  - {rubric: truthful, mandatory: false}
evidence: [final_state]
"""
CHECKS = ["outcome", "looked", "foreign", "budget.tool_calls", "budget.cost_usd"]
BEFORE: dict[str, Any] = {"refunds": []}
AFTER: dict[str, Any] = {"refunds": ["done"]}
FACTS = {"order": "A-1", "customer": "C-1"}


def good(trial: int | str = 0, **more: Any) -> dict[str, Any]:
    """A trial that meets the contract."""
    states = {"facts": FACTS, "initial_state": BEFORE, "final_state": AFTER}
    return record("t1", trial, **{"verdicts": [], **states, **more})


def disposition(trial: int | str = 0) -> TrialDisposition:
    return TrialDisposition.objects.get(trial__label=str(trial))


def comes_to(trial: int | str = 0) -> tuple[str, list[str]]:
    row = disposition(trial)
    return (row.value, row.next_actions)


def checks(trial: int | str = 0) -> list[tuple[str, str]]:
    rows = Verdict.objects.filter(trial__label=str(trial), contract__isnull=False)
    rows = rows.exclude(key__endswith=EVIDENCE_KEY).order_by("pk")
    return list(rows.values_list("criterion__name", "value"))


def everything() -> list[tuple[object, ...]]:
    """The end state: dispositions, cases and fixtures, less what names rows and times."""
    names = [
        "trial__label", "value", "failed_classes", "next_actions", "stands", "contract__number",
        "outcome", "rule_clean", "passed", "failed", "open", "harms_attempted", "harms_committed",
        "n_required", "n_reached", "trial__case__state", "trial__case__next_actions",
        "trial__fixture__facts", "trial__fixture__state",
    ]  # fmt: skip
    return [
        tuple(map(str, row))
        for row in TrialDisposition.objects.order_by("trial__label").values_list(*names)
    ]


def test_a_trial_is_graded_when_it_is_stored(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(usage={"cost_usd": 0.5})])

    row = disposition()
    assert (row.value, row.failed_classes, row.next_actions) == ("pass", [], [])
    assert (row.outcome, row.rule_clean, row.n_required, row.n_reached) == ("pass", "pass", 1, 1)
    assert (row.passed, row.failed, row.open) == (CHECKS, [], ["truthful"])
    assert row.contract is not None
    assert row.contract.number == 1
    assert checks() == [(name, "pass") for name in CHECKS]
    one = Verdict.objects.filter(criterion__name="looked").get()
    assert one.contract is not None
    assert (one.key, one.evidence_order, one.by, one.upload, one.cited_steps) == (
        f"{one.contract.uuid.hex}.0", 0, None, None, [2, 3],
    )  # fmt: skip
    version = one.grader_version
    assert (version.grader.name, version.grader.kind, version.version) == (
        CHECKS_GRADER, "code", CHECKS_VERSION,
    )  # fmt: skip


def test_a_contract_decides_what_is_stored_already(cast: Cast) -> None:
    ingest(
        cast.system, [good(0), good(1, final_state=BEFORE), good(2, calls=[("get_customer", {})])]
    )
    assert comes_to(0) == ("unresolved", ["clarify_contract"])
    assert Case.objects.filter(state="open").count() == 3

    regrade = in_effect(cast, REFUND)

    assert comes_to(0) == ("pass", [])
    assert (disposition(1).value, disposition(1).failed_classes, disposition(1).outcome) == (
        "fail", ["outcome"], "fail",
    )  # fmt: skip
    two = disposition(2)
    assert (two.value, two.failed_classes, two.outcome, two.rule_clean) == (
        "fail", ["constraint"], "pass", "fail",
    )  # fmt: skip
    assert (two.failed, two.harms_attempted, two.harms_committed, two.n_reached) == (
        ["looked", "foreign"], ["data"], ["data"], 0,
    )  # fmt: skip
    assert Case.objects.filter(state="open").count() == 0
    assert regrade.n_verdicts == 15
    task = Task.objects.get()
    assert (task.title, task.family, task.split) == ("Refund", "refunds", "regression")


def test_what_the_evidence_lacks_is_never_a_pass(cast: Cast) -> None:
    in_effect(cast, REFUND)
    one = good(0)
    del one["final_state"]
    ingest(cast.system, [one, good(1, calls=[], final_state=None)])

    assert comes_to(0) == ("unresolved", ["repair_evidence"])
    assert disposition(0).outcome == "unknown"
    assert disposition(1).value == "fail"
    case = Case.objects.get(trial__label="0")
    assert (case.state, case.action, case.why) == ("open", "repair_evidence", ["outcome"])


def test_declared_evidence_is_missing_though_every_requirement_passes(cast: Cast) -> None:
    in_effect(cast, "task: t1\nrequired: [{id: looked, call: get_order}]\nevidence: [final_state]")
    ingest(cast.system, [record("t1", verdicts=[]), good(1)])

    assert comes_to(0) == ("unresolved", ["repair_evidence"])
    assert comes_to(1) == ("pass", [])


def test_added_evidence_is_graded_beside_what_was_said_before(cast: Cast) -> None:
    in_effect(cast, REFUND)
    one = good(0)
    del one["final_state"]
    ingest(cast.system, [one])
    trial = Trial.objects.get()

    add_evidence_to(
        trial, Addition(final_state=AFTER), source="api", reason="lost", by=cast.engineer, now=NOW
    )

    assert comes_to() == ("pass", [])
    rows = Verdict.objects.filter(criterion__name="outcome").order_by("evidence_order")
    assert [(v.evidence_order, v.value) for v in rows] == [(0, "unknown"), (1, "pass")]
    assert len({v.evidence_digest for v in rows}) == 2
    assert rows[0].evidence_digest == trial.digest


def test_a_trial_that_contradicts_a_fixed_fact_asks_for_its_fixture(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0, facts={**FACTS, "order": "B-9"}), good(1)])

    assert comes_to(0) == ("unresolved", ["fix_fixture"])
    assert comes_to(1) == ("pass", [])
    assert TrialFixture.objects.count() == 1


def test_a_violation_stands_in_any_world(cast: Cast) -> None:
    in_effect(cast, REFUND)
    calls = [("get_order", {}), ("get_customer", {})]
    ingest(
        cast.system,
        [
            good(0, facts={**FACTS, "order": "B-9"}, calls=calls),
            good(1, error="died", calls=calls),
            good(2, error="died"),
        ],
    )

    assert (disposition(0).value, disposition(0).failed_classes) == ("fail", ["constraint"])
    one = disposition(1)
    assert (one.value, one.failed, one.passed, one.open) == ("fail", ["foreign"], [], [])
    assert (one.outcome, one.rule_clean, one.harms_attempted) == ("unknown", "fail", ["data"])
    two = disposition(2)
    assert (two.value, two.next_actions, two.outcome, two.rule_clean) == (
        "harness_error", ["rerun_trial"], "unknown", "unknown",
    )  # fmt: skip


@pytest.mark.parametrize("seed", range(6))
def test_trials_of_a_task_start_alike_whatever_their_order(cast: Cast, seed: int) -> None:
    other = {"refunds": [], "note": 1}
    records = [
        good(0), good(1), good(2, initial_state=other), good(3, facts={"customer": "C-2"}),
        good(4, error="died", initial_state={"half": 1}),
    ]  # fmt: skip
    random.Random(seed).shuffle(records)
    with_contract_after = random.Random(seed).randrange(len(records) + 1)
    for number, one in enumerate(records):
        if number == with_contract_after:
            in_effect(cast, REFUND)
        ingest(cast.system, [one])
    if contract_number("t1") is None:
        in_effect(cast, REFUND)

    found = {
        row.trial.label: (row.value, row.next_actions)
        for row in TrialDisposition.objects.select_related("trial")
    }
    assert found == {
        "0": ("unresolved", ["fix_fixture"]),
        "1": ("unresolved", ["fix_fixture"]),
        "2": ("unresolved", ["fix_fixture"]),
        "3": ("pass", []),
        "4": ("harness_error", ["rerun_trial"]),
    }


@pytest.mark.parametrize(
    ("facts", "added", "end"),
    [
        ({"customer": "C-1"}, {"order": "A-9"}, ("unresolved", ["fix_fixture"])),
        ({"customer": "C-1"}, {"order": "A-1"}, ("unresolved", ["fix_fixture"])),
        ({}, {"customer": "C-2"}, ("pass", [])),
    ],
    ids=["contradicts", "stays", "joins-another"],
)
def test_added_facts_take_a_trial_out_of_those_that_start_alike(
    cast: Cast, facts: dict[str, Any], added: dict[str, Any], end: tuple[str, list[str]]
) -> None:
    other = {"initial_state": {"refunds": [], "note": 1}, "final_state": {**AFTER, "note": 1}}
    records = [good(0, facts=facts), good(1, facts=facts, **other), good(2, facts=facts)]
    ingest(cast.system, records)
    in_effect(cast, REFUND)
    assert all("fix_fixture" in comes_to(label)[1] for label in range(3))
    add_evidence_to(
        Trial.objects.get(label="1"), Addition(facts=added), source="api", reason="lost",
        by=cast.engineer, now=NOW,
    )  # fmt: skip

    assert comes_to(1) == end
    stays = added == {"order": "A-1"}
    assert [("fix_fixture" in comes_to(label)[1]) for label in (0, 2)] == [stays, stays]
    found = everything()
    rebuild(cast.system, say=lambda _: None)
    assert everything() == found


def test_grading_again_adds_nothing(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0), good(1)])
    before, n_verdicts = everything(), Verdict.objects.count()
    ids = list(Trial.objects.values_list("pk", flat=True))

    assert ensure_graded(ids, now=NOW).n_verdicts == 0
    ingest(cast.system, [good(0), good(1)])
    rebuild(cast.system, say=lambda _: None)

    assert Verdict.objects.count() == n_verdicts
    assert everything() == before


def test_a_rebuild_grades_again_under_other_checks(cast: Cast, monkeypatch: Any) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0)])
    n_verdicts, before = Verdict.objects.count(), everything()
    for module in ("reviews.services.verdicts", "reviews.selectors.votes"):
        monkeypatch.setattr(f"{module}.CHECKS_VERSION", "next")

    rebuild(cast.system, say=lambda _: None)

    assert Verdict.objects.count() == 2 * n_verdicts
    assert everything() == before
    assert set(GraderVersion.objects.values_list("version", flat=True)) == {CHECKS_VERSION, "next"}


def test_verdicts_of_earlier_checks_never_vote(cast: Cast, monkeypatch: Any) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0)])
    monkeypatch.setattr("reviews.selectors.votes.CHECKS_VERSION", "next")
    with evidence_locked(cast.system, [Trial.objects.get().pk]):
        decide_trials([Trial.objects.get().pk], now=NOW)

    row = disposition()
    assert (row.value, row.next_actions, row.passed) == ("unresolved", ["repair_evidence"], [])


def test_a_verdict_on_a_criterion_that_the_contract_lacks_is_flagged(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0, verdicts=[verdict("fail", criterion="speed"), verdict("fail")])])

    assert comes_to() == ("pass", [])
    flag = Flag.objects.get()
    assert (flag.code, flag.criterion, flag.reason) == (
        "unknown-criterion",
        "speed",
        "state check decided speed, which the contract does not have.",
    )


EXTERNAL = """
task: t1
semantic: [{rubric: truthful, version: "2"}]
external: [{id: db, class: outcome, graders: [tau2]}]
"""


def test_verdicts_from_files_decide_rubrics_and_externals(cast: Cast) -> None:
    in_effect(cast, EXTERNAL)
    code = verdict(grader="tau2", criterion="db")
    said = {"grader": "judge", "kind": "code", "criterion": "truthful"}
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=[code, verdict(**said, rubric_version="2")]),
            record("t1", 1, verdicts=[code, verdict(**said, rubric_version="1")]),
            record("t1", 2, verdicts=[verdict(grader="other", criterion="db"), verdict(**said)]),
            record("t1", 3, verdicts=[code, verdict(**{**said, "kind": "model"})]),
        ],
    )
    assert [comes_to(n) for n in range(4)] == [
        ("pass", []),
        ("unresolved", ["grade"]),
        ("unresolved", ["repair_evidence"]),
        ("unresolved", ["calibrate_judge"]),
    ]
    assert [disposition(n).outcome for n in range(4)] == ["pass", "pass", "unknown", "pass"]
    assert {row.rule_clean for row in TrialDisposition.objects.all()} == {"pass", "unknown"}


def test_a_file_cannot_pass_for_the_contract_s_own_checks(cast: Cast) -> None:
    in_effect(cast, REFUND)
    forged = verdict(grader=CHECKS_GRADER, grader_version=CHECKS_VERSION, criterion="looked")
    ingest(cast.system, [good(0, calls=[], verdicts=[forged])])

    assert (disposition().value, disposition().failed) == ("fail", ["looked"])


def test_a_contract_that_is_refused_by_now_decides_nothing(cast: Cast) -> None:
    """As after an upgrade that reads contracts more strictly."""
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0)])
    refused = approved(cast, REFUND)
    with connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")
        ContractVersion.objects.update(text="task: [")
        cursor.execute("reset session_replication_role")

    ingest(cast.system, [good(1)])
    rebuild(cast.system, say=lambda _: None)
    assert [comes_to(n) for n in range(2)] == [("unresolved", ["clarify_contract"])] * 2

    assert work_out_regrade(refused.pk)
    refused.refresh_from_db()
    assert (refused.state, refused.failure.split(" by ")[0]) == (
        "failed", "The contract of task t1 cannot be read",
    )  # fmt: skip


def test_an_export_comes_in_again_as_nothing_new(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good(0, verdicts=[verdict()])])
    before, n_verdicts = everything(), Verdict.objects.count()
    exported = "".join(jsonl_lines(ExportSelection(cast.system)))
    assert CHECKS_GRADER not in exported

    job = ingest(cast.system, exported.encode())

    assert (job.n_received, job.n_duplicate) == (1, 1)
    assert (everything(), Verdict.objects.count()) == (before, n_verdicts)


def test_grading_reads_trials_in_few_queries(cast: Cast) -> None:
    in_effect(cast, REFUND)
    ingest(cast.system, [good("first")])
    counts = []
    for first, n in ((0, 1), (1, 3)):
        with CaptureQueriesContext(connection) as seen:
            ingest(cast.system, [good(first + at) for at in range(n)])
        counts.append(len(seen))
    assert counts[0] == counts[1]


def test_without_a_contract_nothing_is_graded(cast: Cast, monkeypatch: Any) -> None:
    def never(*_: Any, **__: Any) -> None:
        raise AssertionError("graded")

    monkeypatch.setattr("evalsite.projections.ensure_graded", never)
    ingest(cast.system, [good(0)])
    assert disposition().contract is None


WHOLE = (
    REFUND.replace("{rubric: truthful, mandatory: false}", "{rubric: truthful}")
    + "external: [{id: db, class: outcome}]\n"
)
WHOLE = WHOLE.replace("required:", "required:\n  - {id: greeted, call: greet, mandatory: false}")


@pytest.mark.parametrize("seed", range(12))
def test_the_end_state_is_the_same_in_any_order(cast: Cast, seed: int) -> None:
    """Trials, verdicts, contract, added evidence, a mark and a person's verdict, as they come."""
    work = approved(cast, WHOLE)
    version = ContractVersion.objects.get()
    digests = {
        r.criterion: uuid.UUID(bytes=r.criterion_digest or b"")
        for r in requirements_of(contract_of_stored(version.text), contract_key="")
    }
    without = {name: value for name, value in good("a").items() if name != "final_state"}
    records = [without, good("b", calls=[("get_customer", {}), ("get_order", {})])]
    said = [
        {"record": "verdicts", "task_id": "t1", "trial": label, "verdicts": [verdict(criterion="db")]}
        for label in ("a", "b")
    ]  # fmt: skip

    def trial(label: str) -> Trial:
        return Trial.objects.get(label=label)

    def add() -> None:
        addition = Addition(final_state=AFTER, cost_usd=Decimal(2))
        add_evidence_to(
            trial("a"), addition, source="api", reason="lost", by=cast.engineer, now=NOW
        )

    def judge() -> None:
        one = trial("a")
        criterion, _ = Criterion.objects.get_or_create(system=cast.system, name="truthful")
        person, _ = Grader.objects.get_or_create(system=cast.system, kind="human", name="reviewer")
        by, _ = GraderVersion.objects.get_or_create(grader=person, version="")
        with evidence_locked(cast.system, [one.pk]):
            Verdict.objects.create(
                trial=one, criterion=criterion, grader_version=by, criterion_class="semantic",
                is_mandatory=True, value="pass", key="1", cited_steps=[], digest=uuid.uuid4(),
                evidence_digest=one.digest, by=cast.reviewer, contract=version,
                criterion_digest=digests["truthful"],
            )  # fmt: skip
            decide_trials([one.pk], now=NOW)

    def mark() -> None:
        row = CheckMark.objects.create(
            system=cast.system, task=Task.objects.get(), criterion="greeted",
            criterion_digest=digests["greeted"], mark="ambiguous", reason="which?",
            by=cast.reviewer, marked_at=NOW,
        )  # fmt: skip
        ids = list(Trial.objects.values_list("pk", flat=True))
        with evidence_locked(row.system, ids):
            decide_trials(ids, now=NOW)

    acts: list[Callable[[], object]] = [
        *(partial(ingest, cast.system, [one]) for one in (*records, *said)),
        partial(work_out_regrade, work.pk),
        mark,
    ]
    chance = random.Random(seed)
    chance.shuffle(acts)
    stored = next(at for at, act in enumerate(acts) if getattr(act, "args", ())[1:] == ([without],))
    for later in (add, judge):
        acts.insert(chance.randint(stored + 1, len(acts)), later)
    for act in acts:
        act()

    assert comes_to("a") == ("pass", [])
    row = disposition("a")
    assert (row.passed, row.failed, row.open) == (
        ["outcome", "looked", "foreign", "budget.tool_calls", "truthful", "db"],
        ["budget.cost_usd"],
        ["greeted"],
    )
    assert (row.outcome, row.rule_clean) == ("pass", "pass")
    row = disposition("b")
    assert (row.value, row.failed_classes, row.failed) == ("fail", ["constraint"], ["foreign"])
    assert (row.passed, row.open) == (
        ["outcome", "looked", "budget.tool_calls", "db"],
        ["greeted", "budget.cost_usd", "truthful"],
    )
    assert not Case.objects.filter(state="open").exists()
    assert Verdict.objects.filter(contract=version, by=None).count() == 3 * 7
