from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_label import label_and_decide
from evalsite.held_decisions import finish_due
from reviews.models import (
    CalibrationItem,
    CalibrationSet,
    Label,
    Revelation,
    ReviewDraft,
    Seat,
)
from reviews.services.flags import flag_trial
from reviews.services.person_verdicts import give_verdict
from reviews.services.seats import NO_REASON, take_seat
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.labels import blind_set, reviewer_named, seated, stored_set
from tests.support.visits import n_queries, root, visit
from traces.core.records import VerdictValue
from traces.models import Role, Trial, TrialDisposition
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PASS, FAIL = VerdictValue.PASS, VerdictValue.FAIL


def path_of(of: CalibrationSet) -> str:
    return f"{root(of.system)}labelling/{of.number}/label/"


def values(item: CalibrationItem, decision: str = "pass", **more: str) -> dict[str, str]:
    return {
        "item": str(item.uuid),
        "decision": decision,
        "reason": "Step 2 is kind.",
        "steps": "2",
        **more,
    }


def item_at(position: int) -> CalibrationItem:
    return CalibrationItem.objects.get(position=position)


def test_the_page_reserves_an_item_and_shows_evidence_and_rubric(
    client: Client, cast: Cast
) -> None:
    of = blind_set(cast, 3, question="Is the agent kind?", rubric_version="2")

    page = visit(client, cast.reviewer, path_of(of))

    seat = Seat.objects.get()
    assert (seat.by, seat.item) == (cast.reviewer, item_at(1))
    it = page.item
    assert (page.heading, page.criterion, page.progress) == (
        "Tone",
        "tone",
        ("0 of 3 by you", "set: 0 of 3"),
    )
    assert (it.question.text, it.rubric_version, it.n_steps) == ("Is the agent kind?", "2", 4)
    assert [step.number for step in it.steps] == [1, 2, 4]
    assert [step.href for step in it.steps][0] == f"{path_of(of)}?step=1#step-1"
    assert it.reserved.until == seat.expires_at
    assert [(c.value, c.label, c.key) for c in it.bar.choices] == [
        ("pass", "Pass", "1"),
        ("fail", "Fail", "2"),
        ("unknown", "Cannot tell", "3"),
    ]
    assert page.empty is None
    assert all(item.count is None for group in page.shell.nav for item in group.items)


def test_nothing_that_anybody_says_is_on_the_page(client: Client, cast: Cast) -> None:
    marks = (
        "J-NAME",
        "J-VERSION",
        "J-RATIONALE",
        "J-WORD",
        "J-EXTRA",
        "H-RATIONALE",
        "FLAG-REASON",
    )
    says = verdict(
        "J-WORD",
        criterion="tone",
        grader="J-NAME",
        grader_version="J-VERSION",
        kind="model",
        rationale="J-RATIONALE",
        score=0.123456,
        evidence=[{"step": 2}],
        raw="J-EXTRA",
    )
    human = verdict(
        "fail", criterion="tone", grader="H-NAME", kind="human", rationale="H-RATIONALE"
    )
    more = {"initial_state": {"a": 1}, "final_state": {"a": 2}, "expected_state": {"a": 3}}
    ingest(
        cast.system,
        [record("t1", n, verdicts=[verdict(), says, human], **more) for n in (0, 1)],
        release="RELEASE-NAME",
        run="RUN-NAME",
    )
    trials = list(Trial.objects.order_by("pk"))
    of = stored_set(cast.system, trials, by=cast.owner)
    flag_trial(trials[0], reason="FLAG-REASON", by=cast.viewer, now=timezone.now())
    item = seated(of, cast.second_reviewer, timezone.now()).item
    label_and_decide(
        item,
        value=FAIL,
        reason="LABEL-REASON",
        steps=[2],
        by=cast.second_reviewer,
        now=timezone.now(),
    )
    give_verdict(
        trials[0],
        criterion="outcome",
        value=FAIL,
        reason="OTHER-RATIONALE",
        steps=(2,),
        by=cast.second_reviewer,
        now=timezone.now(),
    )
    client.force_login(cast.reviewer)

    answer = client.get(path_of(of))

    assert Seat.objects.get(by=cast.reviewer).item == item
    html = answer.content.decode()
    hidden = (
        *marks,
        "H-NAME",
        "LABEL-REASON",
        "OTHER-RATIONALE",
        "RELEASE-NAME",
        "RUN-NAME",
        "0.123456",
        "second_reviewer",
        "cited by",
        "unresolved",
        "expects",
        "popular",
        "nav-count",
        trials[1].uuid.hex,
        str(trials[1].uuid),
    )
    assert [word for word in hidden if word in html] == []
    assert "/a" in html  # the difference of the states is evidence
    assert "?step=2#step-2" in html


