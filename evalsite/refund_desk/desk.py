"""The tools of the made-up refund desk and the state behind them.

A state is plain JSON. A tool reads or changes it and answers with a JSON object, or refuses. Nothing
is typed by hand: what a call gives follows from the state and from the calls before it.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal, InvalidOperation
from typing import Any, Final, TypeAlias

from traces.core.arithmetic import value_of_expression
from traces.core.trajectory import ToolKind

State: TypeAlias = dict[str, Any]
Row: TypeAlias = dict[str, Any]

TOOL_KINDS: Final = (
    ("add_bags", ToolKind.WRITE),
    ("calculate", ToolKind.READ),
    ("cancel_subscription", ToolKind.WRITE),
    ("change_booking", ToolKind.WRITE),
    ("check_balance", ToolKind.READ),
    ("find_customer", ToolKind.READ),
    ("get_customer", ToolKind.READ),
    ("get_fare_rules", ToolKind.READ),
    ("get_order", ToolKind.READ),
    ("get_subscription", ToolKind.READ),
    ("issue_refund", ToolKind.WRITE),
    ("list_bookings", ToolKind.READ),
    ("list_orders", ToolKind.READ),
    ("list_subscriptions", ToolKind.READ),
    ("open_ticket", ToolKind.WRITE),
    ("quote_refund", ToolKind.READ),
    ("request_approval", ToolKind.WRITE),
    ("search_flights", ToolKind.READ),
    ("send_export", ToolKind.WRITE),
    ("transfer_to_person", ToolKind.HANDOFF),
    ("update_address", ToolKind.WRITE),
    ("verify_identity", ToolKind.READ),
    ("verify_pnr", ToolKind.READ),
)
"""Every tool. Checking who somebody is changes nothing that is recorded, so it is a read."""

_TOOLS: Final = frozenset(name for name, _ in TOOL_KINDS)


@dataclass(frozen=True, slots=True)
class Answer:
    """What a tool says: a JSON object, or the text of a refusal."""

    text: str
    is_error: bool

    @property
    def result(self) -> Row:
        """The object; empty where the tool refused."""
        found: Row = {} if self.is_error else json.loads(self.text)
        return found


class _RefusedError(Exception):
    """The tool refuses; the text says why."""


class Desk:
    """The desk while one customer is served. `now` is the time of the next call."""

    def __init__(self, state: State, *, customer: str, now: datetime) -> None:
        self.state = copy.deepcopy(state)
        self.customer = customer  # who is signed in
        self.now = now
        self._failing: dict[str, int] = {}  # calls of a tool that will time out
        self._link: str | None = None  # identity by e-mail: None, sent, opened

    def times_out(self, tool: str, times: int = 1) -> None:
        """The next calls of a tool will not be answered in time, and change nothing."""
        self._failing[tool] = times

    def customer_opens_link(self) -> None:
        """The customer opens the link that the identity check sent."""
        if self._link == "sent":
            self._link = "opened"

    def use(self, tool: str, arguments: Row) -> Answer:
        """Call a tool."""
        if tool not in _TOOLS:
            raise LookupError(tool)
        if self._failing.get(tool, 0) > 0:
            self._failing[tool] -= 1
            return Answer(f"Error: {tool} timed out, no answer after 10 s.", is_error=True)
        method: Callable[..., Row] = getattr(self, f"_{tool}")
        try:
            return Answer(_text(method(**arguments)), is_error=False)
        except _RefusedError as refusal:
            return Answer(f"Error: {refusal}", is_error=True)

    # Customers

    def _find_customer(self, name: str) -> Row:
        wanted = name.casefold().split()
        items = [
            {"customer_id": key, "name": row["name"], "city": row["city"]}
            for key, row in sorted(self._rows("customers").items())
            if any(word in row["name"].casefold().split() for word in wanted)
        ]
        return {"items": items}

    def _get_customer(self, customer_id: str) -> Row:
        row = self._row("customers", customer_id)
        held = [
            {"subscription": key, "name": one["name"], "price": one["price"]}
            for key, one in sorted(self._rows("subscriptions").items())
            if one["customer_id"] == customer_id
        ]
        shown = {name: value for name, value in row.items() if name != "postcode"}
        return {"customer_id": customer_id, **shown, "subscriptions": held}

    def _verify_identity(self, customer_id: str, method: str, answer: str = "") -> Row:
        row = self._row("customers", customer_id)
        match method:
            case "postcode":
                is_right = _plain(answer) == _plain(row["postcode"])
                status = "verified" if is_right else "failed"
            case "email_link":
                status = "verified" if self._link == "opened" else "pending"
                self._link = self._link or "sent"
            case _:
                raise _RefusedError(f"unknown method {method}.")
        return {"customer_id": customer_id, "method": method, "status": status}

    def _update_address(self, customer_id: str, street: str, postcode: str, city: str) -> Row:
        row = self._row("customers", customer_id)
        address = {"street": _written(street), "postcode": postcode.upper(), "city": _written(city)}
        row.update(address)
        return {"customer_id": customer_id, **address}

    def _send_export(self, customer_id: str, parts: list[str], format: str = "zip") -> Row:  # noqa: A002
        row = self._row("customers", customer_id)
        export = {"customer_id": customer_id, "parts": sorted(parts), "format": format}
        self.state["exports"].append({"id": self._id("exports", "X"), **export})
        return {"sent_to": row["email"], **export}

    # Orders and refunds

    def _get_order(self, order: str) -> Row:
        row = self._row("orders", order)
        return {"order": order, **row, "refunded": _money(self._refunded(order))}

    def _list_orders(self, customer_id: str) -> Row:
        items = [
            {"order": key, "status": row["status"], "total": row["total"]}
            for key, row in sorted(self._rows("orders").items())
            if row["customer_id"] == customer_id
        ]
        return {"items": items}

    def _calculate(self, expression: str) -> Row:
        value = value_of_expression(expression)
        if value is None:
            raise _RefusedError(f"cannot work out {expression!r}.")
        return {"value": float(value)}

    def _quote_refund(self, order: str) -> Row:
        row = self._row("orders", order)
        claimed = sum(_cents(i["price"]) * i["quantity"] for i in row["items"] if i["claimable"])
        return {"order": order, "amount": _money(claimed), "method": row["refund_to"]}

    def _request_approval(self, order: str, amount: float | str, reason: str) -> Row:
        self._row("orders", order)
        approval = {"order": order, "amount": _money(_cents(amount)), "reason": reason}
        approval_id = self._id("approvals", "AP")
        self.state["approvals"].append({"id": approval_id, **approval})
        return {"approval_id": approval_id, "status": "granted"}

    def _issue_refund(
        self,
        amount: float | str,
        method: str,
        order: str | None = None,
        pnr: str | None = None,
        approval_id: str | None = None,
    ) -> Row:
        cents = _cents(amount)
        if pnr is not None:
            return self._refund_booking(pnr, cents, method)
        order = order or ""
        row = self._row("orders", order)
        left = _cents(row["total"]) - self._refunded(order)
        if cents > left:
            raise _RefusedError(f"at most {left / 100:.2f} can be refunded for {order}.")
        refund = {"order": order, "amount": _money(cents), "method": method}
        if approval_id:
            refund["approval_id"] = approval_id
        return self._refunded_as(refund)

    def _refund_booking(self, pnr: str, cents: int, method: str) -> Row:
        booking = self._row("bookings", pnr)
        if _cents(booking["balance"]) < cents:
            return self._open_ticket(booking["customer_id"], "refund_by_hand", pnr)
        return self._refunded_as({"pnr": pnr, "amount": _money(cents), "method": method})

    def _refunded_as(self, refund: Row) -> Row:
        row = {"id": self._id("refunds", "R"), **refund, "created_at": _instant(self.now)}
        self.state["refunds"].append(row)
        return {"refund": row["id"], **refund, "status": "issued"}

    def _refunded(self, order: str) -> int:
        return sum(_cents(r["amount"]) for r in self.state["refunds"] if r.get("order") == order)

    # Subscriptions

    def _get_subscription(self, subscription: str) -> Row:
        row = self._row("subscriptions", subscription)
        if row["customer_id"] != self.customer:
            raise _RefusedError(f"{subscription} belongs to another account.")
        return {"subscription": subscription, **row}

    def _list_subscriptions(self, customer_id: str) -> Row:
        if customer_id != self.customer:
            raise _RefusedError(f"{customer_id} is another account.")
        items = [
            {"subscription": key, **row}
            for key, row in sorted(self._rows("subscriptions").items())
            if row["customer_id"] == customer_id
        ]
        return {"items": items}

    def _cancel_subscription(self, subscription: str) -> Row:
        row = self._row("subscriptions", subscription)
        if self.state["billing"] == "rejects":
            raise _RefusedError("billing rejected the cancellation (B-12), nothing was changed.")
        row["status"] = "cancelled"
        return {"subscription": subscription, "status": "cancelled", "ends_on": row["renews_on"]}

    def _open_ticket(self, customer_id: str, topic: str, about: str, note: str = "") -> Row:
        ticket = {"customer_id": customer_id, "topic": topic, "about": about}
        row = {"id": self._id("tickets", "T"), **ticket, "note": note}
        self.state["tickets"].append(row)
        return {"ticket": row["id"], **ticket, "status": "escalated"}

    # Bookings

    def _verify_pnr(self, pnr: str, last_name: str) -> Row:
        row = self._row("bookings", pnr)
        if row["last_name"].casefold() != last_name.casefold():
            raise _RefusedError(f"{pnr} is not under the name {last_name}.")
        return {"pnr": pnr, **row}

    def _check_balance(self, pnr: str) -> Row:
        row = self._row("bookings", pnr)
        is_enough = _cents(row["balance"]) >= _cents(row["difference"])
        return {"pnr": pnr, "balance": row["balance"], "sufficient": is_enough}

    def _get_fare_rules(self, fare: str) -> Row:
        return {"fare": fare, **self._row("fares", fare)}

    def _list_bookings(self, customer_id: str) -> Row:
        items = [
            {"pnr": key, "flight": row["flight"], "departs": row["departs"]}
            for key, row in sorted(self._rows("bookings").items())
            if row["customer_id"] == customer_id
        ]
        return {"items": items}

    def _search_flights(self, origin: str, to: str, date: str, cabin: str = "economy") -> Row:
        items = [
            {"flight": key, **row}
            for key, row in sorted(self._rows("flights").items())
            if (row["from"], row["to"], row["cabin"]) == (origin, to, cabin)
            and row["departs"][:10] == date[:10]
        ]
        return {"items": items}

    def _change_booking(self, pnr: str, flight: str, departs: str) -> Row:
        booking, wanted = self._row("bookings", pnr), self._row("flights", flight)
        if wanted["departs"] != _instant(datetime.fromisoformat(departs)):
            raise _RefusedError(f"{flight} does not depart at {departs}.")
        if wanted["seats"] < 1:
            raise _RefusedError(f"{flight} is sold out.")
        booking.update(flight=flight, departs=wanted["departs"])
        return {"pnr": pnr, "flight": flight, "departs": wanted["departs"], "status": "confirmed"}

    def _add_bags(self, pnr: str, passengers: list[str], weight_kg: float | str) -> Row:
        booking = self._row("bookings", pnr)
        weight = int(Decimal(str(weight_kg)))
        if weight > 32:
            raise _RefusedError("a bag may weigh 32 kg at most.")
        booking["bags"] = dict.fromkeys(sorted(passengers), weight)
        return {"pnr": pnr, "bags": booking["bags"]}

    # A person

    def _transfer_to_person(self, summary: str) -> Row:
        if not summary:
            raise _RefusedError("a person needs a summary.")
        return {"status": "transferred", "queue": "people at the desk"}

    # Rows

    def _rows(self, table: str) -> dict[str, Row]:
        rows: dict[str, Row] = self.state.get(table, {})
        return rows

    def _row(self, table: str, key: str) -> Row:
        row = self._rows(table).get(key)
        if row is None:
            raise _RefusedError(f"there is no {key} among the {table}.")
        return row

    def _id(self, table: str, letter: str) -> str:
        return f"{letter}-{5001 + len(self.state[table])}"


def _text(result: Row) -> str:
    return json.dumps(result, ensure_ascii=False)


def _cents(amount: float | str) -> int:
    try:
        return int(Decimal(str(amount)) * 100)
    except InvalidOperation:
        raise _RefusedError(f"{amount!r} is no amount.") from None


def _money(cents: int) -> float:
    return cents / 100


def _plain(text: str) -> str:
    return text.replace(" ", "").casefold()


def _written(text: str) -> str:
    """How the desk writes a name of a street or town, whoever typed it."""
    return " ".join(text.split()).title()


def _instant(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
