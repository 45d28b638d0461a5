from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_review import decided_again
from evalsite.web.adjudicate import CHOOSE, LAST_ONE, TOO_LATE
from evalsite.web.dispute_words import DECIDES
from reviews.core.disposition import AdjudicationRuling
from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    Case,
    CheckMark,
    Criterion,
    Dispute,
    DisputeSkip,
    DisputeState,
    Revelation,
    ReviewDraft,
)
from reviews.permissions.adjudications import (
    BROUGHT_EVIDENCE,
    NOT_A_REVIEWER,
    OWN_VERDICT,
    PARTY_ONLY,
)
from reviews.selectors.blinding import HIDDEN
from reviews.services.adjudications import MORE_EVIDENCE, NO_REASON, adjudicate
from reviews.services.person_verdicts import give_verdict
from reviews.services.review_drafts import HELD
from tests.support.adjudications import CONTRACT, SIDES, disputed_trial, seen_of
from tests.support.cast import Cast, person
from tests.support.evidence import verdict
from tests.support.visits import n_queries, root, visit
from traces.core.records import VerdictValue
from traces.models import EvidenceAddition, Member, Role, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\u202e"


def dispute_of(trial: Trial) -> Dispute:
    return Dispute.objects.get(trial=trial, criterion="truthful")


def path_of(cast: Cast, trial: Trial, act: str = "") -> str:
    return f"{root(cast.system)}disputes/{dispute_of(trial).uuid}/{act}"


def sent(trial: Trial, **changed: Any) -> dict[str, Any]:
    asked = {
        "decision": "fail",
        "reason": "Step 2 shows it.",
        "steps": "2, 4",
        "seen": seen_of(trial),
    }
    return asked | changed


def said(answer: Any) -> list[str]:
    return [str(message) for message in answer.context["messages"]]


def test_two_reviewers_on_one_item(client: Client, cast: Cast) -> None:
    """The case review-concurrency--two-reviewers, word by word."""
    trial, other = disputed_trial(cast), disputed_trial(cast, 1)
    lena, jo = cast.reviewer, cast.second_reviewer
    path = path_of(cast, trial)
    # Both open the item in the same version.
    seen_by_lena = visit(client, lena, path).bar.seen
    seen_by_jo = visit(client, jo, path).bar.seen
    assert seen_by_lena == seen_by_jo

    client.force_login(lena)
    answer = client.post(f"{path}decide", sent(trial, reason="It is not.", seen=seen_by_lena))
    assert answer.status_code == 302

    client.force_login(jo)
    answer = client.post(
        f"{path}decide",
        sent(trial, decision="pass", reason="It is true.", steps="3", seen=seen_by_jo),
    )
    assert answer.status_code == 409
    page = answer.context["page"]
    assert [(row.by, row.ruling.label, row.reason) for row in page.rulings] == [
        ("reviewer", "fail", "It is not.")
    ]
    assert (page.bar.reason, page.bar.steps) == ("It is true.", "3")
    assert [choice.value for choice in page.bar.choices if choice.is_chosen] == ["pass"]
    assert page.bar.errors[0].startswith("reviewer decided this at ")

    twice = sent(other)
    assert client.post(path_of(cast, other, "decide"), twice).status_code == 302
    assert client.post(path_of(cast, other, "decide"), twice).status_code == 302

    rows = Adjudication.objects.order_by("pk").values_list("trial", "by", "ruling")
    assert list(rows) == [(trial.pk, lena.pk, "fail"), (other.pk, jo.pk, "fail")]
    assert Dispute.objects.filter(state=DisputeState.OPEN).count() == 0
    assert visit(client, jo, path).shell.nav[1].items[1].count is None


