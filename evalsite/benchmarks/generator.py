"""Native trials with the shape of the airline data: sizes, call counts, tools and entropy.

The same seed gives the same bytes. A task is a small fixed world (a customer with payment methods
and reservations), so that the same call has the same result in all of its trials, while the order
of calls, the searches and the talk differ from trial to trial.
"""

# ruff: noqa: S311 - chance that must repeat itself, nothing is secret here

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TypeAlias

from evalsite.benchmarks import phrases

Object: TypeAlias = dict[str, object]

N_RELEASES = 5

_BASE62 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_UPPER = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_EPOCH = datetime(2026, 11, 1, tzinfo=UTC)
# Deciles of the number of tool calls and of agent turns without one, in the five real agents.
_CALL_COUNTS = (1, 2, 3, 4, 5, 6, 8, 9, 12, 15, 45)
_TURN_COUNTS = (2, 2, 3, 3, 4, 4, 5, 6, 7, 8, 14)
# How often each tool is called, in a thousand calls of the five real agents.
_TOOLS = (
    ("get_reservation_details", 307),
    ("search_direct_flight", 167),
    ("get_flight_status", 149),
    ("get_user_details", 98),
    ("search_onestop_flight", 73),
    ("update_reservation_flights", 45),
    ("cancel_reservation", 38),
    ("book_reservation", 38),
    ("transfer_to_human_agents", 31),
    ("calculate", 20),
    ("update_reservation_baggages", 18),
    ("update_reservation_passengers", 11),
    ("send_certificate", 5),
)
_TOOL_NAMES = tuple(name for name, _ in _TOOLS)
_TOOL_WEIGHTS = tuple(weight for _, weight in _TOOLS)


@dataclass(frozen=True, slots=True)
class World:
    """What the environment of one task knows."""

    task_id: str
    user_id: str
    user: Object
    payments: tuple[str, ...]
    reservations: dict[str, Object]
    routes: tuple[tuple[str, str, str], ...]  # what is searched: from, by way of, to
    days: tuple[str, ...]
    flights: tuple[str, ...]


def trials(
    *, n_trials: int, n_tasks: int, seed: int = 0, n_releases: int = N_RELEASES
) -> Iterator[bytes]:
    """Native records as lines of JSON, one a trial, in constant memory.

    Trial i belongs to task i mod `n_tasks` and, in turn, to each of the releases.
    """
    worlds = [world_of(seed, task) for task in range(n_tasks)]
    for number in range(n_trials):
        round_, task = divmod(number, n_tasks)
        trial, release = divmod(round_, n_releases)
        record = trial_of(worlds[task], seed=seed, release=release, trial=trial)
        yield json.dumps(record, separators=(",", ":")).encode() + b"\n"


def world_of(seed: int, task: int) -> World:
    """The world of one task."""
    random = Random(f"{seed}/task/{task}")
    given, surname = random.choice(phrases.GIVEN_NAMES), random.choice(phrases.SURNAMES)
    user_id = f"{given}_{surname}_{random.randrange(1000, 10000)}".lower()
    payments = tuple(
        f"{kind}_{random.randrange(10**6, 10**7)}"
        for kind in random.choices(("credit_card", "gift_card", "certificate"), k=4)
    )
    reservations = {
        number: _reservation(random, number, user_id, payments)
        for number in ("".join(random.choices(_UPPER, k=6)) for _ in range(random.randint(3, 7)))
    }
    user: Object = {
        "user_id": user_id,
        "name": {"first_name": given, "last_name": surname},
        "address": {
            "address1": f"{random.randrange(100, 999)} {random.choice(phrases.STREETS)} Avenue",
            "address2": f"Suite {random.randrange(100, 999)}",
            "country": "USA",
            "zip": str(random.randrange(10000, 99999)),
        },
        "email": f"{given}.{surname}{random.randrange(1000, 9999)}@example.com".lower(),
        "dob": _date(random, 1950, 2005),
        "payment_methods": {
            payment: {
                "source": payment.rsplit("_", 1)[0],
                "id": payment,
                "amount": float(random.randrange(20, 500)),
                "last_four": str(random.randrange(1000, 9999)),
            }
            for payment in payments
        },
        "saved_passengers": [_passenger(random) for _ in range(random.randint(0, 3))],
        "membership": random.choice(phrases.LEVELS),
        "reservations": list(reservations),
    }
    routes = [random.sample(phrases.AIRPORTS, 3) for _ in range(3)]
    return World(
        task_id=str(task),
        user_id=user_id,
        user=user,
        payments=payments,
        reservations=reservations,
        routes=tuple((origin, stop, destination) for origin, stop, destination in routes),
        days=tuple(_day(random) for _ in range(4)),
        flights=tuple(_flight_number(random) for _ in range(8)),
    )


