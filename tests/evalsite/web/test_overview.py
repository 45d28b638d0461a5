from __future__ import annotations

import csv
import io
import json
import uuid
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.figures import count_writes, decide, put_contract
from tests.support.visits import n_queries, root, visit
from traces.models import Release, Task
from traces.web.pages.overview import FigureTable

pytestmark = pytest.mark.django_db

CONTRACT = """
task: refund
title: Refund a damaged item
required:
  - {id: identity, call: verify_identity}
prohibited:
  - {id: big-refund, harm: money, call: issue_refund}
"""
HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def overview(client: Client, cast: Cast, **query: Any) -> Any:
    return visit(client, cast.viewer, f"{root(cast.system)}overview/", **query)


def texts(table: FigureTable) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


@pytest.fixture
def refunds(cast: Cast) -> Cast:
    """Five refunds: all reach the outcome, trials 1 and 2 by the rules."""
    ingest(
        cast.system,
        [record("refund", n, usage={"cost_usd": n / 100}) for n in range(1, 6)],
        release="1.0",
    )
    put_contract(cast.system, CONTRACT, by=cast.engineer)
    for n in range(1, 6):
        failed = [] if n in (1, 2) else ["identity"]
        harms = ["money"] if n == 5 else []
        decide(
            cast.system,
            "refund",
            n,
            clean="fail" if failed else "pass",
            passed=["outcome", *([] if failed else ["identity"])],
            failed=failed,
            harms_attempted=harms,
        )
    return cast


def test_the_outcome_stands_beside_the_way_to_it(client: Client, refunds: Cast) -> None:
    page = overview(client, refunds)
    assert page.title == "Airline, release 1.0"
    assert page.sentence == "5 trials of 1 task, all of them decided by contracts."
    assert page.gap.sentence == "5 of 5 trials reached the outcome, 2 of 5 by the rules."
    assert page.gap.detail == (
        "−60.0 points from outcome rate to rule-clean rate: 3 trials reached the outcome and broke "
        "a rule on the way."
    )
    outcome, clean, cost, recovery = page.numbers
    assert (outcome.value, outcome.detail, outcome.second) == (
        "100.0%",
        "5 / 5 / 5 passed / graded / run",
        "pass^5 100.0%",
    )
    assert (clean.value, clean.detail, clean.second) == (
        "40.0%",
        "2 / 5 / 5 passed / graded / run",
        "pass^5 0.0%",
    )
    assert clean.lines == ("95% interval 5.3% to 85.3%",)
    assert clean.second_lines == ("mean over 1 task",)
    assert [(choice.label, choice.is_current) for choice in clean.switch] == [
        ("1", False),
        ("2", False),
        ("3", False),
        ("4", False),
        ("5", True),
    ]
    assert (cost.value, cost.detail) == (
        "$0.015",
        "median; 95th percentile $0.02; 2 rule-clean trials",
    )
    assert cost.lines == ("all trials: median $0.03, 95th $0.05", "spend per success $0.075")
    assert (recovery.value, recovery.detail) == ("none", "no trial with an injected fault")
    assert texts(page.safety) == [
        ["any", "1", "0", "4 / 5 / 5", "65.7%", "100.0%"],
        ["money", "1", "0", "4 / 5 / 5", "65.7%", "100.0%"],
    ]
    assert texts(page.requirements)[0] == ["identity", "constraint", "3", "5", "0", "60.0%"]
    assert [(figure.label, figure.value) for figure in page.classes] == [
        ("Outcome failures", "0"),
        ("Constraint violations", "3"),
        ("Semantic failures", "0"),
        ("Unresolved", "0"),
        ("Harness errors", "0"),
        ("Missing", "0"),
    ]
    assert page.change_words.startswith("This is the first release with trials")
    text = client.get(f"{root(refunds.system)}overview/").content.decode()
    assert page.gap.sentence in text


def test_every_link_leads_to_the_trials_behind_its_figure(client: Client, refunds: Cast) -> None:
    page = overview(client, refunds)
    wanted = {
        page.gap.link.href: 3,
        page.numbers[1].links[0].href: 3,
        page.safety.rows[0][1].href: 1,
        page.safety.rows[1][1].href: 1,
        page.requirements.rows[0][2].href: 3,
        next(figure.href for figure in page.classes if figure.href): 3,
    }
    assert {href: len(visit(client, refunds.viewer, href).rows) for href in wanted} == wanted


def test_without_rules_nobody_can_tell_what_is_rule_clean(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n) for n in range(5)])
    page = overview(client, cast)
    assert page.gap.sentence == (
        "5 of 5 trials reached the outcome. Whether by the rules, nobody can tell: no rule is "
        "checked."
    )
    assert (page.gap.clean, page.numbers[1].value) == (None, "none")
    assert page.numbers[2].value == "none"
    assert page.safety.rows == ()
    assert page.safety.empty.startswith("Cannot tell")
    assert [(each.label, each.value, each.detail) for each in page.classes[:2]] == [
        ("Outcome failures", "0", "of 5 graded"),
        ("Constraint violations", "none", "no rule is checked"),
    ]
    row = dict(zip(page.releases.columns, page.releases.rows[0], strict=True))
    assert {
        column.label: cell.text for column, cell in row.items() if "violations" in column.label
    } == {"Constraint violations": "-"}
    assert "Write contracts" in client.get(f"{root(cast.system)}overview/").content.decode()


