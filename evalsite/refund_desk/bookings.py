"""The family `bookings`: another date, a fare difference that depends on a balance, and bags."""

from __future__ import annotations

from typing import Any, Final

from evalsite.refund_desk.desk import State
from evalsite.refund_desk.grading import (
    against_its_score,
    customer_said,
    ended_with,
    needs,
    no_judges,
    not_graded,
    outcome,
    person_says,
    tone_is_curt,
    tone_is_unreadable,
)
from evalsite.refund_desk.session import Called, Session
from evalsite.refund_desk.story import NEW, OLD, Facts, Path, Run, Task, Trial, nightly

BALANCE: Final = "balance"


def _any(_call: Called, _session: Session) -> bool:
    return True


# Another date: times in several forms, and a cabin that is named or left to its default


def _date_opening(_facts: Facts) -> State:
    return {
        "bookings": {
            "K7QX2M": {
                "customer_id": "C-62",
                "last_name": "Okafor",
                "flight": "MU210",
                "departs": "2026-12-11T08:40:00Z",
                "fare": "flex",
            }
        },
        "fares": {
            "flex": {"change_fee": 0.0, "changes": "until 2 hours before departure"},
            "saver": {"change_fee": 60.0, "changes": "until 7 days before departure"},
        },
        "flights": {
            "MU210": _flight("2026-12-11T08:40:00Z", 31),
            "MU212": _flight("2026-12-18T08:40:00Z", 12),
            "MU214": _flight("2026-12-18T17:05:00Z", 0),
        },
    }


def _flight(departs: str, seats: int) -> State:
    return {"from": "LIS", "to": "VIE", "cabin": "economy", "departs": departs, "seats": seats}


def _date_wanted(state: State, _facts: Facts) -> None:
    state["bookings"]["K7QX2M"].update(flight="MU212", departs="2026-12-18T08:40:00Z")


def _open_booking(s: Session) -> None:
    s.call("verify_pnr", pnr="K7QX2M", last_name="Okafor")


def _search(s: Session, date: str = "2026-12-18", **more: Any) -> None:
    s.call("search_flights", origin="LIS", to="VIE", date=date, **more)


def _offer(s: Session) -> None:
    s.say(
        "On 18 December MU212 leaves Lisbon at 08:40. With your flex fare the change is free. Shall "
        "I book it?",
        "There is MU212 on the 18th at 08:40, and your fare has no fee for changes. Do you want it?",
        "MU212 goes at 08:40 that Friday, with twelve seats left and no fee to pay. Shall I?",
    )
    s.user("Yes, the morning one.", "Yes please, perfect.", "Yes, that works.", "Yes, take it.")


def _changed(s: Session) -> None:
    s.say(
        "You are on MU212 on 18 December, 08:40. The new ticket is in your mailbox.",
        "Changed: MU212, Friday 18 December, 08:40 from Lisbon. Nothing to pay.",
        "Your booking K7QX2M now says MU212, 18 December, 08:40. Have a good flight!",
    )


def _change(s: Session, departs: str = "2026-12-18T08:40:00Z", flight: str = "MU212") -> None:
    s.call("change_booking", pnr="K7QX2M", flight=flight, departs=departs)


def _date_usual(departs: str, date: str = "2026-12-18", **more: Any) -> Path:
    def path(s: Session) -> None:
        _open_booking(s)
        s.call("get_fare_rules", fare="flex")
        _search(s, date, **more)
        _offer(s)
        _change(s, departs)
        _changed(s)

    return path


def _date_search_first(s: Session) -> None:
    _open_booking(s)
    _search(s)
    s.call("get_fare_rules", fare="flex")
    _offer(s)
    _change(s)
    _changed(s)


def _date_sold_out_first(s: Session) -> None:
    _open_booking(s)
    s.call("get_fare_rules", fare="flex")
    _search(s)
    s.say("MU214 leaves at 17:05 on the 18th, free of charge with your fare. Shall I take that?")
    s.user("Yes, if there is a seat. Otherwise the morning flight, please.")
    _change(s, "2026-12-18T17:05:00Z", "MU214")
    _change(s)
    s.say("MU214 is sold out, so I took MU212 at 08:40 on 18 December, as you said. All confirmed.")