def trial_of(world: World, *, seed: int, release: int, trial: int) -> Object:
    """One native record: the transcript, its verdicts, costs and times."""
    random = Random(f"{seed}/trial/{world.task_id}/{release}/{trial}")
    is_broken = random.random() < 0.01
    talk = _Talk(world, random, _EPOCH + timedelta(seconds=random.randrange(86400 * 20)))
    started = talk.now
    n_calls = _from_deciles(random, _CALL_COUNTS)
    talk.hold(n_calls, _from_deciles(random, _TURN_COUNTS))
    passed = random.random() < 0.5
    return {
        "task_id": world.task_id,
        "trial": trial,
        "agent": {
            "name": "airline",
            "version": f"1.{release}.0",
            "model": f"model-{release}",
        },
        "status": "error" if is_broken else "completed",
        "error": "the simulator stopped answering" if is_broken else None,
        "environment": "test",
        "messages": talk.messages,
        "verdicts": []
        if is_broken
        else _verdicts(random, passed=passed, n_steps=len(talk.messages)),
        "usage": {
            "cost_usd": round(random.uniform(0.004, 0.09), 6),
            "input_tokens": random.randrange(20_000, 200_000),
            "output_tokens": random.randrange(400, 4_000),
        },
        "started_at": started.isoformat(),
        "ended_at": talk.now.isoformat(),
    }


class _Talk:
    """A conversation that is being written down."""

    def __init__(self, world: World, random: Random, now: datetime) -> None:
        self.world, self.random, self.now = world, random, now
        self.messages: list[Object] = []
        self.said: list[str] = []

    def hold(self, n_calls: int, n_turns: int) -> None:
        """A greeting, then calls and turns of talk in some order."""
        self._say("assistant", "Hi! How can I help you today?")
        self._say("user", self._text(phrases.USER, 2))
        acts = [self._call] * n_calls + [self._turn] * n_turns
        self.random.shuffle(acts)
        for act in acts:
            act()
        self._say("user", "###STOP###")

    def _turn(self) -> None:
        self._say("assistant", self._text(phrases.AGENT, self.random.randint(5, 13)))
        self._say("user", self._text(phrases.USER, self.random.randint(1, 3)))

    def _call(self) -> None:
        name = self.random.choices(_TOOL_NAMES, _TOOL_WEIGHTS)[0]
        arguments, result, is_error = _ACTIONS[name](self.world, self.random)
        call_id = "call_" + "".join(self.random.choices(_BASE62, k=24))
        function = {"name": name, "arguments": json.dumps(arguments)}
        self._add(
            role="assistant",
            content=self._text(phrases.AGENT, 1) if self.random.random() < 0.2 else None,
            tool_calls=[{"id": call_id, "type": "function", "function": function}],
        )
        self._add(role="tool", tool_call_id=call_id, content=result, is_error=is_error)

    def _say(self, role: str, text: str) -> None:
        self._add(role=role, content=text)

    def _add(self, **message: object) -> None:
        self.now += timedelta(microseconds=self.random.randrange(400_000, 9_000_000))
        message["timestamp"] = self.now.isoformat()
        self.messages.append(message)

    def _text(self, sentences: tuple[str, ...], n: int) -> str:
        """Some sentences, now and then one that was said before, as people do."""
        parts = []
        for _ in range(n):
            if self.said and self.random.random() < 0.28:
                parts.append(self.random.choice(self.said))
                continue
            sentence = self._filled(self.random.choice(sentences)) + self._aside()
            self.said.append(sentence)
            parts.append(sentence)
        return "\n".join(parts)

    def _filled(self, sentence: str) -> str:
        random = self.random
        origin, destination = random.sample(phrases.AIRPORTS, 2)
        return sentence.format(
            name=random.choice(phrases.GIVEN_NAMES),
            surname=random.choice(phrases.SURNAMES),
            user=self.world.user_id,
            reservation=random.choice(list(self.world.reservations)),
            payment=random.choice(self.world.payments),
            flight=_flight_number(random),
            origin=origin,
            destination=destination,
            cabin=random.choice(phrases.CABINS),
            level=random.choice(phrases.LEVELS),
            date=_date(random, 2026, 2026),
            year=random.randrange(1950, 2005),
            time=f"{random.randrange(24):02}:{random.randrange(60):02}",
            amount=random.randrange(20, 1500),
            n=random.randint(1, 9),
        )

    def _aside(self) -> str:
        """A clause of loose words: what gives the text the entropy of real talk."""
        words = self.random.choices(phrases.LOOSE_WORDS, k=self.random.randint(6, 16))
        return f" {' '.join(words).capitalize()}."


