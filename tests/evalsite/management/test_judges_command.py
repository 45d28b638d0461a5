from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from tests.support.calibrated import judged_trials
from tests.support.cast import Cast

pytestmark = pytest.mark.django_db


def said(*arguments: str) -> str:
    out = StringIO()
    call_command("judges", *arguments, stdout=out)
    return out.getvalue()


def test_judges_are_listed_with_their_status(cast: Cast) -> None:
    assert said("airline") == "No judge has given a verdict.\n"
    judged_trials(cast, ["pass", "fail"])

    assert said("airline").split("\t") == [
        "exploratory",
        "judge m1/p1",
        "truthful",
        "2 verdicts",
        "false passes at most -",
        "-",
        "No status was read.\n",
    ]
    assert said("airline", "--status", "failed") == "No judge has given a verdict.\n"
    assert said("airline", "--criterion", "tone") == "No judge has given a verdict.\n"


def test_judges_are_printed_as_json(cast: Cast) -> None:
    judged_trials(cast, ["pass", "fail"])

    document = json.loads(said("airline", "--json"))

    (judge,) = document["judges"]
    assert document["system"] == "airline"
    assert (judge["judge"], judge["version"], judge["criterion"]) == ("judge", "m1/p1", "truthful")
    assert (judge["status"], judge["votes"], judge["verdicts"]) == (
        "exploratory",
        False,
        {"fail": 1, "pass": 1},
    )
    assert judge["calibration"] is None


def test_a_system_that_is_absent_is_refused(cast: Cast) -> None:
    with pytest.raises(CommandError):
        said("nowhere")
