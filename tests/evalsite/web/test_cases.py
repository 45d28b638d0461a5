from __future__ import annotations

import uuid
from datetime import date, timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.web.case_words import after_words, age_text, day_text, due_of, short_reason
from reviews.core.disposition import NextAction, Ruling, StandingResult
from reviews.models import Case, CaseEvent
from reviews.permissions.cases import CASE_ASIDE, NOT_A_WORKER
from reviews.permissions.verdicts import BROUGHT_EVIDENCE
from reviews.services.case_rows import follow_dispositions
from reviews.services.cases import ask_rerun, comment_on_case, set_aside
from tests.support.cases import case_of_trial, passed
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Role, System, Task, Trial

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e{{ 7*7 }}"


def queue_path(system: System) -> str:
    return f"{root(system)}cases/"


def case_path(case: Case) -> str:
    return f"{queue_path(case.system)}{case.uuid}/"


def undecided(label: int | str = 0, task_id: str = "t1", **more: Any) -> dict[str, Any]:
    """A trial whose code grader cannot tell."""
    given = [verdict("unknown", rationale="The state is missing.", evidence=[{"step": 2}])]
    return record(task_id, label, verdicts=given, **more)


def ungraded(label: int | str = 0, task_id: str = "t1") -> dict[str, Any]:
    """A trial that only an uncalibrated judge looked at."""
    judge = verdict("pass", criterion="tone", grader="judge", kind="model", rationale=HOSTILE)
    return record(task_id, label, verdicts=[verdict(), judge])


def broken_record(label: int | str = 0) -> dict[str, Any]:
    return record("t1", label, status="error", error=f"timeout {HOSTILE}", verdicts=[])


def case_of(label: str = "0") -> Case:
    return Case.objects.get(trial__label=label)


# ---- the queue ----


def test_an_empty_queue_says_so(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, queue_path(cast.system))

    assert page.heading == "No case waits"
    assert (page.rows, page.empty.heading) == ((), "No case waits")
    assert [(tab.label, tab.count) for tab in page.tabs] == [("All", 0)]
    page = visit(client, cast.viewer, queue_path(cast.system), state="closed")
    assert (page.heading, page.empty.heading) == ("No case closed", "No closed case")
    page = visit(client, cast.viewer, queue_path(cast.system), state="set_aside")
    assert page.empty.heading == "No case is set aside"
    page = visit(client, cast.viewer, queue_path(cast.system), q="x")
    assert page.empty.heading == "No case is like that"


def test_the_heading_counts_what_is_shown(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0), ungraded(1), broken_record(2)])
    set_aside(case_of("0"), reason="Known.", by=cast.engineer, now=timezone.now())
    headings = [
        visit(client, cast.viewer, queue_path(cast.system), state=state).heading
        for state in ("open", "set_aside", "all")
    ]
    assert headings == ["2 cases wait, none for you yet", "1 case set aside", "3 cases in all"]


def test_a_row_says_why_what_who_and_how_old(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0), ungraded(1), broken_record(2)])
    Task.objects.update(family="refunds", split="held_out", title="Refund")
    comment_on_case(case_of("0"), "Hello.", by=cast.viewer, now=timezone.now())
    ask_rerun(case_of("2"), reason="x", by=cast.engineer, now=timezone.now())
    Case.objects.filter(pk=case_of("1").pk).update(
        assignee=cast.reviewer, due_on=timezone.now().date() - timedelta(days=1)
    )

    page = visit(client, cast.reviewer, queue_path(cast.system))

    first, second, third = page.rows
    assert page.heading == "3 cases wait, 1 of them for you"
    assert (first.trial.label, first.trial.href) == ("t1 · trial 0", case_path(case_of("0")))
    assert (first.title, first.below) == ("Refund", ("1.0", "refunds", "held out"))
    assert [(b.label, b.state) for b in first.why] == [("evidence missing", "unresolved")]
    assert (first.why_detail, first.n_comments, first.is_rerun_asked) == ("outcome", 1, False)
    assert [(step.name, step.what) for step in first.steps] == [("Repair evidence", "outcome")]
    assert (first.who, first.is_role, first.age, first.due) == ("engineer", True, "now", None)
    assert [b.label for b in second.why] == ["judge not calibrated"]
    assert (second.who, second.is_role, second.is_mine) == ("you", False, True)
    assert (second.due.words, second.due.is_overdue) == ("overdue", True)
    assert [(b.label, b.state) for b in third.why] == [("harness broke", "harness-error")]
    assert third.why_detail.startswith("timeout <img")
    assert third.is_rerun_asked
    assert [(tab.label, tab.count) for tab in page.tabs] == [
        ("All", 3),
        ("Repair evidence", 1),
        ("Rerun trial", 1),
        ("Calibrate judge", 1),
    ]


