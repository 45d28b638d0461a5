"""An answer is whole, or an error with its reason and its raw text."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest

from reviews.core.judge_answers import (
    LONGEST_RAW,
    Completion,
    JudgeAnswer,
    Prices,
    answer_of,
    completion_of,
    cost_of,
)
from traces.core.records import VerdictValue


def answer(**changed: Any) -> str:
    document = {"verdict": "pass", "rationale": "It is true.", "steps": [3, 9, 3]} | changed
    return json.dumps({name: value for name, value in document.items() if value is not ...})


def reply(content: Any = None, **more: Any) -> bytes:
    choice = {"message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    return json.dumps({"choices": [choice], **more}).encode()


@pytest.mark.parametrize("word", ["pass", "fail", "unknown"])
def test_a_whole_answer(word: str) -> None:
    raw = f"\n {answer(verdict=word)} "
    assert answer_of(raw) == JudgeAnswer(
        VerdictValue(word), "It is true.", (3, 9), raw_word=word, raw=raw
    )


@pytest.mark.parametrize(
    ("text", "problem", "raw_word"),
    [
        ("", "The answer is not JSON.", ""),
        ("I think it passes.", "The answer is not JSON.", ""),
        (f"```json\n{answer()}\n```", "The answer is not JSON.", ""),
        (f"{answer()} Done.", "The answer is not JSON.", ""),
        ('{"verdict":"pass","verdict":"fail","rationale":"x","steps":[]}', "The answer is not JSON.", ""),
        ("[]", "The answer is no JSON object.", ""),
        ('"pass"', "The answer is no JSON object.", ""),
        (answer(verdict=...), "The answer has no field verdict.", ""),
        (answer(rationale=...), "The answer has no field rationale.", "pass"),
        (answer(steps=...), "The answer has no field steps.", "pass"),
        (answer(score=1), "The answer has fields that were not asked for.", "pass"),
        (answer(verdict=True), "The verdict is not a word.", ""),
        (answer(verdict="PASS"), "The verdict is none of pass, fail and unknown.", "PASS"),
        (answer(verdict="satisfied"), "The verdict is none of pass, fail and unknown.", "satisfied"),
        (answer(verdict="error"), "The verdict is none of pass, fail and unknown.", "error"),
        (answer(rationale=" "), "The answer has no rationale.", "pass"),
        (answer(rationale=None), "The answer has no rationale.", "pass"),
        (answer(rationale="x" * 20_001), "The rationale has more than 20,000 characters.", "pass"),
        (answer(steps="3"), "The cited steps are not a list of step numbers.", "pass"),
        (answer(steps=[True]), "The cited steps are not a list of step numbers.", "pass"),
        (answer(steps=[0]), "The cited steps are not a list of step numbers.", "pass"),
        (answer(steps=[1.5]), "The cited steps are not a list of step numbers.", "pass"),
        (answer(steps=[2**31]), "The cited steps are not a list of step numbers.", "pass"),
        (answer(steps=list(range(1, 202))), "The answer cites more than 200 steps.", "pass"),
    ],
)  # fmt: skip
def test_anything_else_is_an_error_with_its_raw_text(
    text: str, problem: str, raw_word: str
) -> None:
    found = answer_of(text)
    assert (found.value, found.raw, found.raw_word) == (VerdictValue.ERROR, text, raw_word)
    assert found.problem.startswith(problem)
    assert (found.rationale, found.steps) == ("", ())


def test_a_huge_answer_is_kept_in_part() -> None:
    assert len(answer_of("x" * 10**6).raw) == LONGEST_RAW
    assert answer_of(answer(rationale="x" * 20_000)).value is VerdictValue.PASS
    assert answer_of("[" * 10**5).value is VerdictValue.ERROR


def test_a_reply_with_its_tokens() -> None:
    body = reply(answer(), model="m-1", usage={"prompt_tokens": 1200, "completion_tokens": 30})
    assert completion_of(body) == Completion(answer_of(answer()), 1200, 30, "m-1")
    assert completion_of(reply(answer(), model=7, usage=[])) == Completion(answer_of(answer()))
    odd = {"prompt_tokens": True, "completion_tokens": -1}
    assert completion_of(reply(answer(), usage=odd)) == Completion(answer_of(answer()))


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        (b"<html>busy</html>", "The endpoint's reply is not JSON."),
        (b"\xff\xfe", "The endpoint's reply is not JSON."),
        (b"[]", "The endpoint's reply is no JSON object."),
        (b"{}", "The endpoint's reply holds no answer."),
        (reply(None), "The endpoint's reply holds no answer."),
        (b'{"choices": [{"message": {"content": "a"}}, {"message": {"content": "b"}}]}',
         "The endpoint gave more than one answer."),
        (b'{"choices": [{"message": {"refusal": "I will not."}}]}', "The model refused to answer."),
        (b'{"choices": [{"finish_reason": "length", "message": {"content": "{"}}]}',
         "The answer was cut off at the most tokens that are allowed."),
        (b'{"choices": [{"finish_reason": "content_filter", "message": {"content": null}}]}',
         "The endpoint's filter held the answer back."),
    ],
)  # fmt: skip
def test_a_reply_without_an_answer_is_an_error(body: bytes, problem: str) -> None:
    found = completion_of(body).answer
    assert found.value is VerdictValue.ERROR
    assert found.problem.startswith(problem)
    assert found.raw != ""


def test_an_empty_refusal_is_no_refusal() -> None:
    message = {"refusal": "", "content": answer()}
    body = json.dumps({"choices": [{"message": message}]}).encode()
    assert completion_of(body).answer.value is VerdictValue.PASS


def test_costs_need_tokens_and_prices() -> None:
    known = Completion(answer_of(answer()), 1_000, 10)
    prices = Prices(Decimal("2.50"), Decimal(10))
    assert cost_of(known, prices) == Decimal("0.0026")
    assert cost_of(known, Prices(Decimal(1))) is None
    assert cost_of(known, Prices(None, Decimal(1))) is None
    assert cost_of(Completion(known.answer, None, 1), prices) is None
    assert cost_of(Completion(known.answer, 1, None), prices) is None
