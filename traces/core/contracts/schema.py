"""The published JSON Schema of a contract, for editors and for the reader."""

from __future__ import annotations

from typing import Final

from traces.core.contracts.model import BudgetName, EvidencePart
from traces.core.records import CriterionClass, GraderKind, VerdictValue
from traces.core.rules import RuleKind, SameTime
from traces.core.values import Json, JsonObject

SCHEMA_ID: Final = "evalsite:contract:1"

MOST_EXPRESSION_CHARS: Final = 2_000
MOST_CRITERION_CHARS: Final = 400  # readers of other formats make long ones
MOST_ENTRIES: Final = 200  # of required, prohibited, semantic and external, each
MOST_GRADER_TESTS: Final = 100
MOST_STEPS: Final = 500  # of a grader test
MOST_TRIALS: Final = 10_000
SPLITS: Final = ("tuning", "held_out", "regression")
COUNTS: Final = ("attempted", "committed")


def _object(
    description: str, properties: JsonObject, required: tuple[str, ...] = (), **more: Json
) -> JsonObject:
    return {
        "type": "object",
        "description": description,
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
        **more,
    }


def _text(title: str, description: str, most: int, **more: Json) -> JsonObject:
    return {
        "type": "string",
        "title": title,
        "description": description,
        "minLength": 1,
        "maxLength": most,
        **more,
    }


ONE_LINE: Final = r"^\S(?:[^\u0000-\u001f\u007f]*\S)?$(?!\n)"


def _name(title: str, description: str, most: int) -> JsonObject:
    return _text(title, description, most, pattern=ONE_LINE)


def _list(title: str, description: str, items: Json, most: int, **more: Json) -> JsonObject:
    return {
        "type": "array",
        "title": title,
        "description": description,
        "items": items,
        "maxItems": most,
        **more,
    }


def _choice(title: str, description: str, words: tuple[str, ...]) -> JsonObject:
    return {"title": title, "description": description, "enum": list(words)}


def _flag(title: str, description: str) -> JsonObject:
    return {"type": "boolean", "title": title, "description": description}


def _ref(name: str, title: str, description: str) -> JsonObject:
    return {"$ref": f"#/$defs/{name}", "title": title, "description": description}


def _one_of(sentence: str, *names: str) -> JsonObject:
    """Exactly one of these fields; `$comment` is the sentence for people when it is not so."""
    return {"$comment": sentence, "oneOf": [{"required": [name]} for name in names]}


def _either(kind: str, then: Json, otherwise: Json) -> JsonObject:
    return {"if": {"type": kind}, "then": then, "else": otherwise}


_MANDATORY: Final = _flag(
    "Mandatory", "false makes it a preference: reported, never deciding. Without it: true."
)
_WHERE: Final = _text(
    "Where",
    "A CEL expression over args, result, error, text, facts and step that must be true.",
    MOST_EXPRESSION_CHARS,
)
_CALL: Final = _text("Call", "The name of a tool: calls of it are meant.", 512)
_MESSAGE: Final = _choice(
    "Message", "Messages of this side are meant, instead of calls.", ("user", "agent")
)
_ID: Final = _text(
    "Id",
    "The name of the criterion: letters, digits, - _ . and :, unique in the contract.",
    100,
    pattern=r"^[A-Za-z0-9][A-Za-z0-9_.:-]*$(?!\n)",
)
_FREE_ID: Final = _text(
    "Id",
    "The name of the criterion, exactly as the graders write it.",
    MOST_CRITERION_CHARS,
)
_POINTER: Final = _text("Pointer", "A JSON Pointer into the state, such as /orders/A-1.", 2_000)
_ANY_OF: Final = _list(
    "Any of", "Several calls or messages: each of them counts.", {"$ref": "#/$defs/target"}, 50
)
_TARGET_SENTENCE: Final = "Exactly one of `call`, `message` and `any_of` must stand here."
_ENTRY_TARGET: Final[JsonObject] = {
    "allOf": [
        _one_of(_TARGET_SENTENCE, "call", "message", "any_of"),
        {
            "$comment": "Beside `any_of` there is no `where`: give each of its entries its own.",
            "not": {"required": ["any_of", "where"]},
        },
    ]
}

_TARGET: Final = _object(
    "A tool call or a message.",
    {"call": _CALL, "message": _MESSAGE, "where": _WHERE},
    allOf=[_one_of("Exactly one of `call` and `message` must stand here.", "call", "message")],
)

