"""The known gradings through the public doors: records, contracts and a person's verdicts in,
dispositions and figures out.

Rows of the table that need a calibrated judge are tests of the pure function
(`tests/reviews/core/test_disposition.py`); here the same trials wait for that calibration.
"""

from __future__ import annotations

import json
from collections import Counter
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.cache import cache
from django.core.management import call_command
from django.test import Client

from evalsite.refund_desk import TOOL_KINDS, contract_texts, earlier_texts, people_said, releases
from tests.support.cast import Cast
from tests.support.contracts import brought_into_effect
from tests.support.keys import header
from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.models import RulesVersion, System, Trial
from traces.web.addresses import Addresses

pytestmark = pytest.mark.django_db

FAMILY = (
    "cancel_subscription",
    "cancel_within_term",
    "cancel_which_one",
    "ask_about_someone_else",
)
Row = dict[str, Any]


def records(run: str, *task_ids: str, release: str = "desk-1.0") -> list[bytes]:
    lines = next(one.lines for one in releases() if one.name == release)
    told = [(json.loads(line), line) for line in lines]
    return [line for one, line in told if one["run"] == run and one["task_id"] in task_ids]


def send(system: System, lines: list[bytes], folder: Path) -> None:
    """Records through the command, as an operator would send them."""
    file = folder / "trials.jsonl"
    file.write_bytes(b"".join(lines))
    call_command("ingest", str(file), system=system.slug, release="desk-1.0", stdout=StringIO())


def printed(*words: str) -> Any:
    out = StringIO()
    call_command(*words, "--json", stdout=out)
    return json.loads(out.getvalue())


@pytest.fixture
def desk(cast: Cast) -> System:
    """The cast's system, which knows the desk's tools."""
    cache.clear()
    system = cast.system
    system.shown_rules = RulesVersion.objects.create(
        system=system,
        number=2,
        document=rule_set_document(RuleSet(tool_kinds=TOOL_KINDS)),
        reason="Kinds of the desk's tools.",
    )
    system.save(update_fields=["shown_rules"])
    return system


def say(client: Client, cast: Cast, run: str, *task_ids: str) -> None:
    """What the desk's reviewer says, given on the trial page by the cast's reviewer."""
    client.force_login(cast.reviewer)
    for said in people_said():
        if said.run != run or said.task_id not in task_ids or said.release != "desk-1.0":
            continue
        trial = Trial.objects.get(
            system=cast.system,
            run__name=run,
            task__task_id=said.task_id,
            label=said.label,
            disposition__stands=True,
        )
        form = {
            "criterion": said.criterion,
            "value": said.value.value,
            "reason": said.reason,
            "steps": ", ".join(str(step) for step in said.steps),
        }
        answer = client.post(Addresses.of(cast.system.slug).verdict_form(trial.uuid), form)
        assert answer.status_code == 302, answer.content.decode()


def shown(client: Client, cast: Cast, trial: Trial) -> Row:
    """A trial as the door for programs tells it."""
    headers = header(cast.system, cast.engineer)
    answer = client.get(f"/api/v1/trials/{trial.uuid}", **headers)
    assert answer.status_code == 200
    found: Row = answer.json()
    return found


def seen(client: Client, cast: Cast, k: int = 5) -> Row:
    """The overview's first figures, as the page gives them: passed and graded, and pass^k."""
    client.force_login(cast.viewer)
    answer = client.get(f"{Addresses.of(cast.system.slug).root}overview.json", {"k": k})
    assert answer.status_code == 200
    found = answer.json()
    hats = found["pass_hat_k"]
    assert hats["outcome"]["k"] == k
    return {
        "outcome": (found["outcome"]["n_pass"], found["outcome"]["n_graded"]),
        "rule_clean": (found["rule_clean"]["n_pass"], found["rule_clean"]["n_graded"]),
        "pass_hat_k": (hats["outcome"]["value"], hats["rule_clean"]["value"]),
    }


def words_of(document: Row) -> tuple[str, str]:
    """Its disposition, and why: failed classes, or next actions."""
    return document["disposition"], "+".join(document["failed_classes"] or document["next_actions"])


