from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import date, timedelta

import pytest
from django.db import DatabaseError, connection, transaction

from reviews.models import Case, CaseEvent, CaseEventKind
from reviews.permissions.cases import (
    CASE_ASIDE,
    CASE_CLOSED,
    CASE_OPEN,
    NO_RERUN,
    NOT_A_MEMBER,
    NOT_A_WORKER,
    NOT_ASIDE,
)
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import (
    LONGEST_TEXT,
    NO_COMMENT,
    NO_REASON,
    NOT_OF_SYSTEM,
    Assigned,
    CaseDeniedError,
    CaseError,
    ask_rerun,
    assign_cases,
    comment_on_case,
    note_on_task,
    note_on_trial,
    set_aside,
    set_due,
    take_up,
)
from tests.support.cases import LATER, NOW, broken, case_of_trial, passed, stored_trials
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Role, Trial, User

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"


def open_case(cast: Cast, *actions: str) -> Case:
    (trial,) = stored_trials(cast)
    return case_of_trial(trial, actions=actions or ("repair_evidence",))


def events(case: Case) -> list[tuple[str, str, int | None]]:
    return list(
        CaseEvent.objects.filter(case=case).order_by("pk").values_list("kind", "text", "by")
    )


# ---- assigning ----


def test_a_case_is_assigned_to_who_works_it(cast: Cast) -> None:
    case = open_case(cast)

    outcome = assign_cases([case], to=cast.engineer, by=cast.reviewer, now=LATER)

    assert outcome == Assigned(1, 0, ())
    assert Case.objects.get().assignee == cast.engineer
    (event,) = CaseEvent.objects.all()
    assert (event.kind, event.text, event.by, event.at, event.detail) == (
        "assigned",
        "engineer",
        cast.reviewer,
        LATER,
        {"to": "engineer"},
    )

    assert assign_cases([case], to=cast.engineer, by=cast.owner, now=LATER) == Assigned(0, 1, ())
    assert assign_cases([case], to=None, by=cast.owner, now=LATER) == Assigned(1, 0, ())
    assert Case.objects.get().assignee is None
    assert [text for _, text, _ in events(case)] == ["engineer", ""]


@pytest.mark.parametrize(
    ("actions", "name", "sentence"),
    [
        pytest.param(
            ("repair_evidence",),
            "reviewer",
            "reviewer is a reviewer here; an engineer works this case.",
            id="reviewer",
        ),
        pytest.param(
            ("grade",),
            "engineer",
            "engineer is an engineer here; a reviewer works this case.",
            id="engineer",
        ),
        pytest.param(
            ("repair_evidence", "grade"),
            "owner",
            "owner is an owner here; an engineer or a reviewer works this case.",
            id="owner",
        ),
        pytest.param(
            ("grade",),
            "viewer",
            "viewer is a viewer here; a reviewer works this case.",
            id="viewer",
        ),
        pytest.param(
            ("grade",), "outsider", "outsider is no member of this system.", id="outsider"
        ),
    ],
)
def test_a_case_is_not_assigned_to_who_cannot_work_it(
    actions: tuple[str, ...], name: str, sentence: str, cast: Cast
) -> None:
    case = open_case(cast, *actions)

    outcome = assign_cases([case], to=getattr(cast, name), by=cast.engineer, now=NOW)

    assert outcome == Assigned(0, 0, (sentence,))
    assert Case.objects.get().assignee is None
    assert events(case) == []


def test_of_several_cases_those_that_fit_are_assigned(cast: Cast) -> None:
    first, second, third = stored_trials(cast, 3)
    cases = [
        case_of_trial(first),
        case_of_trial(second, actions=("grade",)),
        case_of_trial(third, actions=("grade", "repair_evidence")),
    ]

    outcome = assign_cases(cases, to=cast.engineer, by=cast.engineer, now=NOW)

    refusal = "engineer is an engineer here; a reviewer works this case."
    assert outcome == Assigned(2, 0, (refusal,))
    assert [case.assignee for case in Case.objects.order_by("trial")] == [
        cast.engineer,
        None,
        cast.engineer,
    ]


def test_cases_of_two_systems_are_not_assigned_together(cast: Cast) -> None:
    case = open_case(cast)
    ingest(cast.other_system, [record("t1", 0)])
    other = case_of_trial(Trial.objects.get(system=cast.other_system))

    with pytest.raises(CaseError) as refused:
        assign_cases([case, other], to=cast.engineer, by=cast.engineer, now=NOW)

    assert str(refused.value) == NOT_OF_SYSTEM
    with pytest.raises(CaseError):
        assign_cases([], to=cast.engineer, by=cast.engineer, now=NOW)


def test_who_saw_another_assignee_takes_nothing_away(cast: Cast) -> None:
    case = open_case(cast, "repair_evidence", "grade")
    assign_cases([case], to=cast.reviewer, by=cast.reviewer, now=NOW)

    outcome = assign_cases(
        [case], to=cast.engineer, by=cast.engineer, now=LATER, seen={case.pk: None}
    )

    sentence = "Meanwhile it was assigned to reviewer; assign it again if that is wrong."
    assert outcome == Assigned(0, 0, (sentence,))
    seen = {case.pk: cast.reviewer.pk}
    assert assign_cases([case], to=cast.engineer, by=cast.engineer, now=LATER, seen=seen) == (
        Assigned(1, 0, ())
    )


