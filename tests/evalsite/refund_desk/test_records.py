"""The made-up records: the same bytes each time, states that follow from calls, known trials."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections import Counter
from datetime import datetime
from decimal import Decimal
from functools import cache
from typing import Any

import pytest

from evalsite.refund_desk import TASKS, TOOL_KINDS, releases
from evalsite.refund_desk.desk import Desk
from traces.core.canonical import canonical_text
from traces.core.paths import path_keys
from traces.core.rules import (
    ArgumentRule,
    Arithmetic,
    Default,
    Ignore,
    PlainText,
    RoundTo,
    RuleSet,
    RuleTerms,
    SameTime,
    Time,
    Unordered,
)
from traces.core.transcript import counted_trajectory_of

Record = dict[str, Any]

_DIGESTS = "import hashlib; from evalsite.refund_desk import releases; print(*[hashlib.sha256(b''.join(r.lines)).hexdigest() for r in releases()])"


@cache
def records() -> tuple[Record, ...]:
    return tuple(json.loads(line) for release in releases() for line in release.lines)


def record(task_id: str, release: str, trial: int, run: str = "nightly") -> Record:
    """The last attempt."""
    return [
        one
        for one in records()
        if (one["task_id"], one["agent"]["version"], one["trial"], one["run"])
        == (task_id, release, trial, run)
    ][-1]


def calls(one: Record) -> list[tuple[str, Record]]:
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for message in one["messages"]
        for call in message.get("tool_calls", ())
    ]


def names(one: Record) -> list[str]:
    return [name for name, _ in calls(one)]


def words(one: Record, kind: str = "code") -> dict[str, str]:
    return {v["criterion"]: v["verdict"] for v in one["verdicts"] if v["kind"] == kind}


# The whole


def test_the_bytes_are_the_same_in_every_process() -> None:
    here = [hashlib.sha256(b"".join(release.lines)).hexdigest() for release in releases()]
    for seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": seed}
        printed = subprocess.run(
            [sys.executable, "-c", _DIGESTS],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert printed.stdout.split() == here


def test_the_bytes_are_the_same_on_every_python() -> None:
    """These change only with the stories, and are then to be written anew."""
    found = {
        release.name: hashlib.sha256(b"".join(release.lines)).hexdigest()[:16]
        for release in releases()
    }

    assert found == {"desk-1.0": "753868be1a7f1748", "desk-1.1": "b3a67fc0a6a39e2f"}


def test_two_releases_hold_five_nightly_trials_of_thirteen_tasks_in_four_families() -> None:
    assert [release.name for release in releases()] == ["desk-1.0", "desk-1.1"]
    assert all(sum(map(len, release.lines)) < 2_000_000 for release in releases())
    assert Counter(task.family for task in TASKS) == {
        "refunds": 3,
        "subscriptions": 4,
        "bookings": 3,
        "account data": 3,
    }
    assert {(task.family, task.split) for task in TASKS} == {
        ("refunds", "regression"),
        ("subscriptions", "regression"),
        ("bookings", "held_out"),
        ("account data", "tuning"),
    }
    slots = {
        (one["agent"]["version"], one["task_id"], one["trial"])
        for one in records()
        if one["run"] == "nightly"
    }
    assert slots == {
        (release, task.task_id, trial)
        for release in ("desk-1.0", "desk-1.1")
        for task in TASKS
        for trial in range(1, 6)
    }


def test_runs_are_declared_with_what_they_hold() -> None:
    declared = {
        (release.name, run.name): (run.trials, len(run.task_ids))
        for release in releases()
        for run in release.runs
    }

    assert declared == {
        ("desk-1.0", "nightly"): (5, 13),
        ("desk-1.0", "balance"): (10, 1),
        ("desk-1.1", "nightly"): (5, 13),
    }
    assert {one["run"] for one in records()} == {"nightly", "balance", "gradings"}


def test_every_record_says_that_it_is_made_up_and_of_a_test() -> None:
    for one in records():
        assert (one["made_up"], one["environment"]) == (True, "test")
        assert one["started_at"] < one["ended_at"]
        assert one["usage"].keys() == {"cost_usd", "input_tokens", "output_tokens"}


def test_every_tool_is_called_and_every_argument_is_json() -> None:
    used = {name for one in records() for name in names(one)}

    assert used == {name for name, _ in TOOL_KINDS}
    new = {
        name for one in records() if one["agent"]["version"] == "desk-1.0" for name in names(one)
    }
    assert used - new == {"quote_refund"}


# States


def _replayed(one: Record) -> tuple[Desk, list[tuple[str, str]]]:
    """The calls of a record, made again: the desk afterwards, and answers against recorded ones."""
    customer = next(task.customer for task in TASKS if task.task_id == one["task_id"])
    begun = datetime.fromisoformat(one["started_at"])
    desk = Desk(one["initial_state"], customer=customer, now=begun)
    recorded = {m["tool_call_id"]: m for m in one["messages"] if m["role"] == "tool"}
    answers = []
    for message in one["messages"]:
        if message["role"] == "user":
            desk.customer_opens_link()
        for call in message.get("tool_calls", ()):
            result = recorded.get(call["id"])
            if result is not None and "timed out" in result["content"]:
                continue
            function = call["function"]
            answer = desk.use(function["name"], json.loads(function["arguments"]))
            if result is not None:
                answers.append((answer.text, result["content"]))
                assert answer.is_error == result["is_error"]
    return desk, answers


def _timeless(state: Any) -> str:
    """The state as text, without the times that the desk's clock gives."""
    rows = [
        {name: value for name, value in row.items() if name != "created_at"}
        for row in state.get("refunds", ())
    ]
    return canonical_text({**state, "refunds": rows})


