"""Pages of contracts: the list, proposals, one task, one version, files."""

from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from reviews.core.disposition import Mark
from reviews.models import CheckMark
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
from traces.core.contracts.reading import read_contract
from traces.models import ContractVersion, Task

pytestmark = pytest.mark.django_db

EVIL = "<script>alert(1)</script>\u202e"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    """The cast with three tasks whose trials call `get_order`."""
    ingest(cast.system, [record(task, 0) for task in ("t1", "t2", "t10")])
    return cast


def listed(cast: Cast) -> str:
    return f"{root(cast.system)}contracts/"


def detail(cast: Cast, task: str = "t1") -> str:
    found = Task.objects.get(system=cast.system, task_id=task)
    return f"{listed(cast)}tasks/{found.uuid}/"


def version_url(cast: Cast, version: ContractVersion) -> str:
    return f"{listed(cast)}versions/{version.uuid}/"


# The list


def test_the_list_says_which_tasks_have_a_contract_and_what_waits(
    client: Client, filled: Cast
) -> None:
    # Trials with an injected fault are in few figures, and decided by contracts all the same.
    ingest(filled.system, [record("t2", 1, fault={"kind": "timeout"})])
    in_effect(filled, text_of("t1"))
    approved(filled, text_of("t2"))
    proposed(filled, text_of("t10"))
    page = visit(client, filled.engineer, listed(filled))
    assert page.sentence == (
        "1 of 3 tasks with a contract in effect. Trials of the others are decided by the verdicts "
        "that came with them."
    )
    assert [
        (row.task.label, row.badge.label, row.waiting and (row.waiting.label, row.waiting.title))
        for row in page.rows
    ] == [
        ("t1", "version 1", None),
        ("t2", "no contract", ("proposal 2", "approved, not in effect yet")),
        ("t10", "no contract", ("proposal 3", "waits for a decision")),
    ]
    assert [(state.label, state.count) for state in page.states] == [
        ("All tasks", 3),
        ("With contract", 1),
        ("Without", 2),
        ("Waiting", 2),
    ]
    assert [(tab.label, tab.count, tab.is_current) for tab in page.tabs] == [
        ("Contracts", None, True),
        ("Proposals", 1, False),
        ("Regrades", None, False),
    ]
    assert [row.n_trials for row in page.rows] == [1, 2, 1]
    assert page.export_url == f"{listed(filled)}export"


@pytest.mark.parametrize(
    ("query", "tasks"),
    [
        ({"state": "with"}, ["t1"]),
        ({"state": "without"}, ["t2", "t10"]),
        ({"state": "waiting"}, ["t2"]),
        ({"state": "nonsense"}, ["t1", "t2", "t10"]),
        ({"family": "f"}, ["t10"]),
        ({"q": "T1"}, ["t1", "t10"]),
        ({"q": "%"}, []),
    ],
    ids=["with", "without", "waiting", "nonsense", "family", "words", "percent"],
)
def test_the_list_is_narrowed(
    client: Client, filled: Cast, query: dict[str, str], tasks: list[str]
) -> None:
    in_effect(filled, text_of("t1"))
    proposed(filled, text_of("t2"))
    Task.objects.filter(task_id="t10").update(family="f")
    page = visit(client, filled.viewer, listed(filled), **query)
    assert [row.task.label for row in page.rows] == tasks
    assert (page.empty is None) == bool(tasks)
    assert [option.value for option in page.families] == ["", "f"]


def test_the_list_goes_on_from_a_task(
    client: Client, filled: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reviews.selectors.contracts.contract_page.__kwdefaults__",
        {
            "after": None,
            "before": None,
            "n": 2,
        },
    )
    first = visit(client, filled.viewer, listed(filled))
    assert [row.task.label for row in first.rows] == ["t1", "t2"]
    assert not first.pager.previous_url
    second = visit(client, filled.viewer, first.pager.next_url)
    assert [row.task.label for row in second.rows] == ["t10"]
    assert not second.pager.next_url
    back = visit(client, filled.viewer, second.pager.previous_url)
    assert [row.task.label for row in back.rows] == ["t1", "t2"]


def test_a_list_without_tasks_says_what_to_do(client: Client, cast: Cast) -> None:
    assert visit(client, cast.engineer, listed(cast)).empty.act.label == "Write a contract"
    assert visit(client, cast.viewer, listed(cast)).empty.act is None
    assert visit(client, cast.viewer, listed(cast), view="proposals").empty.act is None
    assert visit(client, cast.engineer, listed(cast), view="proposals").empty.act is not None


