"""Previews of drafted contracts, proposals, and deciding on them."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from reviews.core.regrades import (
    CriterionCount,
    GraderTest,
    PlantedCheck,
    PreviewResult,
    TaskEffect,
    Transition,
    UnknownTool,
    preview_document,
)
from reviews.models import Regrade
from reviews.permissions.contracts import BROUGHT_EVIDENCE, OWN_PROPOSAL
from reviews.services.contracts import draft_contracts
from tests.support.cast import Cast
from tests.support.contract_drafts import (
    NOW,
    approved,
    drafted,
    in_effect,
    planted,
    proposed,
    text_of,
)
from tests.support.evidence import ingest, record
from tests.support.visits import n_queries, root, visit
from traces.models import (
    ContractDecision,
    ContractPreview,
    Role,
    System,
    Task,
)
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

EVIL = "<img src=x onerror=alert(1)>"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    return cast


def preview_url(preview: ContractPreview, act: str = "") -> str:
    return f"{root(preview.system)}contracts/previews/{preview.uuid}/{act}"


def proposal_url(system: System, number: int = 1, act: str = "") -> str:
    return f"{root(system)}contracts/proposals/{number}/{act}"


def said(answer: Any) -> str:
    """The sentence of an act that was refused, with its page."""
    assert answer.status_code == 422
    return str(answer.context["page"].error)


TRIAL = str(uuid.UUID(int=7))
EFFECT = PreviewResult(
    tasks=(
        TaskEffect(
            "t1",
            None,
            10,
            (
                Transition("pass", "fail", 3, (CriterionCount("looked", 3),), (TRIAL, "odd")),
                Transition("harness_error", "unresolved", 1, (), ()),
                Transition("pass", "pass", 6, (), ()),
            ),
            (CriterionCount("looked", 3),),
        ),
        TaskEffect("t2", None, 5, (Transition("pass", "pass", 5, (), ()),), ()),
    ),
    grader_tests=(GraderTest("t1", "a right one", True, ()),),
    unknown_tools=(UnknownTool("rare", ("t1",)),),
)


# Previews


def test_a_preview_says_which_dispositions_would_change(client: Client, filled: Cast) -> None:
    preview = drafted(filled, text_of("t1"), text_of("t2"), result=EFFECT)
    page = visit(client, filled.engineer, preview_url(preview))
    assert page.heading == "4 of 15 trials would be decided otherwise"
    assert page.effect.words == "15 stored trials of 2 tasks, all releases together."
    assert [(move.before.label, move.after.label, move.n_trials) for move in page.effect.moves] == [
        ("pass", "fail", 3),
        ("harness error", "unresolved", 1),
    ]
    (task,) = page.effect.tasks
    assert (task.task.label, task.counts, task.newly_failing) == (
        "t1",
        "4 of 10 trials change",
        "looked (3)",
    )
    assert [(move.why, [link.href for link in move.examples]) for move in task.moves] == [
        ("fails: looked (3)", [f"{root(filled.system)}trials/{TRIAL}/"]),
        ("", []),
    ]
    assert page.effect.warnings[0].startswith("No stored trace has called rare")
    assert [(draft.task.label, draft.badge.label) for draft in page.drafts] == [
        ("t1", "first contract"),
        ("t2", "first contract"),
    ]
    assert page.form is not None


@pytest.mark.parametrize(
    ("n_trials", "heading"),
    [
        (0, "No stored trial is decided by these contracts yet"),
        (5, "No disposition would change"),
    ],
)
def test_a_preview_that_changes_nothing_says_so(
    client: Client, filled: Cast, n_trials: int, heading: str
) -> None:
    effect = TaskEffect("t1", None, n_trials, (), ())
    preview = drafted(filled, result=PreviewResult((effect,), (), ()))
    assert visit(client, filled.viewer, preview_url(preview)).heading == heading


def test_a_preview_shows_how_far_it_is_and_asks_again(client: Client, filled: Cast) -> None:
    preview = draft_contracts(filled.system, text_of(), by=filled.engineer, now=NOW)
    page = visit(client, filled.engineer, preview_url(preview))
    assert (page.work.sentence, page.poll_url) == ("It waits for a worker.", preview_url(preview))
    assert (page.form, page.why_not) == (None, "")
    rows = ContractPreview.objects.filter(pk=preview.pk)
    rows.update(state="working", n_done=5, n_total=20)
    page = visit(client, filled.engineer, preview_url(preview))
    assert (page.work.sentence, page.work.percent) == ("5 of 20 trials decided.", 25)
    rows.update(n_total=None)
    page = visit(client, filled.engineer, preview_url(preview))
    assert page.work.sentence == "The stored trials are being counted."
    asked = client.get(preview_url(preview), headers={"HX-Target": "rules-moving"})
    assert "HX-Refresh" not in asked.headers
    rows.update(state="failed", failure="It stopped five times.")
    page = visit(client, filled.engineer, preview_url(preview))
    assert (page.heading, page.work.failure, page.again_label) == (
        "The preview could not be worked out",
        "It stopped five times.",
        "Preview them again",
    )
    asked = client.get(preview_url(preview), headers={"HX-Target": "rules-moving"})
    assert asked.headers["HX-Refresh"] == "true"


def test_a_finished_preview_of_another_version_of_the_product_is_made_again(
    client: Client, filled: Cast
) -> None:
    preview = drafted(filled)
    ContractPreview.objects.filter(pk=preview.pk).update(result=None)
    page = visit(client, filled.engineer, preview_url(preview))
    assert page.work.failure.startswith("Another version of the product made this preview.")
    assert page.again_label == "Preview them again"


def test_a_preview_says_what_each_draft_changes(client: Client, filled: Cast) -> None:
    in_effect(filled, text_of(ident="old"))
    preview = drafted(filled, text_of(ident="new"), text_of("fresh"))
    page = visit(client, filled.engineer, preview_url(preview))
    drafts = {draft.task.label: draft for draft in page.drafts}
    assert drafts["fresh"].badge.label == "new task"
    assert drafts["fresh"].task.href == ""
    assert drafts["t1"].badge.label == "changes version 1"
    assert {(each.kind, each.name) for each in drafts["t1"].change.entries} == {
        ("removed", "required old"),
        ("added", "required new"),
    }
    assert f"preview={preview.uuid}&of=fresh" in drafts["fresh"].edit_url


def test_unmet_grader_tests_come_first_and_keep_it_from_being_proposed(
    client: Client, filled: Cast
) -> None:
    check = PlantedCheck("looked", "fail", "pass", "Found at step 2.")
    result = PreviewResult((), (GraderTest("t2", EVIL, False, (check,)),), ())
    preview = drafted(filled, text_of("t1"), text_of("t2"), result=result)
    page = visit(client, filled.engineer, preview_url(preview))
    assert [draft.task.label for draft in page.drafts] == ["t2", "t1"]
    assert page.drafts[0].tests[0].unmet == ("looked: fail expected, pass found. Found at step 2.",)
    assert page.drafts[0].has_unmet_tests
    assert page.form is None
    assert page.why_not.startswith("A grader test is not met")
    assert EVIL not in client.get(preview_url(preview)).content.decode()


def test_proposing_leads_to_the_proposal(client: Client, filled: Cast) -> None:
    preview = drafted(filled)
    client.force_login(filled.engineer)
    answer = client.post(preview_url(preview, "propose"), {"reason": ""})
    assert answer.status_code == 422
    assert answer.context["page"].form.errors == {"reason": ["Say why, in a sentence."]}
    answer = client.post(preview_url(preview, "propose"), {"reason": "So."})
    assert answer.headers["Location"] == proposal_url(filled.system)
    page = visit(client, filled.engineer, preview_url(preview))
    assert (page.proposed.href, page.form) == (proposal_url(filled.system), None)
    assert {(draft.badge.label, draft.change) for draft in page.drafts} == {("proposed", None)}
    again = client.post(preview_url(preview, "propose"), {"reason": "So."})
    assert said(again) == "These contracts are proposed already, as proposal 1."


def test_a_text_that_holds_no_longer_is_named(client: Client, filled: Cast) -> None:
    preview = drafted(filled, text_of(rest="family: f\nsplit: tuning\n"))
    Task.objects.filter(task_id="t2").update(family="f", split="held_out")
    client.force_login(filled.engineer)
    answer = client.post(preview_url(preview, "propose"), {"reason": "So."})
    assert said(answer).startswith('Task t1, 5:8: split: family "f" stays together')


def test_a_preview_of_somebody_else_is_made_again(client: Client, filled: Cast) -> None:
    preview = drafted(filled)
    other = filled.second_reviewer
    set_member(filled.system, other, Role.ENGINEER)
    page = visit(client, other, preview_url(preview))
    assert page.again_label == "Make a preview of my own"
    answer = client.post(preview_url(preview, "propose"), {"act": "again"})
    fresh = ContractPreview.objects.exclude(pk=preview.pk).get()
    assert answer.headers["Location"] == preview_url(fresh)
    assert (fresh.by, fresh.texts) == (other, preview.texts)


def test_a_preview_that_was_overtaken_says_so_and_is_made_again(
    client: Client, filled: Cast
) -> None:
    preview = drafted(filled, text_of(ident="slow"))
    in_effect(filled, text_of(ident="quick"))
    Regrade.objects.update(touched_at=NOW + timedelta(seconds=1))
    page = visit(client, filled.engineer, preview_url(preview))
    assert page.notices[0].sentence.startswith("A contract came into effect since")
    assert (page.form, page.why_not) == (None, "")
    assert page.again_label == "Preview them on what is in effect now"
    Regrade.objects.update(touched_at=NOW)
    in_effect(filled, text_of(ident="slow"))
    answer = client.post(preview_url(preview, "propose"), {"act": "again"})
    assert said(answer).startswith("Each of these contracts says the same")


def test_whoever_may_not_propose_is_told_why(client: Client, filled: Cast) -> None:
    preview = drafted(filled)
    for user in (filled.reviewer, filled.owner, filled.viewer):
        page = visit(client, user, preview_url(preview))
        assert page.form is None
        assert page.why_not.startswith("Only an engineer of this system")
        answer = client.post(preview_url(preview, "propose"), {"reason": "So."})
        assert answer.status_code == 403
    client.force_login(filled.outsider)
    assert client.get(preview_url(preview)).status_code == 404


# Proposals


def test_a_proposal_shows_what_it_changes_and_who_decides(client: Client, filled: Cast) -> None:
    in_effect(filled, text_of("t1", ident="old"))
    proposed(filled, text_of("t1", ident="new"), text_of("t2"))
    page = visit(client, filled.reviewer, proposal_url(filled.system, 2))
    assert (page.heading, page.badge.label) == ("Proposal 2", "waits for a decision")
    assert page.sentence == (
        "2 contracts, proposed by engineer. A reviewer or an owner decides, who neither proposed "
        "them nor brought evidence."
    )
    assert [
        (draft.task.label, draft.badge.label, draft.change.heading) for draft in page.drafts
    ] == [
        ("t1", "version 2", "What it changes in version 1"),
        ("t2", "version 1", "What it brings"),
    ]
    assert (page.decide_refusal, page.approve_refusal, page.withdraw) == ("", "", None)
    mine = visit(client, filled.engineer, proposal_url(filled.system, 2))
    assert mine.sentence.endswith(OWN_PROPOSAL)
    assert mine.withdraw is not None
    assert mine.decide_refusal.startswith("Only a reviewer or an owner")


def test_grader_tests_that_are_not_met_keep_the_button_from_approving(
    client: Client, filled: Cast
) -> None:
    proposal = proposed(filled)
    test = GraderTest("t1", "a wrong one", False, ())
    ContractPreview.objects.filter(proposed_as=proposal).update(
        result=preview_document(PreviewResult((), (test,), ()))
    )
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert page.decide_refusal == ""
    assert page.approve_refusal.startswith('A grader test is not met: "a wrong one" of task t1.')


def test_what_was_to_change_stands_there_after_the_decision(client: Client, filled: Cast) -> None:
    proposal = approved(filled)
    ContractPreview.objects.filter(proposed_as=proposal).update(result=preview_document(EFFECT))
    page = visit(client, filled.viewer, proposal_url(filled.system))
    assert page.effect.heading == "Dispositions that it was to change"
    assert page.effect.headline == "4 of 15 trials were to be decided otherwise"
    none = PreviewResult((TaskEffect("t1", None, 5, (), ()),), (), ())
    ContractPreview.objects.filter(proposed_as=proposal).update(result=preview_document(none))
    page = visit(client, filled.viewer, proposal_url(filled.system))
    assert page.effect.headline == "No disposition was to change"


def test_an_approval_leads_to_the_regrade_and_its_progress(client: Client, filled: Cast) -> None:
    proposed(filled)
    client.force_login(filled.reviewer)
    answer = client.post(
        proposal_url(filled.system, 1, "decide"), {"outcome": "approved", "reason": "Yes."}
    )
    assert answer.headers["Location"] == proposal_url(filled.system)
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert (page.badge.label, page.decide) == ("waiting for a worker", None)
    assert page.work.href == f"{root(filled.system)}regrades/1/"
    assert page.poll_url == proposal_url(filled.system)
    Regrade.objects.update(state="working", n_done=3, n_total=10)
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert page.work.percent == 30
    assert page.work.sentence.startswith("3 of 10 trials graded.")
    Regrade.objects.update(state="cancelled")
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert (page.badge.label, page.work.is_moving, page.poll_url) == ("stopped", False, "")
    Regrade.objects.update(state="done")
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert (page.badge.label, page.work) == ("came into effect", None)
    assert {fact.name: fact.value for fact in page.facts}["Approved by"] == "reviewer"


def test_a_rejection_and_a_withdrawal_keep_their_reasons(client: Client, filled: Cast) -> None:
    proposed(filled)
    proposed(filled)
    client.force_login(filled.owner)
    client.post(proposal_url(filled.system, 1, "decide"), {"outcome": "rejected", "reason": "No."})
    page = visit(client, filled.viewer, proposal_url(filled.system))
    assert (page.badge.label, page.sentence) == (
        "rejected",
        "1 contract, proposed by engineer and rejected by owner.",
    )
    client.force_login(filled.engineer)
    client.post(proposal_url(filled.system, 2, "withdraw"), {"reason": "Mine."})
    page = visit(client, filled.viewer, proposal_url(filled.system, 2))
    assert (page.badge.label, page.badge.state) == ("withdrawn", "")
    assert {fact.name: fact.value for fact in page.facts}["Why"] == "Mine."


@pytest.mark.parametrize(
    ("data", "field"),
    [({"outcome": "approved"}, "reason"), ({"reason": "x", "outcome": "withdrawn"}, "outcome")],
    ids=["no-reason", "no-outcome"],
)
def test_a_decision_that_is_not_whole_is_answered_with_the_form(
    client: Client, filled: Cast, data: dict[str, str], field: str
) -> None:
    proposed(filled)
    client.force_login(filled.reviewer)
    answer = client.post(proposal_url(filled.system, 1, "decide"), data)
    assert answer.status_code == 422
    assert field in answer.context["page"].decide.errors
    assert not ContractDecision.objects.exists()


def test_who_brought_evidence_is_told_so_on_the_button_and_in_the_answer(
    client: Client, filled: Cast
) -> None:
    proposed(filled)
    ingest(filled.system, [record("t3", 0)], by=filled.reviewer)
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert page.decide_refusal == BROUGHT_EVIDENCE
    answer = client.post(
        proposal_url(filled.system, 1, "decide"), {"outcome": "approved", "reason": "x"}
    )
    assert said(answer) == BROUGHT_EVIDENCE


def test_roles_that_may_not_decide_get_403(client: Client, filled: Cast) -> None:
    proposed(filled)
    for user in (filled.engineer, filled.viewer):
        client.force_login(user)
        path = proposal_url(filled.system, 1, "decide")
        assert client.post(path, {"outcome": "approved", "reason": "x"}).status_code == 403
    client.force_login(filled.viewer)
    assert client.post(proposal_url(filled.system, 1, "withdraw"), {}).status_code == 403


def test_withdrawing_needs_a_reason_and_ones_own_proposal(client: Client, filled: Cast) -> None:
    proposed(filled)
    client.force_login(filled.engineer)
    answer = client.post(proposal_url(filled.system, 1, "withdraw"), {"reason": ""})
    assert answer.status_code == 422
    assert answer.context["page"].withdraw.errors == {"reason": ["Say why, in a sentence."]}
    client.force_login(filled.owner)
    answer = client.post(proposal_url(filled.system, 1, "withdraw"), {"reason": "x"})
    assert said(answer) == "Only the person who proposed contracts withdraws them."


def test_an_overtaken_proposal_is_previewed_again(client: Client, filled: Cast) -> None:
    proposed(filled, text_of(ident="slow"))
    in_effect(filled, text_of(ident="quick"))
    page = visit(client, filled.reviewer, proposal_url(filled.system))
    assert page.notices[0].sentence.startswith("Another contract came into effect meanwhile")
    assert page.approve_refusal == page.notices[0].sentence
    assert page.decide_refusal == ""
    page = visit(client, filled.engineer, proposal_url(filled.system))
    assert page.again_label == "Preview them on what is in effect now"
    answer = client.post(proposal_url(filled.system, 1, "withdraw"), {"act": "again"})
    fresh = ContractPreview.objects.order_by("-pk")[0]
    assert answer.headers["Location"] == preview_url(fresh)
    client.force_login(filled.owner)
    answer = client.post(proposal_url(filled.system, 1, "withdraw"), {"act": "again"})
    assert said(answer) == "Only an engineer of this system proposes contracts."


def test_other_proposals_for_the_same_tasks_are_said(client: Client, filled: Cast) -> None:
    approved(filled, text_of(ident="a"))
    proposed(filled, text_of(ident="b"))
    page = visit(client, filled.reviewer, proposal_url(filled.system, 2))
    assert [notice.sentence[:40] for notice in page.notices] == [
        "Proposal 1 is approved and not yet in ef"
    ]


def test_a_proposal_whose_preview_is_gone_says_so(client: Client, filled: Cast) -> None:
    proposal = proposed(filled, text_of(rest=planted()))
    ContractPreview.objects.filter(proposed_as=proposal).update(result=None)
    page = visit(client, filled.viewer, proposal_url(filled.system))
    assert page.effect_words == "What it would change was not kept."
    assert page.drafts[0].tests_words == "The grader test is met."


def test_the_pages_take_the_same_queries_for_one_contract_and_for_three(
    client: Client, cast: Cast
) -> None:
    client.force_login(cast.reviewer)
    for number, tasks in enumerate((("t1",), ("t1", "t2", "t3")), 1):
        ingest(cast.system, [record(task, 0) for task in tasks])
        preview = drafted(cast, *(text_of(task, ident=f"n{number}") for task in tasks))
        assert n_queries(client, preview_url(preview)) == 9
        proposal = proposed(cast, *(text_of(task, ident=f"m{number}") for task in tasks))
        assert n_queries(client, proposal_url(cast.system, proposal.number)) == 15


def test_what_is_not_there_is_404(client: Client, filled: Cast) -> None:
    client.force_login(filled.engineer)
    assert client.get(proposal_url(filled.system, 9)).status_code == 404
    path = f"{root(filled.system)}contracts/previews/{uuid.uuid4()}/"
    assert client.get(path).status_code == 404
