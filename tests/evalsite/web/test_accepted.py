from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from reviews.core.accepted_paths import LONGEST_REASON
from reviews.models import AcceptedPath, AcceptedPathWithdrawal, Flag, FlagCode
from reviews.services.accepted_paths import withdraw_path
from tests.support.accepted import accept, show_rules, task_of, trial_of
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Release, Role, System, Task

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
SUMS = RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same sum.", "e"),))
HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def calculates(expression: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (("calculate", {"expression": expression}),)


def register_path(system: System, task_id: str = "t1") -> str:
    return f"{root(system)}tasks/{task_of(system, task_id).uuid}/accepted/"


def accept_path(system: System, task_id: str = "t1") -> str:
    return f"{root(system)}tasks/{task_of(system, task_id).uuid}/accept/"


def flag(cast: Cast, label: str, reason: str = "look") -> Flag:
    return Flag.objects.create(
        system=cast.system,
        trial=trial_of(cast.system, label),
        code=FlagCode.PERSON.value,
        key=uuid.uuid4(),
        reason=reason,
        by=cast.viewer,
        raised_at=timezone.now(),
    )


def page_of(answer: Any) -> Any:
    return answer.context["page"]


def test_a_register_without_a_path_tells_how_to_accept_one(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    path = register_path(cast.system)
    page = visit(client, cast.engineer, path, level="exact", messages="1")

    assert page.empty.heading == "No accepted path"
    assert "Accept this path" in page.empty.sentence
    assert page.empty.act.href == f"{path.removesuffix('accepted/')}?level=exact&messages=1"
    viewed = visit(client, cast.viewer, path).empty.sentence
    assert "Only an engineer of this system" in viewed


def test_the_register_says_who_accepted_what_and_which_releases_take_it(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("t1", 0, calls=calculates("1")), record("t1", 1)])
    ingest(cast.system, [record("t1", 0, calls=calculates("2"))], release="2.0")
    ingest(cast.system, [record("t1", 0)], release="3.0")
    ingest(cast.system, [record("t1", 0, error="lost", verdicts=[])], release="4.0")
    accept(cast, reason="Sums are fine.")
    page = visit(client, cast.viewer, register_path(cast.system))
    (row,) = page.rows
    (one,) = row.acceptances
    second = Release.objects.get(name="2.0")

    assert (row.name, row.level, row.n_trials, row.merged) == (
        "Accepted 1",
        "Sequence, tool calls only",
        2,
        "",
    )
    assert [(cell.name, cell.differs) for cell in row.cells] == [("calculate", True)]
    assert (one.by, one.reason, one.rules, one.withdraw_url) == (
        "engineer",
        "Sums are fine.",
        "rules version 1",
        "",
    )
    assert one.trial.href == f"{root(cast.system)}trials/{trial_of(cast.system).uuid}/"
    assert [(r.label, r.title) for r in row.taken] == [("2.0", "1 trial"), ("1.0", "1 trial")]
    assert f"release={second.uuid}" in row.taken[0].href
    assert [r.label for r in row.not_taken] == ["3.0"]
    assert [tab.label for tab in page.tabs if tab.is_current] == ["Accepted paths"]


def test_paths_that_rules_merge_are_one_row_with_both_names(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=calculates("1200")), record("t1", 1, calls=calculates("2 * 600"))],
    )
    first = accept(cast, level=PathLevel.EQUIVALENT)
    accept(cast, "1", level=PathLevel.EQUIVALENT)
    show_rules(cast.system, SUMS)
    page = visit(client, cast.engineer, register_path(cast.system))
    (row,) = page.rows
    withdraw = visit(client, cast.engineer, row.acceptances[0].withdraw_url)

    assert (page.words, page.rules) == ("1 accepted path", "under rules version 2")
    assert (row.name, row.n_trials) == ("Accepted 1 and 2", 2)
    assert row.merged.startswith("Rules version 2 makes Accepted 1 and 2 one path")
    assert [one.rules for one in row.acceptances] == ["rules version 1", "rules version 1"]
    assert withdraw.notices[0].sentence.startswith("Accepted 2 is the same path")
    withdraw_path(first, reason="x", by=cast.engineer, now=timezone.now())
    (row,) = visit(client, cast.engineer, register_path(cast.system)).rows
    assert (row.name, row.n_trials) == ("Accepted 2", 2)