# ---- who may ----

ACTS: dict[str, Callable[[Case, User], object]] = {
    "assign": lambda case, by: assign_cases([case], to=None, by=by, now=NOW),
    "due": lambda case, by: set_due(case, LATER.date(), by=by, now=NOW),
    "set aside": lambda case, by: set_aside(case, reason="Known.", by=by, now=NOW),
    "rerun": lambda case, by: ask_rerun(case, reason="Again.", by=by, now=NOW),
}


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("act", ACTS)
def test_everybody_but_viewers_works_on_cases(act: str, role: Role, cast: Cast) -> None:
    case = open_case(cast, "rerun_trial")
    person = cast.members()[role]

    if role is Role.VIEWER:
        with pytest.raises(CaseDeniedError) as refused:
            ACTS[act](case, person)
        assert str(refused.value) == NOT_A_WORKER
        assert events(case) == []
    else:
        ACTS[act](case, person)
    with pytest.raises(CaseDeniedError) as refused:
        ACTS[act](case, cast.outsider)
    assert str(refused.value) == NOT_A_MEMBER


@pytest.mark.parametrize("role", Role)
def test_every_member_comments_in_any_state(role: Role, cast: Cast) -> None:
    case = open_case(cast)
    person = cast.members()[role]
    comment_on_case(case, " Look at step 4. ", by=person, now=NOW)
    follow_dispositions([passed(case.trial)], now=NOW)
    comment_on_case(case, HOSTILE, by=person, now=LATER)

    case.refresh_from_db()
    assert case.n_comments == 2
    assert [e for e in events(case) if e[0] == "comment"] == [
        ("comment", "Look at step 4.", person.pk),
        ("comment", HOSTILE, person.pk),
    ]
    with pytest.raises(CaseDeniedError, match=r"^Only a member of this system comments"):
        comment_on_case(case, "Hello.", by=cast.outsider, now=NOW)


# ---- dates ----


def test_a_due_date_is_set_changed_and_taken_away(cast: Cast) -> None:
    case = open_case(cast)
    for day in (NOW.date(), LATER.date(), LATER.date(), None):
        set_due(case, day, by=cast.engineer, now=NOW)
        case.refresh_from_db()
        assert case.due_on == day
    assert [text for _, text, _ in events(case)] == ["2026-12-01", "2026-12-02", ""]


@pytest.mark.parametrize(
    "day",
    [
        pytest.param(NOW.date() - timedelta(days=1), id="yesterday"),
        pytest.param(date(2200, 1, 1), id="far"),
    ],
)
def test_a_due_date_lies_ahead(day: date, cast: Cast) -> None:
    case = open_case(cast)

    with pytest.raises(CaseError, match=r"^A due date is today or later, and before 2200\.$"):
        set_due(case, day, by=cast.engineer, now=NOW)

    assert events(case) == []


# ---- by hand ----


def test_a_case_is_set_aside_and_taken_up_again(cast: Cast) -> None:
    case = open_case(cast)
    set_aside(case, reason=" Known limit. ", by=cast.owner, now=LATER)
    case.refresh_from_db()
    assert (case.state, case.closed_at) == ("set_aside", LATER)
    for name, act in ACTS.items():
        if name != "assign":
            with pytest.raises(CaseError) as refused:
                act(case, cast.engineer)
            assert str(refused.value) == CASE_ASIDE
    assert assign_cases([case], to=cast.engineer, by=cast.owner, now=NOW).refusals == (CASE_ASIDE,)

    take_up(case, by=cast.reviewer, now=LATER)

    case.refresh_from_db()
    assert (case.state, case.closed_at, case.opened_at, case.n_opened) == ("open", None, NOW, 1)
    assert events(case) == [
        ("set_aside", "Known limit.", cast.owner.pk),
        ("taken_up", "", cast.reviewer.pk),
    ]
    with pytest.raises(CaseError) as refused:
        take_up(case, by=cast.reviewer, now=LATER)
    assert str(refused.value) == CASE_OPEN
    with pytest.raises(CaseDeniedError):
        take_up(case, by=cast.viewer, now=LATER)


def test_a_closed_case_takes_nothing_but_comments(cast: Cast) -> None:
    case = open_case(cast)
    follow_dispositions([passed(case.trial)], now=NOW)

    with pytest.raises(CaseError) as refused:
        set_aside(case, reason="x", by=cast.engineer, now=NOW)
    assert str(refused.value) == CASE_CLOSED
    with pytest.raises(CaseError) as refused:
        take_up(case, by=cast.engineer, now=NOW)
    assert str(refused.value) == NOT_ASIDE