def test_the_headline_counts_words_right(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])
    path = queue_path(cast.system)
    assert visit(client, cast.engineer, path).heading == "1 case waits, none for you yet"
    Case.objects.update(assignee=cast.engineer)
    assert visit(client, cast.engineer, path).heading == "1 case waits, for you"
    ingest(cast.system, [undecided(1)])
    Case.objects.update(assignee=cast.engineer)
    assert visit(client, cast.engineer, path).heading == "2 cases wait, all for you"


def test_filters_stand_in_the_address_and_go_along(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0), ungraded(1), undecided(0, "t2")])
    Task.objects.filter(task_id="t2").update(family="refunds", split="regression")
    Case.objects.filter(task__task_id="t1", trial__label="0").update(assignee=cast.engineer)
    path = queue_path(cast.system)

    def labels(**query: Any) -> list[str]:
        return [row.trial.label for row in visit(client, cast.engineer, path, **query).rows]

    all_three = ["t1 · trial 0", "t1 · trial 1", "t2 · trial 0"]
    assert labels() == labels(state="nonsense", action="x", role="x", who="x") == all_three
    assert labels(who="me") == labels(who=str(cast.engineer.uuid)) == ["t1 · trial 0"]
    assert labels(who="nobody") == ["t1 · trial 1", "t2 · trial 0"]
    assert labels(role="reviewer") == labels(action="calibrate_judge") == ["t1 · trial 1"]
    assert labels(family="refunds") == labels(split="regression") == ["t2 · trial 0"]
    assert labels(family="-") == labels(split="-") == ["t1 · trial 0", "t1 · trial 1"]
    assert labels(q="T2") == ["t2 · trial 0"]
    assert labels(overdue="1") == labels(release=str(uuid.uuid4())) == []
    task = Task.objects.get(task_id="t2")
    assert labels(task=str(task.uuid)) == ["t2 · trial 0"]
    release = Trial.objects.all()[0].release
    query = {"release": str(release.uuid), "who": "me", "q": "t1", "state": "all"}
    page = visit(client, cast.engineer, path, **query)
    assert page.rows[0].trial.href.endswith(f"?state=all&who=me&release={release.uuid}&q=t1")
    assert [(f.name, f.value) for f in page.filter.hidden] == [
        ("who", "me"),
        ("release", str(release.uuid)),
    ]
    assert (page.who_label, page.release_label) == ("me", "1.0")
    assert page.filter.clear_url == f"{path}?state=all"


def test_pages_of_the_queue_keep_the_filters(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "reviews.selectors.cases.listed_cases.__kwdefaults__",
        {"after": None, "before": None, "n": 1},
    )
    ingest(cast.system, [undecided(0)])
    ingest(cast.system, [undecided(1)])

    first = visit(client, cast.engineer, queue_path(cast.system), role="engineer")
    second = client.get(first.pager.next_url).context["page"]

    assert [row.trial.label for row in second.rows] == ["t1 · trial 1"]
    assert "role=engineer" in second.pager.previous_url
    assert second.pager.next_url == ""
    assert "after=" in second.assign_url


@pytest.mark.parametrize("role", Role)
def test_who_works_cases_takes_them_from_the_queue(role: Role, client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])

    page = visit(client, cast.members()[role], queue_path(cast.system))

    assert page.why_not == (NOT_A_WORKER if role is Role.VIEWER else "")
    assert page.may_take is (role in (Role.ENGINEER, Role.REVIEWER))
    assert [option.label for option in page.workers] == [
        "engineer (engineer)",
        "reviewer (reviewer)",
        "second_reviewer (reviewer)",
    ]


def test_closed_cases_show_what_became_of_them(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0), undecided(1)])
    set_aside(case_of("0"), reason="Known.", by=cast.engineer, now=timezone.now())
    follow_dispositions([passed(case_of("1").trial)], now=timezone.now())

    page = visit(client, cast.viewer, queue_path(cast.system), state="all")

    first, second = page.rows
    assert (first.state.label, second.state.label, second.state.state) == (
        "set aside",
        "pass",
        "pass",
    )
    assert (page.assign_url, page.is_waiting) == ("", False)
    assert [(step.name, step.what) for step in second.steps] == [("Was", "repair evidence")]


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_the_queue_takes_a_constant_number_of_queries(n: int, client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(label, f"t{label}") for label in range(n)])
    client.force_login(cast.engineer)
    path = queue_path(cast.system)

    assert n_queries(client, path) == 16


