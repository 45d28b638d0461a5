from __future__ import annotations

import json
from collections import Counter
from decimal import Decimal
from typing import Any

import pytest

from tests.traces.core.formats.reading import CASES, DATA, SAMPLE, member_of, without
from traces.core.formats import read_upload
from traces.core.formats.options import ReadOptions
from traces.core.formats.tau2 import (
    Context,
    native_of,
    read_tau2,
    read_tau2_simulation,
    read_tau2_tasks,
)
from traces.core.limits import Limits
from traces.core.records import (
    Item,
    ParsedTask,
    ParsedTrial,
    RunFacts,
    Source,
    TrialKey,
    TrialStatus,
)

INFO = {
    "git_commit": "abc", "num_trials": 1, "agent_info": {"implementation": "llm_agent", "llm": "gpt"},
    "environment_info": {"domain_name": "airline"},
}  # fmt: skip
TASK: dict[str, Any] = {
    "id": "7",
    "description": {"purpose": "Cancel a flight"},
    "user_scenario": {
        "persona": None,
        "instructions": {"domain": "airline", "reason_for_call": "cancel"},
    },
    "evaluation_criteria": {"actions": [], "reward_basis": ["DB"]},
}


def simulation(**fields: Any) -> dict[str, Any]:
    return {
        "id": "s-1", "task_id": "7", "trial": 0, "seed": 3, "mode": None,
        "start_time": "2026-04-01T12:00:00", "end_time": "2026-04-01T12:01:00", "duration": 60.0,
        "termination_reason": "user_stop", "agent_cost": 0.02, "user_cost": 0.01,
        "reward_info": {"reward": 1.0, "db_check": {"db_match": True, "db_reward": 1.0}, "reward_basis": ["DB"]},
        "messages": [
            {"role": "assistant", "content": "Hi", "raw_data": {"big": 1}, "usage": {"prompt_tokens": 5, "completion_tokens": 2}, "audio": None},
            {"role": "user", "content": "cancel", "usage": {"prompt_tokens": 100}},
            {"role": "assistant", "content": None, "usage": {"prompt_tokens": 7, "completion_tokens": 3},
             "tool_calls": [{"id": "c1", "name": "get", "arguments": {"a": 1}, "requestor": "assistant"}]},
            {"role": "tool", "id": "c1", "content": "Error: no", "requestor": "assistant", "error": True},
        ],
    } | fields  # fmt: skip


def results(*simulations: Any, **fields: Any) -> dict[str, Any]:
    return {
        "timestamp": "t",
        "info": INFO,
        "tasks": [TASK],
        "simulations": list(simulations),
    } | fields


def items(content: Any, **limits: int) -> list[Item]:
    return list(read_tau2(member_of(content), ReadOptions(limits=Limits(**limits))))


def trials(content: Any) -> list[ParsedTrial]:
    return [i.content for i in items(content) if isinstance(i.content, ParsedTrial)]


def verdicts(reward_info: Any) -> list[tuple[str, str, str, bool, Any]]:
    (parsed,) = trials(results(simulation(reward_info=reward_info)))
    return [
        (v.criterion, v.kind.value, v.value.value, v.mandatory, v.extra.get("in_basis"))
        for v in parsed.verdicts
    ]


def test_read_tau2_file_gives_tasks_facts_and_trials() -> None:
    task, facts, trial = (item.content for item in items(results(simulation())))
    assert isinstance(task, ParsedTask)
    assert (task.task_id, task.title, task.family, task.split) == (
        "7", "Cancel a flight", "airline", None,
    )  # fmt: skip
    assert facts == RunFacts({"timestamp": "t", "info": INFO})
    assert isinstance(trial, ParsedTrial)
    assert trial.key == TrialKey(None, "7", "0")
    assert (trial.agent_name, trial.agent_version, trial.agent_model) == ("llm_agent", None, "gpt")
    assert (trial.environment, trial.external_id, trial.termination) == (
        "test", "s-1", "user_stop",
    )  # fmt: skip
    assert (trial.cost_usd, trial.input_tokens, trial.output_tokens) == (Decimal("0.02"), 12, 5)
    assert trial.seconds == Decimal(60)
    assert trial.task_digest == task.digest
    assert (trial.n_tool_calls, trial.n_rejected) == (1, 1)
    assert trial.messages == [
        {"role": "assistant", "content": "Hi", "usage": {"prompt_tokens": 5, "completion_tokens": 2}},
        {"role": "user", "content": "cancel", "usage": {"prompt_tokens": 100}},
        {
            "role": "assistant", "content": None, "usage": {"prompt_tokens": 7, "completion_tokens": 3},
            "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get", "arguments": {"a": 1}}}],
        },
        {"role": "tool", "content": "Error: no", "requestor": "assistant", "tool_call_id": "c1", "is_error": True},
    ]  # fmt: skip
    assert trial.rest["extra"] == {
        "seed": 3, "duration": 60.0, "user_cost": 0.01, "domain": "airline",
        "reward_info": simulation()["reward_info"],
    }  # fmt: skip


