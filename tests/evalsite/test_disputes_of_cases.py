"""Disputes of the hand-made cases and of four published judges, through the whole pipeline."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.test import Client

from evalsite import sample_loader
from reviews.models import Dispute
from tests.support.cast import Cast
from tests.support.evidence import ingest
from tests.support.visits import visit
from traces.models import System, Trial, TrialDisposition
from traces.services.people import create_system

pytestmark = pytest.mark.django_db

DATA = Path(__file__).resolve().parents[1] / "data"
POOL = sample_loader.FOLDER / "tau2_airline"


@pytest.mark.parametrize(
    ("files", "disputes"),
    [
        (["judge-contradiction--bad-evidence.jsonl"], []),
        (["judge-malformed-verdict--spellings.jsonl"], []),
        (["judge-malformed-verdict--verdict-absent.jsonl"], []),
        (
            ["judge-tie--panel-order.jsonl"],
            [
                ("loan-p1", "policy_kept", ["judge_judge"], "pf", ""),
                ("loan-p2", "policy_kept", ["judge_judge"], "fp", ""),
            ],
        ),
        (
            ["judge-tie--same-judge-twice.jsonl"],
            [("loan-p3", "policy_kept", ["judge_judge"], "pf", "")],
        ),
        (
            ["human-override--override-chain.jsonl"],
            [("loan-o1", "policy_kept", ["judge_person", "person_person"], "p", "pf")],
        ),
        (
            [
                "verdict-before-trace--two-graders-early.jsonl",
                "verdict-before-trace--two-graders-early.2.jsonl",
            ],
            [],
        ),
        (
            [
                "verdict-before-trace--verdict-only.jsonl",
                "verdict-before-trace--verdict-only.2.jsonl",
            ],
            [],
        ),
        (["unknown-criterion--not-in-contract.jsonl"], []),
        (["unknown-criterion--null-criterion.jsonl"], []),
    ],
    ids=lambda value: value[0] if value and isinstance(value[0], str) else "disputes",
)
def test_disputes_of_the_cases(
    cast: Cast, files: list[str], disputes: list[tuple[object, ...]]
) -> None:
    for file in files:
        ingest(cast.system, (DATA / "cases" / file).read_bytes(), release=None)

    rows = Dispute.objects.order_by("task__task_id")
    assert [
        (d.task.task_id, d.criterion, d.kinds, d.says["judges"], d.says["people"]) for d in rows
    ] == disputes
    assert all(d.state == "open" and d.decides and not d.is_counting for d in rows)


def test_a_judge_that_came_before_its_trial_is_disputed_with_it(cast: Cast) -> None:
    early, trial = (
        (DATA / "cases" / f"verdict-before-trace--verdict-only{part}.jsonl").read_text()
        for part in ("", ".2")
    )
    judge = json.loads(early)
    judge["verdicts"] = [
        {"grader": "judge", "kind": "model", "criterion": "loan_renewed", "verdict": "pass"}
    ]
    ingest(cast.system, f"{early}\n{json.dumps(judge)}\n".encode(), release=None)
    assert not Dispute.objects.exists()

    ingest(cast.system, trial.encode(), release=None)

    dispute = Dispute.objects.get()
    assert (dispute.kinds, dispute.says["why"]) == (["code_judge"], "code_decides")


def _ingested(system: System, *, have_judges: bool) -> None:
    files = [POOL / "azure-gpt-4o.json.gz"]
    if have_judges:
        files += sorted((POOL / "judges").glob("*.json.gz"))
    for file in files:
        call_command(
            "ingest", str(file), system=system.slug, release="azure-gpt-4o", stdout=StringIO()
        )


def _printed(command: str, slug: str, *more: str) -> Any:
    out = StringIO()
    call_command(command, "--system", slug, *more, "--json", stdout=out)
    found = json.loads(out.getvalue())
    found.pop("system", None)
    return found


def test_four_judges_are_disputed_and_change_no_figure(client: Client, cast: Cast) -> None:
    answers = json.loads((DATA / "expected_judges_tau2_airline.json").read_text())
    plain = create_system("Plain", by=None)
    _ingested(plain, have_judges=False)
    _ingested(cast.system, have_judges=True)

    # Disputes: the split items, and what all judges pass against the code check.
    rows = Dispute.objects.filter(system=cast.system)
    by_kind = {
        kind: sorted(rows.filter(kinds__contains=[kind]).values_list("task__task_id", flat=True))
        for kind in ("judge_judge", "code_judge")
    }
    alone = answers["unanimous_pass_but_code_fail"]
    assert by_kind["judge_judge"] == sorted(answers["split_items"])
    assert by_kind["code_judge"] == sorted([*answers["split_items"], *alone])
    assert (rows.count(), len(answers["split_items"]), len(alone)) == (34, 25, 9)
    assert not rows.filter(decides=True).exists()
    assert not Dispute.objects.filter(system=plain).exists()

    # The list, by cause: one criterion, and what each judge passes and fails against code.
    page = visit(client, cast.reviewer, f"/systems/{cast.system.slug}/disputes/")
    assert page.heading == (
        "34 disputes, none of them decides anything, because code decides outcome"
    )
    (cause,) = page.causes
    assert [(words, count.n) for words, count in cause.between] == [
        ("code against judge", 34),
        ("judge against judge", 25),
        ("judges that agree, against code", 9),
    ]
    found = {
        judge.name.removesuffix("_v1"): [count.n if count else 0 for _, count in judge.by_stance]
        for judge in cause.judges
    }
    # Five words of the fourth judge are unreadable upstream, and stand in our table of words.
    expected = {
        name: [row["false_pass"], row["false_fail"], 25, 0, 0]
        for name, row in answers["judges"].items()
    }
    matrix = [row for row in answers["matrix"].values() if row[4] == "unrecognised"]
    expected["policy_chain_of_thought"][0] += sum(row[0] == "fail" for row in matrix)
    assert found == expected
    alike = visit(client, cast.reviewer, cause.between[2][1].href)
    assert {row.trial.label.split()[0] for row in alike.rows} == set(alone)

    # Nothing that counts is any different for them.
    dispositions = [
        list(
            TrialDisposition.objects.filter(trial__system=system)
            .order_by("trial__task__task_id")
            .values_list("trial__task__task_id", "value", "outcome", "rule_clean")
        )
        for system in (plain, cast.system)
    ]
    assert dispositions[0] == dispositions[1]
    assert sum(value == "pass" for _, value, *_ in dispositions[0]) == answers["code_pass"]
    assert Trial.objects.filter(system=plain).count() == 50
    for command, more in (("figures", ()), ("paths", ("--level", "exact"))):
        assert _printed(command, plain.slug, *more) == _printed(command, cast.system.slug, *more)