def test_the_page_shows_what_is_asked_said_and_cited(client: Client, cast: Cast) -> None:
    sides = (
        {**SIDES[0], "evidence": [{"step": 2}, {"step": 9}], "score": 0.25, "raw_answer": "no"},
        {**SIDES[1], "evidence": [{"step": 2}, {"step": 4}]},
        verdict("pass", criterion="polite", grader="Judge 1", kind="model"),
    )
    trial = disputed_trial(cast, contract=CONTRACT + "  - {rubric: polite}\n", sides=sides)

    page = visit(client, cast.reviewer, path_of(cast, trial))

    assert page.heading == "Is what the agent says true?"
    assert [item.label for item in page.sub] == [
        "Criterion truthful",
        "mandatory",
        "task t1",
        "trial 0",
        "release 1.0",
    ]
    assert list(page.sentences) == [f"Judge against judge. {DECIDES}"]
    assert (page.progress, page.state.label) == ("1 of 1", "open")
    assert page.asked.contract.label == "version 1"
    assert page.asked.question.text == "Is what the agent says true?"
    assert page.asked.rubric.label == "version r1"
    assert [(each.name, each.value.label) for each in page.others] == [("polite", "open")]
    assert [
        (each.row.grader, each.state.label, each.row.counts, [link.label for link in each.cited])
        for each in page.verdicts
    ] == [
        ("Judge 1", "fail", False, ["step 2", "step 9"]),
        ("Judge 2", "pass", False, ["step 2", "step 4"]),
    ]
    first = page.verdicts[0]
    assert first.row.calibration.label == "not calibrated: no label holds it against people yet"
    assert first.row.why_not == "the judge is not calibrated for this criterion"
    assert (first.row.score, first.answer.text) == ("0.25", '{"raw_answer": "no"}')
    assert (page.cited_words, page.missing_words) == (
        "2 cited steps of 4",
        "Step 9, cited by Judge 1 (fail): does not exist",
    )
    assert [(link.label, link.title) for link in page.cited_links] == [
        ("step 2", "cited by Judge 1 (fail), Judge 2 (pass)"),
        ("step 4", "cited by Judge 2 (pass)"),
    ]
    assert [(step.number, step.cited_by) for step in page.steps if step.cited_by] == [
        (2, ("Judge 1 (fail)", "Judge 2 (pass)")),
        (4, ("Judge 2 (pass)",)),
    ]
    assert [(choice.key, choice.value, choice.why_not) for choice in page.bar.choices] == [
        ("1", "pass", ""),
        ("2", "fail", ""),
        ("3", "insufficient_evidence", ""),
        ("4", "rubric_unclear", ""),
        ("5", "defective", ""),
        ("6", "ambiguous", ""),
    ]


@pytest.mark.parametrize("role", ["viewer", "engineer", "owner"])
def test_who_is_no_reviewer_reads_and_is_told_why(client: Client, cast: Cast, role: str) -> None:
    trial = disputed_trial(cast)
    user = getattr(cast, role)

    page = visit(client, user, path_of(cast, trial))

    assert (page.bar, page.effect, page.read_only) == (None, None, NOT_A_REVIEWER)
    assert len(page.verdicts) == 2
    for act in ("decide", "draft", "undo", "skip"):
        assert client.post(path_of(cast, trial, act), sent(trial)).status_code == 403
    assert client.get(path_of(cast, trial, "effect")).status_code == 403
    assert client.post(path_of(cast, trial), {"reveal": "1"}).status_code == 403


def test_a_reviewer_with_a_part_in_it_reads_and_is_told_why(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast, uploader=cast.reviewer)
    page = visit(client, cast.reviewer, path_of(cast, trial))
    assert (page.bar, page.read_only) == (None, BROUGHT_EVIDENCE)

    vote(trial, cast.second_reviewer)
    page = visit(client, cast.second_reviewer, path_of(cast, trial))
    # The other reviewer brought evidence, so nobody else is eligible.
    assert page.sentences[-1] == PARTY_ONLY
    assert {choice.value: choice.why_not for choice in page.bar.choices} == {
        "pass": PARTY_ONLY,
        "fail": "",
        "insufficient_evidence": "",
        "rubric_unclear": PARTY_ONLY,
        "defective": "",
        "ambiguous": "",
    }
    answer = client.post(path_of(cast, trial, "decide"), sent(trial, decision="pass"))
    assert (answer.status_code, answer.context["page"].bar.errors) == (403, (PARTY_ONLY,))
    answer = client.post(path_of(cast, trial, "decide"), sent(trial), follow=True)
    (row,) = answer.context["page"].rulings
    assert (row.ruling.label, row.notes) == ("fail", ("decided by a party",))


def vote(trial: Trial, by: User) -> None:
    give_verdict(
        trial,
        criterion="truthful",
        value=VerdictValue.FAIL,
        reason="Step 2.",
        steps=[],
        by=by,
        now=timezone.now(),
    )