_ANCHOR: Final = _either(
    "string",
    _text("Tool", "The name of a tool.", 512),
    _object(
        "A tool call or a message that it must stand before or after.",
        {
            "call": _CALL,
            "message": _MESSAGE,
            "where": _WHERE,
            "counts": _choice(
                "Counts", "committed: only calls that the tool carried out count.", COUNTS
            ),
        },
        allOf=[
            _one_of("Exactly one of `call` and `message` must stand here.", "call", "message"),
            {
                "$comment": "A message is never committed: `counts` stands beside `call` only.",
                "not": {"required": ["message", "counts"]},
            },
        ],
    ),
)

_CHANGES: Final[JsonObject] = {
    "title": "Changes",
    "description": "What must differ from the initial state: JSON Pointer to value. A last `-` "
    "means appended. A list of such mappings where one pointer is needed twice.",
    **_either(
        "array",
        {
            "items": {
                "type": "object",
                "minProperties": 1,
                "$comment": "Give at least one pointer with its value.",
            },
            "minItems": 1,
            "maxItems": 500,
        },
        {"type": "object", "minProperties": 1, "maxProperties": 500},
    ),
}

_CASE: Final = _object(
    "One case of the outcome. The first whose `when` holds decides.",
    {
        "when": _text(
            "When",
            "A CEL expression over facts; without it the case always holds.",
            MOST_EXPRESSION_CHARS,
        ),
        "changes": _CHANGES,
        "unchanged": {
            "title": "Unchanged",
            "description": "Nothing may change.",
            "enum": [True],
        },
        "ignore": _list(
            "Ignore", "Pointers that are not compared; * stands for any one name.", _POINTER, 200
        ),
        "absent": _list(
            "Absent",
            "Pointers that must lead to nothing; * stands for any one name.",
            _POINTER,
            200,
        ),
    },
    allOf=[
        {
            "$comment": "A case needs `changes`, `unchanged: true` or `absent`.",
            "anyOf": [{"required": [name]} for name in ("changes", "unchanged", "absent")],
        },
        {
            "$comment": "A case has either `changes` or `unchanged`, not both.",
            "not": {"required": ["changes", "unchanged"]},
        },
    ],
)

_GRADERS: Final = _list(
    "Graders",
    "Graders that must all vote: names, or {name, kind}.",
    _either(
        "string",
        _text("Name", "The name of a grader.", 512),
        _object(
            "A grader.",
            {
                "name": _text("Name", "The name of the grader.", 512),
                "kind": _choice("Kind", "What it is.", tuple(GraderKind)),
            },
            ("name",),
        ),
    ),
    20,
)

_LIMITS: Final[dict[BudgetName, str]] = {
    BudgetName.TOOL_CALLS: "The agent's tool calls, attempts counted.",
    BudgetName.TURNS: "Messages of the user that the agent answered.",
    BudgetName.COST_USD: "Cost in US dollars.",
    BudgetName.TOKENS: "Input and output tokens together.",
    BudgetName.SECONDS: "Seconds from start to end.",
    BudgetName.REPEAT_CALL: "Calls of one tool with the same arguments.",
}


def _limit(name: BudgetName) -> JsonObject:
    is_measure = name in {BudgetName.COST_USD, BudgetName.SECONDS}
    number: JsonObject = {
        "type": "number" if is_measure else "integer",
        "minimum": 0,
        "maximum": 1_000_000_000_000,
        "title": "At most",
        "description": "The limit, itself allowed.",
    }
    bounded = _object(
        "A limit that need not be mandatory.", {"max": number, "mandatory": _MANDATORY}, ("max",)
    )
    title = {"title": name.value, "description": f"{_LIMITS[name]} The limit itself is allowed."}
    return {**title, **_either("object", bounded, number)}


_RULE: Final = _object(
    "An argument rule: what may differ in one argument of one tool.",
    {
        "tool": _text("Tool", "The name of the tool.", 512),
        "argument": {
            "type": "string",
            "maxLength": 2_000,
            "title": "Argument",
            "description": "The name of an argument, or a JSON Pointer with * into it.",
        },
        "kind": _choice("Kind", "What counts as the same.", tuple(RuleKind)),
        "step": {
            "type": ["number", "string"],
            "title": "Step",
            "description": "Of round_to: numbers with the same nearest multiple are the same.",
        },
        "same": _choice("Same", "Of datetime: what must be equal.", tuple(SameTime)),
        "zone": _text("Zone", "Of datetime: the time zone of days, an IANA name.", 100),
        "value": {"title": "Value", "description": "Of default: what absence stands for."},
        "groups": _list(
            "Groups",
            "Of alias: lists of values that are the same.",
            {"type": "array", "items": True, "minItems": 2},
            500,
        ),
        "reason": _text("Reason", "Why this may differ.", 2_000),
        "author": _text("Author", "Who says so.", 200),
    },
    ("tool", "argument", "kind"),
)

