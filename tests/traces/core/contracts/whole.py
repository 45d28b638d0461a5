"""A document with every part of the language, and ways to spoil it."""

from __future__ import annotations

from hypothesis import strategies as st

from tests.traces.core.strategies import json_values
from traces.core.contracts.documents import chunks_of, document_of
from traces.core.values import Json, JsonObject

BASE = """\
task: t
facts: {a: 1, b: x}
trial_facts: [c, d]
outcome:
  - when: facts.c
    changes: {/x/-: {n: 84.00}, /y: 1}
    ignore: [/i, /j]
    absent: [/k, /l]
  - unchanged: true
required:
  - {id: r, call: x, where: args.a, before: y}
  - {id: s, any_of: [{call: x}, {message: user}], after: {message: agent, where: text}}
prohibited:
  - {id: p, harm: data, call: z, where: args.b}
budget: {turns: 3, repeat_call: 2}
semantic: [{rubric: q, version: "1", question: How?}]
external: [{id: e, class: outcome, graders: [g]}]
evidence: [final_state]
variation: [{tool: x, argument: a, kind: round_to, step: 0.01}, {tool: x, argument: b, kind: text}]
"""
(CHUNK,) = chunks_of(
    BASE
    + """
trials: 3
grader_tests:
  - name: n
    facts: {c: 1}
    usage: {cost_usd: 1}
    steps: [{user: u}, {call: x, args: {}, result: 1}, {together: [{call: x, rejected: r}]}]
    expect: {outcome: pass}
  - {name: m, like: n, without: [1, x], expect: {r: fail}}
"""
)
_VALUE = document_of(CHUNK).value
assert isinstance(_VALUE, dict)
WHOLE: JsonObject = _VALUE


def paths_in(value: Json) -> list[tuple[str | int, ...]]:
    if isinstance(value, dict):
        return [(), *((name, *path) for name in value for path in paths_in(value[name]))]
    if isinstance(value, list):
        return [(), *((n, *path) for n, item in enumerate(value) for path in paths_in(item))]
    return [()]


def replaced(value: Json, path: tuple[str | int, ...], new: Json) -> Json:
    if not path:
        return new
    first, *rest = path
    if isinstance(value, dict):
        return {n: replaced(v, tuple(rest), new) if n == first else v for n, v in value.items()}
    assert isinstance(value, list)
    return [replaced(v, tuple(rest), new) if n == first else v for n, v in enumerate(value)]


ANYTHING = st.one_of(
    json_values,
    st.sampled_from([[], {}, "", "x", None, [{}], [[]], {"max": None}, {"x": 1}, True, 1]),
)


@st.composite
def spoiled_documents(draw: st.DrawFn) -> JsonObject:
    """The whole document with anything at one place."""
    document = replaced(WHOLE, draw(st.sampled_from(paths_in(WHOLE)[1:])), draw(ANYTHING))
    assert isinstance(document, dict)
    return document