def test_without_rules_the_change_is_told_by_the_outcome(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0")
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("fail")])], release="2.0")
    figures = overview(client, cast).change.figures
    assert [(each.label, each.value, each.detail) for each in figures] == [
        ("Outcome failures", "1", "of 1; 0 of 1 before"),
        ("Constraint violations", "none", "no rule is checked"),
        ("Semantic failures", "0", "of 1; 0 of 1 before"),
        ("pass^1, outcome", "0.0%", "100.0% before"),
    ]


def test_a_requirement_that_some_tasks_only_prefer_says_in_how_many(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record(task, 0) for task in ("t1", "t2", "t3")])
    for task, mandatory in (("t1", "false"), ("t2", "true"), ("t3", "false")):
        put_contract(
            cast.system,
            f"task: {task}\nrequired: [{{id: look, call: get_order}}]\nbudget: {{tool_calls: {{max: 9, mandatory: {mandatory}}},"
            " seconds: {max: 60, mandatory: false}}\n",
            by=cast.engineer,
        )
        decide(cast.system, task, 0, passed=["budget.tool_calls", "budget.seconds"])
    page = overview(client, cast)
    notes = {row[0].text: row[0].note for row in (*page.requirements.rows, *page.requirements.more)}
    assert notes["budget.tool_calls"] == "in 3 tasks, a preference in 2 of them"
    assert notes["budget.seconds"] == "preference, in 3 tasks"
    assert page.numbers[1].value != "none"


def test_constraint_criteria_from_files_are_rules(client: Client, cast: Cast) -> None:
    rule = verdict("fail", criterion="limits", **{"class": "constraint"})
    ingest(cast.system, [record("t1", 0, verdicts=[verdict(), rule]), record("t1", 1)])
    page = overview(client, cast)
    assert page.gap.sentence == "2 of 2 trials reached the outcome, 1 of 2 by the rules."


def test_what_is_not_decided_is_said(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=[]),
            record("t1", 1, error="lost"),
            record("t1", 2, environment="live"),
        ],
    )
    page = overview(client, cast)
    assert page.gap.sentence.startswith("Cannot tell how many trials reached the outcome")
    assert page.numbers[0].value == "none"
    assert page.numbers[0].lines == ("range 0.0% to 100.0%",)
    assert texts(page.actions)[0] == ["clarify contract", "1"]
    assert "1 production trace" in page.notices[0].sentence


def test_a_system_without_trials_says_what_to_do(client: Client, cast: Cast) -> None:
    page = overview(client, cast)
    assert page.title == "Airline"
    assert page.empty.heading == "No trial yet"
    assert page.empty.act is None  # a viewer uploads nothing
    page = visit(client, cast.engineer, f"{root(cast.system)}overview/")
    assert page.empty.act.label == "Upload traces"
    ingest(cast.system, [record("t", 0, environment="live")])
    assert overview(client, cast).empty.heading == "No trial that figures count"
    ingest(cast.system, [record("t", 1)])
    assert overview(client, cast, family="x").empty.heading == "No trial is like that"


def test_two_releases_are_drawn_and_compared(client: Client, refunds: Cast) -> None:
    ingest(
        refunds.system,
        [
            *(record("refund", n, verdicts=[verdict("fail")]) for n in range(1, 6)),
            record(HOSTILE, 0),
        ],
        release="2.0",
    )
    for n in range(1, 6):
        decide(refunds.system, "refund", n, release="2.0", outcome="fail", clean="fail")
    Task.objects.filter(task_id="refund").update(family="refunds")
    page = overview(client, refunds)
    assert page.chart.columns == ("Release", "outcome rate", "rule-clean rate")
    assert page.chart.rows == (("1.0", "100.0%", "40.0%"), ("2.0", "16.7%", "16.7%"))
    assert [row[0].text for row in page.releases.rows] == ["1.0", "2.0"]
    assert [row[0].text for row in page.families.rows] == ["no family", "refunds"]
    change = page.change
    assert change.previous.label == "1.0"
    assert change.sentence == ("No task flipped, over 1 task that both releases tried.")
    assert [each.reason for each in change.unpaired] == ["not tried in the release before"]
    assert change.unpaired_words == "1 task is not compared"
    row = texts(change.measures)[0]
    assert row[:7] == ["Outcome", "1", "100.0%", "0.0%", "−100.0 points", "1", "0"]
    assert page.splits.rows[0][0].text == "no split"
    failures = [(cell.text, cell.note) for cell in page.families.rows[1][6:9]]
    assert failures == [("5", "of 5"), ("5", "of 5"), ("0", "of 5")]
    text = client.get(f"{root(refunds.system)}overview/").content.decode()
    assert "<img src=x" not in text


