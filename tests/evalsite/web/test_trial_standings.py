from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client

from evalsite.after_review import (
    add_evidence_to,
    decided_again,
    mark_and_decide,
    verdict_and_decide,
)
from reviews.core.disposition import Mark
from reviews.models import Verdict
from reviews.services.person_verdicts import give_verdict
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.core.additions import Addition
from traces.core.records import VerdictValue
from traces.models import System, Task, TaskOrigin, Trial
from traces.web.pages.standings import RequirementRow, Standings

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
HOSTILE = "<b>x</b>\u202e"
CONTRACT = """\
task: t1
facts: {order: A-1}
outcome:
  - changes: {/refunds/-: {order: A-1}}
required:
  - {id: looked-up, call: get_order, before: issue_refund}
  - {id: told, message: agent, where: 'text.contains("Done")'}
prohibited:
  - {id: big-refund, harm: money, call: issue_refund, where: 'args.amount > 100'}
budget: {tool_calls: 5}
semantic:
  - {rubric: tone, question: Is the agent polite?, mandatory: false}
"""
EMPTY: dict[str, Any] = {"refunds": [], "orders": {"A-1": {}}}
REFUNDED: dict[str, Any] = {"refunds": [{"order": "A-1"}], "orders": {"A-1": {}}}
LOOK = ("get_order", {"order": "A-1"})


def refund(amount: int) -> tuple[str, dict[str, Any]]:
    return ("issue_refund", {"order": "A-1", "amount": amount})


def graded(cast: Cast, *records: dict[str, Any], text: str = CONTRACT) -> None:
    """Trials decided by the contract."""
    ingest(cast.system, list(records))
    contract_in_effect(cast.system, text, by=cast.engineer)
    trials = Trial.objects.filter(system=cast.system).values_list("pk", flat=True)
    decided_again(trials, cast.system, now=NOW)


def good(label: int = 0, **more: Any) -> dict[str, Any]:
    states = {"initial_state": EMPTY, "final_state": REFUNDED}
    return record("t1", label, calls=[LOOK, refund(84)], verdicts=[], **(states | more))


def bad(label: int = 0, **more: Any) -> dict[str, Any]:
    """Refunds too much before it looks up, twice."""
    states = {
        "initial_state": EMPTY,
        "final_state": {"refunds": [{"order": "A-2"}], "orders": {}, "holds": {"H-1": 1}},
    }
    calls = [refund(500), LOOK]
    return record("t1", label, calls=calls, verdicts=[], **(states | more))


def path(system: System, label: int | str = 0) -> str:
    trial = Trial.objects.get(system=system, task__task_id="t1", label=str(label))
    return f"{root(system)}trials/{trial.uuid}/"


def rows(found: Standings) -> dict[str, RequirementRow]:
    return {row.name: row for group in found.groups for row in group.rows}


def test_a_passing_trial_says_so_requirement_by_requirement(client: Client, cast: Cast) -> None:
    graded(cast, good())

    page = visit(client, cast.viewer, path(cast.system))
    found = page.standings

    assert page.disposition.value == "pass"
    assert [
        (group.title, [(row.name, row.word) for row in group.rows]) for group in found.groups
    ] == [
        ("Outcome", [("final state", "pass")]),
        (
            "Constraints",
            [
                ("looked-up", "pass"),
                ("told", "pass"),
                ("big-refund", "pass"),
                ("budget.tool_calls", "pass"),
            ],
        ),
        ("Semantic", [("tone", "open")]),
    ]
    assert found.contract.label == "contract version 1"
    assert (found.wrong, found.reached, found.missing, found.acts) == (None, None, (), ())
    row = rows(found)["looked-up"]
    assert (row.notes, row.voters, row.is_folded) == (("required",), (), True)
    assert [(step.label, step.href) for step in row.steps][:1] == [("step 2", "#step-2")]
    assert rows(found)["tone"].notes == ("not mandatory",)
    assert rows(found)["tone"].question == "Is the agent polite?"
    assert [(row.name, row.fates) for row in found.touched] == [("refunds", (("created 1", "0"),))]
    assert page.verdicts == ()


def test_a_failing_trial_says_where_it_first_went_wrong(client: Client, cast: Cast) -> None:
    graded(cast, bad())

    page = visit(client, cast.engineer, path(cast.system))
    found = page.standings

    assert page.disposition.value == "fail"
    assert page.disposition.sentence == (
        "Failed: final state (outcome); looked-up, big-refund (constraint)."
    )
    assert (found.wrong.step.label, found.wrong.step.href) == ("step 2", "#step-2")
    assert found.wrong.sentence
    assert found.reached.words == "2 of 2 required actions"
    assert [(link.label, link.href) for link in found.reached.reached] == [
        ("looked-up", "#step-4"),
        ("told", "#step-6"),
    ]
    outcome = rows(found)["final state"]
    assert ("/refunds/0", True) in [
        (field.pointer, bool(field.found)) for field in outcome.fields
    ] or outcome.fields
    prohibited = rows(found)["big-refund"]
    assert prohibited.notes == ("prohibited", "harm: money", "committed")
    assert [(row.name, row.fates) for row in found.touched] == [
        ("holds", (("created 1", "H-1"),)),
        ("orders", (("removed 1", "A-1"),)),
        ("refunds", (("created 1", "0"),)),
    ]
    assert [act.label for act in found.acts] == ["Make a task of it"]
    marks = {step.number: step.cited_by for step in page.steps}
    assert "big-refund: fail" in marks[2]


