"""Evidence that is added: what it fills, what it leaves alone, and what is refused."""

from __future__ import annotations

from decimal import Decimal

import pytest

from traces.core.additions import (
    AddedResult,
    Addition,
    AdditionPart,
    StoredEvidence,
    addition_document,
    filled,
    parse_addition,
    unfit_parts,
)
from traces.core.records import TrialStatus
from traces.core.rules import RejectionSettings
from traces.core.trajectory import CallOutcome
from traces.core.transcript import transcript_of
from traces.core.values import Json, JsonObject

WHOLE = Addition(
    initial_state={"a": 1},
    final_state={"a": 2},
    facts={"order": "A-1"},
    results=(AddedResult(2, 0, "ok"), AddedResult(2, 1, {"status": "no"}, is_error=True)),
    cost_usd=Decimal("0.25"),
    tokens=12,
    seconds=Decimal("1.5"),
)


def call(name: str, identity: str | None) -> JsonObject:
    function: JsonObject = {"name": name, "arguments": "{}"}
    return {"function": function} if identity is None else {"id": identity, "function": function}


def evidence(**more: object) -> StoredEvidence:
    """A user, an agent with two calls without results, one with a result, and the end."""
    messages: tuple[JsonObject, ...] = (
        {"role": "user", "content": "Please."},
        {"role": "assistant", "tool_calls": [call("a", "c1"), call("b", None)]},
        {"role": "assistant", "tool_calls": [call("c", "c3")]},
        {"role": "tool", "tool_call_id": "c3", "content": "done"},
    )
    steps = transcript_of(messages)
    return StoredEvidence(TrialStatus.COMPLETED, messages, steps, **more)  # type: ignore[arg-type]


def test_filled_gives_every_part_that_was_not_recorded() -> None:
    found = filled(evidence(), [WHOLE])

    assert (found.initial_state, found.final_state, found.facts) == (
        {"a": 1},
        {"a": 2},
        {"order": "A-1"},
    )
    assert (found.cost_usd, found.tokens, found.seconds) == (Decimal("0.25"), 12, Decimal("1.5"))
    assert found.evidence_order == 1
    assert found.messages[:4] == evidence().messages
    assert found.messages[4:] == (
        {"role": "tool", "content": "ok", "tool_call_id": "c1"},
        {"role": "tool", "content": {"status": "no"}, "is_error": True},
    )
    assert [step.number for step in found.steps] == [1, 2, 3, 4, 5, 6]
    assert [(c.outcome, c.result_step) for c in found.steps[1].calls] == [
        (CallOutcome.COMMITTED, 5),
        (CallOutcome.REJECTED, 6),
    ]
    assert found.steps[2] == evidence().steps[2]


def test_filled_never_changes_what_was_recorded() -> None:
    recorded = evidence(
        initial_state={"a": 0},
        final_state=False,
        facts={"order": "B-2"},
        cost_usd=Decimal(0),
        tokens=0,
        seconds=Decimal(0),
    )
    found = filled(recorded, [Addition(**{**fields(WHOLE), "results": (AddedResult(3, 0, "x"),)})])

    assert found == StoredEvidence(
        TrialStatus.COMPLETED,
        recorded.messages,
        recorded.steps,
        {"order": "B-2"},
        {"a": 0},
        False,
        None,
        Decimal(0),
        0,
        Decimal(0),
        evidence_order=1,
    )


def fields(addition: Addition) -> dict[str, object]:
    return {name: getattr(addition, name) for name in Addition.__slots__}


def test_the_first_addition_fills_and_facts_are_filled_one_by_one() -> None:
    found = filled(
        evidence(facts={"a": 1}),
        [
            Addition(final_state="first", facts={"a": 9, "b": 2}),
            Addition(final_state="second", facts={"b": 9, "c": 3}),
        ],
    )
    assert (found.final_state, found.facts) == ("first", {"a": 1, "b": 2, "c": 3})
    assert found.evidence_order == 2


def test_a_result_is_taken_once_and_only_for_a_call() -> None:
    twice = Addition(results=(AddedResult(2, 0, "first"), AddedResult(2, 0, "second")))
    nowhere = Addition(results=(AddedResult(9, 0, "x"), AddedResult(1, 0, "x")))
    found = filled(evidence(), [twice, twice, nowhere])

    assert [m["content"] for m in found.messages[4:]] == ["first"]


