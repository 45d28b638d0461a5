"""The systems of the browser tests beside the sample."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalsite.sample_loader import DEMO_ROLES
from tests.support.cast import PASSWORD
from tests.support.evidence import Call, ingest, record, verdict
from traces.models import System, User
from traces.services.people import create_system, set_member

CASES = Path(__file__).resolve().parents[1] / "data" / "cases"
SAMPLE = "tau2-airline"
WALK, KEYBOARD, PLAIN = "walk", "keyboard", "plain"
HOSTILE, LONG, EMPTY, BROKEN, PATHS = "hostile", "long", "empty", "broken", "paths"
MINE = (WALK, KEYBOARD, PLAIN)
HOSTILE_KINDS = (
    "stored-xss",
    "bidi-and-ansi",
    "tool-name-forms",
    "odd-identifiers",
    "multi-part-content",
    "prompt-injection-to-reviewer",
    "csv-formula",
)


def add_systems() -> None:
    """Systems with the people of the demo as members, and one person with a password."""
    anna = User.objects.create_user(username="anna", password=PASSWORD, first_name="Anna")
    systems = {
        slug: _system(slug) for slug in (WALK, KEYBOARD, PLAIN, HOSTILE, LONG, EMPTY, BROKEN, PATHS)
    }
    for slug in MINE:
        set_member(systems[slug], anna, DEMO_ROLES[0])
    for kind in HOSTILE_KINDS:
        for path in sorted(CASES.glob(f"{kind}--*")):
            # The records name their releases themselves, one of them a hostile one.
            ingest(systems[HOSTILE], path.read_bytes(), release=None, file_name=path.name)
    ingest(systems[LONG], [long_record()], file_name="many-steps.jsonl")
    ingest(systems[PLAIN], walk_records(), file_name="walk.jsonl")
    ingest(systems[PATHS], sum_records(), release="1.0", file_name="sums.jsonl")
    ingest(systems[BROKEN], b"<html>502 Bad Gateway</html>", file_name="page.html")


def _system(slug: str) -> System:
    owner = User.objects.get(username="owner")
    system = create_system(f"System {slug}", slug=slug, by=owner)
    for role in DEMO_ROLES:
        set_member(system, User.objects.get(username=role.value), role)
    return system


def long_record() -> dict[str, Any]:
    """6,000 messages with 2,000 calls."""
    messages: list[dict[str, Any]] = []
    for number in range(2_000):
        function = {"name": "look_up", "arguments": f'{{"row": {number}}}'}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages += [
            {"role": "user", "content": f"Question {number}"},
            {"role": "assistant", "content": None, "tool_calls": [call]},
            {"role": "tool", "tool_call_id": f"c{number}", "content": f"answer {number}"},
        ]
    verdicts = [verdict(evidence=[{"step": 6000}], rationale="the last answer")]
    return {"task_id": "many", "trial": 0, "messages": messages, "verdicts": verdicts}


def sum_records() -> list[dict[str, Any]]:
    """One task that passes by one sequence, with a sum written in two ways."""
    look, bags = ("get_booking", {"id": "B-7"}), ("add_bags", {"id": "B-7", "n": 2})
    sums = ("600 * 2", "600 * 2", "(350 + 250) * 2")
    return [
        record("bags", number, calls=[look, ("calculate", {"expression": text}), bags])
        for number, text in enumerate(sums)
    ]


def walk_records() -> list[dict[str, Any]]:
    """One task of six trials: three passing paths at the exact level, two by tool set; one fails."""
    look = ("get_order", {"order": "A-1"})
    refund = ("refund_order", {"order": "A-1", "amount": 20})
    partly = ("refund_order", {"order": "A-1", "amount": 15})
    ask = ("search_policy", {"words": "refund"})
    cited = verdict(evidence=[{"step": 4}], rationale="The refund is booked in step 4.")
    failed = verdict("fail", evidence=[{"step": 2}], rationale="Nothing was refunded.")
    paths: list[tuple[list[Call], dict[str, Any]]] = [
        ([look, refund], cited),
        ([look, refund], cited),
        ([look, partly], cited),
        ([look, ask, refund], cited),
        ([look], failed),
    ]
    refunds = [
        record("refund", number, calls=calls, verdicts=[one])
        for number, (calls, one) in enumerate(paths)
    ]
    return [*refunds, record("greeting", 0, calls=()), record("greeting", 1, calls=[look])]