def test_missed_actions_are_named(client: Client, cast: Cast) -> None:
    graded(cast, record("t1", 0, calls=[], verdicts=[], initial_state=EMPTY, final_state=EMPTY))

    found = visit(client, cast.viewer, path(cast.system)).standings

    assert found.reached.words == "1 of 2 required actions"
    assert found.reached.missed == ("looked-up",)
    assert found.touched_words == "The run touched no record."


def test_what_was_not_recorded_is_asked_for_and_added_evidence_stays_apart(
    client: Client, cast: Cast
) -> None:
    text = f"{CONTRACT}evidence: [final_state]\n"
    graded(cast, good(final_state=None), text=text)
    trial = Trial.objects.get(system=cast.system)
    page = visit(client, cast.engineer, path(cast.system))
    found = page.standings
    assert page.disposition.value == "unresolved"
    assert page.disposition.next_actions[0].startswith("Repair evidence. The contract asks for ")
    assert [act.label for act in found.acts] == ["Add evidence", "Case", "Make a task of it"]
    assert found.acts[0].href == f"{root(cast.system)}trials/{trial.uuid}/evidence/"

    add_evidence_to(
        trial,
        Addition(final_state=REFUNDED),
        source="inspection api",
        reason=HOSTILE,
        by=cast.engineer,
        now=NOW,
    )

    page = visit(client, cast.viewer, path(cast.system))
    assert page.disposition.value == "pass"
    assert page.state.sentence == "1 difference in 2 collections, 2 records."
    assert page.state.source == "added evidence"
    assert [row.name for row in page.standings.touched] == ["refunds"]
    (added,) = page.standings.additions
    assert (added.parts, added.source, added.by) == ("final state", "inspection api", "engineer")
    assert {row.word for row in page.superseded} == {"unknown", "pass"}
    assert "<b>x</b>" not in client.get(path(cast.system)).content.decode()


def test_checks_under_an_earlier_version_are_folded_away(client: Client, cast: Cast) -> None:
    graded(cast, bad())
    contract_in_effect(cast.system, CONTRACT.replace("> 100", "> 1000"), by=cast.engineer)
    trial = Trial.objects.get(system=cast.system)
    decided_again([trial.pk], cast.system, now=NOW)

    page = visit(client, cast.viewer, path(cast.system))

    assert page.standings.contract.label == "contract version 2"
    assert rows(page.standings)["big-refund"].word == "pass"
    assert ("big-refund", "fail", "contract version 1") in [
        (row.criterion, row.word, row.under) for row in page.superseded
    ]
    marks = {step.number: step.cited_by for step in page.steps}
    assert "big-refund: fail" not in marks[2]


def test_a_version_that_has_not_graded_yet_is_told(client: Client, cast: Cast) -> None:
    ingest(cast.system, [bad()])
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)

    found = visit(client, cast.viewer, path(cast.system)).standings

    assert found.earlier_note == (
        "The checks of this contract version have not graded the trial yet."
    )
    assert rows(found)["final state"].word == "open"


def test_checks_of_a_broken_trial_are_void_but_violations(client: Client, cast: Cast) -> None:
    graded(cast, bad(error="container died"), good(1, error="container died"))

    page = visit(client, cast.viewer, path(cast.system))
    assert page.disposition.value == "fail"
    assert page.disposition.sentence == (
        "A violation was observed before the harness broke. Failed: big-refund (constraint)."
    )
    words = {name: row.word for name, row in rows(page.standings).items()}
    assert (words["big-refund"], words["final state"], words["looked-up"]) == (
        "fail",
        "void",
        "void",
    )
    assert page.standings.wrong.criterion == "big-refund"
    other = visit(client, cast.viewer, path(cast.system, 1))
    assert other.disposition.value == "harness-error"
    assert {row.word for row in rows(other.standings).values()} == {"void"}
    assert other.standings.wrong is None


def test_a_mark_is_shown_with_its_reason(client: Client, cast: Cast) -> None:
    graded(cast, bad())
    trial = Trial.objects.get(system=cast.system)
    mark_and_decide(
        trial,
        criterion="looked-up",
        mark=Mark.DEFECTIVE,
        reason=HOSTILE,
        by=cast.reviewer,
        now=NOW,
    )

    page = visit(client, cast.reviewer, path(cast.system))
    row = rows(page.standings)["looked-up"]

    assert (row.word, row.action) == ("open", "fix fixture")
    assert row.marks == (f"marked as defective by reviewer: {HOSTILE}",)
    assert row.verdict_url.endswith("/verdict/?criterion=looked-up")
    assert row.mark_url.endswith("/mark/?criterion=looked-up")
    assert "<b>x</b>" not in client.get(path(cast.system)).content.decode()


