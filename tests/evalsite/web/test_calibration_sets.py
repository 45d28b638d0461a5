from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.utils import timezone

from reviews.models import (
    Calibration,
    CalibrationItem,
    CalibrationSet,
    Criterion,
    GraderVersion,
    Label,
    SetVouch,
)
from reviews.permissions.calibration_sets import IMPORTED_IT
from reviews.services.calibration_sets import OVER, WITHDRAWN, close_set
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.sets import NOW, a_set, items, judged, labelled, nowhere, stored
from tests.support.visits import n_queries, root, visit
from traces.models import Role, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"
GIVEN = {
    "criterion": ":outcome",
    "name": "First set",
    "sampling": "random",
    "n": "2",
    "reason": "The judge is new.",
}
BROUGHT = {
    "what": "file",
    "criterion": ":outcome",
    "name": "Two raters",
    "sampling": "chosen",
    "source": "A paper.",
    "licence": "MIT",
    "reason": "A second opinion.",
}


def at(cast: Cast, place: str = "") -> str:
    return f"{root(cast.system)}labelling/{place}"


def post(client: Client, by: User, path: str, data: dict[str, Any]) -> Any:
    client.force_login(by)
    return client.post(path, data)


def said(client: Client, answer: Any) -> list[str]:
    return [str(message) for message in client.get(answer["Location"]).context["messages"]]


def file_of(*labels: dict[str, Any], name: str = "labels.jsonl") -> SimpleUploadedFile:
    return SimpleUploadedFile(name, "\n".join(map(json.dumps, labels)).encode())


def label_of(trial: int = 0, labeller: str = "rater_1", value: str = "pass") -> dict[str, Any]:
    return {"task_id": "t1", "trial": trial, "labeller": labeller, "value": value}


# --- the list


def test_the_list_says_what_is_left_for_whom(client: Client, cast: Cast) -> None:
    stored(cast, 3)
    made = items(a_set(cast))
    labelled(made[0], (cast.reviewer, "pass"), is_settled=False)

    page = visit(client, cast.reviewer, at(cast))

    (row,) = page.rows
    assert (row.name.label, row.name.href, row.state.label, row.sampling) == (
        "First set",
        at(cast, "1/"),
        "open",
        "random",
    )
    assert [(bar.name, bar.n, bar.of) for bar in row.people] == [("reviewer", 1, 3)]
    assert (row.n_left, row.label_url, row.n_settled, row.n_items) == (
        2,
        at(cast, "1/label/"),
        0,
        3,
    )
    for person in (cast.engineer, cast.owner, cast.viewer):
        (row,) = visit(client, person, at(cast)).rows
        assert (row.n_left, row.label_url, row.why_not) == (None, "", "")