def test_read_tau2_tasks_are_read_first_wherever_they_stand() -> None:
    document = results(simulation(), simulation(trial=1))
    order = ["simulations", "tasks", "info", "timestamp"]
    shuffled = {name: document[name] for name in order}
    kinds = [type(item.content).__name__ for item in items(shuffled)]
    assert kinds == ["ParsedTask", "RunFacts", "ParsedTrial", "ParsedTrial"]
    assert [t.task_digest for t in trials(shuffled)] == [t.task_digest for t in trials(document)]
    assert [t.digest for t in trials(shuffled)] == [t.digest for t in trials(document)]


def test_read_tau2_task_version_is_its_scenario_and_criteria() -> None:
    def digest(**fields: Any) -> bytes:
        (item,) = read_tau2_tasks(member_of([TASK | fields]))
        assert isinstance(item.content, ParsedTask)
        return item.content.digest

    assert digest(description={"purpose": "else"}, annotations=1) == digest()
    assert digest(ticket=None) == digest()
    for name in ("user_scenario", "evaluation_criteria", "initial_state", "ticket"):
        assert digest(**{name: {"other": 1}}) != digest()


@pytest.mark.parametrize(
    ("task", "title", "family"),
    [
        ({"id": "[mobile]x|y[P]", "ticket": "Fix\n it"}, "Fix it", "mobile"),
        ({"id": "1", "user_scenario": {"instructions": "You are tom"}}, "You are tom", ""),
        (
            {"id": 1, "user_scenario": {"instructions": {"reason_for_call": "r", "domain": "d"}}},
            "r",
            "d",
        ),
        ({"id": "only"}, "only", ""),
    ],
)
def test_read_tau2_tasks_title_and_family(task: Any, title: str, family: str) -> None:
    (item,) = read_tau2_tasks(member_of([task]))
    assert isinstance(item.content, ParsedTask)
    assert (item.content.title, item.content.family) == (title, family)


def test_read_tau2_tasks_bad_one_is_refused_alone() -> None:
    found = list(read_tau2_tasks(member_of(b'[{"id":null},7,{"id":"1","id":"2"},{"id":"1"}]')))
    assert [[(f.code, f.place) for f in i.refusals] for i in found] == [
        [("missing-field", "id")], [("not-an-object", "")], [("duplicate-key", "id")], [],
    ]  # fmt: skip