def test_many_accepted_paths_come_in_pages(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("evalsite.web.accepted.PAGE_PATHS", 2)
    ingest(cast.system, [record("t1", n, calls=calculates(str(n))) for n in range(3)])
    for label in "012":
        accept(cast, label, level=PathLevel.EXACT)
    page = visit(client, cast.viewer, register_path(cast.system))
    rest = visit(client, cast.viewer, page.more.href)

    assert [row.name for row in page.rows] == ["Accepted 1", "Accepted 2"]
    assert [row.name for row in rest.rows] == ["Accepted 3"]
    assert rest.more.label == "From the first one on"
    beyond = visit(client, cast.viewer, register_path(cast.system), **{"from": "9"})
    assert beyond.empty.heading == "No accepted path here"


def test_the_query_count_of_the_register_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=calculates(str(n))) for n in range(3)])
    accept(cast, level=PathLevel.EXACT)
    client.force_login(cast.viewer)
    path = register_path(cast.system)
    one = n_queries(client, path)
    ingest(cast.system, [record("t1", 0, calls=(("x", {}),))], release="2.0")
    accept(cast, "1", level=PathLevel.EXACT)
    withdraw_path(
        accept(cast, "2", level=PathLevel.EXACT),
        reason="x",
        by=cast.engineer,
        now=timezone.now(),
    )
    accept(cast, release="2.0")

    assert (one, n_queries(client, path)) == (14, 14)


def test_a_path_is_accepted_from_the_form(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n, calls=calculates(str(n % 2))) for n in range(3)])
    trial = trial_of(cast.system)
    path = accept_path(cast.system)
    form = visit(client, cast.engineer, path, trial=str(trial.uuid), level="exact", messages="1")
    answer = client.post(
        form.action,
        {
            **{field.name: field.value for field in form.hidden},
            "level": "exact",
            "reason": "Fine.\r\nReally.",
        },
        follow=True,
    )
    made = AcceptedPath.objects.get()

    assert form.level == "Exact, with messages"
    assert [(c.label, c.words, c.is_selected) for c in form.levels if not c.refusal][-2:] == [
        ("Equivalent", "2 passing trials of 1 release", False),
        ("Exact", "2 passing trials of 1 release", True),
    ]
    assert [c.words for c in form.levels if c.label == "Sequence"] == [
        "3 passing trials of 1 release"
    ]
    assert [cell.name for cell in form.cells] == ["calculate", ""]
    assert answer.redirect_chain == [(register_path(cast.system), 302)]
    assert "The path is accepted, as Accepted 1." in answer.content.decode()
    assert (made.level, made.messages, made.reason, made.by) == (
        "exact",
        True,
        "Fine.\r\nReally.",
        cast.engineer,
    )


def test_the_form_says_before_what_the_service_says_after(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=calculates("1")), record("t1", 1, calls=calculates("2"))],
    )
    trial = trial_of(cast.system)
    flag(cast, "1")
    accept(cast, level=PathLevel.EXACT)
    path = accept_path(cast.system)
    flagged = visit(client, cast.engineer, path, trial=str(trial.uuid))
    exact = visit(client, cast.engineer, path, trial=str(trial.uuid), level="exact")
    values = {"trial": str(trial.uuid), "reason": "Fine."}
    answers = [client.post(path, {**values, "level": level}) for level in ("sequence", "exact")]

    assert [answer.status_code for answer in answers] == [422, 422]
    for before, answer in zip((flagged, exact), answers, strict=True):
        sentence = before.notices[0].sentence
        assert page_of(answer).form.non_field_errors() == [sentence]
        assert answer.content.decode().count(sentence) >= 1
    assert flagged.notices[0].sentence.startswith("1 passing trial on this path carries")
    at = f"{root(cast.system)}flags/?trial="
    assert [(link.label, link.href) for link in flagged.flags] == [
        ("Open flags of trial 1 of 1.0", f"{at}{trial_of(cast.system, '1').uuid}")
    ]
    assert (exact.flags, flagged.flags_more, flagged.refusal, exact.refusal) == ((), None, "", "")
    assert [(c.value, c.is_refused, bool(c.refusal)) for c in flagged.levels] == [
        ("tool_set", True, True),
        ("effects", False, False),
        ("reads_any_order", True, True),
        ("sequence", True, True),
        ("equivalent", False, False),
        ("exact", True, True),
    ]
    assert not any(c.is_selected for c in flagged.levels)
    body = client.get(path, {"trial": str(trial.uuid)}).content.decode()
    assert 'value="sequence" required disabled>' in body
    assert 'value="equivalent" required>' in body
    assert 'type="submit" disabled' not in body
    assert flagged.notices[1].sentence == "Accepted 1 covers this trial already."
    assert exact.notices[0].sentence.endswith("already: Accepted 1.")
    assert AcceptedPath.objects.count() == 1