CANCEL, TERM, WHICH, OTHERS = FAMILY
GRADINGS = {
    "path A": (CANCEL, "1", "pass", ""),
    "path B": (CANCEL, "2", "pass", ""),
    "fluent answer, nothing changed": (CANCEL, "3", "fail", "outcome"),
    "cancellation of another subscription": (CANCEL, "4", "fail", "outcome+constraint"),
    "cancellation before the eligibility result": (CANCEL, "5", "fail", "constraint"),
    "final state not recorded": (CANCEL, "6", "unresolved", "repair_evidence"),
    "two judges disagree": (CANCEL, "7", "unresolved", "calibrate_judge"),
    "judge timed out": (CANCEL, "8", "unresolved", "calibrate_judge"),
    "cancellation and lookup in one message": (CANCEL, "9", "fail", "constraint"),
    "C2, ineligible: unchanged, explained": (TERM, "1", "pass", ""),
    "C2, ineligible: cancelled after the result": (TERM, "2", "fail", "outcome"),
    "C3, ambiguous: a clarifying question": (WHICH, "1", "pass", ""),
    "C3, ambiguous: cancelled without asking": (WHICH, "2", "fail", "outcome+constraint"),
    "backend rejects; reported, ticket opened": (CANCEL, "10", "pass", ""),
    "backend rejects; agent says it is done": (CANCEL, "11", "fail", "outcome+semantic"),
    "C4, lookup refused, committed ones count": (OTHERS, "1", "pass", ""),
    "C4, a foreign value told to the user": (OTHERS, "2", "fail", "constraint"),
    "prohibited, then the harness broke": (CANCEL, "12", "fail", "constraint"),
    "mandatory check ends in error": (CANCEL, "13", "unresolved", "clarify_contract"),
    "only an uncalibrated judge, pass": (CANCEL, "14", "unresolved", "calibrate_judge"),
    "only an uncalibrated judge, fail": (CANCEL, "15", "unresolved", "calibrate_judge"),
    "a judge gave pass, then fail": (CANCEL, "16", "unresolved", "calibrate_judge"),
}
"""Row: task, trial, disposition, why. Calibrated judges would make rows 7, 8 and 16 of C1
*adjudicate*, *rerun judge* and *adjudicate*."""


def test_every_row_of_the_gradings_comes_out(
    client: Client, cast: Cast, desk: System, tmp_path: Path
) -> None:
    send(desk, records("gradings", *FAMILY), tmp_path)
    texts = [contract_texts()[task] for task in FAMILY]
    brought_into_effect(client, cast, texts)

    say(client, cast, "gradings", *FAMILY)

    trials = {
        (trial.task.task_id, trial.label): trial
        for trial in Trial.objects.filter(system=desk).select_related("task")
    }
    documents = {name: shown(client, cast, trials[row[:2]]) for name, row in GRADINGS.items()}
    found = {name: (*GRADINGS[name][:2], *words_of(one)) for name, one in documents.items()}
    assert found == GRADINGS
    assert set(trials) == {row[:2] for row in GRADINGS.values()}
    # Of a broken trial only the violation stands; what a foreign value told does is named.
    broken = trials[CANCEL, "12"].disposition
    assert (broken.failed, broken.passed, broken.harms_committed) == (
        ["other-subscription"],
        [],
        ["service"],
    )
    told = trials[OTHERS, "2"].disposition
    assert (told.harms_committed, "foreign-value" in told.failed) == (["data"], True)
    refused = trials[OTHERS, "1"].disposition
    assert (refused.harms_attempted, refused.harms_committed) == (["data"], [])


def test_an_attempt_violates_where_the_contract_does_not_narrow_it(
    client: Client, cast: Cast, desk: System, tmp_path: Path
) -> None:
    send(desk, records("gradings", OTHERS), tmp_path)
    text = contract_texts()[OTHERS]
    brought_into_effect(client, cast, [text])
    say(client, cast, "gradings", OTHERS)
    trial = Trial.objects.get(system=desk, label="1")
    assert words_of(shown(client, cast, trial)) == ("pass", "")

    stricter = text.replace("    counts: committed\n", "").replace(
        "foreign-value: pass, foreign-lookup: pass}\n  - name: the lookup succeeds",
        "foreign-value: pass, foreign-lookup: fail}\n  - name: the lookup succeeds",
    )
    brought_into_effect(client, cast, [stricter])

    # The reviewer's verdict on `truthful` still counts: its criterion is the same.
    assert words_of(shown(client, cast, trial)) == ("fail", "constraint")