def test_a_reviewer_for_whom_nothing_is_left_is_told(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    labelled(items(a_set(cast))[0], (cast.reviewer, "pass"), is_settled=False)

    (row,) = visit(client, cast.reviewer, at(cast)).rows

    assert (row.n_left, row.label_url) == (0, "")
    assert row.why_not == "Nothing of this set is left for you."


def test_a_judge_that_is_due_leads_to_the_next_set(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    version = GraderVersion.objects.get(grader__name="referee")
    criterion = Criterion.objects.get(name="outcome", system=cast.system)
    until = timezone.now() + timedelta(days=5)
    Calibration.objects.create(
        system=cast.system, grader_version=version, criterion=criterion, status="calibrated",
        why="So.", figures={}, read_at=NOW, valid_until=until,
    )  # fmt: skip

    (due,) = visit(client, cast.reviewer, at(cast)).reminders

    assert (due.judge.label, due.judge.href) == (
        "referee",
        f"{root(cast.system)}judges/{version.pk}/{criterion.pk}/",
    )
    assert (due.words, due.is_past) == (f"until {until:%Y-%m-%d}", False)
    assert due.act.href == at(
        cast, "new/?criterion=%3Aoutcome&sampling=random&reason=Recalibration."
    )
    form = client.get(due.act.href).context["page"].form
    assert (form.initial["sampling"], form.initial["reason"]) == ("random", "Recalibration.")
    assert visit(client, cast.viewer, at(cast)).reminders[0].act.href == ""
    a_set(cast)
    (due,) = visit(client, cast.viewer, at(cast)).reminders
    assert (due.act.label, due.act.href) == ("Set 1 is open", at(cast, "1/"))


def test_a_system_with_one_reviewer_is_told_so(client: Client, cast: Cast) -> None:
    assert visit(client, cast.reviewer, at(cast)).notices == ()
    set_member(cast.system, cast.second_reviewer, Role.VIEWER)

    page = visit(client, cast.reviewer, at(cast))

    assert [notice.sentence for notice in page.notices] == [
        (
            "Calibration needs two reviewers, and a third where they differ; this system has one. "
            "Until then its judges stay exploratory."
        )
    ]
    assert page.empty.heading == "No calibration set yet"


@pytest.mark.parametrize("n", [1, 3])
def test_the_pages_take_so_many_queries(client: Client, cast: Cast, n: int) -> None:
    stored(cast, 4 * n)
    for _ in range(n):
        made = items(a_set(cast, n=4))
        labelled(made[0], (cast.reviewer, "pass"), (cast.second_reviewer, "fail"))
        labelled(made[1], (cast.reviewer, "pass"), is_settled=False)
    client.force_login(cast.reviewer)

    counts = [n_queries(client, at(cast, place)) for place in ("", "1/", "new/", "import/")]

    assert counts == [10, 12, 13, 7]


# --- making one


def test_the_form_shows_what_qualifies(client: Client, cast: Cast) -> None:
    stored(cast, 3)
    ingest(cast.system, [record("t2", 0, verdicts=[verdict("fail")])], by=cast.engineer)

    page = visit(client, cast.reviewer, at(cast, "new/"))

    assert [(line.name, line.n_found) for line in page.strata] == [
        ("clear pass", 3),
        ("clear failure", 1),
        ("alternate path", 0),
        ("undecided", 0),
    ]
    assert (page.n_found, page.families_found) == (4, (("", 4),))
    assert page.advice[1].startswith("With no false pass among them, 29 failing items are needed")
    assert page.advice[3] == (
        "1 of the 4 trials that qualify is a clear failure: a random set of 4 holds about 1 of "
        "them."
    )
    assert [option.label for option in page.criteria] == [
        "outcome (from files, without a contract)"
    ]
    initial = page.form.initial
    assert (initial["n"], initial["wanted_clear_failure"], initial["wanted_clear_pass"]) == (
        4,
        1,
        3,
    )


def test_a_set_is_made(client: Client, cast: Cast) -> None:
    stored(cast, 3)

    answer = post(client, cast.reviewer, at(cast, "new/"), GIVEN)

    assert (answer.status_code, answer["Location"]) == (302, at(cast, "1/"))
    assert said(client, answer) == ["Set 1 holds 2 trials, to be labelled by two people each."]
    made = CalibrationSet.objects.get()
    assert (made.by, made.sampling, len(items(made))) == (cast.reviewer, "random", 2)


def test_a_stratified_set_and_one_by_hand_are_made(client: Client, cast: Cast) -> None:
    stored(cast, 3)
    chosen = Trial.objects.order_by("pk")[0]

    post(
        client,
        cast.reviewer,
        at(cast, "new/"),
        GIVEN | {"sampling": "chosen", "trials": f"{root(cast.system)}trials/{chosen.uuid}/\n\n"},
    )
    post(
        client,
        cast.reviewer,
        at(cast, "new/"),
        GIVEN | {"sampling": "stratified", "wanted_clear_pass": "1", "wanted_clear_failure": "3"},
    )

    first, second = CalibrationSet.objects.order_by("number")
    assert [item.trial for item in items(first)] == [chosen]
    assert [item.stratum for item in items(second)] == ["clear pass"]
    page = visit(client, cast.reviewer, at(cast, "2/"))
    assert [(line.name, line.n_wanted, line.n_found, line.shortage) for line in page.strata] == [
        ("clear pass", 1, 2, ""),
        ("clear failure", 3, 0, "3 wanted of clear failure; no trial is there."),
    ]
    assert {row.stratum for row in page.rows} == {""}


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"n": ""}, "Say how many trials."),
        ({"n": "1001"}, "Ensure this value is less than or equal to 1000."),
        ({"n": "x"}, "Enter a whole number."),
        ({"sampling": "stratified"}, "Say how many trials of each kind."),
        ({"sampling": "chosen"}, "List the trials."),
        ({"sampling": "chosen", "trials": "\nthe first one"}, "Line 2 names no trial."),
        ({"sampling": "chosen", "trials": str(nowhere())}, "cannot be labelled on this criterion"),
        ({"sampling": "odd"}, "Select a valid choice"),
        ({"sampling": ""}, "Say how trials are chosen."),
        ({"criterion": ":tone"}, "Choose what is to be labelled; it may have changed since."),
        ({"family": "none"}, "No trial qualifies"),
        ({"environment": "production"}, "No trial qualifies"),
        ({"name": "\u200b"}, "A set has a name."),
        ({"reason": ""}, "This field is required."),
    ],
)
def test_a_form_that_is_wrong_comes_back(
    client: Client, cast: Cast, changed: dict[str, str], sentence: str
) -> None:
    stored(cast, 2)

    answer = post(client, cast.reviewer, at(cast, "new/"), GIVEN | changed)

    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert not CalibrationSet.objects.exists()


