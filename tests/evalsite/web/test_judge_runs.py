"""Judge runs on their pages: started, watched, stopped, and refused."""

from __future__ import annotations

import uuid

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from evalsite.judge_runner.work import NOT_CONFIGURED, work_out_judge_run
from reviews.models import CalibrationItem, CalibrationSet, JudgeRun, Sampling
from tests.support.cast import Cast
from tests.support.endpoint import KEY, answers, endpoint, replies
from tests.support.evidence import ingest, record
from tests.support.judge_runs import STATES, asked_trials, criterion, started, worked
from tests.support.visits import n_queries, root, visit
from traces.models import Release, Trial

pytestmark = pytest.mark.django_db


@pytest.fixture
def judge(settings: Settings) -> None:
    """An endpoint as the operator gives it; nothing is sent to it."""
    with endpoint() as server:
        settings.EVALSITE_JUDGE = server.settings(key=KEY)


def path(cast: Cast, more: str = "") -> str:
    return f"{root(cast.system)}judge-runs/{more}"


def counted(client: Client, cast: Cast, **more: object) -> str:
    """What the page says of the requests that a run would take."""
    client.force_login(cast.engineer)
    answer = client.post(path(cast, "new"), asked(cast, **more) | {"act": "count"})
    assert answer.status_code == 200
    return str(answer.context["page"].new.asks)


def asked(cast: Cast, **more: object) -> dict[str, object]:
    return {"criterion": criterion(cast).key, "most": 10, "reason": "to see"} | more


def test_nothing_is_set_up(client: Client, cast: Cast) -> None:
    asked_trials(cast, 1)
    page = visit(client, cast.engineer, path(cast))
    assert (page.not_set_up, page.new, page.rows) == (NOT_CONFIGURED, None, ())
    answer = client.post(path(cast, "new"), asked(cast))
    assert answer.status_code == 422
    assert NOT_CONFIGURED in answer.content.decode()
    assert JudgeRun.objects.count() == 0


@pytest.mark.usefixtures("judge")
def test_a_system_without_a_question_offers_no_form(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record()])
    page = visit(client, cast.engineer, path(cast))
    assert page.new is None
    assert "no criterion with a question yet" in page.empty.sentence


@pytest.mark.usefixtures("judge")
def test_requests_are_counted_before_they_are_sent(client: Client, cast: Cast) -> None:
    asked_trials(cast)
    assert counted(client, cast, reason="") == "This sends 3 requests: one for each of 3 trials."
    assert counted(client, cast, most=2) == "This sends 2 requests: one for each of 2 trials."
    assert counted(client, cast, family="other") == (
        "This sends no request: there is nothing to ask the judge about."
    )
    page = visit(client, cast.engineer, path(cast))
    assert page.new.judge.startswith("site judge, model m-1, at 127.0.0.1:")
    assert JudgeRun.objects.count() == 0


def test_a_run_from_the_form_to_its_verdicts(
    client: Client, cast: Cast, settings: Settings
) -> None:
    asked_trials(cast)
    release = Release.objects.get(system=cast.system)
    client.force_login(cast.reviewer)
    with endpoint(answers("fail"), replies(400), answers("unknown")) as server:
        settings.EVALSITE_JUDGE = server.settings()
        answer = client.post(path(cast, "new"), asked(cast, release=str(release.uuid)))
        assert (answer.status_code, answer["Location"]) == (302, path(cast, "1/"))
        run = JudgeRun.objects.get()
        page = visit(client, cast.viewer, path(cast, "1/"))
        assert (page.work.heading, page.poll_url, page.work.may_stop) == (
            "It waits for a worker",
            path(cast, "1/"),
            False,
        )
        assert [item.word for item in page.items] == ["", "", ""]
        work_out_judge_run(run.pk)
        shown = client.get(path(cast, "1/"))
    page = shown.context["page"]
    assert (page.work, page.poll_url, page.badge.label) == (None, "", "done")
    assert [(count.word, count.state, count.n) for count in page.counts] == [
        ("fail", "fail", 1),
        ("unknown", "unresolved", 1),
        ("error", "harness-error", 1),
    ]
    assert [(reason.sentence, reason.n) for reason in page.reasons] == [
        ("The endpoint answered 400.", 1)
    ]
    assert [(item.thing.label, item.word) for item in page.items] == [
        ("t1, trial 0", "fail"),
        ("t1, trial 1", "error"),
        ("t1, trial 2", "unknown"),
    ]
    assert KEY not in shown.content.decode()
    page = visit(client, cast.viewer, path(cast, "1/"), show="errors")
    assert [item.position for item in page.items] == [2]
    (line,) = visit(client, cast.viewer, path(cast)).rows
    assert (line.about, line.errors, line.criterion, line.by) == (
        "3 trials",
        "1 error",
        "truthful, version 2",
        "reviewer",
    )


def test_what_the_judge_has_said_is_not_asked_again_unless_wanted(
    client: Client, cast: Cast, settings: Settings
) -> None:
    asked_trials(cast)
    with endpoint(answers(), replies(400), answers()) as server:
        worked(started(cast), server)
        settings.EVALSITE_JUDGE = server.settings()
    assert counted(client, cast) == "This sends 1 request: one for each of 1 trial."
    assert counted(client, cast, again="1") == "This sends 3 requests: one for each of 3 trials."


