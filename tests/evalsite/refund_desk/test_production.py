from __future__ import annotations

import json
from collections import Counter

from evalsite.refund_desk.production import blind_labels, production_lines
from traces.core.records import VerdictValue

PASS, FAIL = VerdictValue.PASS, VerdictValue.FAIL


def judged(judge: str) -> dict[str, str]:
    """What a judge says of truthfulness, by the trial's number."""
    return {
        str(record["trial"]): verdict["verdict"]
        for record in map(json.loads, production_lines())
        for verdict in record["verdicts"]
        if verdict["grader"] == f"judge {judge}" and verdict["criterion"] == "truthful"
    }


def people() -> dict[str, VerdictValue]:
    """What most of the people say, by the trial's number."""
    return {said.label: Counter(said.values).most_common(1)[0][0] for said in blind_labels()}


def test_the_transcripts_are_production_and_the_same_at_each_call() -> None:
    records = [json.loads(line) for line in production_lines()]
    assert production_lines() == production_lines()
    assert {(r["environment"], r["status"], r["run"]) for r in records} == {
        ("production", "completed", "production-november")
    }
    assert [r["trial"] for r in records] == list(range(1, 61))


def test_half_of_them_say_what_the_tools_do_not_bear_out() -> None:
    assert Counter(people().values()) == {PASS: 30, FAIL: 30}


def test_two_people_label_each_and_a_third_where_they_differ() -> None:
    assert Counter(len(said.values) for said in blind_labels()) == {2: 57, 3: 3}
    assert all(
        (len(said.values) == 3) is (said.values[0] is not said.values[1]) for said in blind_labels()
    )


def test_one_judge_has_one_false_alarm_and_the_other_lets_some_pass() -> None:
    truth = {label: value.value for label, value in people().items()}
    wrong = {
        judge: Counter(word for label, word in judged(judge).items() if word != truth[label])
        for judge in ("lark", "wren")
    }
    assert wrong == {"lark": {"fail": 1}, "wren": {"pass": 6, "fail": 2}}