_Act: TypeAlias = tuple[Object, str, bool]
_ERROR_RATE = 0.06


def _get_user(world: World, _random: Random) -> _Act:
    return {"user_id": world.user_id}, json.dumps(world.user), False


def _get_reservation(world: World, random: Random) -> _Act:
    if random.random() < _ERROR_RATE:
        number = "".join(random.choices(_UPPER, k=6))
        return {"reservation_id": number}, "Error: Reservation not found", True
    number = random.choice(list(world.reservations))
    return {"reservation_id": number}, json.dumps(world.reservations[number]), False


def _flight_status(world: World, random: Random) -> _Act:
    arguments: Object = {
        "flight_number": random.choice(world.flights),
        "date": random.choice(world.days),
    }
    if random.random() < _ERROR_RATE:
        return arguments, "Error: Flight not found", True
    return arguments, random.choice(("available", "on time", "delayed", "landed")), False


def _search(world: World, random: Random) -> _Act:
    origin, _, destination = random.choice(world.routes)
    day = random.choice(world.days)
    arguments: Object = {"origin": origin, "destination": destination, "date": day}
    found = Random(f"{origin}/{destination}/{day}")
    offers = [_offer(found, origin, destination) for _ in range(found.randint(0, 5))]
    return arguments, json.dumps(offers), False


def _search_one_stop(world: World, random: Random) -> _Act:
    origin, stop, destination = random.choice(world.routes)
    day = random.choice(world.days)
    arguments: Object = {"origin": origin, "destination": destination, "date": day}
    found = Random(f"{origin}/{destination}/{day}")
    pairs = [
        [_offer(found, origin, stop), _offer(found, stop, destination)]
        for _ in range(found.randint(0, 3))
    ]
    return arguments, json.dumps(pairs), False


def _cancel(world: World, random: Random) -> _Act:
    number = random.choice(list(world.reservations))
    result = {**world.reservations[number], "status": "cancelled"}
    return {"reservation_id": number}, json.dumps(result), False


def _book(world: World, random: Random) -> _Act:
    reservation = _reservation(random, "HATHAT", world.user_id, world.payments)
    arguments = {
        key: reservation[key]
        for key in ("user_id", "origin", "destination", "flight_type", "cabin", "passengers")
    }
    arguments["payment_methods"] = reservation["payment_history"]
    if random.random() < 3 * _ERROR_RATE:
        return arguments, "Error: Payment amount does not add up", True
    return arguments, json.dumps(reservation), False


def _update(world: World, random: Random) -> _Act:
    number = random.choice(list(world.reservations))
    reservation = _reservation(random, number, world.user_id, world.payments)
    arguments: Object = {
        "reservation_id": number,
        "cabin": reservation["cabin"],
        "flights": [
            {"flight_number": random.choice(world.flights), "date": random.choice(world.days)}
        ],
        "payment_id": random.choice(world.payments),
    }
    if random.random() < _ERROR_RATE:
        return arguments, "Error: Gift card balance is not enough", True
    return arguments, json.dumps(reservation), False


def _update_bags(world: World, random: Random) -> _Act:
    number = random.choice(list(world.reservations))
    bags = random.randint(1, 6)
    arguments: Object = {
        "reservation_id": number,
        "total_baggages": bags,
        "nonfree_baggages": random.randint(0, bags),
        "payment_id": random.choice(world.payments),
    }
    result = {**world.reservations[number], "total_baggages": bags}
    return arguments, json.dumps(result), False


def _update_passengers(world: World, random: Random) -> _Act:
    number = random.choice(list(world.reservations))
    passengers = [_passenger(random)]
    result = {**world.reservations[number], "passengers": passengers}
    return {"reservation_id": number, "passengers": passengers}, json.dumps(result), False


def _calculate(_world: World, random: Random) -> _Act:
    a, b, n = random.randrange(50, 900), random.randrange(50, 900), random.randint(1, 4)
    expression = random.choice((f"{n} * ({a} + {b})", f"{n} * {a} + {n} * {b}", f"({a}+{b})*{n}"))
    return {"expression": expression}, str(n * (a + b)), False


def _send_certificate(world: World, random: Random) -> _Act:
    amount = 50 * random.randint(1, 4)
    result = f"Certificate certificate_3221322 added to user {world.user_id} with amount {amount}."
    return {"user_id": world.user_id, "amount": amount}, result, False


def _hand_over(world: World, random: Random) -> _Act:
    words = " ".join(random.choices(phrases.LOOSE_WORDS, k=random.randint(8, 24)))
    return {"summary": f"Customer {world.user_id}: {words}."}, "Transfer successful", False


