"""Contracts drafted, proposed, decided and withdrawn."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from evalsite.common import blobs
from reviews.models import Regrade
from reviews.permissions.contracts import (
    BROUGHT_EVIDENCE,
    NOT_A_DECIDER,
    NOT_AN_ENGINEER,
    NOT_THE_PROPOSER,
    NOT_WORKED_OUT,
    OWN_PROPOSAL,
    other_proposals,
)
from reviews.services.contracts import (
    LONGEST_REASON,
    NOTHING_NEW,
    ContractFindingsError,
    ContractsError,
    decide_contracts,
    draft_contracts,
    propose_contracts,
    withdraw_contracts,
)
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
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    ContractVersion,
    Role,
    RulesVersion,
    SplitChange,
    System,
    Task,
    TaskVersion,
    User,
    WorkState,
)
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

APPROVED, REJECTED = ContractOutcome.APPROVED, ContractOutcome.REJECTED


@pytest.fixture
def filled(cast: Cast) -> Cast:
    """The cast with two tasks whose trials call `get_order`."""
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    return cast


def refused(act: Callable[[], object]) -> str:
    """The sentence with which an act is refused."""
    with pytest.raises(ContractsError) as error:
        act()
    return str(error.value)


def findings_of(cast: Cast, *texts: str) -> list[tuple[str, int, str]]:
    """Code, line and field of what is wrong with texts."""
    with pytest.raises(ContractFindingsError) as error:
        draft_contracts(cast.system, list(texts), by=cast.engineer, now=NOW)
    return [(each.code, each.line, each.field) for each in error.value.findings]


def propose(preview: ContractPreview, by: User, reason: str = "Why not.") -> ContractProposal:
    return propose_contracts(preview, reason=reason, by=by, now=NOW)


def decide(
    proposal: ContractProposal,
    by: User,
    outcome: ContractOutcome = APPROVED,
    reason: str = "Because.",
) -> ContractDecision:
    return decide_contracts(proposal, outcome=outcome, reason=reason, by=by, now=NOW)


# Drafts


def test_a_draft_keeps_each_text_by_its_task(filled: Cast) -> None:
    text = f"{text_of('t2')}---\n{text_of('t1')}"
    preview = draft_contracts(filled.system, text, by=filled.engineer, now=NOW)
    assert preview.texts == {"t1": text_of("t1"), "t2": text_of("t2")}
    assert (preview.by, preview.state, preview.asked_at) == (filled.engineer, "waiting", NOW)


def test_whoever_is_no_engineer_drafts_nothing(filled: Cast) -> None:
    for user in (filled.reviewer, filled.owner, filled.viewer, filled.outsider):
        assert (
            refused(lambda user=user: draft_contracts(filled.system, text_of(), by=user, now=NOW))
            == NOT_AN_ENGINEER
        )
    assert not ContractPreview.objects.exists()


def test_a_tool_that_nobody_knows_is_named_with_its_place_and_a_guess(filled: Cast) -> None:
    text = text_of(rest="prohibited:\n  - {id: no, harm: money, call: get_ordre}\n")
    with pytest.raises(ContractFindingsError) as error:
        draft_contracts(filled.system, [text], by=filled.engineer, now=NOW)
    (finding,) = error.value.findings
    assert (finding.code, finding.line, finding.field, finding.task_id) == (
        "unknown-tool",
        5,
        "prohibited[0].call",
        "t1",
    )
    assert finding.sentence == (
        'No tool "get_ordre" is known: neither the tool kinds of this system nor a stored trace '
        'names it. Is "get_order" meant?'
    )


def test_every_place_that_names_a_tool_is_looked_at(filled: Cast) -> None:
    text = (
        "task: t1\n"
        "required:\n"
        "  - {id: a, any_of: [{call: get_order}, {call: one}], before: two}\n"
        "  - {id: b, call: get_order, after: {call: three}}\n"
        "  - {id: c, message: user}\n"
        "variation:\n"
        "  - {tool: four, argument: x, kind: ignore}\n"
    )
    assert findings_of(filled, text) == [
        ("unknown-tool", 3, "required[0].any_of[1].call"),
        ("unknown-tool", 3, "required[0].before"),
        ("unknown-tool", 4, "required[1].after.call"),
        ("unknown-tool", 7, "variation[0].tool"),
    ]


def test_the_catalogue_of_tool_kinds_knows_tools_that_no_trace_used(filled: Cast) -> None:
    version = filled.system.shown_rules
    assert version is not None
    document = {**version.document, "tools": {"rare": "write"}}
    fresh = RulesVersion.objects.create(
        system=filled.system, number=9, document=document, reason="kinds", created_by=filled.owner
    )
    System.objects.filter(pk=filled.system.pk).update(shown_rules=fresh)
    text = "task: t1\nprohibited:\n  - {id: no, harm: money, call: rare}\n"
    system = System.objects.get(pk=filled.system.pk)
    assert draft_contracts(system, [text], by=filled.engineer, now=NOW).texts == {"t1": text}


def test_an_expression_that_does_not_compile_is_named_with_its_place(filled: Cast) -> None:
    text = "task: t1\nrequired:\n  - {id: a, call: get_order, where: 'args.order =='}\n"
    assert findings_of(filled, text) == [("bad-expression", 3, "required[0].where")]


def test_one_task_has_one_contract_in_a_draft(filled: Cast) -> None:
    assert findings_of(filled, f"{text_of()}---\n{text_of(ident='other')}") == [
        ("second-contract", 5, "task")
    ]


def test_what_is_not_yaml_has_its_line(filled: Cast) -> None:
    assert findings_of(filled, "task: t1\nrequired: [\n")[0][1] == 3
    assert findings_of(filled, "") == [("no-contract", 1, "")]


def test_contracts_that_say_the_same_as_what_is_in_effect_are_left_out(filled: Cast) -> None:
    in_effect(filled, text_of("t1"))
    same = f"# a comment\n{text_of('t1')}"
    assert (
        refused(lambda: draft_contracts(filled.system, [same], by=filled.engineer, now=NOW))
        == NOTHING_NEW
    )
    both = draft_contracts(filled.system, [same, text_of("t2")], by=filled.engineer, now=NOW)
    assert list(both.texts) == ["t2"]


# Families and splits


def test_a_family_stays_together_in_one_split(filled: Cast) -> None:
    Task.objects.filter(task_id="t2").update(family="refunds", split="held_out")
    text = text_of(rest="family: refunds\nsplit: regression\n")
    with pytest.raises(ContractFindingsError) as error:
        draft_contracts(filled.system, [text], by=filled.engineer, now=NOW)
    (finding,) = error.value.findings
    assert (finding.code, finding.line, finding.field) == ("parted-family", 5, "split")
    assert finding.sentence.startswith(
        'Family "refunds" stays together in one split: its task "t2" is held out.'
    )


def test_a_draft_may_move_a_whole_family(filled: Cast) -> None:
    Task.objects.update(family="refunds", split="held_out")
    texts = [text_of(task, rest="split: regression\n") for task in ("t1", "t2")]
    preview = draft_contracts(filled.system, texts, by=filled.engineer, now=NOW)
    assert len(preview.texts) == 2
    assert findings_of(filled, texts[0], text_of("t2", rest="split: tuning\n")) == [
        ("parted-family", 4, "split")
    ]


def test_an_approval_alone_moves_no_task(filled: Cast) -> None:
    approved(filled, text_of("t1", rest="split: tuning\ntitle: A title\n"))
    assert set(Task.objects.values_list("title", "split")) == {("", "")}
    assert not SplitChange.objects.exists()


# Proposals


def test_a_proposal_makes_a_version_for_each_task(filled: Cast) -> None:
    first = in_effect(filled, text_of("t1"))
    preview = drafted(filled, text_of("t1", ident="again"), text_of("t2"))
    proposal = propose(preview, filled.engineer, "  Two\x00 tasks. ")
    assert (proposal.number, proposal.reason, proposal.preview) == (2, "Two␀ tasks.", preview)
    versions = proposal.versions.order_by("task__task_id")
    old = first.versions.get()
    assert [(each.task.task_id, each.number, each.text, each.based_on) for each in versions] == [
        ("t1", 2, text_of("t1", ident="again"), old),
        ("t2", 1, text_of("t2"), None),
    ]
    assert old.digest != versions[0].digest


def test_a_proposal_makes_the_task_that_does_not_exist(filled: Cast) -> None:
    text = text_of(
        "New one", rest="title: New\nfamily: f\nsplit: tuning\ninput: Please.\nfacts: {a: 1.5}\n"
    )
    proposal = proposed(filled, text)
    task = Task.objects.get(task_id="New one")
    assert (task.title, task.family, task.split, task.contract) == ("New", "f", "tuning", None)
    version = TaskVersion.objects.get(task=task)
    assert blobs.unpack(version.definition) == {"input": "Please.", "facts": {"a": 1.5}}
    assert proposal.versions.get().task == task
    plain = proposed(filled, text_of("Plain"))
    assert not TaskVersion.objects.filter(task=plain.versions.get().task).exists()


def test_only_whose_draft_it_is_proposes_it_and_only_once(filled: Cast) -> None:
    other = User.objects.create_user(username="other", first_name="Otto")
    set_member(filled.system, other, Role.ENGINEER)
    preview = drafted(filled)
    assert refused(lambda: propose(preview, filled.reviewer)) == NOT_AN_ENGINEER
    assert refused(lambda: propose(preview, other)) == (
        "This preview is a draft of engineer; make one of your own."
    )
    assert refused(lambda: propose(preview, filled.engineer, " ")) == "Say why, in a sentence."
    assert refused(lambda: propose(preview, filled.engineer, "x" * (LONGEST_REASON + 1))) == (
        "A reason has at most 4,000 characters."
    )
    propose(preview, filled.engineer)
    assert refused(lambda: propose(preview, filled.engineer)) == (
        "These contracts are proposed already, as proposal 1."
    )


def test_a_preview_has_to_be_finished(filled: Cast) -> None:
    preview = draft_contracts(filled.system, text_of(), by=filled.engineer, now=NOW)
    assert refused(lambda: propose(preview, filled.engineer)) == NOT_WORKED_OUT
    ContractPreview.objects.update(state=WorkState.FAILED.value)
    assert refused(lambda: propose(preview, filled.engineer)) == (
        "The preview could not be worked out; preview the contracts again."
    )


def test_a_contract_that_came_into_effect_since_is_named(filled: Cast) -> None:
    preview = drafted(filled, text_of("t1"), text_of("t2"))
    in_effect(filled, text_of("t1", ident="faster"))
    Regrade.objects.update(touched_at=NOW + timedelta(seconds=1))
    assert refused(lambda: propose(preview, filled.engineer)) == (
        "A contract came into effect since this preview began: version 1 for task t1. "
        "Preview it again."
    )


def test_a_failing_grader_test_keeps_a_contract_from_being_proposed(filled: Cast) -> None:
    preview = drafted(filled, text_of(rest=planted("fail")))
    assert refused(lambda: propose(preview, filled.engineer)) == (
        'A grader test is not met: "a right one" of task t1. Mend the contract, or what the test '
        "expects, first."
    )
    assert propose(drafted(filled, text_of(rest=planted("pass"))), filled.engineer).number == 1


def test_a_text_is_checked_again_when_it_is_proposed(filled: Cast) -> None:
    preview = drafted(filled, text_of("t1", rest="family: f\nsplit: tuning\n"))
    Task.objects.filter(task_id="t2").update(family="f", split="held_out")
    with pytest.raises(ContractFindingsError) as error:
        propose(preview, filled.engineer)
    assert error.value.findings[0].code == "parted-family"


# Decisions


def test_an_approval_asks_for_the_regrade(filled: Cast) -> None:
    proposal = proposed(filled)
    decision = decide(proposal, filled.reviewer)
    assert (decision.outcome, decision.by, decision.reason) == (
        "approved",
        filled.reviewer,
        "Because.",
    )
    regrade = Regrade.objects.get(proposal=proposal)
    assert regrade.tasks == [Task.objects.get(task_id="t1").pk]
    assert Task.objects.get(task_id="t1").contract is None


def test_a_rejection_changes_nothing_else(filled: Cast) -> None:
    decision = decide(proposed(filled, text_of(rest="split: tuning\n")), filled.owner, REJECTED)
    assert decision.outcome == "rejected"
    assert not Regrade.objects.exists()
    assert not SplitChange.objects.exists()


def test_who_may_not_decide_is_told_why(filled: Cast) -> None:
    proposal = proposed(filled)
    for user in (filled.viewer, filled.outsider, filled.engineer):
        assert refused(lambda user=user: decide(proposal, user)) == NOT_A_DECIDER
    set_member(filled.system, filled.engineer, Role.REVIEWER)
    assert refused(lambda: decide(proposal, filled.engineer, REJECTED)) == OWN_PROPOSAL
    ingest(filled.system, [record("t3", 0)], by=filled.reviewer)
    assert refused(lambda: decide(proposal, filled.reviewer)) == BROUGHT_EVIDENCE
    assert refused(lambda: decide(proposal, filled.owner, reason="")) == "Say why, in a sentence."
    decide(proposal, filled.owner)
    assert refused(lambda: decide(proposal, filled.second_reviewer, REJECTED)) == (
        "Proposal 1 was approved by owner."
    )


def test_an_overtaken_proposal_is_rejected_and_never_approved(filled: Cast) -> None:
    late, first = proposed(filled, text_of(ident="late")), proposed(filled, text_of(ident="first"))
    decide(first, filled.reviewer)
    Task.objects.filter(task_id="t1").update(contract=first.versions.get())
    assert refused(lambda: decide(late, filled.reviewer)) == (
        "Another contract came into effect meanwhile: version 2 for task t1. Preview these "
        "contracts again on what is in effect now."
    )
    assert decide(late, filled.reviewer, REJECTED).outcome == "rejected"


def test_a_proposal_says_which_others_are_under_way(filled: Cast) -> None:
    done = in_effect(filled, text_of("t2", ident="done"))
    under_way = approved(filled, text_of("t1", ident="a"), text_of("t2", ident="b"))
    waiting = proposed(filled, text_of("t1", ident="c"))
    decide(proposed(filled, text_of("t1", ident="d")), filled.owner, REJECTED)
    ours = proposed(filled, text_of("t1"), text_of("t2"))
    found = other_proposals(ours)
    assert [(each.number, each.is_approved, each.tasks) for each in found] == [
        (under_way.number, True, ("t1", "t2")),
        (waiting.number, False, ("t1",)),
    ]
    assert done.number not in {each.number for each in found}
    assert found[0].sentence.startswith(
        "Proposal 2 is approved and not yet in effect for task t1 and task t2."
    )
    assert found[1].sentence.startswith("Proposal 3, for task t1 too, waits for a decision.")


def rewrite(text: str) -> None:
    """Put another text in the place of every version, which no trigger allows otherwise."""
    with connection.cursor() as cursor:
        cursor.execute("set local session_replication_role = replica")
        ContractVersion.objects.update(text=text)
        cursor.execute("set local session_replication_role = default")


def test_grader_tests_run_again_before_an_approval(filled: Cast) -> None:
    proposal = proposed(filled)
    # As if the checks had changed since: the stored text is one that fails its test now.
    rewrite(text_of(rest=planted("fail")))
    assert refused(lambda: decide(proposal, filled.reviewer)).startswith("A grader test is not met")
    rewrite("task: t1\nlater_words: [1]\n")
    assert refused(lambda: decide(proposal, filled.reviewer)) == (
        "The contract of task t1 cannot be read by this version of the product; mend it and "
        "propose it anew."
    )


def test_a_withdrawal_is_no_decision_of_somebody_else(filled: Cast) -> None:
    with pytest.raises(ValueError, match="withdraw_contracts"):
        decide(proposed(filled), filled.reviewer, ContractOutcome.WITHDRAWN)


def test_whoever_proposed_withdraws_in_any_role(filled: Cast) -> None:
    proposal = proposed(filled)

    def withdraw(by: User) -> ContractDecision:
        return withdraw_contracts(proposal, reason="A mistake.", by=by, now=NOW)

    assert refused(lambda: withdraw(filled.owner)) == NOT_THE_PROPOSER
    set_member(filled.system, filled.engineer, Role.REVIEWER)
    assert withdraw(filled.engineer).outcome == "withdrawn"
    assert refused(lambda: withdraw(filled.engineer)) == "Proposal 1 was withdrawn by engineer."
    assert refused(lambda: decide(proposal, filled.reviewer)) == (
        "Proposal 1 was withdrawn by engineer."
    )


# At once


def at_once(acts: Sequence[Callable[[], object]]) -> list[str]:
    """What became of acts that begin at the same moment: "" for done, else the refusal."""
    barrier = threading.Barrier(len(acts))
    answers: list[str] = []

    def run(act: Callable[[], object]) -> None:
        try:
            barrier.wait()
            act()
            answers.append("")
        except ContractsError as error:
            answers.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(answers)


@pytest.mark.django_db(transaction=True)
def test_two_people_who_decide_at_once_decide_once(filled: Cast) -> None:
    proposal = proposed(filled)
    answers = at_once(
        [
            lambda: decide(proposal, filled.reviewer),
            lambda: decide(proposal, filled.owner, REJECTED),
            lambda: withdraw_contracts(proposal, reason="x", by=filled.engineer, now=NOW),
        ]
    )
    decision = ContractDecision.objects.select_related("by").get()
    said = f"Proposal 1 was {decision.outcome} by {decision.by.printed_name}."
    assert answers == ["", said, said]
    assert Regrade.objects.count() == (1 if decision.outcome == "approved" else 0)


@pytest.mark.django_db(transaction=True)
def test_a_preview_that_is_proposed_twice_at_once_is_one_proposal(filled: Cast) -> None:
    preview = drafted(filled, text_of("fresh"))
    answers = at_once([lambda: propose(preview, filled.engineer) for _ in range(3)])
    assert answers == ["", *["These contracts are proposed already, as proposal 1."] * 2]
    assert ContractProposal.objects.count() == 1


@pytest.mark.django_db(transaction=True)
def test_proposals_at_once_get_numbers_of_their_own(filled: Cast) -> None:
    previews = [drafted(filled, text_of(ident=f"n{n}")) for n in range(3)]
    answers = at_once([lambda each=each: propose(each, filled.engineer) for each in previews])  # type: ignore[misc]
    assert answers == [""] * 3
    assert sorted(ContractProposal.objects.values_list("number", flat=True)) == [1, 2, 3]
    assert sorted(ContractVersion.objects.values_list("number", flat=True)) == [1, 2, 3]


# What is stored


@pytest.mark.parametrize(
    "table",
    ["traces_contractproposal", "traces_contractversion", "traces_contractdecision"],
)
@pytest.mark.parametrize(
    "statement",
    ["DELETE FROM {}", "TRUNCATE {} CASCADE"],
    ids=["delete", "truncate"],
)
def test_nothing_of_it_is_ever_taken_away(filled: Cast, statement: str, table: str) -> None:
    approved(filled)
    cursor = connection.cursor()
    cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        cursor.execute(statement.format(table))


def test_a_version_is_never_edited(filled: Cast) -> None:
    proposed(filled)
    with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
        ContractVersion.objects.update(text="task: t1\n")