@pytest.mark.parametrize("state", ["with", "without", "waiting"])
def test_an_empty_state_says_why(client: Client, filled: Cast, state: str) -> None:
    if state == "without":
        in_effect(filled, *(text_of(task) for task in ("t1", "t2", "t10")))
    page = visit(client, filled.engineer, listed(filled), state=state)
    assert (
        page.empty.heading
        == {
            "with": "No contract in effect",
            "without": "Every task has a contract",
            "waiting": "Nothing waits",
        }[state]
    )


def test_only_an_engineer_sees_their_drafts_and_the_way_to_new_ones(
    client: Client, filled: Cast
) -> None:
    preview = drafted(filled, text_of("t1"), text_of("t2"))
    page = visit(client, filled.engineer, listed(filled))
    assert [(each.label, each.href) for each in page.drafts] == [
        ("t1 and 1 more task", f"{listed(filled)}previews/{preview.uuid}/")
    ]
    assert (bool(page.new_url), bool(page.load_url), page.why_not) == (True, True, "")
    page = visit(client, filled.reviewer, listed(filled))
    assert (page.drafts, page.new_url, page.load_url) == ((), "", "")
    assert page.why_not.startswith("Only an engineer")


def test_the_list_takes_the_same_queries_for_one_row_and_for_three(
    client: Client, cast: Cast
) -> None:
    client.force_login(cast.engineer)
    for tasks in (("t1",), ("t1", "t2", "t3")):
        ingest(cast.system, [record(task, 0) for task in tasks])
        proposed(cast, *(text_of(task, ident=f"n{len(tasks)}") for task in tasks))
        assert n_queries(client, listed(cast)) == 8
        assert n_queries(client, listed(cast), view="proposals") == 6


# Proposals


def test_proposals_are_listed_newest_first(client: Client, filled: Cast) -> None:
    in_effect(filled, text_of("t1"))
    proposed(filled, *(text_of(task) for task in ("t2", "t10")))
    page = visit(client, filled.viewer, listed(filled), view="proposals")
    assert [
        (row.label, row.badge.label, row.tasks, row.by, row.reason, row.decision)
        for row in page.rows
    ] == [
        ("Proposal 2", "waits for a decision", "t2, t10", "engineer", "It is so.", ""),
        ("Proposal 1", "came into effect", "t1", "engineer", "It is so.", "approved by reviewer"),
    ]
    page = visit(client, filled.viewer, listed(filled), view="proposals", state="open")
    assert [row.label for row in page.rows] == ["Proposal 2"]


def test_a_long_proposal_names_its_first_tasks(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record(f"t{n}", 0) for n in range(7)])
    proposed(cast, *(text_of(f"t{n}") for n in range(7)))
    page = visit(client, cast.viewer, listed(cast), view="proposals")
    assert page.rows[0].tasks == "t0, t1, t2, t3, t4 and 2 more tasks"


# One task

WHOLE = """\
task: t1
title: Refund
family: refunds
split: tuning
input: Please.
facts: {order: A-1}
trial_facts: [eligible]
outcome:
  - when: facts.eligible
    changes: {/refunds/-: {order: A-1}, /orders/A-1/state: refunded}
    ignore: [/refunds/*/id]
    absent: [/holds/A-1]
  - unchanged: true
required:
  - {id: looked, any_of: [{call: get_order, where: 'result.ok'}, {message: user}], before: {call: get_order, counts: committed}}
  - {id: told, message: agent, where: 'text.contains("84")', mandatory: false}
prohibited:
  - {id: other, harm: data, call: get_order, where: 'args.order != "A-1"'}
  - {id: done, harm: money, call: get_order, counts: committed, where: 'args.order == "A-9"'}
budget: {tool_calls: 10, cost_usd: {max: 0.40, mandatory: false}}
semantic:
  - {rubric: truthful, version: "2", question: "Is it true?"}
external:
  - {id: db, class: outcome, graders: [tau2]}
evidence: [final_state]
variation:
  - {tool: get_order, argument: order, kind: text}
trials: 5
"""


LOOKED = (
    "call of get_order result.ok or message of the user"
    " before the first committed call of get_order"
)