_ACTIONS: dict[str, Callable[[World, Random], _Act]] = {
    "get_reservation_details": _get_reservation,
    "search_direct_flight": _search,
    "get_flight_status": _flight_status,
    "get_user_details": _get_user,
    "search_onestop_flight": _search_one_stop,
    "update_reservation_flights": _update,
    "cancel_reservation": _cancel,
    "book_reservation": _book,
    "transfer_to_human_agents": _hand_over,
    "calculate": _calculate,
    "update_reservation_baggages": _update_bags,
    "update_reservation_passengers": _update_passengers,
    "send_certificate": _send_certificate,
}


def _verdicts(random: Random, *, passed: bool, n_steps: int) -> list[Object]:
    """As tau2 gives them: the reward decides, its parts and the action checks are told beside."""
    verdicts = [
        _verdict("reward", "outcome", "outcome", passed=passed, mandatory=True, step=n_steps),
        _verdict("db", "db", "outcome", passed=passed, mandatory=False, step=n_steps),
    ]
    checks = [
        _verdict(
            "action",
            f"action:{number}:{random.choices(_TOOL_NAMES, _TOOL_WEIGHTS)[0]}",
            "constraint",
            passed=random.random() < (0.95 if passed else 0.6),
            mandatory=False,
            step=random.randint(1, n_steps),
        )
        for number in range(random.choice((0, 1, 2, 3, 3, 4, 5)))
    ]
    return verdicts + checks


def _verdict(
    grader: str, criterion: str, class_: str, *, passed: bool, mandatory: bool, step: int
) -> Object:
    return {
        "grader": grader,
        "grader_version": "1",
        "kind": "code",
        "criterion": criterion,
        "class": class_,
        "mandatory": mandatory,
        "verdict": "pass" if passed else "fail",
        "score": float(passed),
        "rationale": "The final state matches." if passed else "The final state does not match.",
        "evidence": [{"step": step}],
    }


def _reservation(random: Random, number: str, user_id: str, payments: tuple[str, ...]) -> Object:
    origin, destination = random.sample(phrases.AIRPORTS, 2)
    flights = [
        {
            "flight_number": _flight_number(random),
            "origin": start,
            "destination": end,
            "date": _day(random),
            "price": random.randrange(50, 900),
        }
        for start, end in ((origin, destination), (destination, origin))[: random.randint(1, 2)]
    ]
    return {
        "reservation_id": number,
        "user_id": user_id,
        "origin": origin,
        "destination": destination,
        "flight_type": "round_trip" if len(flights) == 2 else "one_way",
        "cabin": random.choice(phrases.CABINS),
        "flights": flights,
        "passengers": [_passenger(random) for _ in range(random.randint(1, 3))],
        "payment_history": [
            {"payment_id": random.choice(payments), "amount": random.randrange(60, 1800)}
        ],
        "created_at": f"{_date(random, 2026, 2026)}T{random.randrange(10, 24)}:15:59",
        "total_baggages": random.randint(0, 3),
        "nonfree_baggages": 0,
        "insurance": random.choice(("yes", "no")),
        "status": None,
    }


def _offer(random: Random, origin: str, destination: str) -> Object:
    hour = random.randrange(22)
    return {
        "flight_number": _flight_number(random),
        "origin": origin,
        "destination": destination,
        "scheduled_departure_time_est": f"{hour:02}:00:00",
        "scheduled_arrival_time_est": f"{hour + 2:02}:30:00",
        "status": "available",
        "available_seats": {cabin: random.randint(0, 20) for cabin in phrases.CABINS},
        "prices": {cabin: random.randrange(50, 500) for cabin in phrases.CABINS},
    }


def _passenger(random: Random) -> Object:
    return {
        "first_name": random.choice(phrases.GIVEN_NAMES),
        "last_name": random.choice(phrases.SURNAMES),
        "dob": _date(random, 1950, 2005),
    }


def _flight_number(random: Random) -> str:
    return f"HAT{random.randrange(300):03}"


def _day(random: Random) -> str:
    return f"2026-05-{random.randint(10, 28)}"


def _date(random: Random, first_year: int, last_year: int) -> str:
    year = random.randint(first_year, last_year)
    return f"{year}-{random.randint(1, 12):02}-{random.randint(1, 28):02}"


def _from_deciles(random: Random, deciles: tuple[int, ...]) -> int:
    """A number whose distribution has these deciles, the least and the greatest at the ends."""
    at = random.randrange(len(deciles) - 1)
    return random.randint(deciles[at], max(deciles[at], deciles[at + 1] - 1))