def test_a_reason_against_every_level_is_said_once(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n) for n in range(9)])
    for n in range(8):
        flag(cast, str(n))
        flag(cast, str(n), "again")
    trial, path = trial_of(cast.system), accept_path(cast.system)
    page = visit(client, cast.engineer, path, trial=str(trial.uuid))
    body = client.get(path, {"trial": str(trial.uuid)}).content.decode()
    sentence = (
        "8 passing trials on this path carry an open flag. "
        "The path can be accepted once every flag on it is closed."
    )

    assert (page.refusal, page.notices) == (sentence, ())
    assert [(c.refusal, c.is_refused, c.is_selected) for c in page.levels] == [
        ("", True, False)
    ] * 6
    # In words, and as the button's title.
    assert body.count(sentence) == 2
    assert f'<div id="why-not">{sentence}</div>' in body
    assert f'type="submit" disabled title="{sentence}" aria-describedby="why-not"' in body
    assert [link.label for link in page.flags] == [
        f"Open flags of trial {n} of 1.0" for n in range(6)
    ]
    assert page.flags_more.label == (
        "and of 2 more trials: flags of all passing trials of the task"
    )
    assert len(visit(client, cast.engineer, page.flags[3].href).rows) == 2

    for reason in ("Fine.", ""):
        answer = client.post(path, {"trial": trial.uuid, "level": "sequence", "reason": reason})
        assert answer.status_code == 422
        assert page_of(answer).refusal == sentence
        assert answer.content.decode().count(sentence) == 2
    assert not AcceptedPath.objects.exists()


def test_paths_accepted_at_every_level_are_named_at_each(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    for level in PathLevel:
        accept(cast, level=level)
    page = visit(
        client, cast.engineer, accept_path(cast.system), trial=str(trial_of(cast.system).uuid)
    )

    assert page.refusal == "This path is accepted at this level already: Accepted 4."
    assert [c.refusal.rpartition(" ")[2] for c in page.levels] == [
        "1.",
        "2.",
        "3.",
        "4.",
        "5.",
        "6.",
    ]
    assert page.notices[0].sentence.startswith("Accepted 1, 2, 3, 5 and 6 cover")


def test_failing_trials_on_a_path_are_told_before(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, verdicts=FAIL)])
    page = visit(
        client, cast.engineer, accept_path(cast.system), trial=str(trial_of(cast.system).uuid)
    )
    assert page.notices[0].sentence.startswith("1 trial on this path failed")


def test_a_failing_trial_shows_its_steps_and_why_not(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)])
    page = visit(
        client, cast.engineer, accept_path(cast.system), trial=str(trial_of(cast.system).uuid)
    )
    assert page.refusal.startswith("Only the path of a passing trial")
    assert page.notices[0].sentence.startswith("1 trial on this path failed")
    assert {(c.refusal, c.is_refused) for c in page.levels} == {("", True)}
    assert [cell.name for cell in page.cells] == ["get_order"]


def test_a_path_without_a_step_can_be_looked_at(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, calls=())])
    path, trial = accept_path(cast.system), trial_of(cast.system)
    page = visit(client, cast.engineer, path, trial=str(trial.uuid))
    accept(cast)

    assert page.cells == ()
    assert visit(client, cast.viewer, register_path(cast.system)).rows[0].cells == ()


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"level": "sequence", "reason": ""}, "Say why"),
        ({"level": "sequence", "reason": " \n"}, "Say why"),
        ({"level": "sequence", "reason": "x" * (LONGEST_REASON + 1)}, "longer than 4,000"),
        ({"level": "sequence", "reason": "x\x00"}, "Null characters are not allowed"),
        ({"level": "nonsense", "reason": "Fine."}, "Select a valid choice"),
        ({"reason": "Fine."}, "Choose a level."),
    ],
    ids=["empty", "blank", "too-long", "nul", "odd-level", "no-level"],
)
def test_a_form_that_is_not_whole_answers_422_with_the_form(
    client: Client, cast: Cast, values: dict[str, str], words: str
) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.engineer)
    trial = str(trial_of(cast.system).uuid)
    answer = client.post(accept_path(cast.system), {"trial": trial, **values})

    assert answer.status_code == 422
    assert words in answer.content.decode()
    assert not AcceptedPath.objects.exists()