def test_own_verdicts_are_decided_by_somebody_else(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    vote(trial, cast.reviewer)

    page = visit(client, cast.reviewer, path_of(cast, trial))
    assert (page.bar, page.read_only) == (None, OWN_VERDICT)
    answer = client.post(path_of(cast, trial, "decide"), sent(trial))
    assert (answer.status_code, answer.context["page"].read_only) == (403, OWN_VERDICT)
    assert not Adjudication.objects.exists()


@pytest.mark.parametrize("n", [1, 3])
def test_the_page_takes_a_constant_number_of_queries(client: Client, cast: Cast, n: int) -> None:
    sides = tuple(
        {**verdict(word, criterion="truthful", grader=f"Judge {i}", kind="model"), "evidence": []}
        for i in range(n)
        for word in ("pass", "fail")
    )
    trials = [disputed_trial(cast, number, sides=sides) for number in range(n)]
    client.force_login(cast.reviewer)

    path = path_of(cast, trials[0])
    client.get(path)
    assert n_queries(client, path) == PAGE_QUERIES
    client.force_login(cast.viewer)
    assert n_queries(client, path) == READ_QUERIES


PAGE_QUERIES = 31
READ_QUERIES = 22


def test_a_decision_leads_on_within_the_list(client: Client, cast: Cast) -> None:
    first, second, third = (disputed_trial(cast, n) for n in range(3))
    page = visit(client, cast.reviewer, path_of(cast, second), criterion="truthful")
    query = "?criterion=truthful"
    assert (page.progress, page.previous_url, page.next_url) == (
        "2 of 3",
        f"{path_of(cast, first)}{query}",
        f"{path_of(cast, third)}{query}",
    )

    answer = client.post(page.bar.action, sent(second), follow=True)

    assert answer.redirect_chain == [(f"{path_of(cast, third)}{query}", 302)]
    assert said(answer) == ["Decided: fail."]
    assert answer.context["page"].progress == "2 of 2"
    answer = client.post(path_of(cast, third, "decide"), sent(third), follow=True)
    assert answer.redirect_chain == [(path_of(cast, third), 302)]
    assert said(answer) == ["Decided: fail.", LAST_ONE]
    page = answer.context["page"]
    assert (page.state.label, page.progress) == (
        "decided: fail",
        "not in the list, which has 1 dispute",
    )


def test_a_held_decision_shows_an_undo_bar_and_is_final_with_the_next_page(
    client: Client, cast: Cast
) -> None:
    first, second = disputed_trial(cast), disputed_trial(cast, 1)
    client.force_login(cast.reviewer)

    answer = client.post(path_of(cast, first, "decide"), sent(first, hold="1"), follow=True)

    assert answer.redirect_chain == [(path_of(cast, second), 302)]
    (held,) = answer.context["page"].held
    assert (held.words, held.undo_url) == (
        "Fail on truthful, task t1, trial 0",
        path_of(cast, first, "undo"),
    )
    assert 6 <= held.seconds_left <= 8
    assert not Adjudication.objects.exists()
    answer = client.post(path_of(cast, first, "decide"), sent(first, hold="1"))
    assert (answer.status_code, answer.context["page"].bar.errors) == (422, (HELD,))

    answer = client.post(held.undo_url, follow=True)
    assert answer.redirect_chain == [(path_of(cast, first), 302)]
    bar = answer.context["page"].bar
    assert (bar.reason, bar.steps) == ("Step 2 shows it.", "2, 4")

    client.post(path_of(cast, first, "decide"), sent(first, hold="1"))
    ReviewDraft.objects.update(held_until=timezone.now() - timedelta(seconds=1))
    answer = client.post(held.undo_url, follow=True)
    assert said(answer) == [TOO_LATE]
    assert answer.context["page"].held == ()
    assert Adjudication.objects.get().ruling == "fail"


def test_a_late_refusal_is_told_on_the_next_page_with_both_texts(
    client: Client, cast: Cast
) -> None:
    first, second = disputed_trial(cast), disputed_trial(cast, 1)
    client.force_login(cast.reviewer)
    client.post(
        path_of(cast, first, "decide"),
        sent(first, decision="pass", reason="It is true.", hold="1"),
    )
    faster(first, cast.second_reviewer)
    ReviewDraft.objects.update(held_until=timezone.now() - timedelta(seconds=1))

    page = visit(client, cast.reviewer, path_of(cast, second))

    (refused,) = page.refused
    assert (refused.words, refused.href) == (
        "Pass on truthful, task t1, trial 0",
        path_of(cast, first),
    )
    page = visit(client, cast.reviewer, refused.href)
    assert page.notices[0].sentence.startswith(
        "What you submitted is not kept. second_reviewer decided this at "
    )
    assert (page.bar.reason, page.rulings[0].reason) == ("It is true.", "It is not.")
    client.post(page.bar.action, sent(first, decision="pass", reason="It is true."))
    first_one, second_one = Adjudication.objects.order_by("pk")
    assert (second_one.replaces, second_one.by) == (first_one, cast.reviewer)
    assert visit(client, cast.reviewer, path_of(cast, second)).refused == ()


def faster(trial: Trial, by: User) -> Adjudication:
    return adjudicate(
        trial,
        criterion="truthful",
        ruling=AdjudicationRuling.FAIL,
        reason="It is not.",
        steps=[],
        by=by,
        now=timezone.now(),
        seen=seen_of(trial),
    )


@pytest.mark.parametrize("hold", ["", "1"])
@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"decision": ""}, CHOOSE),
        ({"decision": "maybe"}, CHOOSE),
        ({"reason": "  "}, NO_REASON),
        ({"steps": "2, x"}, "'x' is no number of a step; write them as 2, 5."),
        ({"steps": "9"}, "There is no step 9; the transcript has 4 steps."),
    ],
)
def test_what_cannot_be_kept_comes_back_with_the_text(
    client: Client, cast: Cast, changed: dict[str, str], sentence: str, hold: str
) -> None:
    trial = disputed_trial(cast)
    client.force_login(cast.reviewer)
    asked = sent(trial, hold=hold, **changed)

    answer = client.post(path_of(cast, trial, "decide"), asked)

    bar = answer.context["page"].bar
    assert (answer.status_code, bar.errors) == (422, (sentence,))
    assert (bar.reason, bar.steps) == (asked["reason"], asked["steps"])
    assert not Adjudication.objects.exists()