# ---- one case ----


def test_a_case_says_what_is_open_and_what_was_voted(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0), undecided(1)])
    case = case_of("0")

    page = visit(client, cast.engineer, case_path(case), role="engineer")

    trial_url = f"{root(cast.system)}trials/{case.trial.uuid}/"
    assert (page.title, page.state.label, page.is_open) == ("t1 · trial 0", "unresolved", True)
    (reason,) = page.reasons
    assert (reason.criterion, reason.action) == ("outcome", "repair evidence")
    assert reason.sentence == "A code grader cannot tell on the evidence it has."
    (vote,) = reason.votes
    assert (vote.who, vote.word, vote.rationale) == (
        "state check",
        "unknown",
        "The state is missing.",
    )
    assert page.step_url == vote.steps[0].href == f"{trial_url}?step=2#step-2"
    (step,) = page.steps
    assert (step.name, step.worked_by, step.is_first, step.about) == (
        "Repair evidence",
        "engineer",
        True,
        ("outcome",),
    )
    (act,) = step.acts
    assert (act.label, act.href, act.why_not) == (
        "Add evidence",
        f"{trial_url}evidence/?case={case.uuid}",
        "",
    )
    assert page.task_url == f"{trial_url}task/"
    assert (page.previous_url, page.next_url) == ("", f"{case_path(case_of('1'))}?role=engineer")
    assert [moment.what for moment in page.history] == ["The case opened"]
    assert [option.label for option in page.workers] == ["nobody", "engineer (engineer)"]
    assert page.take_button


def test_acts_that_one_may_not_do_say_why(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])

    page = visit(client, cast.reviewer, case_path(case_of()))
    assert page.steps[0].acts[0].why_not.startswith("Only an engineer of this system adds")
    assert not page.take_button
    assert page.task_url == ""
    page = visit(client, cast.viewer, case_path(case_of()))
    assert page.work_why_not == NOT_A_WORKER
    assert page.task_url == ""
    assert "Make a task of it" not in client.get(case_path(case_of())).content.decode()


def test_who_brought_the_evidence_sees_why_they_do_not_grade_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [ungraded(0)], by=cast.reviewer)

    for person, why_not in ((cast.reviewer, BROUGHT_EVIDENCE), (cast.second_reviewer, "")):
        (step,) = visit(client, person, case_path(case_of())).steps
        assert step.acts[0].why_not == why_not


@pytest.mark.parametrize(
    ("actions", "labels"),
    [
        pytest.param(
            ("fix_fixture",), ["Open the contract editor", "Mark what is at fault"], id="fixture"
        ),
        pytest.param(
            ("clarify_contract",),
            ["Open the contract editor", "Mark what is at fault"],
            id="contract",
        ),
        pytest.param(("grade",), ["Give a verdict"], id="grade"),
        pytest.param(("adjudicate",), ["See all verdicts"], id="adjudicate"),
        pytest.param(("calibrate_judge",), ["Give a verdict", "See all verdicts"], id="judge"),
        pytest.param(("rerun_judge",), ["Upload a verdict", "See all verdicts"], id="rerun judge"),
        pytest.param(("rerun_trial",), [], id="rerun trial"),
    ],
)
def test_each_next_action_has_its_way(
    actions: tuple[str, ...], labels: list[str], client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0)])
    case = case_of_trial(Trial.objects.get(), actions=actions, why=())

    page = visit(client, cast.reviewer, case_path(case))

    (step,) = page.steps
    assert [act.label for act in step.acts] == labels
    assert (step.form is not None) is (actions == ("rerun_trial",))
    assert page.no_reason != ""


def test_a_broken_trial_says_what_the_harness_said(client: Client, cast: Cast) -> None:
    ingest(cast.system, [broken_record(0)])
    ask_rerun(case_of(), reason="Try again.", by=cast.engineer, now=timezone.now())

    page = visit(client, cast.engineer, case_path(case_of()))

    assert page.no_reason == "The harness broke: the trial is no evidence about the agent."
    (step,) = page.steps
    assert step.asked.startswith("engineer asked for it at ")
    assert [fact.value for fact in page.facts if fact.name == "Error"] == [f"timeout {HOSTILE}"]