def test_a_label_without_scripts_is_final_at_once(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 2)
    visit(client, cast.reviewer, path_of(of))

    answer = client.post(path_of(of), values(item_at(1)), follow=True)

    assert answer.redirect_chain == [(path_of(of), 302)]
    assert [str(m) for m in answer.context["messages"]] == ["Your label is kept."]
    label = Label.objects.get()
    assert (label.by, label.value, label.cited_steps) == (cast.reviewer, "pass", [2])
    page = answer.context["page"]
    assert page.item.reserved.item == str(item_at(2).uuid)
    assert page.progress == ("1 of 2 by you", "set: 0 of 2")
    trial = item_at(1).trial
    assert (page.last.label, page.last.href) == (
        "See what others say of task t1, trial 0, which you labelled last",
        f"{root(of.system)}trials/{trial.uuid}/#verdicts",
    )
    assert TrialDisposition.objects.get(trial=trial).value == "pass"


def test_a_label_is_held_taken_back_and_final_by_the_next_page(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 2)
    visit(client, cast.reviewer, path_of(of))

    page = client.post(path_of(of), values(item_at(1), hold="1"), follow=True).context["page"]

    assert not Label.objects.exists()
    assert page.item.reserved.item == str(item_at(2).uuid)
    (held,) = page.held
    assert held.words == "pass on task t1, trial 0"
    page = client.post(held.undo_url, follow=True).context["page"]
    assert (page.held, page.item.reserved.item) == ((), str(item_at(1).uuid))
    bar = page.item.bar
    assert (bar.reason, bar.steps, [c.is_chosen for c in bar.choices]) == (
        "Step 2 is kind.",
        "2",
        [True, False, False],
    )

    client.post(path_of(of), values(item_at(1), hold="1"))
    client.post(path_of(of), values(item_at(1), hold="1"))  # a second click
    later = timezone.now() + timedelta(seconds=9)
    assert [finish_due(later), finish_due(later)] == [1, 0]
    assert Label.objects.get().item == item_at(1)
    answer = client.post(held.undo_url, follow=True)
    assert [str(m) for m in answer.context["messages"]] == ["That label is final by now."]


def test_who_is_too_late_keeps_their_text_and_is_told_why(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    visit(client, cast.reviewer, path_of(of))
    client.post(path_of(of), values(item_at(1), reason="MINE", hold="1"))
    Seat.objects.update(expires_at=timezone.now())
    for name in ("third", "fourth"):
        other = reviewer_named(cast, name)
        item = seated(of, other, timezone.now()).item
        label_and_decide(item, value=FAIL, reason="Rude.", steps=(), by=other, now=timezone.now())
    finish_due(timezone.now() + timedelta(seconds=9))

    page = visit(client, cast.reviewer, path_of(of))

    (refused,) = page.refused
    assert (refused.words, refused.decision, refused.reason) == (
        "Your label on task t1, trial 0 was not kept",
        "pass",
        "MINE",
    )
    assert refused.sentence.startswith("Others were faster")
    assert refused.see.href.endswith(f"{item_at(1).trial.uuid}/#verdicts")
    assert page.empty.heading == "Nothing is left to label"
    client.post(refused.drop_url, {"item": refused.item, "drop": "1"})
    assert not ReviewDraft.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"decision": ""}, "Say pass, fail or cannot tell."),
        ({"decision": "error"}, "Say pass, fail or cannot tell."),
        ({"reason": " "}, "Say why: the reason is what the next person reads."),
        ({"steps": "two"}, "'two' is no number of a step; write them as 2, 5."),
    ],
)
def test_a_wrong_label_is_shown_with_what_was_written(
    wrong: dict[str, str], error: str, client: Client, cast: Cast
) -> None:
    of = blind_set(cast, 1)
    visit(client, cast.reviewer, path_of(of))

    answer = client.post(path_of(of), values(item_at(1), **wrong))

    assert answer.status_code == 422
    bar = answer.context["page"].item.bar
    assert bar.errors == (error,)
    assert bar.reason == wrong.get("reason", "Step 2 is kind.")