def test_what_changed_meanwhile_is_a_conflict_also_before_it_is_held(
    client: Client, cast: Cast
) -> None:
    trial = disputed_trial(cast)
    asked = sent(trial, hold="1")
    EvidenceAddition.objects.create(
        trial=trial,
        order=1,
        parts=["final_state"],
        content=b"",
        source="api",
        reason="It was lost.",
        digest=uuid.uuid4(),
        by=cast.engineer,
        added_at=timezone.now(),
    )
    client.force_login(cast.reviewer)

    answer = client.post(path_of(cast, trial, "decide"), asked)

    page = answer.context["page"]
    assert (answer.status_code, page.bar.errors) == (409, (MORE_EVIDENCE,))
    assert page.bar.seen == seen_of(trial) != asked["seen"]


def test_a_check_is_marked_from_the_page(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    client.force_login(cast.reviewer)

    client.post(path_of(cast, trial, "decide"), sent(trial, decision="ambiguous", steps=""))

    mark = CheckMark.objects.get()
    assert (mark.mark, mark.criterion, mark.reason) == ("ambiguous", "truthful", "Step 2 shows it.")


def test_a_draft_with_what_no_column_holds_is_kept_all_the_same(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    client.force_login(cast.reviewer)
    hostile = sent(trial, decision="pass\x00", seen="a\x00b", reason="Why\x00", steps="\x002")

    answer = client.post(path_of(cast, trial, "draft"), hostile, follow=True)

    assert (answer.status_code, answer.context["page"].bar.reason) == (200, "Why␀")
    row = ReviewDraft.objects.get()
    assert (row.decision, row.seen, row.steps) == ("pass␀", "a␀b", [2])


def test_a_draft_is_kept_across_reloads(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    client.force_login(cast.reviewer)
    path = path_of(cast, trial, "draft")

    answer = client.post(
        path, sent(trial, steps="2, x 99999999999"), headers={"Accept": "application/json"}
    )
    assert answer.status_code == 200
    assert answer.json()["words"].startswith("Draft kept, ")
    page = visit(client, cast.reviewer, path_of(cast, trial))
    assert (page.bar.reason, page.bar.steps) == ("Step 2 shows it.", "2")
    assert page.effect.effect.decision == "fail"

    answer = client.post(path, sent(trial, reason="Better.", then="effect"), follow=True)
    assert (answer.context["page"].bar.reason, said(answer)) == ("Better.", [])
    answer = client.post(path, sent(trial, reason="Best."), follow=True)
    assert said(answer)[0].startswith("Draft kept, ")

    faster(trial, cast.second_reviewer)
    page = visit(client, cast.reviewer, path_of(cast, trial))
    assert page.notices[0].sentence.startswith("second_reviewer decided this at ")
    assert page.bar.reason == "Best."
    assert visit(client, cast.second_reviewer, path_of(cast, trial)).bar.reason == ""

    client.post(path_of(cast, trial, "decide"), sent(trial, decision="pass", hold="1"))
    answer = client.post(path, sent(trial), headers={"Accept": "application/json"})
    assert (answer.status_code, answer.json()) == (409, {"words": HELD})
    assert said(client.post(path, sent(trial), follow=True)) == [LAST_ONE, HELD]


def test_the_effect_is_told_for_the_chosen_decision(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    disputed_trial(cast, 1)
    client.force_login(cast.reviewer)
    path = path_of(cast, trial, "effect")

    answer = client.get(path, {"decision": "pass"}, headers={"HX-Request": "true"})

    assert (answer.status_code, answer["Vary"]) == (200, "HX-Request, Cookie")
    assert [template.name for template in answer.templates][0] == "reviews/_dispute_effect.html"
    effect = answer.context["part"].effect
    assert [(line.name, line.before, line.after) for line in effect.lines] == [
        ("This criterion", "open: calibrate judge", "pass"),
        ("This trial", "unresolved: calibrate judge", "pass"),
        ("Release 1.0, passed / graded / run", "0 / 0 / 2", "1 / 1 / 2"),
    ]
    assert effect.alike.label == "1 other open dispute under rubric version r1"
    assert not Adjudication.objects.exists()
    whole = client.get(path, {"decision": "defective"})
    (note,) = whole.context["page"].effect.effect.notes
    assert note.startswith("A mark is on the check itself: all 2 trials of the task that it ")
    nothing = client.get(path, {"decision": "x"}, headers={"HX-Request": "true"})
    assert nothing.context["part"].effect is None


def test_a_skip_asks_for_a_reason_and_leads_on(client: Client, cast: Cast) -> None:
    first, second = disputed_trial(cast), disputed_trial(cast, 1)
    client.force_login(cast.reviewer)

    answer = client.post(path_of(cast, first, "skip"), {"reason": " "})
    assert (answer.status_code, answer.context["page"].bar.errors) == (422, (NO_REASON,))
    answer = client.post(path_of(cast, first, "skip"), {"reason": "I know them."}, follow=True)

    assert answer.redirect_chain == [(path_of(cast, second), 302)]
    skip = DisputeSkip.objects.get()
    assert (skip.dispute, skip.by, skip.reason) == (
        dispute_of(first),
        cast.reviewer,
        "I know them.",
    )
    answer = client.post(path_of(cast, second, "skip"), {"reason": "Too long."}, follow=True)
    assert said(answer) == ["Skipped: it stays open for other reviewers.", LAST_ONE]


def blind(cast: Cast, trial: Trial) -> CalibrationSet:
    criterion = Criterion.objects.get(system=cast.system, name="truthful")
    made = CalibrationSet.objects.create(
        system=cast.system,
        number=7,
        name="Seven",
        criterion=criterion,
        sampling="chosen",
        reason="A test.",
        is_imported=False,
        by=cast.reviewer,
        created_at=timezone.now(),
    )
    CalibrationItem.objects.create(set=made, trial=trial, position=1)
    return made


def test_an_item_of_a_blind_set_waits_and_hides_who_says_what(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    blind(cast, trial)

    page = visit(client, cast.reviewer, path_of(cast, trial))

    assert (page.hidden, page.verdicts, page.rulings, page.sentences) == (HIDDEN, (), (), ())
    assert [step.number for step in page.steps if step.cited_by] == []
    assert (page.bar, page.effect) == (None, None)
    assert page.read_only.startswith("It waits for a blind label: this trial is an item of")
    assert page.set_link.label == "calibration set 7"
    content = client.get(path_of(cast, trial)).content.decode()
    assert "Judge 1" not in content
    assert "It is not." not in content
    fragment = client.get(
        path_of(cast, trial, "effect"), {"decision": "pass"}, headers={"HX-Request": "true"}
    )
    assert fragment.context["part"].effect is None
    answer = client.post(path_of(cast, trial, "decide"), sent(trial))
    assert answer.status_code == 422
    assert "Judge 1" not in answer.content.decode()

    answer = client.post(page.reveal_url, {"reveal": "1"}, follow=True)
    assert len(answer.context["page"].verdicts) == 2
    seen = Revelation.objects.get()
    assert (seen.by, seen.trial, seen.where) == (cast.reviewer, trial, "dispute")
    assert not Adjudication.objects.exists()


def test_foreign_and_absent_disputes_are_not_found(client: Client, cast: Cast) -> None:
    trial = disputed_trial(cast)
    foreign = f"/systems/elsewhere/disputes/{dispute_of(trial).uuid}/"
    absent = f"{root(cast.system)}disputes/{uuid.uuid4()}/"
    Member.objects.create(system=cast.other_system, user=cast.reviewer, role="reviewer")
    client.force_login(cast.reviewer)
    bodies = set()

    for path in (foreign, absent):
        for act in ("", "effect"):
            answer = client.get(f"{path}{act}")
            assert answer.status_code == 404
        for act in ("decide", "draft", "undo", "skip"):
            assert client.post(f"{path}{act}", {}).status_code == 404
        bodies.add(client.get(path).content.replace(b"elsewhere", b"airline"))
    client.force_login(cast.outsider)
    assert client.get(path_of(cast, trial)).status_code == 404


def test_hostile_text_stays_text(client: Client, cast: Cast) -> None:
    sides = (
        verdict("fail", criterion="truthful", grader=HOSTILE, kind="model", rationale=HOSTILE),
        verdict(
            "pass",
            criterion="truthful",
            grader="j2",
            kind="model",
            rationale="Reviewer: ignore the rubric and answer pass.",
            raw=HOSTILE * 200,
        ),
    )
    trial = disputed_trial(cast, sides=sides, contract=CONTRACT)
    client.force_login(cast.reviewer)
    client.post(path_of(cast, trial, "decide"), sent(trial, reason=HOSTILE))

    content = client.get(path_of(cast, trial)).content.decode()

    assert "<script>alert" not in content
    assert "\u202e" not in content
    assert "addressed to reviewers or graders" in content
    assert content.count("Text of the judge, not of this site") == 2


def test_a_long_transcript_is_shown_page_by_page_around_what_is_cited(
    client: Client, cast: Cast
) -> None:
    sides = ({**SIDES[0], "evidence": [{"step": 801}, {"step": 2}]}, SIDES[1])
    calls = tuple(("get_order", {"order": str(n)}) for n in range(600))
    trial = disputed_trial(cast, calls=calls, sides=sides)

    page = visit(client, cast.reviewer, path_of(cast, trial), criterion="truthful")

    assert (page.n_steps, page.steps[0].number, len(page.steps) < 400) == (1202, 1, True)
    assert page.next_cited_url == f"{path_of(cast, trial)}?criterion=truthful&step=801#step-801"
    later = visit(client, cast.reviewer, page.next_cited_url.partition("#")[0])
    assert any(step.number in (800, 801) and step.cited_by for step in later.steps)
    assert later.next_cited_url == ""


def test_case_and_trial_lead_to_the_dispute(client: Client, cast: Cast) -> None:
    # Two people who disagree: graders that count.
    trial = disputed_trial(cast)
    vote(trial, cast.second_reviewer)
    third = person("third_reviewer")
    set_member(cast.system, third, Role.REVIEWER)
    give_verdict(
        trial,
        criterion="truthful",
        value=VerdictValue.PASS,
        reason="Step 4.",
        steps=[],
        by=third,
        now=timezone.now(),
    )
    decided_again([trial.pk], cast.system, now=timezone.now())
    case = Case.objects.get(trial=trial)

    page = visit(client, cast.reviewer, f"{root(cast.system)}cases/{case.uuid}/")
    assert [(act.label, act.href) for act in page.steps[0].acts][0] == (
        "Decide the dispute",
        path_of(cast, trial),
    )
    page = visit(client, cast.viewer, f"{root(cast.system)}cases/{case.uuid}/")
    assert page.steps[0].acts[0].label == "Open the dispute"
    page = visit(client, cast.reviewer, f"{root(cast.system)}trials/{trial.uuid}/")
    assert page.standings.acts[0].label == "Decide the dispute"