def said(page: Any) -> dict[str, list[tuple[str, str]]]:
    """The entries of a page in words, by group."""
    return {
        group.heading: [
            (
                entry.id,
                " ".join(f"{part.lead} {part.name} {part.where}".strip() for part in entry.parts),
            )
            for entry in group.entries
        ]
        for group in page.body.groups
    }


def test_the_page_of_a_task_says_its_contract_in_words(client: Client, filled: Cast) -> None:
    in_effect(filled, WHOLE)
    Task.objects.filter(task_id="t1").update(title="Refund")
    page = visit(client, filled.viewer, detail(filled))
    assert (page.heading, page.badge.label) == ("Refund", "in effect")
    assert page.sentence.startswith("Version 1 decides the trials of this task.")
    assert [(case.lead, case.when) for case in page.body.cases] == [
        ("Where", "facts.eligible"),
        ("Otherwise", ""),
    ]
    assert [(line.lead, line.name, line.where) for line in page.body.cases[0].lines] == [
        ("gets the new entry", "/refunds", '{"order": "A-1"}'),
        ("becomes", "/orders/A-1/state", '"refunded"'),
        ("is absent", "/holds/A-1", ""),
        ("is not compared", "/refunds/*/id", ""),
        ("everything else stays as it was", "", ""),
    ]
    assert said(page) == {
        "Required": [
            ("looked", LOOKED),
            ("told", 'message of the agent  text.contains("84")'),
        ],
        "Prohibited: data": [("other", 'call of get_order args.order != "A-1"')],
        "Prohibited: money": [("done", 'call of get_order args.order == "A-9"')],
        "Budget": [
            ("budget.tool_calls", "at most 10 tool calls"),
            ("budget.cost_usd", "at most 0.40 US dollars"),
        ],
        "Judged": [("truthful", "Is it true?")],
        "Decided outside": [("db", "decided outside, as outcome")],
    }
    assert [(fact.name, fact.value) for fact in page.body.facts] == [
        ("Input", "Please."),
        ("facts.order", '"A-1"'),
        ("Each trial brings", "eligible"),
        ("Family", "refunds"),
        ("Split", "tuning"),
        ("Evidence needed", "final state"),
        ("Trials a run", "5"),
    ]
    assert len(page.body.lines) == len(WHOLE.splitlines())
    assert page.body.tests_words.startswith("No grader tests")
    assert [(row.label, row.badge.label, row.decision) for row in page.history] == [
        ("Version 1", "in effect", "approved by reviewer")
    ]


def test_a_task_without_contract_says_how_one_is_written(client: Client, filled: Cast) -> None:
    proposed(filled)
    page = visit(client, filled.engineer, detail(filled))
    assert page.body is None
    assert page.empty.act.href == page.edit_url
    assert [notice.sentence for notice in page.notices] == [
        "Proposal 1 waits for a decision by a reviewer or an owner."
    ]
    assert visit(client, filled.viewer, detail(filled)).empty.act is None


def test_marks_stand_at_the_criterion_as_it_was_marked(client: Client, filled: Cast) -> None:
    in_effect(filled, text_of("t1"))
    contract = read_contract(text_of("t1")).contract
    assert contract is not None
    task = Task.objects.get(task_id="t1")
    digests = {"looked": contract.required[0].digest, "": contract.digest}
    for criterion, digest in (*digests.items(), ("looked", bytes(16))):
        CheckMark.objects.create(
            system=filled.system,
            task=task,
            criterion=criterion,
            criterion_digest=uuid.UUID(bytes=digest),
            mark=Mark.DEFECTIVE.value,
            reason=f"{criterion or 'fixture'} is wrong",
            by=filled.reviewer,
            marked_at=NOW,
        )
    page = visit(client, filled.viewer, detail(filled))
    (entry,) = page.body.groups[0].entries
    assert [(mark.badge.label, mark.reason) for mark in entry.marks] == [
        ("defective", "looked is wrong")
    ]
    assert [mark.reason for mark in page.fixture_marks] == ["fixture is wrong"]


def test_grader_tests_stand_with_their_results(client: Client, filled: Cast) -> None:
    in_effect(filled, text_of(rest=planted()))
    page = visit(client, filled.viewer, detail(filled))
    assert page.body.tests_words == "The grader test is met."
    assert [(test.name, test.is_met, test.unmet) for test in page.body.tests] == [
        ("a right one", True, ())
    ]


