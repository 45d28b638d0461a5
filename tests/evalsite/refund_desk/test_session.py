"""A made-up trial while it is told: messages, clock, faults, and chance that repeats itself."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from itertools import pairwise
from typing import Any

import pytest

from evalsite.refund_desk.session import Chance, HarnessBrokeError, Session

NOW = datetime(2026, 11, 16, 2, tzinfo=UTC)
SUBSCRIPTION = {"customer_id": "C-1", "name": "Plus", "renews_on": "2026-12-01", "status": "active"}


def session(name: str = "a test") -> Session:
    return Session(
        {"subscriptions": {"S-1": dict(SUBSCRIPTION)}, "billing": "works"},
        customer="C-1",
        facts={},
        chance=Chance(name),
        begun_at=NOW,
    )


def roles(told: Session) -> list[str]:
    return [message["role"] for message in told.messages]


def test_chance_repeats_itself_and_stays_in_its_bounds() -> None:
    first, second, other = Chance("a"), Chance("a"), Chance("b")
    drawn = [first.between(3, 7) for _ in range(200)]

    assert drawn == [second.between(3, 7) for _ in range(200)]
    assert drawn != [other.between(3, 7) for _ in range(200)]
    assert set(drawn) == {3, 4, 5, 6, 7}
    assert {Chance("c").pick(["x"]) for _ in range(3)} == {"x"}


def test_a_told_trial_has_steps_in_the_order_of_time() -> None:
    told = session()
    told.user("Cancel S-1.")
    result = told.call("cancel_subscription", subscription="S-1")
    told.say("Done.")

    assert roles(told) == ["user", "assistant", "tool", "assistant"]
    assert result["status"] == "cancelled"
    assert json.loads(told.messages[2]["content"]) == result
    assert told.messages[2]["tool_call_id"] == told.messages[1]["tool_calls"][0]["id"]
    times = [message["timestamp"] for message in told.messages]
    assert all(earlier < later for earlier, later in pairwise(times))
    assert told.initial["subscriptions"]["S-1"] == SUBSCRIPTION
    assert told.desk.state["subscriptions"]["S-1"]["status"] == "cancelled"
    assert (told.input_tokens > 0, told.output_tokens > 0) == (True, True)
    last = told.last_words()
    assert last is not None
    assert (last.step, last.text) == (4, "Done.")


def test_calls_of_one_message_are_answered_after_it() -> None:
    told = session()
    wanted: list[tuple[str, dict[str, Any]]] = [
        ("get_subscription", {"subscription": "S-1"}),
        ("cancel_subscription", {"subscription": "S-1"}),
    ]

    told.call_together(*wanted)

    assert roles(told) == ["assistant", "tool", "tool"]
    assert [(call.step, call.result_step) for call in told.calls] == [(1, 2), (1, 3)]
    assert len({call["id"] for call in told.messages[0]["tool_calls"]}) == 2


def test_a_lost_result_does_its_work_and_is_a_fault() -> None:
    told = session()
    told.inject_lost_result("cancel_subscription")
    told.call_without_result("cancel_subscription", subscription="S-1")

    assert roles(told) == ["assistant"]
    assert not told.calls[0].is_committed
    assert told.desk.state["subscriptions"]["S-1"]["status"] == "cancelled"
    assert told.fault == {"kind": "lost result", "step": 1, "tool": "cancel_subscription"}


def test_an_injected_timeout_names_the_step_where_it_struck_first() -> None:
    told = session()
    told.inject_timeout("get_subscription", 2)
    for _ in range(3):
        told.call("get_subscription", subscription="S-1")

    assert [call.is_committed for call in told.calls] == [False, False, True]
    assert told.fault == {"kind": "timeout", "step": 2, "tool": "get_subscription"}
    assert told.seconds > 20


def test_a_timeout_that_nobody_injected_is_no_fault() -> None:
    told = session()
    told.desk.times_out("get_subscription")
    told.call("get_subscription", subscription="S-1")

    assert told.messages[1]["is_error"] is True
    assert told.fault is None


def test_a_broken_harness_ends_the_trial_without_a_state() -> None:
    told = session()
    with pytest.raises(HarnessBrokeError):
        told.breaks("ConnectionResetError: gone")

    assert (told.error, told.has_final_state) == ("ConnectionResetError: gone", False)
