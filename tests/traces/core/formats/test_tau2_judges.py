from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from tests.traces.core.formats.reading import SAMPLE, member_of, without
from traces.core.formats import read_upload
from traces.core.formats.tau2_judges import read_judge_summary, read_raw_judgements
from traces.core.records import (
    CriterionClass,
    GraderKind,
    Item,
    ParsedVerdict,
    ParsedVerdicts,
    VerdictValue,
)

COMMON = {
    "file": "/some/where.json", "label": "azure", "simulation_id": "s-1", "task_id": "7",
    "judge_prompt": "long", "judge_system_prompt": "You are a judge.", "judge_model": "gpt-4o",
    "judge_temperature": 0.0, "judge_prompt_name": "quick_v1", "judge_prompt_tokens": 10,
    "judge_completion_tokens": 5, "judge_total_tokens": 15, "judge_cost_usd": 0.001,
}  # fmt: skip
ENTRY = COMMON | {
    "judge_verdict": "satisfied", "judge_justification": "fine", "judge_issues": [{"a": 1}],
    "agreement": None, "tau2_reward": 1.0, "tau2_success": True,
}  # fmt: skip
ANSWER = {"verdict": "satisfied", "justification": "fine", "issues": [{"a": 1}]}


def summary(*entries: Any) -> list[Item]:
    document = {"total_judged": 9, "agree_count": 9, "entries": list(entries), "total_cost_usd": 1}
    return list(read_judge_summary(member_of(document)))


def raw(*lines: Any) -> list[Item]:
    return list(read_raw_judgements(member_of("\n".join(map(json.dumps, lines)).encode())))


def only(items: list[Item]) -> ParsedVerdict:
    (item,) = items
    assert isinstance(item.content, ParsedVerdicts), item.refusals
    (verdict,) = item.content.verdicts
    return verdict


def test_read_judge_summary_entry_is_a_verdict_on_outcome() -> None:
    (item,) = summary(ENTRY)
    assert isinstance(item.content, ParsedVerdicts)
    assert (item.content.key, item.content.external_id) == (None, "s-1")
    verdict = only([item])
    assert (verdict.grader, verdict.kind, verdict.criterion, verdict.criterion_class) == (
        "quick_v1", GraderKind.MODEL, "outcome", CriterionClass.OUTCOME,
    )  # fmt: skip
    assert (verdict.value, verdict.raw_word, verdict.rationale, verdict.mandatory) == (
        VerdictValue.PASS, "satisfied", "fine", True,
    )  # fmt: skip
    assert verdict.grader_version.startswith("gpt-4o#")
    assert verdict.extra == {
        "issues": [{"a": 1}], "cost_usd": 0.001, "input_tokens": 10, "output_tokens": 5,
    }  # fmt: skip


@pytest.mark.parametrize(
    "response",
    [
        f"```json\n{json.dumps(ANSWER, indent=1)}\n```",
        f"```\n{json.dumps(ANSWER)}```",
        json.dumps(ANSWER),
    ],
)
def test_read_raw_judgements_give_the_same_verdict_as_the_summary(response: str) -> None:
    assert only(raw(COMMON | {"judge_response": response})) == only(summary(ENTRY))


@pytest.mark.parametrize(
    "response", ["I think it passes.", "[1]", None, '```json\n{"verdict": "pass"']
)
def test_read_raw_judgements_unreadable_answer_is_an_error_kept_raw(response: Any) -> None:
    verdict = only(raw(COMMON | {"judge_response": response}))
    assert (verdict.value, verdict.raw_word) == (VerdictValue.ERROR, "")
    assert verdict.extra.get("raw_answer") == response


def test_read_judge_summary_without_a_verdict_is_an_error() -> None:
    assert only(summary(without(ENTRY, "judge_verdict"))).value is VerdictValue.ERROR
    assert (
        only(summary(ENTRY | {"judge_verdict": "partially_satisfied"})).value is VerdictValue.ERROR
    )


def test_judge_version_is_its_model_and_the_fixed_part_of_its_prompt() -> None:
    def version(**fields: Any) -> str:
        return only(summary(ENTRY | fields)).grader_version

    assert version(judge_prompt="other transcript") == version()
    assert len({version(), version(judge_model="x"), version(judge_system_prompt="x"), version(judge_temperature=1)}) == 4  # fmt: skip
    assert version(judge_model=None).startswith("unnamed model#")


@pytest.mark.parametrize(
    ("entry", "code", "place"),
    [
        (7, "not-an-object", ""),
        (without(ENTRY, "simulation_id"), "missing-field", "simulation_id"),
        (ENTRY | {"simulation_id": 1.5}, "wrong-type", "external_id"),
    ],
)
def test_judgement_that_belongs_to_no_trial_is_refused_alone(
    entry: Any, code: str, place: str
) -> None:
    bad, good = summary(entry, ENTRY)
    assert [(f.code, f.place) for f in bad.refusals] == [(code, place)]
    assert isinstance(good.content, ParsedVerdicts)


def test_judgement_without_a_judge_has_its_verdict_refused() -> None:
    (item,) = summary(without(ENTRY, "judge_prompt_name"))
    assert [(f.code, f.place) for f in item.refusals] == [("missing-field", "verdicts[0].grader")]


def test_read_judge_files_broken_records_are_refused_alone() -> None:
    document = json.dumps({"total_judged": 1, "entries": [ENTRY, ENTRY]}).encode()
    good, cut = read_judge_summary(member_of(document[:-30]))
    assert isinstance(good.content, ParsedVerdicts)
    assert [f.code for f in cut.refusals] == ["cut-short"]
    lines = (
        b'{"a":1,"a":2}\n'
        + json.dumps(COMMON | {"judge_response": "{}", "judge_cost_usd": float("nan")}).encode()
    )
    refused, taken = read_raw_judgements(member_of(lines))
    assert [f.code for f in refused.refusals] == ["duplicate-key"]
    assert [(f.code, f.place) for f in taken.warnings] == [("not-finite", "judge_cost_usd")]


def test_sample_judges_words_are_mapped() -> None:
    found = {
        path.name.split(".")[2]: Counter(
            (v.value.value, v.raw_word)
            for item in read_upload(path)
            if isinstance(item.content, ParsedVerdicts)
            for v in item.content.verdicts
        )
        for path in (SAMPLE / "tau2_airline" / "judges").glob("*.gz")
    }
    assert found == {
        "customer_outcome_v1": {("pass", "pass"): 35, ("fail", "fail"): 15},
        "quick_triage_v1": {("pass", "pass"): 46, ("fail", "fail"): 4},
        "policy_conversation_v1": {("pass", "pass"): 29, ("fail", "fail"): 21},
        "policy_chain_of_thought_v1": {
            ("pass", "satisfied"): 22, ("pass", "pass"): 10, ("pass", "satisfactory"): 3,
            ("pass", "compliant"): 1, ("pass", "correct"): 1, ("fail", "fail"): 13,
        },
    }  # fmt: skip
