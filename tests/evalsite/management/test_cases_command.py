from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from reviews.models import Case
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import ask_rerun, assign_cases, set_due
from tests.support.cases import LATER, NOW, broken, case_of_trial, passed, stored_trials
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db


def said(*words: str) -> list[str]:
    out = StringIO()
    call_command("cases", *words, stdout=out)
    return out.getvalue().splitlines()


def test_the_queue_is_printed_with_what_is_to_do(cast: Cast) -> None:
    first, second, third = stored_trials(cast, 3)
    case_of_trial(first, actions=("grade", "repair_evidence"), why=("tone", "a\u202eb"))
    follow_dispositions([broken(second)], now=LATER)
    follow_dispositions([passed(case_of_trial(third).trial)], now=NOW)
    case = Case.objects.get(trial=second)
    ask_rerun(case, reason="It timed out.", by=cast.engineer, now=LATER)
    assign_cases([case], to=cast.engineer, by=cast.engineer, now=LATER)
    set_due(case, LATER.date(), by=cast.engineer, now=LATER)

    run = first.run.name
    assert said("airline") == [
        f"1.0 {run} t1, trial 0  grade, repair evidence: tone, a[U+202E]b  (reviewer)",
        f"1.0 {run} t1, trial 1  rerun trial  (engineer, due 2026-12-02)",
        "    rerun asked by engineer: It timed out.",
        "2 cases",
    ]
    assert said("airline", "--action", "grade")[-1] == "1 case"
    assert said("airline", "--state", "closed") == [
        f"1.0 {run} t1, trial 2  closed  (engineer)",
        "1 case",
    ]
    assert said("airline", "--state", "all")[-1] == "3 cases"


def test_json_has_one_line_a_case(cast: Cast) -> None:
    (trial,) = stored_trials(cast)
    follow_dispositions([broken(trial)], now=NOW)
    assert said("airline", "--rerun", "--json") == []
    ask_rerun(Case.objects.get(), reason="Again.", by=cast.engineer, now=NOW)

    (line,) = said("airline", "--rerun", "--json")

    case = json.loads(line)
    assert (case["task_id"], case["trial"], case["rerun"]["reason"]) == ("t1", "0", "Again.")


def test_a_system_that_is_none_is_named(db: None) -> None:
    with pytest.raises(CommandError, match="There is no system 'x'"):
        said("x")
