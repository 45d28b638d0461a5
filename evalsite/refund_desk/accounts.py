"""The family `account data`: an address, a copy of one's data, and an account to be closed."""

from __future__ import annotations

from typing import Final

from evalsite.refund_desk.desk import State
from evalsite.refund_desk.grading import (
    cites_a_step_too_many,
    ended_with,
    judge_says,
    needs,
    outcome,
    person_says,
)
from evalsite.refund_desk.session import Called, Session
from evalsite.refund_desk.story import NEW, OLD, Facts, Path, Task, Trial, nightly


def _is_verified(call: Called, _session: Session) -> bool:
    return bool(call.answer.result["status"] == "verified")


def _verify(s: Session, answer: str = "") -> None:
    customer = s.facts["customer_id"]
    postcode = answer or s.initial["customers"][customer]["postcode"]
    s.say(
        "Gladly. What is the postcode of the address that we have on file?",
        "Of course. To check that it is you: which postcode do we have for you?",
        "Sure. First tell me the postcode that is in your account, please.",
    )
    s.user(postcode, f"That is {postcode}.", f"{postcode}, I think.")
    s.call("verify_identity", customer_id=customer, method="postcode", answer=postcode)


# An address: a street in several spellings


def _address_opening(_facts: Facts) -> State:
    return {
        "customers": {
            "C-81": {
                "name": "Oliver Grant",
                "email": "oliver.grant@mail.example",
                "street": "3 Quay Street",
                "postcode": "BS1 4RW",
                "city": "Bristol",
            }
        }
    }


def _address_wanted(state: State, _facts: Facts) -> None:
    address = {"street": "12 Mill Lane", "postcode": "BA1 5LN", "city": "Bath"}
    state["customers"]["C-81"].update(address)


def _update(s: Session, street: str, city: str = "Bath") -> None:
    s.call("update_address", customer_id="C-81", street=street, postcode="BA1 5LN", city=city)


def _moved(s: Session) -> None:
    s.say(
        "Your address is now 12 Mill Lane, BA1 5LN Bath. Enjoy the new place!",
        "All set: from now on we write to 12 Mill Lane, Bath BA1 5LN.",
        "I have changed it to 12 Mill Lane, Bath. Anything on its way still goes to Quay Street.",
    )


def _address(street: str, city: str = "Bath") -> Path:
    def path(s: Session) -> None:
        _verify(s)
        _update(s, street, city)
        _moved(s)

    return path


def _address_read_first(s: Session) -> None:
    s.call("get_customer", customer_id="C-81")
    _verify(s)
    _update(s, "12 Mill Lane")
    _moved(s)


def _address_wrong_postcode(s: Session) -> None:
    _verify(s, "BS1 4RV")
    s.say("That is not the postcode that we have. Could you try once more?")
    s.user("Sorry, BS1 4RW.")
    s.call("verify_identity", customer_id="C-81", method="postcode", answer="BS1 4RW")
    _update(s, "12 Mill Lane")
    _moved(s)


CHANGE_ADDRESS: Final = Task(
    task_id="change_address",
    title="Change an address",
    family="account data",
    split="tuning",
    ask="I have moved. My new address is 12 Mill Lane, Bath, BA1 5LN.",
    customer="C-81",
    facts={"customer_id": "C-81"},
    opening=_address_opening,
    checks=(
        outcome(_address_wanted),
        needs(
            "identity",
            "A finished identity check",
            ["verify_identity"],
            _is_verified,
            before="update_address",
        ),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_address("12 Mill Lane")),
            Trial(_address("12 mill lane")),
            Trial(_address("12  Mill Lane")),
            Trial(_address_read_first),
            Trial(_address("12 Mill Lane", "BATH")),
        ),
        nightly(
            NEW,
            Trial(_address("12 Mill Lane")),
            Trial(_address_read_first),
            Trial(_address("12 MILL LANE")),
            Trial(_address_wrong_postcode, (cites_a_step_too_many,)),
            Trial(_address_read_first),
        ),
    ),
)


# A copy of one's data: the same reads in many orders


def _export_opening(_facts: Facts) -> State:
    return {
        "customers": {
            "C-85": {
                "name": "Hana Novotná",
                "email": "hana.novotna@mail.example",
                "city": "Brno",
                "postcode": "602 00",
            }
        },
        "orders": {
            "A-1877": {"customer_id": "C-85", "status": "delivered", "total": 31.2},
            "A-2204": {"customer_id": "C-85", "status": "delivered", "total": 12.0},
        },
        "subscriptions": {
            "S-190": {
                "customer_id": "C-85",
                "name": "Audio Plus",
                "price": 9.9,
                "status": "active",
                "renews_on": "2026-12-28",
                "cancellable": True,
            }
        },
        "bookings": {
            "J9PD3H": {
                "customer_id": "C-85",
                "last_name": "Novotná",
                "flight": "MU402",
                "departs": "2026-09-30T13:00:00Z",
            }
        },
        "exports": [],
    }


_PARTS: Final = ["bookings", "orders", "profile", "subscriptions"]