def test_a_closed_case_says_what_closed_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])
    more = {"record": "verdicts", "task_id": "t1", "trial": 0}
    second = verdict("pass", grader="state check", grader_version="2")
    ingest(cast.system, [{**more, "verdicts": [second]}])
    case = case_of()
    follow_dispositions([passed(case.trial)], now=timezone.now())

    page = visit(client, cast.engineer, case_path(case))

    assert page.closed_words == "The trial passes: every requirement passes."
    assert (page.steps, page.reasons, page.is_open) == ((), (), False)
    last = page.history[-1]
    assert (last.by, last.kind) == ("", "closed")
    assert last.after == "state check said pass on outcome"


def test_a_case_set_aside_is_taken_up_again_from_there(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])
    set_aside(case_of(), reason="Known.", by=cast.owner, now=timezone.now())

    page = visit(client, cast.engineer, case_path(case_of()))

    assert page.closed_words == "owner: Known."
    assert page.work_why_not == CASE_ASIDE
    assert page.take_up_url.endswith("/take-up")


def test_hostile_text_stays_text(client: Client, cast: Cast) -> None:
    ingest(cast.system, [ungraded(0), broken_record(1)])
    comment_on_case(case_of("0"), HOSTILE, by=cast.viewer, now=timezone.now())
    client.force_login(cast.engineer)
    for path in (queue_path(cast.system), case_path(case_of("0")), case_path(case_of("1"))):
        text = client.get(path).content.decode()
        assert "<img src=x" not in text
        assert "&lt;img src=x" in text
        assert "\u202e" not in text
        assert "{{ 7*7 }}" in text


def test_a_case_of_another_system_is_not_there(client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(0)])
    client.force_login(cast.outsider)

    assert client.get(case_path(case_of())).status_code == 404
    other = f"{queue_path(cast.other_system)}{case_of().uuid}/"
    assert client.get(other).status_code == 404
    assert client.get(f"{queue_path(cast.other_system)}{uuid.uuid4()}/").status_code == 404


@pytest.mark.parametrize("n", [pytest.param(1, id="one"), pytest.param(3, id="three")])
def test_a_case_takes_a_constant_number_of_queries(n: int, client: Client, cast: Cast) -> None:
    ingest(cast.system, [undecided(label) for label in range(n)])
    case = case_of("0")
    for _ in range(n):
        comment_on_case(case, "x", by=cast.viewer, now=timezone.now())
    client.force_login(cast.engineer)

    assert n_queries(client, case_path(case)) == 20
    assert CaseEvent.objects.count() == n


# ---- words ----


@pytest.mark.parametrize(
    ("detail", "words"),
    [
        pytest.param({}, "", id="nothing"),
        pytest.param({"after": {"kind": "other"}}, "", id="unknown"),
        pytest.param(
            {"after": {"kind": "verdict", "criterion": "tone", "value": "pass", "grader": "Ada"}},
            "Ada said pass on tone",
            id="verdict",
        ),
        pytest.param(
            {"after": {"kind": "evidence", "parts": ["final_state", "facts"]}},
            "evidence was added: final state, facts",
            id="evidence",
        ),
        pytest.param(
            {"after": {"kind": "mark", "criterion": "", "mark": "defective"}},
            "the fixture was marked defective",
            id="mark",
        ),
        pytest.param(
            {"after": {"kind": "withdrawal", "criterion": "tone"}},
            "the mark on tone was withdrawn",
            id="withdrawal",
        ),
        pytest.param(
            {"after": {"kind": "contract", "number": 3}},
            "contract version 3 took effect",
            id="contract",
        ),
    ],
)
def test_what_came_before_is_told(detail: dict[str, Any], words: str) -> None:
    assert after_words(detail) == words


def test_days_and_ages_are_said_as_people_do() -> None:
    today = date(2026, 12, 1)
    said = {
        "today": date(2026, 12, 1),
        "tomorrow": date(2026, 12, 2),
        "12 Dec": date(2026, 12, 12),
        "12 Dec 2027": date(2027, 12, 12),
    }
    assert {words: day_text(day, today) for words, day in said.items()} == {w: w for w in said}
    assert due_of(None, today) is None
    overdue, settled = (due_of(date(2026, 11, 30), today, is_waiting=w) for w in (True, False))
    assert overdue is not None
    assert settled is not None
    assert (overdue.words, overdue.is_overdue) == ("overdue", True)
    assert (settled.words, settled.is_overdue) == ("30 Nov", False)
    now = timezone.now()
    assert [age_text(now - timedelta(hours=h), now) for h in (0, 2, 50)] == ["now", "2 h", "2 d"]


def test_every_open_ruling_has_a_short_form() -> None:
    for rule in range(1, 8):
        for action in NextAction:
            ruling = Ruling(rule, StandingResult.OPEN, action, "It did not start right.")
            assert 0 < len(short_reason(ruling)) < 40