def test_verdicts_only_the_reward_is_mandatory() -> None:
    action = {"action_id": "a1", "name": "book", "arguments": {"x": 1}}
    given = {
        "reward": 0.5,
        "db_check": {"db_match": True, "db_reward": 1.0},
        "reward_basis": ["DB", "COMMUNICATE", 7],
        "reward_breakdown": {"DB": 1.0, "COMMUNICATE": 0.5},
        "action_checks": [{"action": action, "action_match": False, "action_reward": 0.0},
                          {"action": {"name": "book"}, "action_match": True}],
        "env_assertions": [{"env_assertion": {"func_name": "f"}, "met": True, "reward": 1.0},
                           {"env_assertion": {"func_name": "f"}, "met": False}],
        "communicate_checks": [{"info": "84", "met": True, "justification": "said"}],
        "nl_assertions": [{"nl_assertion": "is kind", "met": None}, {"nl_assertion": "hands over", "met": False}],
    }  # fmt: skip
    assert verdicts(given) == [
        ("outcome", "code", "fail", True, None),
        ("db", "code", "pass", False, True),
        ("communicate", "code", "fail", False, True),
        ("action:a1", "code", "fail", False, False),
        ("action:book", "code", "pass", False, False),
        ("env:f", "code", "pass", False, False),
        ("env:f (2)", "code", "fail", False, False),
        ("communicate:84", "code", "pass", False, True),
        ("nl:hands over", "model", "fail", False, False),
    ]
    (parsed,) = trials(results(simulation(reward_info=given)))
    assert {(v.grader, v.grader_version) for v in parsed.verdicts} == {("tau2", "abc")}
    assert parsed.verdicts[0].rationale == "DB 1.0, COMMUNICATE 0.5"
    assert parsed.verdicts[3].rationale == 'book {"x":1}'


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (None, []),
        ({}, []),
        ({"reward": None}, []),
        ({"reward": 0.9999999}, [("outcome", "code", "pass", True, None)]),
        ({"reward": 0}, [("outcome", "code", "fail", True, None)]),
        (
            {"reward": 1.0, "db_check": {"db_match": False}},
            [("outcome", "code", "pass", True, None), ("db", "code", "fail", False, False)],
        ),
        ({"reward": 1.0, "reward_basis": ["ACTION"]}, [("outcome", "code", "pass", True, None)]),
    ],
)
def test_verdicts_of_thin_reward_info(given: Any, found: list[Any]) -> None:
    assert verdicts(given) == found


@pytest.mark.parametrize(
    ("termination", "status", "n_verdicts"),
    [
        ("infrastructure_error", TrialStatus.ERROR, 0),
        ("unexpected_error", TrialStatus.ERROR, 0),
        ("agent_error", TrialStatus.COMPLETED, 2),
        ("max_steps", TrialStatus.COMPLETED, 2),
        ({"odd": 1}, TrialStatus.COMPLETED, 2),
    ],
)
def test_read_tau2_crash_is_a_harness_error(
    termination: Any, status: TrialStatus, n_verdicts: int
) -> None:
    (parsed,) = trials(results(simulation(termination_reason=termination)))
    assert (parsed.status, len(parsed.verdicts)) == (status, n_verdicts)


def test_read_tau2_users_calls_are_not_the_agents() -> None:
    messages = [
        {"role": "user", "content": None, "tool_calls": [{"id": "u", "name": "toggle", "arguments": {}, "requestor": "user"}]},
        {"role": "tool", "id": "u", "content": "ok", "requestor": "user", "error": False},
        {"role": "assistant", "content": "ok"},
    ]  # fmt: skip
    (parsed,) = trials(results(simulation(messages=messages)))
    assert parsed.n_tool_calls == 0
    assert parsed.messages[0]["tool_calls"][0]["requestor"] == "user"  # type: ignore[index, call-overload]


def test_read_tau2_several_results_in_one_message_become_messages() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [{"id": "a", "name": "f", "arguments": {}}, {"id": "b", "function": {"name": "g"}}]},
        {"role": "tool", "content": "no id", "tool_messages": []},
        {"role": "tool", "tool_messages": [{"role": "tool", "id": "a", "content": "1"}, {"role": "tool", "id": "b", "content": "2", "error": "odd"}]},
    ]  # fmt: skip
    (parsed,) = trials(results(simulation(messages=messages)))
    assert [m.get("tool_call_id") for m in parsed.messages] == [None, None, "a", "b"]
    assert parsed.messages[3]["error"] == "odd"
    assert parsed.input_tokens is None


@pytest.mark.parametrize(
    ("fields", "code", "place"),
    [
        ({"messages": [7]}, "wrong-type", "messages[0]"),
        ({"messages": "x"}, "wrong-type", "messages"),
        ({"messages": [{"role": "assistant", "tool_calls": {"a": 1}}]}, "wrong-type", "messages[0].tool_calls"),
        ({"messages": [{"role": "assistant", "tool_calls": [7]}]}, "wrong-type", "messages[0].tool_calls[0]"),
        ({"task_id": None}, "missing-field", "task_id"),
    ],
)  # fmt: skip
def test_read_tau2_simulation_that_cannot_be_taken_is_refused_alone(
    fields: dict[str, Any], code: str, place: str
) -> None:
    *_, bad, good = items(results(simulation(**fields), simulation()))
    assert [(f.code, f.place) for f in bad.refusals] == [(code, place)]
    assert isinstance(good.content, ParsedTrial)