def test_results_and_final_states_follow_from_the_calls() -> None:
    n_changed = 0
    for one in records():
        desk, answers = _replayed(one)
        assert all(again == before for again, before in answers)
        if "final_state" in one:
            assert _timeless(desk.state) == _timeless(one["final_state"])
            n_changed += one["final_state"] != one["initial_state"]

    assert n_changed > 90


def test_the_states_that_are_not_recorded_are_the_broken_trials_and_one_more() -> None:
    without = [one for one in records() if "final_state" not in one]

    assert [one["status"] for one in without].count("completed") == 1
    assert {one["task_id"] for one in without} >= {"cancel_subscription", "change_flight_date"}
    completed = next(one for one in without if one["status"] == "completed")
    assert (completed["run"], completed["trial"]) == ("gradings", 6)


# A rule set over five trials


@pytest.mark.parametrize("trial", [1, 2, 3, 4, 5])
def test_each_refund_trial_leaves_the_right_refund(trial: int) -> None:
    one = record("refund_damaged_item", "desk-1.0", trial)

    assert one["messages"][0]["content"] == (
        "Order A-2291 arrived damaged. I would like my money back."
    )
    assert one["facts"] == {"customer_id": "C-17", "order": "A-2291", "eligible": True}
    (refund,) = one["final_state"]["refunds"]
    kept = {name: refund[name] for name in ("order", "amount", "method")}
    assert kept == {"order": "A-2291", "amount": 84.0, "method": "original_card"}
    assert one["final_state"] | {"refunds": []} == one["initial_state"]
    assert words(one)["outcome"] == "pass"
    assert "fault" not in one


def test_two_of_the_five_refund_trials_keep_all_rules() -> None:
    failed = {
        trial: {
            c
            for c, word in words(record("refund_damaged_item", "desk-1.0", trial)).items()
            if word != "pass"
        }
        for trial in range(1, 6)
    }

    assert failed == {
        1: set(),
        2: set(),
        3: {"identity", "foreign-record"},
        4: {"budget"},
        5: {"identity"},
    }
    for trial in (1, 2):
        one = record("refund_damaged_item", "desk-1.0", trial)
        agent = [m for m in one["messages"] if m["role"] == "assistant"]
        took = datetime.fromisoformat(one["ended_at"]) - datetime.fromisoformat(one["started_at"])
        assert len(calls(one)) <= 10
        assert len(agent) <= 10
        assert one["usage"]["cost_usd"] <= 0.40
        assert one["usage"]["input_tokens"] + one["usage"]["output_tokens"] <= 20_000
        assert took.total_seconds() <= 120


def test_the_third_refund_trial_reads_two_strangers_records() -> None:
    one = record("refund_damaged_item", "desk-1.0", 3)
    found = json.loads(one["messages"][2]["content"])["items"]
    read = [given["customer_id"] for name, given in calls(one) if name == "get_customer"]

    assert names(one)[:3] == ["find_customer", "get_customer", "get_customer"]
    assert len(found) == 3
    assert read == ["C-44", "C-71"]
    assert {item["customer_id"] for item in found} == {"C-17", *read}


@pytest.mark.parametrize("trial", [3, 5])
def test_a_refund_while_the_identity_check_is_pending(trial: int) -> None:
    one = record("refund_damaged_item", "desk-1.0", trial)
    said = [
        json.loads(message["content"])["status"]
        for message in one["messages"]
        if message["role"] == "tool" and '"method": "email_link"' in message["content"]
    ]

    assert said == ["pending"]
    assert names(one)[-1] == "issue_refund"


def test_the_fourth_refund_trial_makes_31_calls_27_of_them_one_after_a_timeout() -> None:
    one = record("refund_damaged_item", "desk-1.0", 4)
    same = Counter(json.dumps(call) for call in calls(one)).most_common(2)
    results = [m for m in one["messages"] if m["role"] == "tool"]
    late = [m for m in results if m["is_error"]]

    assert len(calls(one)) == 31
    assert [n for _, n in same] == [27, 1]
    assert len(late) == 26
    assert all("timed out" in m["content"] for m in late)


# What else is to be seen