@pytest.mark.parametrize("method", ["get", "post"])
@pytest.mark.parametrize("trial", ["", "x", "\x00", "{}", str(uuid.UUID(int=7))])
def test_a_trial_that_the_task_does_not_have_is_404(
    client: Client, cast: Cast, method: str, trial: str
) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    client.force_login(cast.engineer)
    other = str(trial_of(cast.system, task_id="t2").uuid)
    for value in (trial, other):
        answer = getattr(client, method)(accept_path(cast.system), {"trial": value})
        assert answer.status_code == 404


def test_a_path_is_withdrawn_with_a_reason(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    accept(cast, reason="Fine.")
    (row,) = visit(client, cast.engineer, register_path(cast.system)).rows
    url = row.acceptances[0].withdraw_url
    form = visit(client, cast.engineer, url)
    refused = client.post(form.action, {"reason": " "})
    done = client.post(form.action, {"reason": "It lies."}, follow=True)
    again = client.post(form.action, {"reason": "Again."})
    page = page_of(done)

    assert form.notices[0].sentence.startswith("1 passing trial will no longer count")
    assert (refused.status_code, again.status_code) == (422, 422)
    assert "Accepted 1 is withdrawn already." in again.content.decode()
    assert "Accepted 1 is withdrawn." in done.content.decode()
    assert page.empty.heading == "No accepted path"
    assert [(w.accepted.name, w.accepted.reason, w.by, w.reason) for w in page.withdrawn] == [
        ("Accepted 1", "Fine.", "engineer", "It lies.")
    ]
    assert AcceptedPathWithdrawal.objects.count() == 1


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.OWNER])
def test_others_read_the_register_and_are_told_why_they_may_not(
    client: Client, cast: Cast, role: Role
) -> None:
    ingest(cast.system, [record("t1", 0)])
    path = accept(cast)
    person = cast.members()[role]
    page = visit(client, person, register_path(cast.system))
    trial = str(trial_of(cast.system).uuid)
    answers = [
        client.get(accept_path(cast.system), {"trial": trial}),
        client.post(accept_path(cast.system), {"trial": trial, "level": "exact", "reason": "x"}),
        client.post(f"{register_path(cast.system)}{path.uuid}/withdraw/", {"reason": "x"}),
    ]

    assert [one.withdraw_url for row in page.rows for one in row.acceptances] == [""]
    assert page.how_to.startswith("Only an engineer of this system")
    assert [answer.status_code for answer in answers] == [403, 403, 403]
    assert AcceptedPath.objects.count() == 1
    assert not AcceptedPathWithdrawal.objects.exists()


def test_what_does_not_exist_is_404(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    accept(cast)
    other = accept(cast, task_id="t2")
    client.force_login(cast.engineer)
    base = root(cast.system)
    for place in (
        f"tasks/{uuid.uuid4()}/accepted/",
        f"tasks/{task_of(cast.system).uuid}/accepted/{other.uuid}/withdraw/",
        f"tasks/{task_of(cast.system).uuid}/accepted/{uuid.uuid4()}/withdraw/",
    ):
        assert client.get(base + place).status_code == 404, place


def test_hostile_names_and_reasons_stay_text(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record(HOSTILE, HOSTILE, calls=((HOSTILE, {HOSTILE: HOSTILE}),))],
        release="<b>one</b>",
    )
    task = Task.objects.get(system=cast.system)
    first = accept(cast, HOSTILE, task_id=task.task_id, release="<b>one</b>", reason=HOSTILE)
    second = accept(
        cast, HOSTILE, task_id=task.task_id, release="<b>one</b>", level=PathLevel.EXACT
    )
    withdraw_path(second, reason=HOSTILE, by=cast.engineer, now=timezone.now())
    client.force_login(cast.engineer)
    base = f"{root(cast.system)}tasks/{task.uuid}/"
    for path in (
        "accepted/",
        f"accept/?trial={first.trial.uuid}&level=%3Cb%3E",
        f"accepted/{first.uuid}/withdraw/",
    ):
        answer = client.get(base + path)
        text = answer.content.decode()
        assert answer.status_code == 200
        assert "<img src=x" not in text, path
        assert "<b>one</b>" not in text, path
        assert "\x1b" not in text, path
        assert "U+202E" in text, path