_STEP_CALL: Final[JsonObject] = {
    "call": _text("Call", "A tool call of the agent.", 512),
    "args": {
        "type": "object",
        "title": "Arguments",
        "description": "The arguments of the call. Without it: none.",
    },
    "result": {"title": "Result", "description": "What the tool answered: a value or a text."},
    "rejected": _text("Rejected", "The tool refused, with this text.", 20_000),
}
_NOT_BOTH: Final[JsonObject] = {
    "$comment": "A call has a `result` or is `rejected`, not both.",
    "not": {"required": ["result", "rejected"]},
}
_STEP: Final = _object(
    "One step of a planted trial: a message, a call, or several calls together.",
    {
        "user": {"type": "string", "title": "User", "description": "A message of the user."},
        "agent": {"type": "string", "title": "Agent", "description": "A message of the agent."},
        **_STEP_CALL,
        "together": _list(
            "Together",
            "Calls made in one message; their results stand after it.",
            _object("One of the calls.", _STEP_CALL, ("call",), allOf=[_NOT_BOTH]),
            50,
            minItems=1,
        ),
    },
    allOf=[
        _one_of(
            "Exactly one of `user`, `agent`, `call` and `together` must stand here.",
            "user",
            "agent",
            "call",
            "together",
        ),
        _NOT_BOTH,
        {
            "if": {"not": {"required": ["call"]}},
            "then": {
                "$comment": "`args`, `result` and `rejected` stand beside `call` only.",
                "not": {"anyOf": [{"required": [n]} for n in ("args", "result", "rejected")]},
            },
        },
    ],
)

_STATE: Final = "the environment's state"

_MESSAGE_RECORD: Final[JsonObject] = {
    "type": "object",
    "properties": {"role": _choice("Role", "Who speaks.", ("system", "user", "assistant", "tool"))},
    "required": ["role"],
}

_PLANTED: Final = _object(
    "A planted trial, and what each check must say of it.",
    {
        "name": _name("Name", "What the trial shows, unique in the contract.", 200),
        "like": _text(
            "Like", "The name of an earlier one: what is not given here is taken from it.", 200
        ),
        "without": _list(
            "Without",
            "Steps of `like` to leave out: numbers from 1, or names of called tools.",
            {"type": ["integer", "string"]},
            MOST_STEPS,
            minItems=1,
        ),
        "facts": {
            "type": "object",
            "title": "Facts",
            "description": "Facts that the trial brings.",
        },
        "initial_state": {"title": "Initial state", "description": f"At the start, {_STATE}."},
        "final_state": {"title": "Final state", "description": f"At the end, {_STATE}."},
        "expected_state": {
            "title": "Expected state",
            "description": "What the record says that the state should be.",
        },
        "status": _choice("Status", "error: the harness broke.", ("completed", "error")),
        "usage": {
            "type": "object",
            "title": "Usage",
            "description": "cost_usd, input_tokens, output_tokens.",
        },
        "started_at": _text("Started at", "A time, ISO 8601.", 100),
        "ended_at": _text("Ended at", "A time, ISO 8601.", 100),
        "steps": _list(
            "Steps", "The transcript in short form.", {"$ref": "#/$defs/step"}, MOST_STEPS
        ),
        "messages": _list(
            "Messages", "The transcript in the form of trial records.", _MESSAGE_RECORD, 1_000
        ),
        "expect": {
            "type": "object",
            "title": "Expect",
            "description": "Check (outcome, an id, budget.<name>) to verdict.",
            "minProperties": 1,
            "additionalProperties": {"enum": [str(word) for word in VerdictValue]},
        },
    },
    ("name", "expect"),
    allOf=[
        {
            "$comment": "A planted trial has `steps` or `messages`, not both.",
            "not": {"required": ["steps", "messages"]},
        },
        {
            "$comment": "A planted trial needs `steps`, `messages` or `like`.",
            "anyOf": [{"required": [name]} for name in ("steps", "messages", "like")],
        },
        {
            "if": {"required": ["without"]},
            "then": {
                "$comment": "`without` needs `like`, and no `steps` or `messages` beside it.",
                "anyOf": [{"required": ["like"]}],
                "not": {"anyOf": [{"required": ["steps"]}, {"required": ["messages"]}]},
            },
        },
    ],
)