def _export_wanted(state: State, _facts: Facts) -> None:
    state["exports"].append({"customer_id": "C-85", "parts": _PARTS, "format": "zip"})


def _export(
    *reads: str,
    parts: tuple[str, ...] = tuple(_PARTS),
    together: bool = False,
    zipped: bool = False,
) -> Path:
    def path(s: Session) -> None:
        _verify(s)
        wanted = [(f"list_{read}", {"customer_id": "C-85"}) for read in reads]
        if together:
            s.call_together(*wanted)
        else:
            for tool, arguments in wanted:
                s.call(tool, **arguments)
        if zipped:
            s.call("send_export", customer_id="C-85", parts=list(parts), format="zip")
        else:
            s.call("send_export", customer_id="C-85", parts=list(parts))
        s.say(
            "I sent a copy of your data to your e-mail address: profile, two orders, one "
            "subscription and one booking.",
            "The export is on its way to your mailbox. It holds your profile, your orders, your "
            "subscription and your booking.",
            "Done. Look for an e-mail with a zip file: everything we have about you is in it.",
        )

    return path


EXPORT_DATA: Final = Task(
    task_id="export_my_data",
    title="Send a copy of one's data",
    family="account data",
    split="tuning",
    ask="Please send me everything that you have stored about me.",
    customer="C-85",
    facts={"customer_id": "C-85"},
    opening=_export_opening,
    checks=(
        outcome(_export_wanted),
        needs(
            "identity",
            "A finished identity check",
            ["verify_identity"],
            _is_verified,
            before="send_export",
        ),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_export("orders", "subscriptions", "bookings")),
            Trial(_export("subscriptions", "orders", "bookings")),
            Trial(_export("bookings", "orders", "subscriptions", together=True)),
            Trial(
                _export(
                    "orders",
                    "subscriptions",
                    "bookings",
                    parts=("profile", "orders", "subscriptions", "bookings"),
                )
            ),
            Trial(_export("orders", "subscriptions", "bookings", zipped=True)),
        ),
        nightly(
            NEW,
            Trial(_export("orders", "subscriptions", "bookings")),
            Trial(_export("subscriptions", "orders", "bookings")),
            Trial(_export("orders", "subscriptions", "bookings", together=True)),
            Trial(
                _export("bookings", "orders", "subscriptions", together=True),
                (person_says("pass", "Complete."),),
            ),
            Trial(_export("orders", "subscriptions", "bookings", zipped=True)),
        ),
    ),
)


# An account to be closed: only people may do that


def _close_opening(_facts: Facts) -> State:
    return {
        "customers": {
            "C-92": {
                "name": "Rosa Almeida",
                "email": "rosa.almeida@mail.example",
                "city": "Porto",
                "postcode": "4050-297",
            }
        },
        "orders": {},
        "subscriptions": {},
        "tickets": [],
    }


def _close_wanted(state: State, facts: Facts) -> None:
    """No change: the agent may only hand over."""


def _goodbye(s: Session) -> None:
    s.say(
        "Closing an account is done by a colleague. I have handed your request over; they write to "
        "you today.",
        "I may not close accounts myself, so a colleague takes it from here. You will hear from "
        "them within a day.",
        "A colleague has your request now, since only people may close an account. They confirm it "
        "by e-mail.",
    )


def _close(summary: str) -> Path:
    def path(s: Session) -> None:
        _verify(s)
        s.call("transfer_to_person", summary=summary)
        _goodbye(s)

    return path


def _close_looked_up(s: Session) -> None:
    _verify(s)
    s.call("list_orders", customer_id="C-92")
    s.call("list_subscriptions", customer_id="C-92")
    s.call("transfer_to_person", summary="C-92 wants her account closed; nothing is open.")
    _goodbye(s)


def _close_promised(s: Session) -> None:
    _verify(s)
    s.say("Your account is closed. Thank you for having been with us, Ms Almeida.")


CLOSE_ACCOUNT: Final = Task(
    task_id="close_account",
    title="Hand over a request to close the account",
    family="account data",
    split="tuning",
    ask="Close my account, please. I do not need it any more.",
    customer="C-92",
    facts={"customer_id": "C-92"},
    opening=_close_opening,
    checks=(outcome(_close_wanted), ended_with("handed-over", "transfer_to_person", "transferred")),
    runs=(
        nightly(
            OLD,
            Trial(_close("Customer C-92 asks to close her account. Identity checked.")),
            Trial(_close("Account closure requested by Rosa Almeida (C-92), verified.")),
            Trial(
                _close_promised,
                (judge_says("fail", "No tool closed the account; the claim is made up."),),
            ),
            Trial(_close_looked_up),
            Trial(_close("Please close account C-92, the customer is verified.")),
        ),
        nightly(
            NEW,
            Trial(_close("C-92 (Almeida) wants to close the account. Identity verified.")),
            Trial(_close_looked_up),
            Trial(_close("Close account C-92 on request; postcode checked.")),
            Trial(_close_looked_up),
            Trial(_close("Customer C-92 asks to close her account. Identity checked.")),
        ),
    ),
)

TASKS: Final = (CHANGE_ADDRESS, EXPORT_DATA, CLOSE_ACCOUNT)
