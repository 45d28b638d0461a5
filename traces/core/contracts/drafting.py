"""First contracts of tasks: drafts for people to finish, never in effect by themselves."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from typing import Final

from traces.core.contracts.schema import MOST_CRITERION_CHARS, MOST_EXPRESSION_CHARS, SPLITS
from traces.core.contracts.writing import contract_text
from traces.core.formats.checks import (
    MOST_TITLE_CHARS,
    Checks,
    object_or_empty,
    short,
    text_or_empty,
)
from traces.core.formats.tau2 import GRADER
from traces.core.values import Json, JsonObject

HINTS: Final = """\
# What decides a trial of this task? Keep what fits, and remove the # in front.
# facts: {customer: C-1}            # starting facts, the same in every trial
# outcome:                          # in which state the environment must be left
#   - changes: {/orders/A-1/status: cancelled}
# required:                         # what must have happened
#   - {id: looked-up, call: get_order, before: cancel_order}
# prohibited:                       # what must not even be tried
#   - {id: other-order, harm: data, call: cancel_order, where: 'args.order != "A-1"'}
# budget: {tool_calls: 10, cost_usd: 0.40}
# semantic:                         # what people and calibrated judges decide
#   - {rubric: truthful}
# evidence: [final_state, tool_results]
"""

_STANDARD_BASIS: Final = ("DB", "COMMUNICATE")  # of a tau2 task that names none
_LARGEST_INPUT: Final = 4_000
_NOT_IN_ID = re.compile(r"[^a-z0-9]+")
_WHOLE_NUMBER = re.compile(r"[1-9][0-9]{3,14}")
_SPECIAL = re.compile(r"[][\\.+*?(){}|^$]")
_MOST_ID_CHARS: Final = 40


def draft_of(task_id: str, definition: JsonObject | None) -> str:
    """The text of a first contract: from the task's definition, as far as it says something.

    A draft in which nothing is required yet has hints as comments, and cannot be proposed before
    somebody says what the task requires.
    """
    given = definition or {}
    if isinstance(given.get("evaluation_criteria"), dict):
        document = draft_of_tau2(task_id, given)
    else:
        document = {"task": task_id, **_input(given.get("input", given.get("instruction")))}
        facts = object_or_empty(given.get("facts"))
        document |= {"facts": facts} if facts else {}
    text = contract_text(document)
    if document.keys() & {"required", "semantic", "external"}:
        return text
    return text + HINTS


def draft_of_tau2(task_id: str, definition: JsonObject) -> JsonObject:
    """A contract that decides trials as tau2-bench does, from a stored task definition.

    The parts of the reward's basis are criteria outside, answered by the verdicts of a results
    file. What must be communicated is looked for in the agent's messages. Assertions in natural
    language outside the basis are preferences. Gold actions are one path of several, never
    required: they stay in the definition, as a reference for match modes.
    """
    criteria = object_or_empty(definition.get("evaluation_criteria"))
    basis = _basis_of(criteria)
    told = list(_told(criteria.get("communicate_info"), is_mandatory="COMMUNICATE" in basis))
    asserted = list(_asserted(criteria.get("nl_assertions"), is_mandatory="NL_ASSERTION" in basis))
    own = {"COMMUNICATE", "NL_ASSERTION"}  # where there is none of them, nothing is required
    is_required = any(entry["mandatory"] for entry in (*told, *asserted))
    outside = [part for part in basis if part not in own] or ([] if is_required else basis)
    external: list[Json] = [
        {"id": part.lower(), "class": "outcome", "mandatory": True, "graders": [GRADER]}
        for part in outside
    ]
    parts: JsonObject = {
        "required": [entry for entry in told if "id" in entry],
        "semantic": [*asserted, *(entry for entry in told if "rubric" in entry)],
        "external": external,
    }
    scenario = object_or_empty(definition.get("user_scenario"))
    instructions = object_or_empty(scenario.get("instructions"))
    purpose = object_or_empty(definition.get("description")).get("purpose")
    reason = instructions.get("reason_for_call", scenario.get("instructions"))
    title = short(text_or_empty(purpose) or text_or_empty(reason), MOST_TITLE_CHARS)
    return {
        "task": task_id,
        **({"title": title} if title else {}),
        **_input(definition.get("ticket") or reason),
        **{name: entries for name, entries in parts.items() if entries},
    }


def draft_from_trial(
    task_id: str,
    *,
    input: Json,  # noqa: A002 - the contract's own word
    facts: JsonObject,
    initial_state: Json,
    family: str,
    split: str | None,
    contract: JsonObject | None,
) -> JsonObject:
    """The contract of a task that is made from a trial, prefilled from the origin's contract.

    The trial's facts become fixed. Planted trials are kept only where the facts stay the same,
    since they would contradict others. Without a contract to start from, a recorded initial state
    makes the states declared evidence.
    """
    origin = dict(contract or {})
    fixed = {**object_or_empty(origin.get("facts")), **facts}
    if fixed != object_or_empty(origin.get("facts")):
        origin.pop("grader_tests", None)
    names = origin.get("trial_facts")
    open_names = [n for n in names if n not in fixed] if isinstance(names, list) else []
    if contract is None and initial_state is not None:
        origin["evidence"] = ["initial_state", "final_state"]
    draft = origin | {
        "task": task_id,
        "family": family,
        "split": split if split in SPLITS else None,
        "input": origin.get("input") if input is None else input,
        "facts": fixed,
        "trial_facts": open_names,
    }
    return {name: value for name, value in draft.items() if value not in (None, "", {}, [])}


def _basis_of(criteria: JsonObject) -> tuple[str, ...]:
    basis = criteria.get("reward_basis")
    names = [name for name in basis if isinstance(name, str)] if isinstance(basis, list) else []
    return tuple(dict.fromkeys(names or _STANDARD_BASIS))


def _input(value: Json) -> JsonObject:
    text = text_or_empty(value).strip()
    return {"input": text[:_LARGEST_INPUT]} if text else {}


def _texts_in(value: Json) -> Iterator[str]:
    items = value if isinstance(value, list) else []
    return (item for item in dict.fromkeys(map(text_or_empty, items)) if item.strip())


def _told(infos: Json, *, is_mandatory: bool) -> Iterator[JsonObject]:
    """An entry for each text that the agent must communicate."""
    taken: set[str] = set()
    for info in _texts_in(infos):
        where = _says(info)
        if len(where) > MOST_EXPRESSION_CHARS:
            yield _rubric("communicate", info, is_mandatory=is_mandatory)
            continue
        slug = _NOT_IN_ID.sub("-", info.lower()).strip("-")[:_MOST_ID_CHARS].strip("-")
        name = next(name for name in _numbered(f"told-{slug or 'text'}") if name not in taken)
        taken.add(name)
        yield {"id": name, "message": "agent", "where": where, "mandatory": is_mandatory}


def _numbered(name: str) -> Iterable[str]:
    yield name
    number = 2
    while True:
        yield f"{name}-{number}"
        number += 1


def _says(info: str) -> str:
    """CEL for a message that holds a text; letter case and commas in numbers do not count."""
    if _WHOLE_NUMBER.fullmatch(info):
        return f"text.contains({_literal(info)}) || text.contains({_literal(f'{int(info):,}')})"
    if info.lower() == info.upper():
        return f"text.contains({_literal(info)})"
    escaped = _SPECIAL.sub(lambda match: f"\\{match[0]}", info)
    return f"text.matches({_literal(f'(?i){escaped}')})"


def _literal(text: str) -> str:
    """A CEL literal: its escapes are those of JSON."""
    return json.dumps(text, ensure_ascii=False)


def _asserted(assertions: Json, *, is_mandatory: bool) -> Iterator[JsonObject]:
    return (_rubric("nl", text, is_mandatory=is_mandatory) for text in _texts_in(assertions))


def _rubric(kind: str, text: str, *, is_mandatory: bool) -> JsonObject:
    """A rubric by the name under which a results file brings its verdicts."""
    checks = Checks(GRADER, "")
    checks.check(kind, text, passed=True)
    name = text_or_empty(object_or_empty(checks.records[0])["criterion"])
    return {
        "rubric": name[:MOST_CRITERION_CHARS],
        "question": short(text, 2_000),
        "mandatory": is_mandatory,
    }