def test_the_form_of_a_system_without_criteria_says_so(client: Client, cast: Cast) -> None:
    page = visit(client, cast.reviewer, at(cast, "new/"))

    assert page.empty.heading == "Nothing to label yet"
    assert visit(client, cast.engineer, at(cast, "import/")).empty is not None


def test_a_release_of_another_system_is_absent(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    client.force_login(cast.reviewer)
    ingest(cast.other_system, [record()], by=cast.outsider)
    foreign = cast.other_system.releases.get(name="1.0")

    for release in (str(foreign.uuid), str(nowhere()), "x"):
        assert client.get(at(cast, "new/"), {"release": release}).status_code == 404
        assert client.post(at(cast, "new/"), {"release": release}).status_code == 404


# --- one set


def test_the_page_of_an_open_set_tells_no_value_of_what_is_left(client: Client, cast: Cast) -> None:
    stored(cast, 3)
    made = items(a_set(cast, name=HOSTILE, reason=HOSTILE))
    labelled(made[0], (cast.reviewer, "fail"), (cast.second_reviewer, "fail"))
    labelled(made[1], (cast.reviewer, "unknown"), is_settled=False)

    page = visit(client, cast.second_reviewer, at(cast, "1/"))

    assert [(row.state.label, [each.value.label for each in row.labels]) for row in page.rows] == [
        ("fail", ["fail", "fail"]),
        ("waits for labels", []),
        ("waits for labels", []),
    ]
    assert [row.withdraw_url != "" for row in page.rows] == [False, True, True]
    assert [(tab.label, tab.count) for tab in page.tabs] == [
        ("All", 3),
        ("Waiting", 2),
        ("Settled", 1),
    ]
    assert (page.n_left, page.label_url) == (2, at(cast, "1/label/"))
    body = client.get(at(cast, "1/")).content.decode()
    assert "unknown, they say." not in body
    assert "<img src=x" not in body
    assert "\u202e" not in body


@pytest.mark.parametrize("place", ["7/", "7/export", f"{10**30}/"])
def test_a_set_that_is_not_there_is_absent(client: Client, cast: Cast, place: str) -> None:
    client.force_login(cast.reviewer)
    assert client.get(at(cast, place)).status_code == 404


def test_sets_of_another_system_are_absent(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    made = a_set(cast)
    item = items(made)[0]
    set_member(cast.other_system, cast.second_reviewer, Role.REVIEWER)
    ingest(cast.other_system, [record("t1", 0, verdicts=[judged()])], by=cast.outsider)
    elsewhere = f"{root(cast.other_system)}labelling/1/"
    client.force_login(cast.second_reviewer)

    for act in ("withdraw", "close", "vouch"):
        answer = client.post(f"{elsewhere}{act}", {"item": item.uuid, "reason": ""})
        assert answer.status_code == 404
    assert client.post(at(cast, "1/withdraw"), {"item": nowhere()}).status_code == 404
    assert client.post(at(cast, "1/withdraw"), {"item": "x"}).status_code == 404


def test_an_item_is_withdrawn_from_its_page(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    item = items(a_set(cast))[0]
    given = {"item": str(item.uuid), "reason": "The trace is cut."}
    form = visit(client, cast.reviewer, at(cast, "1/"), withdraw=str(item.uuid)).withdraw
    assert (form.heading, form.action) == ("Withdraw item 1", at(cast, "1/withdraw"))

    empty = post(client, cast.reviewer, at(cast, "1/withdraw"), given | {"reason": ""})
    assert empty.status_code == 422
    answer = post(client, cast.reviewer, at(cast, "1/withdraw"), given)

    assert said(client, answer) == ["Item 1 is withdrawn. That completes the set."]
    assert CalibrationSet.objects.get().completed_at is not None
    again = post(client, cast.second_reviewer, at(cast, "1/withdraw"), given)
    assert again.status_code == 422
    assert WITHDRAWN in again.content.decode()


def test_a_set_is_closed_from_its_page(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    a_set(cast)

    answer = post(client, cast.reviewer, at(cast, "1/close"), {"reason": "Unclear rubric."})

    assert said(client, answer) == ["Set 1 is closed."]
    page = visit(client, cast.viewer, at(cast, "1/"))
    assert page.state.label == "closed"
    assert page.notices[0].sentence.startswith(
        "reviewer closed this set before it was complete: Unclear rubric."
    )
    again = post(client, cast.reviewer, at(cast, "1/close"), {"reason": "Again."})
    assert (again.status_code, OVER in again.content.decode()) == (422, True)


@pytest.mark.parametrize("who", ["engineer", "owner", "viewer"])
def test_others_read_and_do_nothing(client: Client, cast: Cast, who: str) -> None:
    stored(cast, 1)
    made = a_set(cast)
    person = getattr(cast, who)
    client.force_login(person)

    for act in ("withdraw", "close", "vouch"):
        given = {"item": items(made)[0].uuid, "reason": "So."}
        assert client.post(at(cast, f"1/{act}"), given).status_code == 403
    assert client.post(at(cast, "new/"), GIVEN).status_code == 403
    assert client.post(at(cast, "import/"), {}).status_code == (422 if who == "engineer" else 403)
    page = visit(client, person, at(cast, "1/"))
    assert [row.withdraw_url for row in page.rows] == [""]
    client.force_login(cast.outsider)
    assert client.get(at(cast, "1/")).status_code == 404


def test_the_labels_are_downloaded(client: Client, cast: Cast) -> None:
    stored(cast, 2)
    made = items(a_set(cast))
    labelled(made[0], (cast.reviewer, "fail"), (cast.second_reviewer, "fail"))
    labelled(made[1], (cast.reviewer, "unknown"), is_settled=False)
    client.force_login(cast.viewer)

    csv = client.get(at(cast, "1/export"), {"format": "csv"})
    lines = client.get(at(cast, "1/export"))

    assert csv["Content-Disposition"] == 'attachment; filename="airline-labels-1.csv"'
    assert lines["Content-Disposition"] == 'attachment; filename="airline-labels-1.jsonl"'
    text = b"".join(csv.streaming_content).decode()  # type: ignore[attr-defined]
    assert text.count("fail, they say.") == 2
    assert "unknown" not in text
    read = b"".join(lines.streaming_content).decode()  # type: ignore[attr-defined]
    assert [len(json.loads(line)["labels"]) for line in read.splitlines()] == [2, 0]


# --- bringing labels in


def test_labels_are_brought_in_and_vouched_for(client: Client, cast: Cast) -> None:
    stored(cast, 2)
    file = file_of(label_of(0), label_of(0, "rater_2"), label_of(1))

    answer = post(client, cast.engineer, at(cast, "import/"), BROUGHT | {"file": file})

    assert said(client, answer) == [
        (
            "3 labels landed in set 1. They count in no calibration until a reviewer vouches for the "
            "set."
        )
    ]
    page = visit(client, cast.reviewer, at(cast, "1/"))
    assert (page.state.label, page.vouch.why_not) == ("imported, nobody vouched yet", "")
    assert page.label_url == ""
    (row,) = visit(client, cast.reviewer, at(cast)).rows
    assert row.vouch_url == at(cast, "1/#vouch")
    given = {"reason": "I read the paper."}
    done = post(client, cast.reviewer, at(cast, "1/vouch"), given)
    assert said(client, done) == ["You vouched for set 1. Calibrations were read anew."]
    assert SetVouch.objects.get().by == cast.reviewer
    again = post(client, cast.second_reviewer, at(cast, "1/vouch"), given)
    assert (again.status_code, "Somebody has vouched" in again.content.decode()) == (422, True)
    page = visit(client, cast.viewer, at(cast, "1/"))
    assert page.state.label == "imported, vouched for"


def test_who_brought_labels_in_does_not_vouch_for_them(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    post(client, cast.reviewer, at(cast, "import/"), BROUGHT | {"file": file_of(label_of())})

    page = visit(client, cast.reviewer, at(cast, "1/"))
    answer = post(client, cast.reviewer, at(cast, "1/vouch"), {"reason": "So."})

    assert page.vouch.why_not == IMPORTED_IT
    assert (answer.status_code, IMPORTED_IT in answer.content.decode()) == (403, True)
    assert not SetVouch.objects.exists()


def test_lines_that_did_not_land_are_listed(client: Client, cast: Cast) -> None:
    stored(cast, 1)
    file = file_of(label_of(0), label_of(0, HOSTILE, HOSTILE), label_of(9))

    answer = post(client, cast.engineer, at(cast, "import/"), BROUGHT | {"file": file})

    page = answer.context["page"]
    assert (answer.status_code, page.made.href) == (200, at(cast, "1/"))
    assert page.refused_words == "2 labels did not land"
    assert [line.line for line in page.refused] == [2, 3]
    body = answer.content.decode()
    assert "<img src=x" not in body
    assert "\u202e" not in body
    again = post(
        client, cast.engineer, at(cast, "import/"), BROUGHT | {"file": file_of(label_of(0))}
    )
    assert said(client, again) == [
        "These very labels are there already, as set 1. Nothing was added."
    ]
    none = post(
        client, cast.engineer, at(cast, "import/"), BROUGHT | {"file": file_of(label_of(9))}
    )
    assert (none.status_code, none.context["page"].landed) == (422, "No label landed.")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({}, "Choose a file."),
        ({"file": SimpleUploadedFile("x", b"")}, "The file is empty"),
        ({"file": SimpleUploadedFile("x", b"\x00\xff")}, "UTF-16"),
        ({"file": SimpleUploadedFile("x", b"a,b\n1,2")}, "neither JSON Lines nor CSV"),
        ({"file": SimpleUploadedFile("x", b"[" * 9_000_000)}, "at most 8 MiB"),
        ({"what": "verdicts"}, "No imported verdict of a person is stored on this criterion."),
        ({"what": "odd"}, "Select a valid choice"),
        ({"criterion": ":tone"}, "Choose what is asked now."),
        ({"source": " "}, "This field is required."),
    ],
)
def test_an_import_that_is_wrong_comes_back(
    client: Client, cast: Cast, changed: dict[str, Any], sentence: str
) -> None:
    stored(cast, 1)

    answer = post(client, cast.engineer, at(cast, "import/"), BROUGHT | changed)

    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert not CalibrationSet.objects.exists()


def test_stored_verdicts_of_people_are_brought_in(client: Client, cast: Cast) -> None:
    human = verdict("pass", grader="rater_1", kind="human")
    ingest(cast.system, [record("t1", 0, verdicts=[human])], by=cast.engineer)

    answer = post(client, cast.engineer, at(cast, "import/"), BROUGHT | {"what": "verdicts"})

    assert answer["Location"] == at(cast, "1/")
    assert list(Label.objects.values_list("labeller", "value")) == [("rater_1", "pass")]


def test_a_stale_page_of_a_set_that_was_closed(client: Client, cast: Cast) -> None:
    stored(cast, 2)
    made = a_set(cast)
    item = CalibrationItem.objects.filter(set=made).order_by("pk")[0]
    close_set(made, reason="So.", by=cast.second_reviewer, now=NOW)

    answer = post(
        client, cast.reviewer, at(cast, "1/withdraw"), {"item": item.uuid, "reason": "Cut."}
    )

    assert (answer.status_code, OVER in answer.content.decode()) == (422, True)
