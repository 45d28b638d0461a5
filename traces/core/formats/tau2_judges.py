"""Verdicts of model judges over tau2-bench runs (`docs/source-formats.md` section 4).

A summary holds the parsed answers under `entries`; a raw file has one answer a line, before
parsing, with JSON in a fence. Both give the same verdict on criterion `outcome`, attached by the
simulation's id: grader is the name of the judge's prompt; its version is the model and a digest
of the prompt's fixed part and the temperature. Totals in the file are not read.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from traces.core.canonical import digest_of
from traces.core.formats.checks import text_or_empty
from traces.core.formats.containers import Member
from traces.core.formats.fields import kind_of
from traces.core.formats.native import item_of
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.parts import Part, part_of, refused
from traces.core.formats.scanning import document_parts, json_lines
from traces.core.records import Item
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.values import JsonObject

CRITERION: Final = "outcome"

_MEASURES = re.compile(r"(?:judge_.*|tau2_reward)\Z")
_FENCE = re.compile(r"\s*```[a-zA-Z]*\s*\n(.*?)\n?\s*```\s*\Z", re.DOTALL)


def read_judge_summary(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The verdicts of a summary file."""
    with member.open() as stream:
        for piece in document_parts(stream, ("entries",), options.limits):
            if piece.key is None or (piece.key == "entries" and piece.number):
                part = part_of(piece, member.name, options, _is_measure)
                yield part if isinstance(part, Item) else _item(part, options)


def read_raw_judgements(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The verdicts of a raw JSON Lines file."""
    with member.open() as stream:
        for line in json_lines(stream, options.limits):
            part = part_of(line, member.name, options, _is_measure)
            yield part if isinstance(part, Item) else _item(part, options)


def _is_measure(place: str) -> bool:
    return _MEASURES.match(place) is not None


def _item(part: Part, options: ReadOptions) -> Item:
    entry = part.value
    if not isinstance(entry, dict):
        sentence = f"A judgement must be a JSON object, this is {kind_of(entry)}."
        return refused(part.source, "not-an-object", "", sentence)
    if not entry.get("simulation_id"):
        sentence = "simulation_id is missing: the judgement belongs to no trial."
        return refused(part.source, "missing-field", "simulation_id", sentence)
    return item_of(native_of(entry), part.source, options, data=part.data, missing=part.missing)


def native_of(entry: JsonObject) -> JsonObject:
    """The native record, of verdicts alone, of one judgement."""
    answer = _answer(entry)
    verdict: JsonObject = {
        "grader": entry.get("judge_prompt_name"),
        "grader_version": _version(entry),
        "kind": "model",
        "criterion": CRITERION,
        "class": "outcome",
        "rationale": answer.get("justification"),
        "issues": answer.get("issues"),
        "cost_usd": entry.get("judge_cost_usd"),
        "input_tokens": entry.get("judge_prompt_tokens"),
        "output_tokens": entry.get("judge_completion_tokens"),
    }
    if "verdict" in answer:
        verdict["verdict"] = answer["verdict"]
    if "unreadable" in answer:
        verdict["raw_answer"] = answer["unreadable"]
    return {
        "record": "verdicts",
        "external_id": entry["simulation_id"],
        "task_id": entry.get("task_id"),
        "verdicts": [{name: value for name, value in verdict.items() if value is not None}],
    }


def _answer(entry: JsonObject) -> JsonObject:
    if "judge_response" not in entry:
        names = ("verdict", "justification", "issues")
        return {name: entry[f"judge_{name}"] for name in names if f"judge_{name}" in entry}
    response = entry["judge_response"]
    fenced = _FENCE.match(text_or_empty(response))
    try:
        answer = loads_text(fenced[1] if fenced else text_or_empty(response))
    except StrictJsonError:
        return {"unreadable": response}
    return answer if isinstance(answer, dict) else {"unreadable": response}


def _version(entry: JsonObject) -> str:
    fixed = [entry.get("judge_system_prompt"), entry.get("judge_temperature")]
    model = text_or_empty(entry.get("judge_model")) or "unnamed model"
    return f"{model}#{digest_of(fixed).hex()[:8]}"