@pytest.mark.usefixtures("judge")
def test_trials_may_be_named(client: Client, cast: Cast) -> None:
    asked_trials(cast)
    trial = Trial.objects.get(label="1")
    client.force_login(cast.engineer)
    named = f"see {root(cast.system)}trials/{trial.uuid}/ and {uuid.uuid4()}"
    assert client.post(path(cast, "new"), asked(cast, trials=named)).status_code == 302
    assert [item.trial for item in JudgeRun.objects.get().items.all()] == [trial]
    answer = client.post(path(cast, "new"), asked(cast, trials="none"))
    assert answer.status_code == 422
    assert answer.context["page"].new.error == "There is nothing to ask the judge about."


@pytest.mark.usefixtures("judge")
@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"criterion": "x"}, "This system has no such criterion with a question"),
        ({"criterion": ""}, "Choose a criterion."),
        ({"release": str(uuid.UUID(int=1))}, "This system has no such release."),
        ({"release": "x\x00"}, "Null characters are not allowed."),
        ({"probes": "7"}, "This system has no such batch of probes."),
        ({"most": "0"}, "A run is of 1 to 5,000 trials."),
        ({"most": "5001"}, "A run is of 1 to 5,000 trials."),
        ({"reason": " "}, "Say why, in a sentence."),
    ],
)
def test_what_cannot_be_asked_is_refused(
    client: Client, cast: Cast, change: dict[str, str], sentence: str
) -> None:
    asked_trials(cast, 1)
    client.force_login(cast.engineer)
    answer = client.post(path(cast, "new"), asked(cast, **change))
    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert JudgeRun.objects.count() == 0


@pytest.mark.usefixtures("judge")
def test_who_may_not(client: Client, cast: Cast) -> None:
    asked_trials(cast, 1)
    run = started(cast)
    for person in (cast.viewer, cast.owner):
        client.force_login(person)
        assert client.post(path(cast, "new"), asked(cast)).status_code == 403
        assert client.post(path(cast, "1/work"), {"act": "stop"}).status_code == 403
        page = visit(client, person, path(cast))
        assert page.new.why_not.startswith("Only an engineer or a reviewer of this system")
    client.force_login(cast.outsider)
    assert client.get(path(cast)).status_code == 404
    assert client.get(path(cast, "1/")).status_code == 404
    assert client.post(path(cast, "1/work"), {"act": "stop"}).status_code == 404
    client.force_login(cast.engineer)
    assert client.get(path(cast, "2/")).status_code == 404
    assert client.get(path(cast, "99999999999999999999/")).status_code == 404
    run.refresh_from_db()
    assert run.state == "waiting"


@pytest.mark.usefixtures("judge")
def test_a_run_is_stopped_and_taken_up_again(client: Client, cast: Cast) -> None:
    asked_trials(cast, 1)
    run = started(cast)
    client.force_login(cast.reviewer)
    assert client.post(path(cast, "1/work"), {"act": "x"}).status_code == 422
    assert client.post(path(cast, "1/work"), {"act": "restart"}).status_code == 422
    assert client.post(path(cast, "1/work"), {"act": "stop"}).status_code == 302
    page = visit(client, cast.reviewer, path(cast, "1/"))
    assert (page.work.heading, page.work.may_restart) == ("Stopped by reviewer", True)
    assert client.post(path(cast, "1/work"), {"act": "stop"}).status_code == 422
    assert client.post(path(cast, "1/work"), {"act": "restart"}).status_code == 302
    run.refresh_from_db()
    assert (run.state, run.cancelled_by) == ("waiting", None)


def test_what_is_blind_to_a_reviewer_is_hidden(client: Client, cast: Cast) -> None:
    asked_trials(cast, 2)
    run = started(cast)
    made = CalibrationSet.objects.create(
        system=cast.system,
        number=1,
        name="set",
        criterion=run.criterion,
        criterion_digest=run.criterion_digest,
        sampling=Sampling.RANDOM.value,
        seed=1,
        reason="x",
        is_imported=False,
        by=cast.engineer,
        created_at=timezone.now(),
    )
    blind = Trial.objects.get(label="0")
    CalibrationItem.objects.create(set=made, trial=blind, position=1, n_needed=2)
    with endpoint() as server:
        worked(run, server)
    page = visit(client, cast.reviewer, path(cast, "1/"))
    assert [item.word for item in page.items] == ["hidden: in a blind set", "pass"]
    page = visit(client, cast.engineer, path(cast, "1/"))
    assert [item.word for item in page.items] == ["pass", "pass"]


@pytest.mark.usefixtures("judge")
def test_pages_take_as_many_queries_for_three_as_for_one(client: Client, cast: Cast) -> None:
    asked_trials(cast, 3)
    started(cast, trial_ids=[Trial.objects.get(label="0").pk])
    client.force_login(cast.engineer)
    one = (n_queries(client, path(cast)), n_queries(client, path(cast, "1/")))
    started(cast)
    started(cast)
    assert (n_queries(client, path(cast)), n_queries(client, path(cast, "3/"))) == one
    assert one == (11, 10)


@pytest.mark.usefixtures("judge")
def test_hostile_names_stay_text(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("<b>t</b>\u202e", 0, verdicts=[], **STATES)])
    asked_trials(cast, 1)
    run = started(cast, reason="<script>x</script>\u202e")
    JudgeRun.objects.filter(pk=run.pk).update(failure="<img src=x>", state="failed")
    client.force_login(cast.engineer)
    for address in (path(cast), path(cast, "1/")):
        text = client.get(address).content.decode()
        assert "<script>x" not in text
        assert "<img src=x>" not in text