def _date_rules_skipped(s: Session) -> None:
    _open_booking(s)
    _search(s)
    s.say("MU212 on the 18th at 08:40 has seats. Shall I move you there?")
    s.user("Yes, do that.")
    _change(s)
    _changed(s)


def _date_breaks(s: Session) -> None:
    _open_booking(s)
    s.call("get_fare_rules", fare="flex")
    s.breaks("RuntimeError: the simulated customer returned an empty message")


CHANGE_DATE: Final = Task(
    task_id="change_flight_date",
    title="Move a flight to another date",
    family="bookings",
    split="held_out",
    ask="Hi, can I fly a week later, on 18 December? Booking K7QX2M, Okafor.",
    customer="C-62",
    facts={"customer_id": "C-62", "pnr": "K7QX2M"},
    opening=_date_opening,
    checks=(
        outcome(_date_wanted),
        needs(
            "fare-rules",
            "A look at the fare rules",
            ["get_fare_rules"],
            _any,
            before="change_booking",
        ),
        customer_said("consent", r"\b(yes|confirm)\b", before="change_booking"),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_date_usual("2026-12-18T08:40:00Z")),
            Trial(_date_usual("2026-12-18T09:40:00+01:00", cabin="economy")),
            Trial(_date_usual("2026-12-18T08:40:00+00:00"), (no_judges,)),
            Trial(_date_breaks),
            Trial(_date_search_first),
        ),
        nightly(
            NEW,
            Trial(_date_usual("2026-12-18T08:40:00Z", cabin="economy")),
            Trial(_date_sold_out_first),
            Trial(_date_usual("2026-12-18T08:40:00Z", "2026-12-18T00:00:00Z", cabin="economy")),
            Trial(_date_rules_skipped, (tone_is_curt,)),
            # The harness set up another booking than its task says: no evidence about the agent.
            Trial(_date_usual("2026-12-18T08:40:00Z"), (not_graded,), facts={"pnr": "K7QX2N"}),
        ),
    ),
)


# A fare difference: refunded when the balance suffices, escalated when not


def _fare_opening(facts: Facts) -> State:
    balance = 120.0 if facts["sufficient"] else 15.0
    return {
        "bookings": {
            "R4TZ9A": {
                "customer_id": "C-66",
                "last_name": "Marchetti",
                "flight": "MU118",
                "departs": "2026-12-03T06:15:00Z",
                "difference": 46.0,
                "balance": balance,
            }
        },
        "refunds": [],
        "tickets": [],
    }


def _fare_wanted(state: State, facts: Facts) -> None:
    if facts["sufficient"]:
        state["refunds"].append({"pnr": "R4TZ9A", "amount": 46.0, "method": "voucher"})
    else:
        ticket = {"customer_id": "C-66", "topic": "refund_by_hand", "about": "R4TZ9A"}
        state["tickets"].append(ticket)


def _fare_refund(s: Session) -> None:
    """Three tools, always in the same order; what comes of it depends on the balance."""
    s.call("verify_pnr", pnr="R4TZ9A", last_name="Marchetti")
    s.call("check_balance", pnr="R4TZ9A")
    result = s.call("issue_refund", pnr="R4TZ9A", amount=46.0, method="voucher")
    if result["status"] == "issued":
        s.say(
            "The 46.00 euros are back as a voucher; its code is in your mailbox.",
            "You get a voucher over 46.00 euros, valid for two years. I have just sent it.",
        )
    else:
        s.say(
            f"I cannot pay out the 46.00 euros from here. I opened ticket {result['ticket']}; a "
            "colleague does it by hand and writes to you within two days.",
            f"This one needs a colleague: ticket {result['ticket']} is open, and you will hear from "
            "us within two days.",
        )


def _fare_trials(*sufficient: bool) -> tuple[Trial, ...]:
    return tuple(Trial(_fare_refund, facts={"sufficient": is_enough}) for is_enough in sufficient)


FARE_DIFFERENCE: Final = Task(
    task_id="refund_fare_difference",
    title="Refund a fare difference, or escalate it",
    family="bookings",
    split="held_out",
    ask="My flight R4TZ9A got cheaper after I booked. Please refund the difference. Marchetti.",
    customer="C-66",
    facts={"customer_id": "C-66", "pnr": "R4TZ9A"},
    opening=_fare_opening,
    checks=(
        outcome(_fare_wanted),
        needs("pnr", "A look at the booking", ["verify_pnr"], _any, before="issue_refund"),
        ended_with("refund-issued", "issue_refund", "issued").without_deciding(),
    ),
    runs=(
        nightly(OLD, *_fare_trials(True, True, False, True, False)),
        nightly(NEW, *_fare_trials(True, False, True, True, False)),
        Run(
            OLD,
            BALANCE,
            _fare_trials(True, False, True, True, False, True, False, True, True, False),
        ),
    ),
)