def test_read_tau2_simulation_without_its_fields_is_refused_by_name() -> None:
    old = {"id": "s", "messages": [], "reward_info": {"reward": 1.0}}
    none = without(simulation(), "messages")
    found = items(results(old, none, 7))[-3:]
    assert [(f.place, f.sentence) for i in found for f in i.refusals] == [
        ("task_id", "task_id is missing."),
        ("messages", "messages is missing."),
        ("", "A simulation must be a JSON object, this is a number."),
    ]


def test_read_tau2_without_trial_numbers_counts_in_the_order_of_the_file() -> None:
    given = [
        simulation(trial=None),
        simulation(trial=None, task_id="8"),
        without(simulation(), "trial"),
    ]
    found = [i for i in items(results(*given)) if isinstance(i.content, ParsedTrial)]
    assert [(i.content.key.task_id, i.content.key.trial) for i in found] == [  # type: ignore[union-attr]
        ("7", "0"), ("8", "0"), ("7", "1"),
    ]  # fmt: skip
    assert all(i.warnings[0].code == "trial-number-missing" for i in found)


def test_read_tau2_cut_file_gives_its_good_simulations() -> None:
    data = json.dumps(results(simulation(), simulation(trial=1))).encode()
    *_, good, cut = items(data[:-100])
    assert isinstance(good.content, ParsedTrial)
    assert [f.code for f in cut.refusals] == ["cut-short"]
    assert cut.source.number == 2
    task, facts, cut = items(data[: data.index(b'"simulations"') - 3])
    assert [type(i.content).__name__ for i in (task, facts)] == ["ParsedTask", "RunFacts"]
    assert [f.code for f in cut.refusals] == ["cut-short"]


def test_read_tau2_bad_parts_of_the_head_are_refused_alone() -> None:
    data = json.dumps({"extra": 1} | results(simulation(), tasks=[TASK, 7])).encode()
    data = data.replace(b'"extra": 1', b'"extra": {"a":1,"a":2}')
    found = items(data.replace(b", 7]", b', {"id":NaN}, 7]'))
    assert [f.code for i in found for f in i.refusals] == [
        "duplicate-key", "not-finite", "not-an-object",
    ]  # fmt: skip
    assert sum(isinstance(i.content, ParsedTrial) for i in found) == 1


@pytest.mark.parametrize("name", ["simulations", "tasks"])
@pytest.mark.parametrize("value", [{"0": {}}, "none", 5])
def test_read_tau2_what_is_no_list_is_named(name: str, value: Any) -> None:
    document = {"info": {}, "tasks": [], "simulations": []} | {name: value}
    refusals = [item.refusals[0] for item in read_tau2(member_of(document)) if item.refusals]
    assert [(each.code, each.place) for each in refusals] == [("wrong-type", name)]
    assert refusals[0].sentence.startswith(f"{name} must be a list, this is ")


@pytest.mark.parametrize("name", ["simulations", "tasks"])
def test_read_tau2_null_is_an_empty_list(name: str) -> None:
    document = {"info": {}, "tasks": [], "simulations": []} | {name: None}
    assert not any(item.refusals for item in read_tau2(member_of(document)))


def test_read_tau2_head_is_bounded() -> None:
    big = {"a": "x" * 1000, "b": "y" * 1000} | results(simulation(), info={})
    found = items(big, record_bytes=1900)
    assert [f.code for i in found for f in i.refusals] == [
        "record-too-large"
    ] * 3  # b and all after
    assert RunFacts({"a": "x" * 1000}) in [i.content for i in found]
    (refused, *_) = items({"a": "x" * 3000} | results(), record_bytes=1900)
    assert [f.code for f in refused.refusals] == ["record-too-large"]
    many = results(simulation(messages=[]), tasks=[TASK | {"id": str(n)} for n in range(4)])
    assert [f.code for i in items(many, steps=3) for f in i.refusals] == ["too-many-tasks"]