def test_the_five_refunds_have_the_right_outcome_and_two_of_them_keep_the_rules(
    client: Client, cast: Cast, desk: System, tmp_path: Path
) -> None:
    send(desk, records("nightly", "refund_damaged_item"), tmp_path)
    brought_into_effect(client, cast, [contract_texts()["refund_damaged_item"]])

    trials = Trial.objects.filter(system=desk).order_by("label").select_related("disposition")
    documents = [shown(client, cast, trial) for trial in trials]
    assert [words_of(one) for one in documents] == [
        ("pass", ""),
        ("pass", ""),
        ("fail", "constraint"),
        ("fail", "constraint"),
        ("fail", "constraint"),
    ]
    failed = [failed_checks(one) for one in documents]
    # The refund of trials 3 and 5 stands before the end of the identity check; the records of two
    # other customers; and one read 27 times, which breaks four budgets.
    assert failed[:2] == [{}, {}]
    assert set(failed[2]) == {"identity", "foreign-record"}
    assert set(failed[4]) == {"identity"}
    assert set(failed[3]) == {
        "budget.tool_calls",
        "budget.cost_usd",
        "budget.tokens",
        "budget.seconds",
        "budget.repeat_call",
    }
    assert tools_at(documents[2], failed[2]["foreign-record"]) == ["get_customer"] * 2
    assert tools_at(documents[2], failed[2]["identity"]) == ["issue_refund"]
    assert tools_at(documents[4], failed[4]["identity"]) == ["issue_refund"]
    assert tools_at(documents[3], failed[3]["budget.repeat_call"]) == ["get_order"]
    assert seen(client, cast) == {
        "outcome": (5, 5),
        "rule_clean": (2, 5),
        "pass_hat_k": (1, 0),
    }
    figures = printed("figures", "--system", desk.slug)
    assert (figures["n_pass"], figures["n_graded"], figures["pass_hat_k"]["5"]) == (2, 5, 0)


def failed_checks(document: Row) -> dict[str, list[int]]:
    """The mandatory checks that failed, with their deciding steps."""
    return {
        one["criterion"]: one["check"]["steps"]
        for one in document["standings"]["requirements"]
        if one["mandatory"] and one["result"] == "fail"
    }


def tools_at(document: Row, steps: list[int]) -> list[str]:
    """The tools that are called at some steps."""
    messages = [document["record"]["messages"][step - 1] for step in steps]
    return [c["function"]["name"] for m in messages for c in m.get("tool_calls") or ()]


def test_an_outcome_that_depends_on_the_facts_passes_ten_of_ten_and_a_naive_one_six(
    client: Client, cast: Cast, desk: System, tmp_path: Path
) -> None:
    task = "refund_fare_difference"
    send(desk, records("balance", task), tmp_path)
    sufficient = [json.loads(line)["facts"]["sufficient"] for line in records("balance", task)]
    assert Counter(sufficient) == {True: 6, False: 4}

    brought_into_effect(client, cast, [earlier_texts()[task]])
    assert seen(client, cast)["outcome"] == (6, 10)

    brought_into_effect(client, cast, [contract_texts()[task]])
    assert seen(client, cast)["outcome"] == (10, 10)

    # Eight of ten sufficient: another mix of worlds, the same ten of ten.
    worlds = [*records("balance", task), *records("nightly", task)]
    told = [json.loads(line) for line in worlds]
    chosen = [r for r in told if r["facts"]["sufficient"]][:8]
    chosen += [r for r in told if not r["facts"]["sufficient"]][:2]
    again = [{**r, "run": "eight", "trial": at} for at, r in enumerate(chosen)]
    send(desk, [json.dumps(r).encode() + b"\n" for r in again], tmp_path)

    assert seen(client, cast, k=3) == {
        "outcome": (20, 20),
        "rule_clean": (20, 20),
        "pass_hat_k": (1, 1),
    }
    figures = printed("figures", "--system", desk.slug)
    assert (figures["n_pass"], figures["n_graded"]) == (20, 20)
    assert figures["pass_at_k"]["3"] == 1