@pytest.mark.parametrize("hold", ["", "1"])
def test_what_cannot_be_a_label_by_now_is_a_conflict_with_its_text(
    hold: str, client: Client, cast: Cast
) -> None:
    of = blind_set(cast, 1)
    visit(client, cast.reviewer, path_of(of))

    answer = client.post(path_of(of), values(item_at(1), seen="7.0", hold=hold))

    assert answer.status_code == 409
    bar = answer.context["page"].item.bar
    assert bar.errors[0].startswith("The contract or the evidence of this trial changed")
    assert (bar.reason, bar.seen) == ("Step 2 is kind.", "0.0")
    assert ReviewDraft.objects.get().refusal == bar.errors[0]
    again = client.post(path_of(of), values(item_at(1), seen=bar.seen, hold=hold))
    assert again.status_code == 302


def test_drafts_are_kept_by_script_and_by_button(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    visit(client, cast.reviewer, path_of(of))
    draft = f"{path_of(of)}draft"

    answer = client.post(
        draft,
        values(item_at(1), decision="fail", steps="2 x"),
        headers={"Accept": "application/json"},
    )
    assert answer.json()["words"].startswith("Draft kept, ")
    bar = visit(client, cast.reviewer, path_of(of)).item.bar
    assert (bar.reason, bar.steps, [c.is_chosen for c in bar.choices]) == (
        "Step 2 is kind.",
        "2",
        [False, True, False],
    )
    answer = client.post(draft, values(item_at(1), reason="More."))
    assert answer.status_code == 302
    assert ReviewDraft.objects.get().reason == "More."
    client.post(path_of(of), values(item_at(1), hold="1"))
    refused = client.post(draft, values(item_at(1)), headers={"Accept": "application/json"})
    assert (refused.status_code, refused.json()) == (
        409,
        {"words": "This is submitted already. Take it back to change it."},
    )


def test_an_item_is_skipped_with_a_reason(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 2)
    visit(client, cast.reviewer, path_of(of))
    skip = f"{path_of(of)}skip"

    answer = client.post(skip, {"item": item_at(1).uuid, "reason": " "})
    assert (answer.status_code, answer.context["page"].item.bar.errors) == (422, (NO_REASON,))
    answer = client.post(skip, {"item": item_at(1).uuid, "reason": "I know her."}, follow=True)

    assert answer.context["page"].item.reserved.item == str(item_at(2).uuid)
    assert Seat.objects.get(item=item_at(1)).reason == "I know her."


def test_a_reservation_is_extended_from_the_page(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    before = visit(client, cast.reviewer, path_of(of)).item.reserved.until
    extend = f"{path_of(of)}extend"

    page = client.post(extend, {"item": item_at(1).uuid}, follow=True).context["page"]
    assert page.item.reserved.until > before
    Seat.objects.update(taken_at=timezone.now() - timedelta(hours=1))
    answer = client.post(extend, {"item": item_at(1).uuid})
    assert answer.status_code == 409
    assert answer.context["page"].item.bar.errors == (
        "A reservation lasts an hour at most. Label the item or leave it to others.",
    )


def test_why_there_is_nothing_to_label_is_said(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    third, fourth = reviewer_named(cast, "third"), reviewer_named(cast, "fourth")
    seated(of, third, timezone.now())
    seated(of, fourth, timezone.now())

    page = visit(client, cast.reviewer, path_of(of))
    assert page.empty.heading == "All that is left is reserved"
    assert page.empty.sentence.startswith("All that is left for you is reserved by others, ")
    CalibrationItem.objects.update(withdrawn_at=timezone.now())
    page = visit(client, cast.reviewer, path_of(of))
    assert page.empty.heading == "Nothing is left to label"
    of.refresh_from_db()
    assert of.completed_at is not None


def test_a_set_of_another_system_or_an_item_of_another_set_is_not_there(
    client: Client, cast: Cast
) -> None:
    of, other = blind_set(cast, 1), blind_set(cast, 2)
    set_member(cast.other_system, cast.reviewer, Role.REVIEWER)
    client.force_login(cast.reviewer)
    elsewhere = f"{root(cast.other_system)}labelling/{of.number}/label/"
    assert client.get(elsewhere).status_code == 404
    item = CalibrationItem.objects.filter(set=other).last()
    assert item is not None
    for path in ("", "draft", "skip", "extend", "undo"):
        for sent in (str(item.uuid), "", "x"):
            answer = client.post(f"{path_of(of)}{path}", {"item": sent})
            assert answer.status_code == 404, path
    assert client.get(f"{path_of(of)}?item=x").status_code == 200


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER, Role.OWNER])
def test_only_reviewers_reach_it(role: Role, client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    client.force_login(cast.members()[role])
    assert client.get(path_of(of)).status_code == 403
    assert client.post(path_of(of), values(item_at(1))).status_code == 403


def test_who_lost_the_right_is_refused(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 1)
    give_verdict(
        item_at(1).trial,
        criterion="tone",
        value=PASS,
        reason="x",
        steps=(),
        by=cast.reviewer,
        now=timezone.now(),
    )
    client.force_login(cast.reviewer)
    assert client.post(path_of(of), values(item_at(1))).status_code == 403


def test_a_page_of_an_item_takes_a_constant_number_of_queries(client: Client, cast: Cast) -> None:
    of = blind_set(cast, 6)
    client.force_login(cast.reviewer)
    client.get(path_of(of))
    assert n_queries(client, path_of(of)) == 30


def reveal_path(cast: Cast) -> str:
    return f"{root(cast.system)}labelling/reveal"


def test_who_asks_sees_what_others_say_and_the_item_goes_to_others(
    client: Client, cast: Cast
) -> None:
    of = blind_set(cast, 1)
    seat = seated(of, cast.reviewer, timezone.now())
    trial = seat.item.trial
    client.force_login(cast.reviewer)
    back = f"{root(cast.system)}trials/{trial.uuid}/"

    answer = client.post(
        reveal_path(cast), {"trial": trial.uuid, "criterion": "tone", "back": back, "where": "case"}
    )

    assert answer["Location"] == back
    seen = Revelation.objects.get()
    assert (seen.trial, seen.criterion, seen.by, seen.where) == (
        trial,
        of.criterion,
        cast.reviewer,
        "case",
    )
    seat.refresh_from_db()
    assert seat.ending == "given_up"
    found = take_seat(of, by=cast.reviewer, now=timezone.now())
    assert "1 given up by you" in found.reason


def test_where_somebody_saw_it_is_kept_as_a_column_holds_it(client: Client, cast: Cast) -> None:
    blind_set(cast, 1)
    client.force_login(cast.reviewer)
    asked = {"trial": Trial.objects.get().uuid, "criterion": "tone", "where": "ca\x00se"}
    assert client.post(reveal_path(cast), asked).status_code == 302
    assert Revelation.objects.get().where == "ca␀se"


@pytest.mark.parametrize("back", ["https://elsewhere.example/", "//elsewhere.example", "", "/x"])
def test_revealing_leads_nowhere_else(back: str, client: Client, cast: Cast) -> None:
    blind_set(cast, 1)
    trial = Trial.objects.get()
    client.force_login(cast.reviewer)
    sent = {"trial": trial.uuid, "criterion": "tone", "back": back}
    answer = client.post(reveal_path(cast), sent)
    assert answer["Location"] == f"{root(cast.system)}trials/{trial.uuid}/"


@pytest.mark.parametrize(
    "sent", [{}, {"trial": "x"}, {"criterion": "none"}, {"criterion": "t\x00"}]
)
def test_what_is_in_no_blind_set_is_not_revealed(
    sent: dict[str, Any], client: Client, cast: Cast
) -> None:
    blind_set(cast, 1)
    client.force_login(cast.reviewer)
    whole = {"trial": Trial.objects.get().uuid, "criterion": "tone", **sent} if sent else {}
    assert client.post(reveal_path(cast), whole).status_code == 404
    assert not Revelation.objects.exists()