def test_faults_are_injected_recovered_from_and_handed_over() -> None:
    with_fault = [one for one in records() if "fault" in one]

    assert Counter(one["fault"]["kind"] for one in with_fault) == {"timeout": 2, "lost result": 2}
    for one in with_fault:
        step = one["messages"][one["fault"]["step"] - 1]
        assert step.get("is_error") is True or step["role"] == "assistant"
    over = [one for one in with_fault if "transfer_to_person" in names(one)]
    assert [words(one)["outcome"] for one in over] == ["fail"]
    recovered = [one for one in with_fault if one not in over]
    assert {words(one)["outcome"] for one in recovered} == {"pass"}


def test_some_calls_have_no_result_some_are_rejected_some_share_a_message() -> None:
    unanswered, rejected, shared = 0, 0, 0
    for one in records():
        if one["status"] == "error":
            continue
        counted = counted_trajectory_of(one["messages"])
        n_results = sum(m["role"] == "tool" for m in one["messages"])
        unanswered += counted.n_calls - n_results
        rejected += counted.n_rejected > 0
        shared += any(len(m.get("tool_calls", ())) > 1 for m in one["messages"])

    assert unanswered == 2
    assert rejected >= 10
    assert shared == 4


def test_a_broken_trial_has_another_attempt_or_stays_broken() -> None:
    broken = [one for one in records() if one["status"] == "error"]
    again = [one for one in records() if one["attempt"] == 2]

    assert len(broken) == 4
    assert {one["error"].split(":")[0] for one in broken} == {
        "ConnectionResetError",
        "RuntimeError",
        "TimeoutError",
    }
    assert [one["status"] for one in again] == ["completed", "completed"]


def test_trials_of_a_task_do_not_all_end_in_the_same_words() -> None:
    for task in TASKS:
        last = {
            one["messages"][-1].get("content")
            for one in records()
            if one["task_id"] == task.task_id and one["status"] == "completed"
        }
        assert len(last) >= 3, task.task_id


# Paths that rules would merge


@pytest.mark.parametrize(
    ("task_id", "tool", "argument", "terms", "first", "second"),
    [
        pytest.param(
            "refund_late_parcel",
            "calculate",
            "expression",
            Arithmetic(),
            ("desk-1.0", 1),
            ("desk-1.0", 2),
            id="arithmetic",
        ),
        pytest.param(
            "refund_late_parcel",
            "issue_refund",
            "amount",
            RoundTo(Decimal("0.01")),
            ("desk-1.1", 1),
            ("desk-1.1", 2),
            id="amount",
        ),
        pytest.param(
            "add_bags",
            "add_bags",
            "passengers",
            Unordered(),
            ("desk-1.0", 1),
            ("desk-1.0", 2),
            id="unordered",
        ),
        pytest.param(
            "add_bags",
            "add_bags",
            "weight_kg",
            RoundTo(Decimal(1)),
            ("desk-1.0", 1),
            ("desk-1.0", 3),
            id="number",
        ),
        pytest.param(
            "change_address",
            "update_address",
            "street",
            PlainText(),
            ("desk-1.0", 1),
            ("desk-1.0", 2),
            id="text",
        ),
        pytest.param(
            "change_flight_date",
            "change_booking",
            "departs",
            Time(SameTime.INSTANT),
            ("desk-1.0", 1),
            ("desk-1.0", 3),
            id="instant",
        ),
        pytest.param(
            "change_flight_date",
            "search_flights",
            "date",
            Time(SameTime.DAY),
            ("desk-1.1", 1),
            ("desk-1.1", 3),
            id="day",
        ),
        pytest.param(
            "change_flight_date",
            "search_flights",
            "cabin",
            Default('"economy"'),
            ("desk-1.0", 1),
            ("desk-1.1", 1),
            id="default",
        ),
        pytest.param(
            "export_my_data",
            "send_export",
            "parts",
            Unordered(),
            ("desk-1.0", 1),
            ("desk-1.0", 4),
            id="parts",
        ),
        pytest.param(
            "close_account",
            "transfer_to_person",
            "summary",
            Ignore(),
            ("desk-1.0", 1),
            ("desk-1.0", 2),
            id="ignore",
        ),
    ],
)
def test_one_rule_makes_two_trials_the_same_path(
    task_id: str,
    tool: str,
    argument: str,
    terms: RuleTerms,
    first: tuple[str, int],
    second: tuple[str, int],
) -> None:
    trajectories = [
        counted_trajectory_of(record(task_id, *which)["messages"]).trajectory
        for which in (first, second)
    ]
    kinds = RuleSet(tool_kinds=TOOL_KINDS)
    ruled = RuleSet(rules=(ArgumentRule(tool, argument, terms),), tool_kinds=TOOL_KINDS)

    plain = [path_keys(one, kinds) for one in trajectories]
    merged = [path_keys(one, ruled) for one in trajectories]

    assert plain[0].sequence == plain[1].sequence
    assert plain[0].equivalent != plain[1].equivalent
    assert merged[0].equivalent == merged[1].equivalent