@pytest.mark.parametrize(
    ("text", "outcome"),
    [("Refused: no", CallOutcome.REJECTED), ("Error: no", CallOutcome.COMMITTED)],
)
def test_the_settings_of_the_system_tell_a_refusal(text: str, outcome: CallOutcome) -> None:
    added = Addition(results=(AddedResult(2, 0, text),))
    found = filled(evidence(), [added], RejectionSettings(prefixes=("Refused",)))
    assert found.steps[1].calls[0].outcome is outcome


@pytest.mark.parametrize(
    "addition", [WHOLE, Addition(), Addition(results=(AddedResult(1, 2, None),))], ids=str
)
def test_an_addition_is_read_as_it_was_written(addition: Addition) -> None:
    read, findings = parse_addition(addition_document(addition))
    assert read == addition
    assert [f.code for f in findings] == ([] if addition.parts else ["empty"])


def test_parts_are_named_in_their_order() -> None:
    assert WHOLE.parts == tuple(AdditionPart)
    assert Addition(facts={}).parts == ()


@pytest.mark.parametrize(
    ("document", "found"),
    [
        pytest.param([], [("wrong-type", "")], id="no-object"),
        pytest.param({}, [("empty", "")], id="empty"),
        pytest.param({"verdicts": []}, [("unknown-part", "verdicts")], id="unknown"),
        pytest.param({"facts": []}, [("wrong-type", "facts")], id="facts"),
        pytest.param({"results": {}}, [("wrong-type", "results")], id="results"),
        pytest.param({"results": [1]}, [("wrong-type", "results[0]")], id="result"),
        pytest.param({"results": [{}]}, [("missing-field", "results[0]")] * 2, id="no-step"),
        pytest.param(
            {"results": [{"step": 1, "index": True, "content": "", "is_error": 1}]},
            [
                ("bad-number", "results[0].index"),
                ("wrong-type", "results[0].is_error"),
                ("missing-field", "results[0]"),
            ],
            id="odd-result",
        ),
        pytest.param({"tokens": 1.5}, [("bad-number", "tokens")], id="half-a-token"),
        pytest.param({"tokens": -1}, [("bad-number", "tokens")], id="fewer-than-no-tokens"),
        pytest.param({"tokens": 10**5000}, [("bad-number", "tokens")], id="huge"),
        pytest.param({"tokens": "1e99999"}, [("bad-number", "tokens")], id="huge-text"),
        pytest.param({"cost_usd": "dear"}, [("bad-number", "cost_usd")], id="word"),
        pytest.param({"cost_usd": "Infinity"}, [("bad-number", "cost_usd")], id="infinite"),
        pytest.param({"cost_usd": 1e16}, [("bad-number", "cost_usd")], id="dear"),
        pytest.param({"seconds": []}, [("bad-number", "seconds")], id="list"),
    ],
)
def test_a_document_says_where_it_is_wrong(document: Json, found: list[tuple[str, str]]) -> None:
    _, findings = parse_addition(document)
    assert [(f.code, f.place) for f in findings] == found


@pytest.mark.parametrize(("raw", "tokens"), [("12", 12), (12.0, 12), (Decimal("1e2"), 100)])
def test_numbers_may_be_written_in_any_form(raw: Json, tokens: int) -> None:
    assert parse_addition({"tokens": raw}) == (Addition(tokens=tokens), ())


def test_unfit_parts_are_those_that_fill_nothing() -> None:
    recorded = evidence(final_state={"a": 1}, facts={"order": "A-1"}, tokens=1)
    added = Addition(
        initial_state={},
        final_state={},
        facts={"order": "A-2", "new": 1},
        results=(AddedResult(2, 0, "ok"), AddedResult(2, 0, "ok"), AddedResult(3, 0, "x")),
        tokens=2,
    )
    nowhere = Addition(results=(AddedResult(7, 0, "x"),))

    assert [(f.code, f.place) for f in unfit_parts(recorded, added)] == [
        ("recorded", "final_state"),
        ("recorded", "facts.order"),
        ("recorded", "results[1]"),
        ("recorded", "results[2]"),
        ("recorded", "tokens"),
    ]
    assert [f.sentence for f in unfit_parts(recorded, nowhere)] == ["Step 7 has no call 1."]
    assert unfit_parts(evidence(), WHOLE) == ()