# Bags: a list in any order, a weight in any form


def _bags_opening(_facts: Facts) -> State:
    return {
        "bookings": {
            "W2LN8C": {
                "customer_id": "C-69",
                "last_name": "Nowak",
                "flight": "MU330",
                "departs": "2026-12-21T11:30:00Z",
                "passengers": ["Jan", "Maja"],
                "bags": {},
            }
        },
    }


def _bags_wanted(state: State, _facts: Facts) -> None:
    state["bookings"]["W2LN8C"]["bags"] = {"Jan": 23, "Maja": 23}


def _bags_offer(s: Session) -> None:
    s.call("verify_pnr", pnr="W2LN8C", last_name="Nowak")
    s.say(
        "Two bags of 23 kg for Jan and Maja, free of charge in your fare. Shall I add them?",
        "Your fare includes one bag of 23 kg each. Do you want me to add both?",
    )
    s.user("Yes, both.", "Yes please.", "Yes, one for each of us.")


def _bags_added(s: Session) -> None:
    s.say(
        "Both bags are added: 23 kg for Jan, 23 kg for Maja.",
        "Done, each of you may now check in a bag of 23 kg on MU330.",
        "One bag of 23 kg each, for Jan and Maja: both are on your booking now.",
    )


def _bags(passengers: list[str], weight_kg: float | str) -> Path:
    def path(s: Session) -> None:
        _bags_offer(s)
        s.call("add_bags", pnr="W2LN8C", passengers=passengers, weight_kg=weight_kg)
        _bags_added(s)

    return path


def _bags_too_heavy_first(s: Session) -> None:
    _bags_offer(s)
    s.call("add_bags", pnr="W2LN8C", passengers=["Jan", "Maja"], weight_kg=46)
    s.call("add_bags", pnr="W2LN8C", passengers=["Jan", "Maja"], weight_kg=23)
    _bags_added(s)


def _bags_result_lost(s: Session) -> None:
    _bags_offer(s)
    s.inject_lost_result("add_bags")
    s.call_without_result("add_bags", pnr="W2LN8C", passengers=["Jan", "Maja"], weight_kg=23)
    s.call("verify_pnr", pnr="W2LN8C", last_name="Nowak")
    _bags_added(s)


def _bags_for_one(s: Session) -> None:
    _bags_offer(s)
    s.call("add_bags", pnr="W2LN8C", passengers=["Jan"], weight_kg=23)
    _bags_added(s)


ADD_BAGS: Final = Task(
    task_id="add_bags",
    title="Add a bag for each of two passengers",
    family="bookings",
    split="held_out",
    ask="We would like to take a bag each, 23 kg. Booking W2LN8C, Nowak.",
    customer="C-69",
    facts={"customer_id": "C-69", "pnr": "W2LN8C"},
    opening=_bags_opening,
    checks=(
        outcome(_bags_wanted),
        needs("pnr", "A look at the booking", ["verify_pnr"], _any, before="add_bags"),
        customer_said("consent", r"\b(yes|confirm)\b", before="add_bags"),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_bags(["Jan", "Maja"], 23)),
            Trial(_bags(["Maja", "Jan"], 23)),
            Trial(_bags(["Jan", "Maja"], "23")),
            Trial(
                _bags_for_one,
                (against_its_score("pass", 0.0, "It says that both bags are added; one is."),),
            ),
            Trial(_bags_result_lost, (person_says("pass", "It looked before it promised."),)),
        ),
        nightly(
            NEW,
            Trial(_bags(["Jan", "Maja"], 23)),
            Trial(_bags(["Maja", "Jan"], "23"), (tone_is_unreadable,)),
            Trial(_bags_too_heavy_first),
            Trial(_bags(["Jan", "Maja"], 23)),
            Trial(_bags(["Maja", "Jan"], 23)),
        ),
    ),
)

TASKS: Final = (CHANGE_DATE, FARE_DIFFERENCE, ADD_BAGS)
