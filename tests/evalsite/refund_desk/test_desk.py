"""The tools of the refund desk: what they answer, what they change and what they refuse."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from evalsite.refund_desk.desk import TOOL_KINDS, Answer, Desk

NOW = datetime(2026, 11, 16, 2, tzinfo=UTC)


def desk(**tables: Any) -> Desk:
    state = {
        "customers": {
            "C-1": {"name": "Ada Berg", "city": "Oslo", "postcode": "0150", "email": "a@x.example"},
            "C-2": {"name": "Bo Berg", "city": "Oslo", "postcode": "0151", "email": "b@x.example"},
        },
        "orders": {
            "A-1": {
                "customer_id": "C-1",
                "status": "delivered",
                "items": [{"item": "cup", "price": 7.5, "quantity": 2, "claimable": True}],
                "total": 20.0,
                "refund_to": "original_card",
            }
        },
        "subscriptions": {
            "S-1": {"customer_id": "C-1", "name": "Plus", "price": 9.9, "renews_on": "2026-12-01"},
            "S-2": {"customer_id": "C-2", "name": "Plus", "price": 9.9, "renews_on": "2026-12-01"},
        },
        "refunds": [],
        "tickets": [],
        "approvals": [],
        "billing": "works",
        **tables,
    }
    return Desk(state, customer="C-1", now=NOW)


def refused(answer: Answer) -> str:
    assert answer.is_error
    assert answer.result == {}
    return answer.text


def test_every_tool_is_implemented() -> None:
    assert [name for name, _ in TOOL_KINDS] == sorted(name for name, _ in TOOL_KINDS)
    assert all(callable(getattr(Desk, f"_{name}")) for name, _ in TOOL_KINDS)
    with pytest.raises(LookupError):
        desk().use("times_out", {})


def test_a_refund_is_kept_with_the_time_of_its_call() -> None:
    one = desk()
    given = {"order": "A-1", "amount": "7.50", "method": "original_card", "approval_id": "AP-9"}

    answer = one.use("issue_refund", given)

    row = {"order": "A-1", "amount": 7.5, "method": "original_card", "approval_id": "AP-9"}
    assert answer.result == {"refund": "R-5001", **row, "status": "issued"}
    assert one.state["refunds"] == [{"id": "R-5001", **row, "created_at": "2026-11-16T02:00:00Z"}]
    assert one.use("get_order", {"order": "A-1"}).result["refunded"] == 7.5


@pytest.mark.parametrize(
    ("amount", "sentence"),
    [
        pytest.param(20.01, "Error: at most 20.00 can be refunded for A-1.", id="too-much"),
        pytest.param("twenty", "Error: 'twenty' is no amount.", id="no-amount"),
    ],
)
def test_a_refused_refund_changes_nothing(amount: Any, sentence: str) -> None:
    one = desk()
    given = {"order": "A-1", "amount": amount, "method": "original_card"}

    assert refused(one.use("issue_refund", given)) == sentence
    assert one.state["refunds"] == []


def test_a_refund_without_enough_balance_becomes_a_ticket() -> None:
    booking = {"customer_id": "C-1", "difference": 10.0, "balance": 9.99}
    one = desk(bookings={"P1": booking})

    answer = one.use("issue_refund", {"pnr": "P1", "amount": 10.0, "method": "voucher"})

    assert one.use("check_balance", {"pnr": "P1"}).result["sufficient"] is False
    assert answer.result["status"] == "escalated"
    assert one.state["refunds"] == []
    assert [ticket["about"] for ticket in one.state["tickets"]] == ["P1"]


def test_an_identity_stays_pending_until_the_link_is_opened() -> None:
    one = desk()
    given = {"customer_id": "C-1", "method": "email_link"}
    one.customer_opens_link()  # nothing was sent yet

    said = [one.use("verify_identity", given).result["status"] for _ in range(2)]
    one.customer_opens_link()
    said.append(one.use("verify_identity", given).result["status"])

    assert said == ["pending", "pending", "verified"]


def test_an_identity_by_postcode_is_verified_or_failed() -> None:
    one = desk()
    given = {"customer_id": "C-1", "method": "postcode"}

    assert one.use("verify_identity", given | {"answer": "01 50"}).result["status"] == "verified"
    assert one.use("verify_identity", given | {"answer": "0151"}).result["status"] == "failed"
    assert refused(one.use("verify_identity", given | {"method": "voice"})) == (
        "Error: unknown method voice."
    )


def test_a_record_shows_no_postcode_and_a_search_finds_all_of_a_name() -> None:
    one = desk()

    found = one.use("find_customer", {"name": "berg"}).result["items"]
    shown = one.use("get_customer", {"customer_id": "C-2"}).result

    assert [item["customer_id"] for item in found] == ["C-1", "C-2"]
    assert "postcode" not in shown
    assert [held["subscription"] for held in shown["subscriptions"]] == ["S-2"]


def test_another_account_is_closed() -> None:
    one = desk()

    assert refused(one.use("get_subscription", {"subscription": "S-2"})) == (
        "Error: S-2 belongs to another account."
    )
    assert refused(one.use("list_subscriptions", {"customer_id": "C-2"})) == (
        "Error: C-2 is another account."
    )
    assert refused(one.use("get_subscription", {"subscription": "S-9"})) == (
        "Error: there is no S-9 among the subscriptions."
    )


def test_billing_that_rejects_leaves_the_subscription() -> None:
    one = desk(billing="rejects")

    sentence = refused(one.use("cancel_subscription", {"subscription": "S-1"}))

    assert sentence.startswith("Error: billing rejected")
    assert "status" not in one.state["subscriptions"]["S-1"]


def test_a_tool_that_times_out_changes_nothing_and_recovers() -> None:
    one = desk()
    one.times_out("cancel_subscription", 2)

    said = [one.use("cancel_subscription", {"subscription": "S-1"}) for _ in range(3)]

    assert [answer.is_error for answer in said] == [True, True, False]
    assert refused(said[0]) == "Error: cancel_subscription timed out, no answer after 10 s."
    assert one.state["subscriptions"]["S-1"]["status"] == "cancelled"


def test_a_state_given_is_never_changed() -> None:
    given = {"subscriptions": {"S-1": {"status": "active", "renews_on": "x"}}, "billing": "works"}

    Desk(given, customer="C-1", now=NOW).use("cancel_subscription", {"subscription": "S-1"})

    assert given["subscriptions"] == {"S-1": {"status": "active", "renews_on": "x"}}


@pytest.mark.parametrize(
    ("departs", "sentence"),
    [
        pytest.param("2026-12-18T08:40:00Z", "", id="utc"),
        pytest.param("2026-12-18T09:40:00+01:00", "", id="other-zone"),
        pytest.param("2026-12-18T08:40:00+01:00", "does not depart at", id="other-instant"),
    ],
)
def test_a_flight_is_named_with_its_instant(departs: str, sentence: str) -> None:
    flights = {"F1": {"departs": "2026-12-18T08:40:00Z", "seats": 1}}
    one = desk(bookings={"P1": {}}, flights=flights)

    answer = one.use("change_booking", {"pnr": "P1", "flight": "F1", "departs": departs})

    assert answer.is_error == bool(sentence)
    assert sentence in answer.text


def test_other_refusals_name_what_is_wrong() -> None:
    flights = {"F1": {"departs": "2026-12-18T08:40:00Z", "seats": 0}}
    one = desk(bookings={"P1": {"last_name": "Berg"}}, flights=flights)
    departs = "2026-12-18T08:40:00Z"

    said = [
        refused(one.use("change_booking", {"pnr": "P1", "flight": "F1", "departs": departs})),
        refused(one.use("verify_pnr", {"pnr": "P1", "last_name": "Dahl"})),
        refused(one.use("add_bags", {"pnr": "P1", "passengers": ["Ada"], "weight_kg": 33})),
        refused(one.use("calculate", {"expression": "1 +"})),
        refused(one.use("transfer_to_person", {"summary": ""})),
    ]

    assert said == [
        "Error: F1 is sold out.",
        "Error: P1 is not under the name Dahl.",
        "Error: a bag may weigh 32 kg at most.",
        "Error: cannot work out '1 +'.",
        "Error: a person needs a summary.",
    ]
