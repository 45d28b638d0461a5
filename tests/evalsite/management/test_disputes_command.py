from __future__ import annotations

import csv
import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from reviews.api.disputes import dispute_document
from reviews.models import Dispute
from reviews.selectors.disputes import dispute_of
from tests.support.cast import Cast
from tests.support.disputes import disputed, judged

pytestmark = pytest.mark.django_db


def printed(*arguments: str) -> str:
    out = io.StringIO()
    call_command("disputes", *arguments, stdout=out)
    return out.getvalue()


def test_each_is_a_line_with_who_says_what(cast: Cast) -> None:
    run = disputed(cast, judged("t\u202e1", terse="pass"), judged("t2", code="pass"))[0].trial.run

    assert printed("airline") == (
        f"1.0 {run.name} t[U+202E]1, trial 0  outcome: state check fail, terse pass (no vote)"
        "  (code decides)\n1 dispute, 0 of them decide something\n"
    )


def test_more_graders_attempts_and_states_are_told(cast: Cast) -> None:
    judges: dict[str, Any] = {f"judge {n:02}": "pass" for n in range(30)}
    disputed(cast, judged("t1", **judges))
    Dispute.objects.update(state="over")

    text = printed("airline", "--state", "all")

    assert "judge 22 pass (no vote), 7 more  (code decides, over)" in text
    assert printed("airline") == "0 disputes, 0 of them decide something\n"


def test_filters_and_json(cast: Cast) -> None:
    disputed(
        cast,
        judged("t1", terse="pass"),
        judged("t2", code=None, criterion="tone", terse="pass", long="fail"),
    )
    tone = Dispute.objects.get(criterion="tone")
    found = dispute_of(cast.system.pk, tone.uuid)
    assert found is not None

    for arguments in (
        ("--deciding",),
        ("--class", "semantic"),
        ("--criterion", "tone"),
        ("--kind", "judge_judge"),
    ):
        lines = printed("airline", "--format", "json", *arguments).splitlines()
        assert [json.loads(line) for line in lines] == [dispute_document(found)]


def test_csv_is_safe_to_open_in_a_spreadsheet(cast: Cast) -> None:
    named: dict[str, Any] = {"=cmd()": "pass"}
    disputed(cast, judged("=1+1", terse="pass", **named))

    rows = list(csv.DictReader(io.StringIO(printed("airline", "--format", "csv"), newline="")))

    assert [(row["task"], row["pass"], row["fail"], row["decides"]) for row in rows] == [
        ("'=1+1", "'=cmd() 1; terse 1", "state check", "no")
    ]


def test_a_system_that_is_not_there(cast: Cast) -> None:
    with pytest.raises(CommandError):
        printed("elsewhere-else")