def test_trials_that_started_otherwise_say_so(client: Client, cast: Cast) -> None:
    graded(cast, good(), good(1, initial_state={"refunds": [], "orders": {}}))

    page = visit(client, cast.viewer, path(cast.system))

    assert page.disposition.value == "unresolved"
    assert len(page.standings.faults) == 1
    assert rows(page.standings)["final state"].action == "fix fixture"


def test_a_corrected_verdict_stays_visible(client: Client, cast: Cast) -> None:
    graded(cast, good())
    trial = Trial.objects.get(system=cast.system)

    def give(value: VerdictValue, corrects: Verdict | None = None) -> Verdict:
        return give_verdict(
            trial,
            criterion="tone",
            value=value,
            reason="Step 2.",
            steps=[2],
            by=cast.reviewer,
            now=NOW,
            corrects=corrects,
        )

    second = give(VerdictValue.FAIL, give(VerdictValue.PASS))

    page = visit(client, cast.reviewer, path(cast.system))
    shown = {row.word: row for row in page.verdicts}
    assert shown["pass"].corrected.startswith("fail, ")
    assert (shown["fail"].corrected, shown["fail"].corrects) == ("", "pass")
    assert shown["pass"].correct_url == ""
    assert shown["fail"].correct_url.endswith(f"?criterion=tone&corrects={second.pk}")
    assert rows(page.standings)["tone"].voters == ("reviewer says fail",)
    assert page.steps[1].cited_by.count("tone by reviewer") == 1
    other = visit(client, cast.second_reviewer, path(cast.system))
    assert {row.correct_url for row in other.verdicts} == {""}


def test_a_person_against_code_waits_to_be_adjudicated(client: Client, cast: Cast) -> None:
    graded(cast, good())
    verdict_and_decide(
        Trial.objects.get(system=cast.system),
        criterion="looked-up",
        value=VerdictValue.FAIL,
        reason="It looked at another order.",
        steps=[2],
        by=cast.reviewer,
        now=NOW,
    )

    page = visit(client, cast.second_reviewer, path(cast.system))
    row = rows(page.standings)["looked-up"]

    assert page.disposition.value == "unresolved"
    assert page.disposition.next_actions == (
        "Adjudicate looked-up. Code says pass and another grader that counts says fail.",
    )
    assert (row.word, row.voters, row.is_folded) == ("open", ("reviewer says fail",), False)
    assert [act.label for act in page.standings.acts] == ["Decide the dispute", "Case"]


def test_a_held_out_failure_can_be_noted_and_tasks_made_of_it_are_linked(
    client: Client, cast: Cast
) -> None:
    graded(cast, bad())
    trial = Trial.objects.select_related("task").get(system=cast.system)
    Task.objects.filter(pk=trial.task_id).update(split="held_out")
    ingest(cast.system, [record("made", 0)])
    made = Task.objects.get(task_id="made")
    TaskOrigin.objects.create(task=made, trial=trial, reason="x", by=cast.engineer, made_at=NOW)

    found = visit(client, cast.engineer, path(cast.system)).standings

    assert [act.label for act in found.acts] == ["Make a task of it", "Note an exposure"]
    assert found.acts[1].href == (
        f"{root(cast.system)}families/?expose={trial.task.uuid}&trial={trial.uuid}#form"
    )
    assert [(link.label, link.href) for link in found.made] == [
        ("made", f"{root(cast.system)}tasks/{made.uuid}/")
    ]


def test_steps_on_another_page_are_linked_to(client: Client, cast: Cast) -> None:
    one = bad()
    filler = {"role": "user", "content": "go on"}
    one["messages"] = [*one["messages"], *[filler] * 300]
    graded(cast, one)

    found = visit(client, cast.viewer, path(cast.system), step="290").standings

    assert found.wrong.step.href == f"{path(cast.system)}?step=2#step-2"


def test_a_verdict_that_no_requirement_takes_says_so(client: Client, cast: Cast) -> None:
    one = good()
    one["verdicts"] = [
        verdict("fail", criterion="outcome", evidence=[{"step": 2}]),
        verdict("pass", criterion="tone", kind="model", grader="judge", evidence=[{"step": 4}]),
    ]
    graded(cast, one)

    page = visit(client, cast.viewer, path(cast.system))

    assert page.disposition.value == "pass"
    assert [(row.criterion, row.counts, row.why_not) for row in page.verdicts] == [
        ("outcome", False, "no requirement of the contract takes it"),
        ("tone", False, "the judge is not calibrated for this criterion"),
    ]
    cited = [who for step in page.steps for who in step.cited_by]
    assert "outcome by state check" not in cited
    assert "tone by judge" in cited


@pytest.mark.parametrize("n", [1, 3])
def test_the_queries_of_a_trial_under_a_contract_do_not_grow(
    n: int, client: Client, cast: Cast
) -> None:
    rules = "".join(f"  - {{id: p{at}, harm: money, call: issue_refund}}\n" for at in range(n))
    text = f"task: t1\nprohibited:\n{rules}"
    graded(cast, *[bad(label) for label in range(n)], text=text)
    client.force_login(cast.viewer)

    assert n_queries(client, path(cast.system)) == 17
