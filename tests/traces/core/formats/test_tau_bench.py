from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from tests.traces.core.formats.reading import DATA, SAMPLE, member_of, without
from traces.core.canonical import digest_of
from traces.core.formats import read_upload
from traces.core.formats.options import ReadOptions
from traces.core.formats.tau_bench import read_tau_bench
from traces.core.limits import Limits
from traces.core.records import Item, ParsedTask, ParsedTrial, TrialKey, TrialStatus, VerdictValue

TASK = {
    "user_id": "mia", "instruction": "You are mia. " + "You want a flight. " * 9,
    "actions": [{"name": "book", "kwargs": {"id": 1}}], "outputs": ["23553"],
}  # fmt: skip


def tau(**fields: Any) -> dict[str, Any]:
    return {
        "task_id": 4,
        "trial": 1,
        "reward": 1.0,
        "info": {
            "task": TASK,
            "source": "user",
            "user_cost": 0.0035,
            "reward_info": {"reward": 1.0, "info": {"r_actions": True, "gt_data_hash": "x"}},
        },
        "traj": [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "hello"}],
    } | fields


def items(content: Any, **limits: int) -> list[Item]:
    return list(read_tau_bench(member_of(content), ReadOptions(limits=Limits(**limits))))


def one_trial(content: Any) -> ParsedTrial:
    (found,) = [i.content for i in items([content]) if isinstance(i.content, ParsedTrial)]
    return found


def verdicts(parsed: ParsedTrial) -> list[tuple[str, str, bool]]:
    return [(v.criterion, v.value.value, v.mandatory) for v in parsed.verdicts]


def test_read_tau_bench_record_becomes_a_task_and_a_trial() -> None:
    task, trial = (item.content for item in items([tau()]))
    assert isinstance(task, ParsedTask)
    assert (task.task_id, task.family, task.split, task.definition) == ("4", "", None, TASK)
    assert (
        task.title
        == "You are mia. You want a flight. You want a flight. You want a flight. You want…"
    )
    assert task.digest == digest_of(TASK)
    assert isinstance(trial, ParsedTrial)
    assert trial.key == TrialKey(None, "4", "1")
    assert trial.task_digest == task.digest
    assert (trial.agent_name, trial.agent_version, trial.cost_usd) == ("", None, None)
    assert verdicts(trial) == [("outcome", "pass", True), ("actions", "pass", False)]
    assert trial.verdicts[0].score == Decimal("1.0")
    assert trial.rest == {
        "task_id": 4,
        "trial": 1,
        "agent": {},
        "extra": {
            "reward": 1.0,
            "info": without(tau()["info"], "task"),
            "task_version": task.digest.hex(),
        },
    }


def test_read_tau_bench_task_definition_comes_once_and_again_when_it_differs() -> None:
    other = tau(trial=3, info={"task": TASK | {"user_id": "tom"}})
    kinds = [type(item.content).__name__ for item in items([tau(), tau(trial=2), other])]
    assert kinds == ["ParsedTask", "ParsedTrial", "ParsedTrial", "ParsedTask", "ParsedTrial"]


def test_read_tau_bench_crash_is_a_harness_error_without_verdict() -> None:
    trial = one_trial(tau(reward=0.0, info={"error": "boom", "traceback": "t"}, traj=[]))
    assert (trial.status, trial.error, trial.verdicts) == (TrialStatus.ERROR, "boom", ())
    assert trial.task_digest is None


@pytest.mark.parametrize(
    ("reward", "value"),
    [
        (1.0, VerdictValue.PASS), (1, VerdictValue.PASS), (0.9999995, VerdictValue.PASS),
        (0.99999, VerdictValue.FAIL), (0.93, VerdictValue.FAIL), (0.0, VerdictValue.FAIL),
    ],
)  # fmt: skip
def test_read_tau_bench_reward_passes_within_its_tolerance(
    reward: float, value: VerdictValue
) -> None:
    trial = one_trial(tau(reward=reward, info={"reward_info": None}))
    assert [(v.criterion, v.value) for v in trial.verdicts] == [("outcome", value)]
    assert trial.verdicts[0].rationale == "The record gives the reward without details."


@pytest.mark.parametrize("reward", [None, "1.0", True])
def test_read_tau_bench_without_a_numeric_reward_is_ungraded(reward: Any) -> None:
    assert one_trial(tau(reward=reward, info={})).verdicts == ()