def test_the_page_takes_the_same_queries_for_one_version_and_for_three(
    client: Client, filled: Cast
) -> None:
    client.force_login(filled.engineer)
    for n in range(3):
        in_effect(filled, text_of(ident=f"n{n}"))
        if n != 1:
            assert n_queries(client, detail(filled)) == 9


# One version


def test_a_version_is_compared_with_the_one_that_it_is_based_on(
    client: Client, filled: Cast
) -> None:
    in_effect(filled, text_of(ident="before"))
    version = proposed(filled, text_of(ident="after")).versions.get()
    page = visit(client, filled.viewer, version_url(filled, version))
    assert (page.heading, page.badge.label) == ("Version 2", "waits for a decision")
    assert page.change.heading == "What it changes in version 1"
    assert {(each.kind, each.name) for each in page.change.entries} == {
        ("removed", "required before"),
        ("added", "required after"),
    }
    assert [(line.kind, line.text) for line in page.change.lines] == [
        ("", "task: t1"),
        ("", "required:"),
        ("removed", "  - {id: before, call: get_order}"),
        ("added", "  - {id: after, call: get_order}"),
    ]
    facts = {fact.name: fact.value for fact in page.facts}
    assert facts["Based on"] == "version 1"
    assert facts["Proposed in"] == "proposal 2"


def test_a_first_version_has_nothing_to_be_compared_with(client: Client, filled: Cast) -> None:
    version = approved(filled).versions.get()
    page = visit(client, filled.viewer, version_url(filled, version))
    assert page.change is None
    assert page.badge.label == "waiting for a worker"
    assert {fact.name: fact.value for fact in page.facts}["Trials graded in"] == "regrade 1"


# Files


def test_contracts_are_exported_as_they_were_written(client: Client, filled: Cast) -> None:
    texts = [f"# of {task}\n{text_of(task)}" for task in ("t1", "t2")]
    in_effect(filled, *texts)
    client.force_login(filled.viewer)
    whole = client.get(f"{listed(filled)}export")
    assert whole.headers["Content-Type"] == "application/yaml; charset=utf-8"
    assert whole.headers["Content-Disposition"].endswith('"airline.contracts.yaml"')
    assert b"".join(whole.streaming_content).decode() == "---\n".join(texts)
    task = Task.objects.get(task_id="t2")
    one = client.get(f"{listed(filled)}export", {"task": task.uuid})
    assert b"".join(one.streaming_content).decode() == texts[1]
    version = client.get(f"{listed(filled)}export", {"version": task.contract.uuid})
    assert version.headers["Content-Disposition"].endswith('"t2.v1.yaml"')


def test_what_another_system_has_is_not_there(client: Client, filled: Cast) -> None:
    version = in_effect(filled).versions.get()
    task = version.task.uuid
    client.force_login(filled.outsider)
    elsewhere = f"{root(filled.other_system)}contracts/"
    for path in (
        f"{elsewhere}tasks/{task}/",
        f"{elsewhere}versions/{version.uuid}/",
        f"{elsewhere}export?version={version.uuid}",
        f"{elsewhere}export?task={task}",
        f"{elsewhere}export?task=nonsense",
        f"{elsewhere}proposals/1/",
        listed(filled),
    ):
        assert client.get(path).status_code == 404, path


def test_hostile_text_is_shown_and_never_run(client: Client, filled: Cast) -> None:
    text = (
        f'task: "{EVIL[:25]}"\ntitle: "{EVIL[:25]}"\nrequired:\n'
        f"  - {{id: a, call: get_order, where: 'args.x == \"{EVIL[:25]}\"'}}\n"
    )
    proposal = in_effect(filled, text)
    client.force_login(filled.viewer)
    version = proposal.versions.get()
    for path in (
        listed(filled),
        f"{listed(filled)}?view=proposals",
        f"{listed(filled)}tasks/{version.task.uuid}/",
        f"{listed(filled)}versions/{version.uuid}/",
        f"{listed(filled)}proposals/1/",
    ):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "<script>alert" not in answer.content.decode()


def test_the_schema_is_public_and_not_sent_twice(client: Client) -> None:
    answer = client.get("/schemas/contract.json")
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/schema+json")
    assert answer.json()["type"] == "object"
    again = client.get("/schemas/contract.json", HTTP_IF_NONE_MATCH=answer["ETag"])
    assert (again.status_code, again.content) == (304, b"")
