from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from reviews.models import Criterion, GraderVersion
from tests.support.calibrated import RUBRIC, asked, judged_trials, labelled_set, read_of, twice
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import header
from tests.support.labels import reviewer_named, stored_set
from traces.models import Trial

pytestmark = pytest.mark.django_db

JUDGES = "/api/v1/judges"
SAY = ["pass"] * 30 + ["fail"] * 30


@pytest.fixture
def calibrated(cast: Cast) -> Cast:
    """A system whose judge is calibrated on the rubric."""
    trials = judged_trials(cast, SAY)
    made = labelled_set(
        cast.system,
        trials,
        twice(SAY),
        people=[cast.reviewer, cast.second_reviewer],
        digest=asked(cast),
        by=cast.reviewer,
        now=timezone.now(),
    )
    read_of(made, now=timezone.now())
    return cast


def card_path(cast: Cast) -> str:
    judge = GraderVersion.objects.get(grader__system=cast.system, version="m1/p1")
    on = Criterion.objects.get(system=cast.system, name=RUBRIC)
    return f"{JUDGES}/{judge.pk}/{on.pk}"


def test_a_key_lists_the_judges_of_its_system(client: Client, calibrated: Cast) -> None:
    headers = header(calibrated.system, calibrated.engineer)

    (judge,) = client.get(JUDGES, **headers).json()["judges"]

    assert (judge["status"], judge["votes"], judge["n_verdicts"]) == ("calibrated", True, 60)
    assert judge["calibration"]["figures"]["held"]["false_pass"]["errors"] == 0
    assert client.get(f"{JUDGES}?status=failed", **headers).json()["judges"] == []
    assert client.get(f"{JUDGES}?criterion=tone", **headers).json()["judges"] == []
    refused = client.get(f"{JUDGES}?status=odd", **headers)
    assert (refused.status_code, refused.json()["code"]) == (400, "unknown-status")


def test_a_card_holds_the_figures_and_their_items(client: Client, calibrated: Cast) -> None:
    headers = header(calibrated.system, calibrated.engineer)

    card = client.get(card_path(calibrated), **headers).json()

    assert (card["status"], card["text"]["rubric_version"]) == ("calibrated", "1")
    assert card["labelled"]["figures"]["held"]["table"]["counts"] == [[30, 0], [0, 30]]
    assert len(card["labelled"]["items"]) == 60
    item = card["labelled"]["items"][0]
    assert (item["people"], item["labels"], item["judge"]) == ("pass", ["pass", "pass"], "pass")
    assert [row["status"] for row in card["history"]] == ["calibrated"]
    assert (card["adjudicated"]["items"], card["exploratory"]["items"], card["probes"]) == (
        [],
        [],
        [],
    )
    text = card["text"]["digest"]
    assert client.get(f"{card_path(calibrated)}?text={text}", **headers).status_code == 200
    assert client.get(f"{card_path(calibrated)}?text=-", **headers).status_code == 404


def test_cards_of_other_systems_are_absent(client: Client, calibrated: Cast) -> None:
    client.force_login(calibrated.outsider)
    other = calibrated.other_system.slug
    foreign = client.get(f"{card_path(calibrated)}?system={other}")
    absent = client.get(f"{JUDGES}/999999/999999?system={other}")
    assert (foreign.status_code, foreign.json()) == (404, absent.json())
    hidden = client.get(f"{card_path(calibrated)}?system={calibrated.system.slug}")
    assert hidden.status_code == 404
    client.logout()
    assert client.get(card_path(calibrated)).status_code == 401


def test_items_of_an_open_blind_set_are_kept_from_who_may_label_them(
    client: Client, calibrated: Cast
) -> None:
    trial = Trial.objects.get(system=calibrated.system, task__task_id="t1", label="7")
    criterion = Criterion.objects.get(system=calibrated.system, name=RUBRIC)
    stored_set(calibrated.system, [trial], by=calibrated.owner, criterion=criterion)
    client.force_login(reviewer_named(calibrated, "third"))
    slug = calibrated.system.slug

    hidden = client.get(f"{card_path(calibrated)}?system={slug}").json()
    client.force_login(calibrated.viewer)
    shown = client.get(f"{card_path(calibrated)}?system={slug}").json()

    assert (len(hidden["labelled"]["items"]), len(shown["labelled"]["items"])) == (59, 60)


def test_the_standings_of_a_trial_name_its_judges(client: Client, calibrated: Cast) -> None:
    headers = header(calibrated.system, calibrated.engineer)
    trial = Trial.objects.get(system=calibrated.system, label="7")

    (row,) = client.get(f"/api/v1/trials/{trial.uuid}", **headers).json()["standings"][
        "requirements"
    ]

    assert row["adjudications"] == []
    (judge,) = row["judges"]
    assert (judge["grader"], judge["version"]) == ("judge", "m1/p1")
    assert judge["calibration"]["status"] == "calibrated"
    ingest(
        calibrated.system,
        [record("t2", 0, verdicts=[verdict(criterion="tone", grader="other", kind="model")])],
    )
    other = Trial.objects.get(system=calibrated.system, task__task_id="t2")
    (row,) = client.get(f"/api/v1/trials/{other.uuid}", **headers).json()["standings"][
        "requirements"
    ]
    assert row["judges"] == [{"grader": "other", "version": "", "calibration": None}]