def test_a_rerun_is_asked_for_where_the_harness_broke(cast: Cast) -> None:
    first, second = stored_trials(cast, 2)
    follow_dispositions([broken(first)], now=NOW)
    case = Case.objects.get(trial=first)

    event = ask_rerun(case, reason=" It timed out. ", by=cast.engineer, now=LATER)

    assert (event.kind, event.text) == (CaseEventKind.RERUN_ASKED.value, "It timed out.")
    with pytest.raises(CaseError) as refused:
        ask_rerun(case_of_trial(second), reason="x", by=cast.engineer, now=LATER)
    assert str(refused.value) == NO_RERUN


BAD_TEXTS = [
    pytest.param("", id="empty"),
    pytest.param(" \n\t ", id="blanks"),
    pytest.param("\u200b \u202e\u2063", id="unseen"),
]


@pytest.mark.parametrize("text", BAD_TEXTS)
def test_comments_and_reasons_say_something(text: str, cast: Cast) -> None:
    case = open_case(cast, "rerun_trial")
    for refused_as, act in (
        (NO_COMMENT, lambda: comment_on_case(case, text, by=cast.viewer, now=NOW)),
        (NO_REASON, lambda: set_aside(case, reason=text, by=cast.engineer, now=NOW)),
        (NO_REASON, lambda: ask_rerun(case, reason=text, by=cast.engineer, now=NOW)),
    ):
        with pytest.raises(CaseError) as refused:
            act()
        assert str(refused.value) == refused_as
    case.refresh_from_db()
    assert (case.state, case.n_comments, events(case)) == ("open", 0, [])


def test_comments_and_reasons_have_a_length(cast: Cast) -> None:
    case = open_case(cast)
    comment_on_case(case, "x" * LONGEST_TEXT, by=cast.viewer, now=NOW)
    with pytest.raises(CaseError, match=r"^A comment has at most 2,000 characters\.$"):
        comment_on_case(case, "x" * (LONGEST_TEXT + 1), by=cast.viewer, now=NOW)
    with pytest.raises(CaseError, match=r"^A reason has at most 2,000 characters\.$"):
        set_aside(case, reason="x" * (LONGEST_TEXT + 1), by=cast.engineer, now=NOW)


def test_what_a_column_cannot_hold_is_replaced(cast: Cast) -> None:
    event = comment_on_case(open_case(cast), "a\x00b\ud800c", by=cast.viewer, now=NOW)

    assert CaseEvent.objects.get(pk=event.pk).text == "a\u2400b\ufffdc"


# ---- what was done to the trial ----


def test_work_on_the_trial_stands_in_the_history(cast: Cast) -> None:
    first, second, third = stored_trials(cast, 3)
    cases = [case_of_trial(first), case_of_trial(second)]
    follow_dispositions([passed(second)], now=NOW)

    note_on_trial(
        first.pk, CaseEventKind.VERDICT, "tone: pass", by=cast.reviewer, now=LATER, detail={"n": 1}
    )
    note_on_trial(third.pk, CaseEventKind.VERDICT, "tone: pass", by=cast.reviewer, now=LATER)
    note_on_task(first.task_id, CaseEventKind.MARKED, "tone\x00", by=cast.reviewer, now=LATER)

    assert events(cases[0]) == [
        ("verdict", "tone: pass", cast.reviewer.pk),
        ("marked", "tone\u2400", cast.reviewer.pk),
    ]
    assert [kind for kind, _, _ in events(cases[1])] == ["closed"]


def test_the_history_only_grows(cast: Cast) -> None:
    comment_on_case(open_case(cast), "Hello.", by=cast.viewer, now=NOW)

    for change in (
        lambda: CaseEvent.objects.update(text="x"),
        lambda: CaseEvent.objects.all().delete(),
    ):
        with pytest.raises(DatabaseError), transaction.atomic():
            change()


@pytest.mark.django_db(transaction=True)
def test_two_people_at_once_set_a_case_aside_once(cast: Cast) -> None:
    case = open_case(cast)
    start = threading.Barrier(2)
    refusals: list[str] = []

    def act(by: User) -> None:
        try:
            start.wait(timeout=20)
            set_aside(case, reason="Known.", by=by, now=NOW)
        except CaseError as error:
            refusals.append(str(error))
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(by,)) for by in (cast.engineer, cast.owner)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert refusals == [CASE_ASIDE]
    assert [kind for kind, _, _ in events(case)] == ["set_aside"]


@pytest.mark.django_db(transaction=True)
def test_two_people_who_take_the_same_case_do_not_both_get_it(cast: Cast) -> None:
    case = open_case(cast, "repair_evidence", "grade")
    start = threading.Barrier(2)
    outcomes: list[Assigned] = []

    def act(by: User) -> None:
        try:
            start.wait(timeout=20)
            seen = {case.pk: None}
            outcomes.append(assign_cases([case], to=by, by=by, now=NOW, seen=seen))
        finally:
            connection.close()

    threads = [threading.Thread(target=act, args=(by,)) for by in (cast.engineer, cast.reviewer)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=30)

    assert sorted(outcome.n_assigned for outcome in outcomes) == [0, 1]
    assert len(events(case)) == 1
