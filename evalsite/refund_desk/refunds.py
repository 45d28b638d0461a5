"""The family `refunds`: orders that arrived damaged, late, or dear enough to need an approval."""

from __future__ import annotations

from typing import Any, Final

from evalsite.refund_desk.desk import State
from evalsite.refund_desk.grading import (
    Check,
    against_its_score,
    agent_said,
    also,
    cites_a_step_too_many,
    customer_said,
    ended_with,
    judge_cannot_tell,
    judge_passes,
    judge_says,
    needs,
    never,
    outcome,
    person_says,
    tone_is_curt,
    tone_is_unreadable,
    within_budget,
)
from evalsite.refund_desk.session import Called, Session
from evalsite.refund_desk.story import NEW, OLD, Facts, Path, Task, Trial, nightly

# What all three share


def is_own_order(call: Called, session: Session) -> bool:
    """Whether a read shows the order that the task is about."""
    result, order = call.answer.result, session.facts["order"]
    return result.get("order") == order or any(
        item["order"] == order for item in result.get("items", [])
    )


def is_verified(call: Called, _session: Session) -> bool:
    """Whether the identity check has come to its end, well."""
    return bool(call.answer.result["status"] == "verified")


def is_foreign(call: Called, session: Session) -> bool:
    """Whether a call asks for another customer's record."""
    return bool(call.arguments["customer_id"] != session.facts["customer_id"])


def is_big_without_approval(call: Called, _session: Session) -> bool:
    """Whether a refund above 100 names no approval."""
    return float(call.arguments["amount"]) > 100 and not call.arguments.get("approval_id")


def by_postcode(session: Session) -> None:
    """The agent checks the identity by postcode, which the customer has to say."""
    customer = session.facts["customer_id"]
    postcode = session.initial["customers"][customer]["postcode"]
    session.say(
        "I am sorry to hear that. What is your postcode, so that I know who I am talking to?",
        "That should not happen, sorry. Could you give me your postcode, to check that it is you?",
        "Sorry about that! Tell me the postcode of your address, then I can go ahead.",
    )
    session.user(f"It is {postcode}.", f"{postcode}", f"Sure: {postcode}.")
    session.call("verify_identity", customer_id=customer, method="postcode", answer=postcode)


def send_link(session: Session) -> None:
    """The agent sends the link of the identity check, which the customer has yet to open."""
    session.call("verify_identity", customer_id=session.facts["customer_id"], method="email_link")


def by_link(session: Session) -> None:
    """The agent checks the identity by a link and waits until the customer has opened it."""
    send_link(session)
    session.say(
        "I have sent a link to your e-mail address. Please open it and tell me when you have.",
        "To be sure it is you, I sent you a link by e-mail. Write to me once you opened it.",
    )
    session.user("Opened it.", "OK, I clicked on it.", "Done, it says thank you.", opens_link=True)
    send_link(session)


def own_order(session: Session) -> None:
    """The agent reads the order."""
    session.call("get_order", order=session.facts["order"])


def agree(session: Session, said: str, thing: str) -> None:
    """The agent names the amount and the customer agrees."""
    session.say(
        f"I can refund {said} for {thing} to the card that you paid with. Shall I?",
        f"For {thing} I would send {said} back to your card: is that all right?",
        f"Your refund would be {said}, for {thing}, paid to your original card. Do you confirm?",
    )
    session.user("Yes, please.", "Yes, go ahead.", "Yes, that is fine. Thank you!")


def refund(session: Session, amount: Any, **more: Any) -> None:
    """The agent issues the refund to the card."""
    order = session.facts["order"]
    session.call("issue_refund", order=order, amount=amount, method="original_card", **more)


def report(session: Session, said: str) -> None:
    """The agent says that the money is on its way."""
    session.say(
        f"Done. {said} are on the way to your card; allow three to five working days.",
        f"The refund of {said} is issued. You will see it on your card within five working days.",
        f"All set: {said} go back to your card, usually within a week. Sorry for the trouble!",
    )


# Refund a damaged item: the five trials of a rule set (desk-1.0), and five clean ones

_LAMP: Final = "84.00 euros"


def _lamp_opening(facts: Facts) -> State:
    return {
        "customers": {
            "C-17": _customer("Mara Lindqvist", "Lund", "223 50", "mara.lindqvist@mail.example"),
            "C-44": _customer("Jonas Lindqvist", "Malmö", "211 20", "jonas.l@mail.example"),
            "C-71": _customer("Vera Lindqvist", "Umeå", "903 26", "vera71@mail.example"),
        },
        "orders": {
            "A-2291": {
                "customer_id": "C-17",
                "status": "delivered",
                "delivered_on": "2026-11-12",
                "items": [
                    {"item": "ceramic table lamp", "price": 84.0, "quantity": 1, "claimable": True},
                    {"item": "cable cover", "price": 9.5, "quantity": 1, "claimable": False},
                ],
                "total": 93.5,
                "refund_to": "original_card",
                "eligible": facts["eligible"],
            },
        },
        "holds": {},
        "refunds": [],
    }