CONTRACT_SCHEMA: Final[JsonObject] = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "$id": SCHEMA_ID,
    "title": "Contract of a task",
    **_object(
        "What a task requires of an agent, checked on every trial of it.",
        {
            "task": _text("Task", "The id of the task, as in the trials.", 512),
            "title": _name("Title", "What the task is, in a few words.", 500),
            "family": _name("Family", "The family of tasks that it belongs to.", 200),
            "split": _choice("Split", "What the task is used for.", SPLITS),
            "input": {"title": "Input", "description": "What the agent is asked."},
            "facts": {
                "type": "object",
                "title": "Facts",
                "description": "Starting facts that are the same in each trial.",
            },
            "trial_facts": _list(
                "Trial facts",
                "Names of facts that each trial must bring.",
                _text("Name", "The name of a fact.", 200),
                200,
            ),
            "outcome": {
                "title": "Outcome",
                "description": "In which state the environment must be left: a list of cases, or "
                "recorded_expectation, where the trial's expected_state decides.",
                **_either(
                    "array",
                    {"items": {"$ref": "#/$defs/case"}, "minItems": 1, "maxItems": 50},
                    {
                        "enum": ["recorded_expectation"],
                        "$comment": "`outcome` is a list of cases, or the word "
                        "`recorded_expectation`.",
                    },
                ),
            },
            "required": _list(
                "Required",
                "Calls and messages that must be there.",
                {"$ref": "#/$defs/required"},
                MOST_ENTRIES,
            ),
            "prohibited": _list(
                "Prohibited",
                "Calls and messages that must not be there.",
                {"$ref": "#/$defs/prohibited"},
                MOST_ENTRIES,
            ),
            "budget": {
                "title": "Budget",
                **_object("Upper limits.", {name.value: _limit(name) for name in BudgetName}),
            },
            "semantic": _list(
                "Semantic",
                "Questions that people and calibrated judges answer.",
                {"$ref": "#/$defs/rubric"},
                MOST_ENTRIES,
            ),
            "external": _list(
                "External",
                "Criteria that graders outside decide.",
                {"$ref": "#/$defs/external"},
                MOST_ENTRIES,
            ),
            "evidence": _list(
                "Evidence",
                "What a trial must have recorded; without it the trial is not decided.",
                _choice("Part", "One part of a trial's record.", tuple(EvidencePart)),
                len(EvidencePart),
            ),
            "variation": _list(
                "Variation",
                "Argument rules of this task.",
                {"$ref": "#/$defs/rule"},
                MOST_ENTRIES,
            ),
            "trials": {
                "type": "integer",
                "minimum": 1,
                "maximum": MOST_TRIALS,
                "title": "Trials",
                "description": "How many trials a run of this task should have.",
            },
            "grader_tests": _list(
                "Grader tests",
                "Planted trials with what each check must say of them.",
                {"$ref": "#/$defs/planted_trial"},
                MOST_GRADER_TESTS,
            ),
        },
        ("task",),
    ),
    "$defs": {
        "target": _TARGET,
        "anchor": _ANCHOR,
        "case": _CASE,
        "required": _object(
            "Something that must have happened.",
            {
                "id": _ID,
                "call": _CALL,
                "message": _MESSAGE,
                "any_of": {**_ANY_OF, "minItems": 1},
                "where": _WHERE,
                "before": _ref("anchor", "Before", "A tool or message that it must stand before."),
                "after": _ref("anchor", "After", "A tool or message that it must stand after."),
                "mandatory": _MANDATORY,
            },
            ("id",),
            **_ENTRY_TARGET,
        ),
        "prohibited": _object(
            "Something that must not happen.",
            {
                "id": _ID,
                "harm": _name("Harm", "What it would harm, such as money or data.", 100),
                "call": _CALL,
                "message": _MESSAGE,
                "any_of": {**_ANY_OF, "minItems": 1},
                "where": _WHERE,
                "counts": _choice(
                    "Counts",
                    "committed: only calls that the tool carried out violate it. Without it an "
                    "attempt already does.",
                    COUNTS,
                ),
                "mandatory": _MANDATORY,
            },
            ("id", "harm"),
            **_ENTRY_TARGET,
        ),
        "rubric": _object(
            "A question that people and calibrated judges answer.",
            {
                "rubric": {**_FREE_ID, "title": "Rubric", "description": "The rubric's name."},
                "version": _name("Version", "The rubric's version, as text.", 200),
                "question": _text("Question", "What is asked.", 2_000),
                "mandatory": _MANDATORY,
                "graders": _GRADERS,
            },
            ("rubric",),
        ),
        "external": _object(
            "A criterion that graders outside decide.",
            {
                "id": _FREE_ID,
                "class": _choice("Class", "What its failure is counted as.", tuple(CriterionClass)),
                "mandatory": _MANDATORY,
                "graders": _GRADERS,
            },
            ("id", "class"),
        ),
        "rule": _RULE,
        "step": _STEP,
        "planted_trial": _PLANTED,
    },
}
