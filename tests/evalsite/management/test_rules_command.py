"""`rules`."""

from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.rules import NOW, approved, in_force, proposed
from traces.core.rule_changes import RuleChange, RulePlace
from traces.core.rule_documents import rule_set_document
from traces.core.rules import ArgumentRule, Arithmetic, Ignore, RuleSet
from traces.core.trajectory import ToolKind
from traces.models import RulesJob, WorkState
from traces.services.rules import stop_work

pytestmark = pytest.mark.django_db

SUM = ArgumentRule("calculate", "expression", Arithmetic(), "One sum.", "ada")
NOTE = ArgumentRule("pay", "note\u202e", Ignore(), "Free words.", "ada", "t1")
ADD = RuleChange(put=(SUM, NOTE), kinds=(("calculate", ToolKind.READ),))
DROP = RuleChange(drop=(RulePlace("calculate", "expression"),))
DROPPED = "No longer a rule: calculate.expression: expressions with the same value are equal."
READ = RuleChange(kinds=(("get_order", ToolKind.READ),))


def printed(cast: Cast, *words: str) -> str:
    out = StringIO()
    call_command("rules", "--system", cast.system.slug, *words, stdout=out)
    return out.getvalue()


@pytest.fixture
def busy(cast: Cast) -> Cast:
    """Rules in force, a proposal that waits, and approved work that stands still."""
    ingest(cast.system, [record()])
    in_force(cast, ADD)
    proposed(cast, DROP)
    stop_work(approved(cast, READ), by=cast.owner, now=NOW)
    RulesJob.objects.filter(rules__number=4).update(n_total=1, failure="It was late.")
    return cast


def test_rules_in_force_proposals_and_work_are_told_in_sentences(busy: Cast) -> None:
    assert printed(busy).splitlines() == [
        "Airline: rules version 2 is in force",
        "  calculate.expression: expressions with the same value are equal. One sum.",
        '  task t1: pay["note\\u202e"]: not compared. Free words.',
        "  calculate: read",
        "version 3, proposed by engineer, waits for a decision: a sum",
        f"  {DROPPED}",
        "version 4 is approved and not in force yet: cancelled, 0 of 1 trajectories",
        "  It was late.",
    ]


def test_rules_are_printed_as_json(busy: Cast) -> None:
    found: Any = json.loads(printed(busy, "--json"))

    rules = RuleSet((SUM, NOTE), (("calculate", ToolKind.READ),))
    assert found == {
        "system": "airline",
        "in_force": {"version": 2, **rule_set_document(rules)},
        "newest_approved": 4,
        "proposals": [
            {
                "version": 3,
                "based_on": 2,
                "by": "engineer",
                "reason": "a sum",
                "changes": [DROPPED],
            }
        ],
        "work": {
            "version": 4,
            "state": "cancelled",
            "n_done": 0,
            "n_total": 1,
            "failure": "It was late.",
        },
    }


def test_a_new_system_has_nothing_to_tell(cast: Cast) -> None:
    assert printed(cast) == "Airline: rules version 1 is in force\n"
    assert json.loads(printed(cast, "--json"))["work"] is None


def test_the_operator_restarts_work(busy: Cast) -> None:
    assert printed(busy, "--restart", "4") == (
        "The work on version 4 goes on behind its checkpoint.\n"
    )
    assert RulesJob.objects.get(rules__number=4).state == WorkState.WAITING.value
    for number, sentence in (
        ("4", "The work on version 4 has not stopped."),
        ("9", "airline has no rules version 9."),
    ):
        with pytest.raises(CommandError, match=sentence):
            printed(busy, "--restart", number)