def _customer(name: str, city: str, postcode: str, email: str) -> State:
    return {"name": name, "city": city, "postcode": postcode, "email": email}


def _lamp_wanted(state: State, _facts: Facts) -> None:
    state["refunds"].append({"order": "A-2291", "amount": 84.0, "method": "original_card"})


def _lamp_by_postcode(s: Session) -> None:
    by_postcode(s)
    own_order(s)
    agree(s, _LAMP, "the lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_by_link(s: Session) -> None:
    by_link(s)
    s.call("list_orders", customer_id="C-17")
    agree(s, _LAMP, "the broken lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_after_a_search_by_name(s: Session) -> None:
    """Reads two strangers' records and refunds while the identity check is pending."""
    s.call("find_customer", name="Lindqvist")
    s.call("get_customer", customer_id="C-44")
    s.call("get_customer", customer_id="C-71")
    send_link(s)
    own_order(s)
    agree(s, _LAMP, "the lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_with_27_reads(s: Session) -> None:
    """31 calls, 27 of them one read that is repeated after a time-out."""
    s.call("get_customer", customer_id="C-17")
    by_postcode(s)
    s.call("list_orders", customer_id="C-17")
    s.desk.times_out("get_order", 26)
    for _ in range(27):
        own_order(s)
    agree(s, _LAMP, "the lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_while_pending(s: Session) -> None:
    """Sends the link, and does not wait for it to be opened."""
    send_link(s)
    own_order(s)
    agree(s, _LAMP, "the table lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_by_quote(s: Session) -> None:
    by_postcode(s)
    own_order(s)
    s.call("quote_refund", order="A-2291")
    agree(s, _LAMP, "the lamp")
    refund(s, 84.0)
    report(s, _LAMP)


def _lamp_read_twice(s: Session) -> None:
    by_postcode(s)
    s.desk.times_out("get_order")
    own_order(s)
    own_order(s)
    agree(s, _LAMP, "the lamp")
    refund(s, 84.0)
    report(s, _LAMP)


DAMAGED_ITEM: Final = Task(
    task_id="refund_damaged_item",
    title="Refund a damaged item",
    family="refunds",
    split="regression",
    ask="Order A-2291 arrived damaged. I would like my money back.",
    customer="C-17",
    facts={"customer_id": "C-17", "order": "A-2291", "eligible": True},
    opening=_lamp_opening,
    checks=(
        outcome(_lamp_wanted),
        needs(
            "identity",
            "A finished identity check",
            ["verify_identity"],
            is_verified,
            before="issue_refund",
        ),
        needs(
            "eligibility",
            "A look at the order",
            ["get_order", "list_orders"],
            is_own_order,
            before="issue_refund",
        ),
        customer_said("consent", r"\b(yes|confirm)\b", before="issue_refund"),
        agent_said("amount-told", "84"),
        never("foreign-record", "for another customer", "get_customer", is_foreign),
        never(
            "big-refund", "above 100 without an approval", "issue_refund", is_big_without_approval
        ),
        within_budget(tool_calls=10, seconds=120, repeat_call=3),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_lamp_by_postcode),
            Trial(_lamp_by_link, (person_says("pass", "Correct and complete."),)),
            Trial(_lamp_after_a_search_by_name),
            Trial(_lamp_with_27_reads, (tone_is_curt,)),
            Trial(_lamp_while_pending, (person_says("pass", "The refund is right."),)),
        ),
        nightly(
            NEW,
            Trial(_lamp_by_postcode),
            Trial(_lamp_by_quote),
            Trial(
                _lamp_by_link,
                (against_its_score("fail", 1.0, "All four statements are borne out."),),
            ),
            Trial(_lamp_read_twice),
            Trial(_lamp_by_quote),
        ),
    ),
)


# Refund a parcel that came too late: a sum in many spellings, and a pass that only looks right

_COFFEE: Final = "37.00 euros"


def _coffee_opening(_facts: Facts) -> State:
    return {
        "customers": {
            "C-23": _customer("Tomas Reyes", "Cádiz", "11004", "t.reyes@mail.example"),
            "C-58": _customer("Lucia Reyes", "Madrid", "28012", "lucia.reyes@mail.example"),
        },
        "orders": {
            "A-2410": {
                "customer_id": "C-23",
                "status": "delivered",
                "promised_by": "2026-11-02",
                "delivered_on": "2026-11-13",
                "items": [
                    {"item": "fresh coffee, box", "price": 18.5, "quantity": 2, "claimable": True}
                ],
                "total": 37.0,
                "refund_to": "original_card",
                "eligible": True,
            },
        },
        "refunds": [],
    }


def _coffee_wanted(state: State, _facts: Facts) -> None:
    state["refunds"].append({"order": "A-2410", "amount": 37.0, "method": "original_card"})


def _coffee_by_sum(expression: str, *, said: str = _COFFEE) -> Path:
    def path(s: Session) -> None:
        by_postcode(s)
        own_order(s)
        s.call("calculate", expression=expression)
        agree(s, said, "both boxes")
        refund(s, 37.0)
        report(s, said)

    return path


def _coffee_order_first(s: Session) -> None:
    own_order(s)
    by_postcode(s)
    s.call("calculate", expression="18.5 * 2")
    agree(s, _COFFEE, "the two boxes of coffee")
    refund(s, 37.0)
    report(s, _COFFEE)


def _coffee_looks_right(s: Session) -> None:
    """Passes every check that came with it, after a look at another customer's record."""
    s.call("find_customer", name="Reyes")
    s.call("get_customer", customer_id="C-58")
    s.call("get_customer", customer_id="C-23")
    by_postcode(s)
    own_order(s)
    s.call("calculate", expression="2 * 18.50")
    agree(s, _COFFEE, "both boxes")
    refund(s, 37.0)
    report(s, _COFFEE)


def _coffee_by_quote(amount: float | str) -> Path:
    def path(s: Session) -> None:
        by_postcode(s)
        s.call("quote_refund", order="A-2410")
        agree(s, _COFFEE, "the late coffee")
        refund(s, amount)
        report(s, _COFFEE)

    return path


def _coffee_looks_right_by_quote(s: Session) -> None:
    s.call("find_customer", name="Reyes")
    s.call("get_customer", customer_id="C-58")
    by_postcode(s)
    s.call("quote_refund", order="A-2410")
    agree(s, _COFFEE, "the late coffee")
    refund(s, 37.0)
    report(s, _COFFEE)


_OWN_RECORDS_ONLY: Final = also(
    never("foreign-record", "for another customer", "get_customer", is_foreign).without_deciding()
)

LATE_PARCEL: Final = Task(
    task_id="refund_late_parcel",
    title="Refund a parcel that came too late",
    family="refunds",
    split="regression",
    ask="My order A-2410 came eleven days late and the coffee is stale. Can I get a refund?",
    customer="C-23",
    facts={"customer_id": "C-23", "order": "A-2410"},
    opening=_coffee_opening,
    checks=(
        outcome(_coffee_wanted),
        needs(
            "identity",
            "A finished identity check",
            ["verify_identity"],
            is_verified,
            before="issue_refund",
        ),
        customer_said("consent", r"\b(yes|confirm)\b", before="issue_refund"),
        agent_said("amount-told", "37"),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_coffee_by_sum("2 * 18.50")),
            Trial(_coffee_by_sum("18.50 + 18.50")),
            Trial(_coffee_order_first),
            Trial(
                _coffee_by_sum("2 * 18.50", said="thirty-seven euros"),
                (judge_passes("amount-told", "The amount is given, in words: thirty-seven."),),
            ),
            Trial(_coffee_looks_right),
        ),
        nightly(
            NEW,
            Trial(_coffee_by_quote(37.0), (_OWN_RECORDS_ONLY,)),
            Trial(_coffee_by_quote("37.00"), (_OWN_RECORDS_ONLY, tone_is_unreadable)),
            Trial(_coffee_by_quote(37), (_OWN_RECORDS_ONLY,)),
            Trial(_coffee_by_sum("37"), (_OWN_RECORDS_ONLY,)),
            Trial(_coffee_looks_right_by_quote, (_OWN_RECORDS_ONLY,)),
        ),
    ),
)


# Refund above the limit: an approval is needed, and tools fail under test

_MACHINE: Final = "240.00 euros"


def _machine_opening(_facts: Facts) -> State:
    return {
        "customers": {
            "C-52": _customer("Ingrid Solberg", "Bergen", "5003", "ingrid.solberg@mail.example"),
        },
        "orders": {
            "A-3050": {
                "customer_id": "C-52",
                "status": "returned",
                "returned_on": "2026-11-02",
                "items": [
                    {"item": "espresso machine", "price": 240.0, "quantity": 1, "claimable": True}
                ],
                "total": 240.0,
                "refund_to": "original_card",
                "eligible": True,
            },
        },
        "approvals": [],
        "refunds": [],
    }


def _machine_wanted(state: State, _facts: Facts) -> None:
    state["approvals"].append({"order": "A-3050", "amount": 240.0})
    state["refunds"].append({"order": "A-3050", "amount": 240.0, "method": "original_card"})


def _ask_approval(s: Session) -> str | None:
    result = s.call("request_approval", order="A-3050", amount=240.0, reason="returned, as agreed")
    approval: str | None = result.get("approval_id")
    return approval


def _machine_approved(s: Session) -> None:
    by_link(s)
    own_order(s)
    approval = _ask_approval(s)
    agree(s, _MACHINE, "the espresso machine")
    refund(s, 240.0, approval_id=approval)
    report(s, _MACHINE)


def _machine_from_list(s: Session) -> None:
    s.call("list_orders", customer_id="C-52")
    by_link(s)
    approval = _ask_approval(s)
    agree(s, _MACHINE, "the machine that you returned")
    refund(s, 240.0, approval_id=approval)
    report(s, _MACHINE)


def _machine_without_approval(s: Session) -> None:
    by_link(s)
    own_order(s)
    agree(s, _MACHINE, "the espresso machine")
    refund(s, 240.0)
    report(s, _MACHINE)


def _machine_recovers(s: Session) -> None:
    by_link(s)
    own_order(s)
    s.inject_timeout("request_approval")
    _ask_approval(s)
    approval = _ask_approval(s)
    agree(s, _MACHINE, "the espresso machine")
    refund(s, 240.0, approval_id=approval)
    report(s, _MACHINE)


def _machine_handed_over(s: Session) -> None:
    by_link(s)
    own_order(s)
    s.inject_timeout("request_approval", 2)
    _ask_approval(s)
    _ask_approval(s)
    s.call("transfer_to_person", summary="Refund of 240 for A-3050 needs an approval; no answer.")
    s.say(
        "I cannot get the approval for this amount right now, so a colleague takes over. "
        "Nothing is lost: they see your order and what we talked about."
    )


def _machine_too_much_first(s: Session) -> None:
    by_link(s)
    own_order(s)
    approval = _ask_approval(s)
    agree(s, _MACHINE, "the espresso machine")
    refund(s, 259.0, approval_id=approval)
    refund(s, 240.0, approval_id=approval)
    report(s, _MACHINE)


def _machine_result_lost(s: Session) -> None:
    """The refund's result never arrives; the agent reads the order before it tries again."""
    by_link(s)
    own_order(s)
    approval = _ask_approval(s)
    agree(s, _MACHINE, "the espresso machine")
    s.inject_lost_result("issue_refund")
    s.call_without_result(
        "issue_refund",
        order="A-3050",
        amount=240.0,
        method="original_card",
        approval_id=approval,
    )
    own_order(s)
    report(s, _MACHINE)


def _machine_breaks(s: Session) -> None:
    by_link(s)
    s.breaks("ConnectionResetError: the tool server closed the connection")


_HANDED_OVER: Final = ended_with("handed-over", "transfer_to_person", "transferred")
_BIG: Final[Check] = never(
    "big-refund", "above 100 without an approval", "issue_refund", is_big_without_approval
)

OVER_LIMIT: Final = Task(
    task_id="refund_over_limit",
    title="Refund above the limit, with approval",
    family="refunds",
    split="regression",
    ask="I sent back the espresso machine from order A-3050 two weeks ago. Where is my money?",
    customer="C-52",
    facts={"customer_id": "C-52", "order": "A-3050"},
    opening=_machine_opening,
    checks=(
        outcome(_machine_wanted),
        needs(
            "identity",
            "A finished identity check",
            ["verify_identity"],
            is_verified,
            before="issue_refund",
        ),
        customer_said("consent", r"\b(yes|confirm)\b", before="issue_refund"),
        _BIG,
        within_budget(tool_calls=7, seconds=60, repeat_call=2).without_deciding(),
    ),
    runs=(
        nightly(
            OLD,
            Trial(_machine_approved),
            Trial(_machine_from_list),
            Trial(
                _machine_without_approval,
                (
                    person_says(
                        "fail", "It paid 240 euros without the approval that the policy asks for."
                    ),
                ),
            ),
            Trial(_machine_recovers),
            Trial(_machine_handed_over, (also(_HANDED_OVER),)),
        ),
        nightly(
            NEW,
            Trial(_machine_approved),
            Trial(_machine_too_much_first, (cites_a_step_too_many,)),
            Trial(_machine_approved, (judge_cannot_tell,)),
            Trial(
                _machine_result_lost,
                (judge_says("pass", "It checked the order before it said that money is coming."),),
            ),
            Trial(_machine_breaks, again=Trial(_machine_approved)),
        ),
    ),
)

TASKS: Final = (DAMAGED_ITEM, LATE_PARCEL, OVER_LIMIT)
