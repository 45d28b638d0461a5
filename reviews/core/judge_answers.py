"""What comes back from a judge, read strictly: a whole answer, or an error that says why.

Nothing is guessed. An answer that is not one JSON object with exactly the fields that were asked
for is an error, kept as it came.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from traces.core import strict_json
from traces.core.limits import Limits
from traces.core.records import VerdictValue
from traces.core.values import Json, JsonObject

LONGEST_RATIONALE: Final = 20_000  # characters
MOST_STEPS: Final = 200
LARGEST_STEP: Final = 2**31 - 1
LONGEST_RAW: Final = 64_000  # characters of an answer that are kept
MOST_TOKENS: Final = 10**12

_FIELDS: Final = frozenset({"verdict", "rationale", "steps"})
_WORDS: Final = {
    value.value: value for value in (VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN)
}
_LIMITS: Final = Limits(record_bytes=2**24, depth=32, keys=1_000)


@dataclass(frozen=True, slots=True)
class JudgeAnswer:
    """What a judge said. `problem` is "" for a whole answer; with one the value is error."""

    value: VerdictValue
    rationale: str = ""
    steps: tuple[int, ...] = ()
    raw_word: str = ""  # the judge's own word for the verdict, "" where there is none
    raw: str = ""  # the answer as it came, at most 64,000 characters
    problem: str = ""  # a sentence


@dataclass(frozen=True, slots=True)
class Completion:
    """An endpoint's reply: the answer in it, and what it took."""

    answer: JudgeAnswer
    input_tokens: int | None = None  # None: the endpoint does not say
    output_tokens: int | None = None
    model: str = ""  # as the endpoint names it


def completion_of(body: bytes) -> Completion:
    """The reply of a chat completion endpoint."""
    try:
        document = strict_json.loads(body, _LIMITS)
    except strict_json.StrictJsonError:
        return Completion(_unreadable(_text(body), "The endpoint's reply is not JSON."))
    if not isinstance(document, dict):
        return Completion(_unreadable(_text(body), "The endpoint's reply is no JSON object."))
    model = document.get("model")
    return Completion(
        answer=_answer_in(document, body),
        input_tokens=_tokens(document, "prompt_tokens"),
        output_tokens=_tokens(document, "completion_tokens"),
        model=model[:200] if isinstance(model, str) else "",
    )


def _answer_in(document: JsonObject, body: bytes) -> JudgeAnswer:
    match document:
        case {"choices": [{"message": {"refusal": str(words)}}]} if words:
            return _unreadable(words, "The model refused to answer.")
        case {"choices": [{"finish_reason": "length", "message": {"content": str(text)}}]}:
            return _unreadable(text, "The answer was cut off at the most tokens that are allowed.")
        case {"choices": [{"finish_reason": "content_filter", "message": {}}]}:
            return _unreadable(_text(body), "The endpoint's filter held the answer back.")
        case {"choices": [{"message": {"content": str(text)}}]}:
            return answer_of(text)
        case {"choices": [_, _, *_]}:
            return _unreadable(_text(body), "The endpoint gave more than one answer.")
        case _:
            return _unreadable(_text(body), "The endpoint's reply holds no answer.")


def _tokens(document: JsonObject, name: str) -> int | None:
    usage = document.get("usage")
    n = usage.get(name) if isinstance(usage, dict) else None
    if isinstance(n, bool) or not isinstance(n, int) or not 0 <= n <= MOST_TOKENS:
        return None
    return n


def answer_of(text: str) -> JudgeAnswer:
    """A judge's own words, read as the one JSON object that was asked for."""
    try:
        document = strict_json.loads_text(text.strip(" \t\r\n"), _LIMITS)
    except strict_json.StrictJsonError:
        return _unreadable(text, "The answer is not JSON.")
    if not isinstance(document, dict):
        return _unreadable(text, "The answer is no JSON object.")
    word = document.get("verdict")
    raw_word = word[:200] if isinstance(word, str) else ""
    if problem := _problem(document):
        return _unreadable(text, problem, raw_word)
    return JudgeAnswer(
        value=_WORDS[raw_word],
        rationale=str(document["rationale"]).strip(),
        steps=tuple(dict.fromkeys(_steps(document["steps"]))),
        raw_word=raw_word,
        raw=text[:LONGEST_RAW],
    )


def _problem(document: JsonObject) -> str:
    """Why an object is not the answer that was asked for; "" where it is."""
    for name in sorted(_FIELDS - document.keys()):
        return f"The answer has no field {name}."
    if document.keys() - _FIELDS:
        return "The answer has fields that were not asked for."
    if not isinstance(document["verdict"], str):
        return "The verdict is not a word."
    if document["verdict"] not in _WORDS:
        return "The verdict is none of pass, fail and unknown."
    rationale = document["rationale"]
    if not isinstance(rationale, str) or not rationale.strip():
        return "The answer has no rationale."
    if len(rationale) > LONGEST_RATIONALE:
        return f"The rationale has more than {LONGEST_RATIONALE:,} characters."
    steps = document["steps"]
    if not isinstance(steps, list) or len(_steps(steps)) != len(steps):
        return "The cited steps are not a list of step numbers."
    if len(steps) > MOST_STEPS:
        return f"The answer cites more than {MOST_STEPS} steps."
    return ""


def _steps(raw: Json) -> list[int]:
    return [
        one
        for one in (raw if isinstance(raw, list) else ())
        if isinstance(one, int) and not isinstance(one, bool) and 0 < one <= LARGEST_STEP
    ]


def _unreadable(raw: str, problem: str, raw_word: str = "") -> JudgeAnswer:
    return JudgeAnswer(
        VerdictValue.ERROR, raw_word=raw_word, raw=raw[:LONGEST_RAW], problem=problem
    )


def _text(body: bytes) -> str:
    return body[: 4 * LONGEST_RAW].decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class Prices:
    """US dollars for a million tokens. None: the operator did not say."""

    input: Decimal | None = None
    output: Decimal | None = None


def cost_of(completion: Completion, prices: Prices) -> Decimal | None:
    """What an answer cost in US dollars; None where tokens or prices are not known."""
    if (
        prices.input is None
        or prices.output is None
        or completion.input_tokens is None
        or completion.output_tokens is None
    ):
        return None
    million = Decimal(1_000_000)
    return (
        completion.input_tokens * prices.input + completion.output_tokens * prices.output
    ) / million
