"""Cases of trials that a contract decides: from the first look to what closes them."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_review import add_evidence_to, mark_and_decide
from reviews.core.disposition import Mark
from reviews.models import Case, CaseEvent
from tests.support.cast import Cast
from tests.support.contracts import brought_into_effect
from tests.support.evidence import ingest, record
from tests.support.visits import n_queries, root, visit
from traces.core.additions import Addition
from traces.models import Trial

pytestmark = pytest.mark.django_db

STATE = {"orders": {"A-1": {"refunded": False}}}
CONTRACT = """
task: {task}
outcome:
  - unchanged: true
required:
  - {{id: looked, call: get_order}}
evidence: [final_state]
"""
OTHER = CONTRACT.replace("unchanged: true", "changes: {{/orders/A-1/refunded: true}}")


def path_of(cast: Cast, case: Case | None = None) -> str:
    return f"{root(cast.system)}cases/{f'{case.uuid}/' if case else ''}"


def undecided(label: int = 0, task_id: str = "t1", **more: Any) -> dict[str, Any]:
    return record(task_id, label, verdicts=[], initial_state=STATE, **more)


def test_added_evidence_closes_the_case_of_what_it_decides(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided()])
    brought_into_effect(client, cast, [CONTRACT.format(task="t1")])
    case, trial = Case.objects.get(), Trial.objects.get()

    page = visit(client, cast.engineer, path_of(cast))
    (row,) = page.rows
    assert [badge.label for badge in row.why] == ["evidence missing"]
    assert [(step.name, step.what) for step in row.steps] == [
        ("Repair evidence", "add final state")
    ]
    page = visit(client, cast.engineer, path_of(cast, case))
    assert [(reason.criterion, reason.action) for reason in page.reasons] == [
        ("outcome", "repair evidence"),
        ("", "repair evidence"),
    ]
    assert page.reasons[1].sentence == (
        "The contract declares evidence that was not recorded: final state."
    )
    form = visit(client, cast.engineer, f"{root(cast.system)}trials/{trial.uuid}/evidence/")
    assert [(part.name, part.state) for part in form.parts if part.is_declared] == [
        ("final_state", "missing")
    ]

    add_evidence_to(
        trial,
        Addition(final_state=STATE),
        source="inspection api",
        reason="The export failed.",
        by=cast.engineer,
        now=timezone.now(),
    )

    case.refresh_from_db()
    assert (case.state, case.disposition) == ("closed", "pass")
    page = visit(client, cast.engineer, path_of(cast, case))
    assert page.closed_words == "The trial passes: every requirement passes."
    assert page.history[-1].after == "evidence was added: final state"


def test_another_contract_version_closes_the_case(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(final_state=STATE)])
    brought_into_effect(client, cast, [CONTRACT.format(task="t1")])
    trial = Trial.objects.select_related("task__system").get()
    mark_and_decide(
        trial,
        criterion="outcome",
        mark=Mark.DEFECTIVE,
        reason="It must be refunded.",
        by=cast.second_reviewer,
        now=timezone.now(),
    )
    case = Case.objects.get()
    assert (case.state, case.action, case.why) == ("open", "fix_fixture", ["outcome"])
    page = visit(client, cast.engineer, path_of(cast))
    assert [badge.label for badge in page.rows[0].why] == ["marked defective"]

    brought_into_effect(client, cast, [OTHER.format(task="t1")])

    case.refresh_from_db()
    assert (case.state, case.disposition) == ("closed", "fail")
    closed = CaseEvent.objects.filter(case=case).latest("pk")
    assert (closed.kind, closed.detail["after"]) == ("closed", {"kind": "contract", "number": 2})


def test_trials_that_start_otherwise_wait_for_the_fixture(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(final_state=STATE)])
    brought_into_effect(client, cast, [CONTRACT.format(task="t1")])
    other = {"orders": {}}
    ingest(cast.system, [record("t1", 1, verdicts=[], initial_state=other, final_state=other)])

    page = visit(client, cast.engineer, path_of(cast))

    assert [[badge.label for badge in row.why] for row in page.rows] == [
        ["does not start as its task says"],
        ["does not start as its task says"],
    ]
    case = Case.objects.get(trial__label="0")
    (first, *_) = visit(client, cast.engineer, path_of(cast, case)).reasons
    assert first.action == "fix fixture"


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_contracts_of_many_tasks_take_no_more_queries(n: int, client: Client, cast: Cast) -> None:
    tasks = [f"t{number}" for number in range(n)]
    ingest(cast.system, [undecided(0, task) for task in tasks])
    brought_into_effect(client, cast, [CONTRACT.format(task=task) for task in tasks])
    client.force_login(cast.engineer)

    assert Case.objects.filter(state="open").count() == n
    assert n_queries(client, path_of(cast)) == 18