def test_a_task_that_always_passed_and_now_fails_has_flipped(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("a", 0), record("b", 0, verdicts=[verdict("fail")])])
    ingest(cast.system, [record("a", 0, verdicts=[verdict("fail")]), record("b", 0)], release="2.0")
    change = overview(client, cast).change
    assert change.sentence == (
        "1 task flipped to fail, 1 to pass, over 2 tasks that both releases tried."
    )
    assert [link.label for link in change.to_fail] == ["a"]
    assert [link.label for link in change.to_pass] == ["b"]
    assert texts(change.measures)[0][-2:] == ["1.000", "1.000"]
    assert "exact" in change.method


def test_the_choice_is_kept_in_the_address(client: Client, refunds: Cast) -> None:
    ingest(refunds.system, [record("refund", 9)], release="2.0")
    release = Release.objects.get(name="1.0").uuid
    page = overview(client, refunds, release=release, k=2, split="none")
    assert page.title == "Airline, release 1.0"
    assert page.numbers[1].second == "pass^2 10.0%"
    assert [(field.name, field.value) for field in page.filter.hidden] == [("k", "2")]
    assert page.filter.clear_url == f"{root(refunds.system)}overview/"
    assert f"release={release}" in page.csv_url
    nonsense = overview(client, refunds, k="99", split="x", release="x")
    assert nonsense.title == "Airline, release 2.0"
    assert overview(client, refunds, release=uuid.uuid4()).empty


def test_tuning_and_several_versions_are_pointed_out(client: Client, refunds: Cast) -> None:
    Task.objects.filter(task_id="refund").update(split="tuning")
    assert overview(client, refunds).empty.heading == "No trial that figures count"
    page = overview(client, refunds, split="tuning")
    assert page.gap.sentence == "5 of 5 trials reached the outcome, 2 of 5 by the rules."
    assert "says nothing about new cases" in page.notices[0].sentence
    assert len(visit(client, refunds.viewer, page.gap.link.href).rows) == 3


def test_hand_overs_stand_beside_safety(client: Client, refunds: Cast) -> None:
    count_writes(refunds.system, "refund", [1, 2, 3, 4, 5], writes=0, handoffs=1)
    handed, unchanged = overview(client, refunds).beside
    assert (handed.value, handed.detail) == ("100.0%", "5 of 5 trials")
    assert (unchanged.label, unchanged.value) == ("Ended without any change", "100.0%")
    assert len(visit(client, refunds.viewer, handed.href).rows) == 5


def test_the_exports_hold_the_same_figures(client: Client, refunds: Cast) -> None:
    client.force_login(refunds.viewer)
    document = client.get(f"{root(refunds.system)}overview.json").json()
    assert document["outcome"]["n_pass"] == 5
    assert document["rule_clean"]["rate"] == 0.4
    assert document["pass_hat_k"]["rule_clean"]["value"] == 0
    assert document["cost_usd"]["spend_per_success"] == "0.075"
    text = b"".join(client.get(f"{root(refunds.system)}overview.csv").streaming_content).decode()
    rows = list(csv.DictReader(io.StringIO(text)))
    clean = next(row for row in rows if (row["part"], row["figure"]) == ("overview", "rule_clean"))
    assert (clean["value"], clean["n_pass"], clean["n_graded"], clean["n_run"]) == (
        "0.4",
        "2",
        "5",
        "5",
    )
    assert {row["part"] for row in rows} == {
        "overview",
        "releases",
        "families",
        "splits",
        "prohibited",
        "requirements",
    }
    lost = client.get(f"{root(refunds.system)}overview.json", {"release": str(uuid.uuid4())})
    assert lost.status_code == 404


def test_a_hostile_name_is_no_formula_and_no_markup(client: Client, cast: Cast) -> None:
    rule = verdict("fail", criterion="=HYPERLINK(1)", **{"class": "constraint"})
    ingest(cast.system, [record("t", 0, verdicts=[verdict(), rule])], release=HOSTILE)
    ingest(cast.system, [record("t", 0)], release="+2")
    page = overview(client, cast, release=Release.objects.get(name=HOSTILE).uuid)
    assert page.numbers[0].value == "100.0%"
    body = client.get(f"{root(cast.system)}overview/").content.decode()
    assert "<img src=x" not in body
    answer = client.get(page.csv_url)
    text = b"".join(answer.streaming_content).decode()
    assert "'=HYPERLINK" in text
    json.loads(client.get(page.json_url).content)


def test_the_page_asks_the_same_number_of_queries_for_one_trial_and_three(
    client: Client, cast: Cast
) -> None:
    path = f"{root(cast.system)}overview/"
    ingest(cast.system, [record("t0", 0)])
    client.force_login(cast.viewer)
    assert n_queries(client, path) == 17
    for n, release in enumerate(("2.0", "3.0")):
        ingest(cast.system, [record(f"t{n}", 0), record("t2", n)], release=release)
    assert n_queries(client, path) == 17


def test_an_outsider_sees_nothing(client: Client, refunds: Cast) -> None:
    client.force_login(refunds.outsider)
    for name in ("overview/", "overview.csv", "overview.json", "production/"):
        assert client.get(f"{root(refunds.system)}{name}").status_code == 404