def test_read_tau2_variant_without_info_takes_the_agent_from_the_top() -> None:
    document = {
        "agent": "adaptive",
        "domain": "airline",
        "model": "m",
        "simulations": [simulation()],
        "tasks": None,
    }
    facts, trial = (item.content for item in items(document))
    assert facts == RunFacts({"agent": "adaptive", "domain": "airline", "model": "m"})
    assert isinstance(trial, ParsedTrial)
    assert (trial.agent_name, trial.agent_model, trial.environment) == ("adaptive", "m", "test")


def test_read_tau2_simulation_of_its_own_file() -> None:
    context = Context({"info": INFO}, {"7": b"digest"})
    (item,) = read_tau2_simulation(member_of(simulation(), "s/1.json"), context=context)
    assert isinstance(item.content, ParsedTrial)
    assert item.source == Source(1, "s/1.json", 0, len(json.dumps(simulation())))
    assert (item.content.agent_name, item.content.task_digest) == ("llm_agent", b"digest")


def test_native_of_nan_measures_are_missing() -> None:
    data = json.dumps(results(simulation(agent_cost=float("nan")))).encode()
    (*_, item) = items(data)
    assert [(f.code, f.place) for f in item.warnings][0] == ("not-finite", "agent_cost")
    assert native_of(simulation(), 4)["trial"] == 4


def outcome_counts(found: list[Item]) -> tuple[int, int, int]:
    parsed = [i.content for i in found if isinstance(i.content, ParsedTrial)]
    values = [v.value for t in parsed for v in t.verdicts if v.criterion == "outcome"]
    return len(parsed), len(values), values.count("pass")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "counts"),
    [
        ("empty-expected-args--expected-nonempty-actual-empty", (3, 3, 3)),
        ("errored-trials-denominator--one-survivor", (8, 1, 1)),
        ("failing-check-outside-basis--reward1-with-failed-action", (1, 1, 1)),
        ("fractional-reward--halves", (4, 4, 2)),
    ],
)
def test_case_counts(name: str, counts: tuple[int, int, int]) -> None:
    found = list(read_upload(CASES / f"{name}.json"))
    assert outcome_counts(found) == counts
    assert not any(item.refusals for item in found)


def test_case_failing_check_outside_the_basis_is_seen() -> None:
    name = "failing-check-outside-basis--reward1-with-failed-action"
    found = read_upload(CASES / f"{name}.json")
    failed = [
        v.criterion
        for i in found
        if isinstance(i.content, ParsedTrial)
        for v in i.content.verdicts
        if v.value == "fail" and v.extra["in_basis"] is False
    ]
    assert failed == ["action:a1", "nl:Agent refuses and hands over"]


def test_case_harness_errors_are_no_failures() -> None:
    found = read_upload(CASES / "errored-trials-denominator--one-survivor.json")
    statuses = Counter(i.content.status for i in found if isinstance(i.content, ParsedTrial))
    assert statuses == {TrialStatus.COMPLETED: 1, TrialStatus.ERROR: 7}


def test_sample_files_have_the_known_counts() -> None:
    known = json.loads((DATA / "expected_tau2_airline_pool_5agents.json").read_text())
    total: Counter[str] = Counter()
    for path in sorted((SAMPLE / "tau2_airline").glob("*.gz")):
        found = list(read_upload(path))
        assert not any(item.refusals for item in found)
        for name, n in zip(("n_trials", "n_graded", "n_pass"), outcome_counts(found), strict=True):
            total[name] += n
        label = path.name.removesuffix(".json.gz")
        calls = {
            i.content.key.task_id: i.content.n_tool_calls
            for i in found
            if isinstance(i.content, ParsedTrial)
        }
        assert calls == {
            task: known["tasks"][task]["tool_calls"][label] for task in known["tasks"] if label in known["tasks"][task]["tool_calls"]
        }  # fmt: skip
    assert total == {name: known[name] for name in ("n_trials", "n_graded", "n_pass")}


def test_solo_file_has_the_known_counts() -> None:
    known = json.loads((DATA / "expected_tau2_telecom_no-user_4trials.json").read_text())
    (path,) = (DATA / "02_tau2_results").glob("telecom_no-user*.gz")
    assert outcome_counts(list(read_upload(path))) == (
        known["n_trials"], known["n_graded"], known["n_pass"],
    )  # fmt: skip