def test_read_tau_bench_outputs_have_criteria_of_their_own() -> None:
    details = {"r_outputs": 0.0, "outputs": {"23553": False, "x" * 400: True, "odd": "maybe"}}
    trial = one_trial(tau(info={"reward_info": {"info": details}}))
    names = [v.criterion for v in trial.verdicts]
    assert verdicts(trial)[:3] == [
        ("outcome", "pass", True), ("outputs", "fail", False), ("output:23553", "fail", False),
    ]  # fmt: skip
    assert names[3].startswith("output:xxx")
    assert len(names[3]) < 320
    assert (trial.verdicts[4].value, trial.verdicts[4].raw_word) == (VerdictValue.ERROR, "maybe")


def test_read_tau_bench_single_record_and_object_arguments_are_read() -> None:
    message = {
        "role": "assistant", "content": None, "tool_call_id": None,
        "tool_calls": [{"id": "0", "function": {"name": "f", "arguments": {"a": 1}}}],
    }  # fmt: skip
    (_, item) = items(json.dumps(tau(traj=[message]), indent=1).encode())
    assert isinstance(item.content, ParsedTrial)
    assert item.content.n_tool_calls == 1


def test_read_tau_bench_trial_number_that_is_the_task_index_is_doubted() -> None:
    doubtful = [tau(task_id=n, trial=n, info={}) for n in range(3)]
    assert [[f.code for f in i.warnings] for i in items(doubtful)] == [
        ["doubtful-trial-number"]
    ] * 3
    sound = [tau(task_id=n, trial=0, info={}) for n in range(3)]
    assert [i.warnings for i in items(sound)] == [(), (), ()]
    assert [i.warnings for i in items(doubtful[:1])] == [()]
    assert [len(i.warnings) for i in items([7, *doubtful, "x"])] == [0, 1, 1, 1, 0]


def test_read_tau_bench_bad_record_is_refused_alone() -> None:
    records = [
        tau(info={}),
        7,
        without(tau(info={}), "traj"),
        tau(task_id=None),
        tau(info={}, traj=None),
    ]
    data = json.dumps(records).encode().replace(b", 7,", b', {"a":1,"a":2}, 7,')
    found = [(i.source.number, [(f.code, f.place) for f in i.refusals]) for i in items(data)]
    assert found == [
        (1, []), (2, [("duplicate-key", "a")]), (3, [("not-an-object", "")]),
        (4, [("missing-field", "traj")]), (5, [("missing-field", "task_id")]),
        (6, [("wrong-type", "messages")]),
    ]  # fmt: skip


def test_read_tau_bench_cut_file_gives_its_good_records() -> None:
    data = json.dumps([tau(info={}), tau(info={}, trial=2)]).encode()
    found = items(data[:-20])
    assert [[f.code for f in i.refusals] for i in found] == [[], ["cut-short"]]
    (item,) = items(json.dumps(tau()).encode(), record_bytes=20)
    assert item.refusals[0].code == "record-too-large"


def test_read_tau_bench_nan_reward_is_ungraded_with_a_warning() -> None:
    (item,) = items(json.dumps([tau(reward=float("nan"), info={})]).encode())
    assert [(f.code, f.place) for f in item.warnings] == [("not-finite", "reward")]
    assert isinstance(item.content, ParsedTrial)
    assert item.content.verdicts == ()


def test_read_tau_bench_fields_with_another_native_meaning_are_kept_apart() -> None:
    trial = one_trial(tau(status="odd", records={}))
    assert trial.rest["extra"]["source.status"] == "odd"  # type: ignore[index, call-overload]
    assert trial.status is TrialStatus.COMPLETED


def test_read_tau_bench_sample_has_the_known_counts() -> None:
    known = json.loads((DATA / "expected_tau1_gpt-4o-airline_tasks00-24.json").read_text())
    (path,) = (SAMPLE / "tau_bench_airline").glob("*.gz")
    found = list(read_upload(Path(path)))
    assert not any(item.refusals for item in found)
    trials = [item.content for item in found if isinstance(item.content, ParsedTrial)]
    outcomes = [v.value for t in trials for v in t.verdicts if v.criterion == "outcome"]
    assert (len(trials), len(outcomes), outcomes.count(VerdictValue.PASS)) == (
        known["n_trials"], known["n_graded"], known["n_pass"],
    )  # fmt: skip
    by_task: dict[str, dict[str, int]] = {}
    for parsed in trials:
        by_task.setdefault(parsed.key.task_id, {})[parsed.key.trial] = parsed.n_tool_calls
    assert by_task == {name: task["tool_calls"] for name, task in known["tasks"].items()}
    errors = {(t.key.task_id, t.key.trial): t.n_rejected for t in trials}
    assert errors == {
        (name, label): n
        for name, task in known["tasks"].items()
        for label, n in task["tool_error_results"].items()
    }
