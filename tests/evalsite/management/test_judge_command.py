from __future__ import annotations

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command
from django.utils import timezone
from pytest_django import Settings

from evalsite.judge_runner.work import NOT_CONFIGURED
from reviews.models import JudgeRun
from reviews.services.judge_runs import stop_judge_run
from tests.support.cast import Cast
from tests.support.endpoint import answers, endpoint, replies
from tests.support.judge_runs import asked_trials

pytestmark = pytest.mark.django_db

ASK = ("ask", "--criterion", "truthful", "--reason", "to see", "--by", "engineer")


def said(cast: Cast, *words: str) -> str:
    out = StringIO()
    call_command("judge", cast.system.slug, *words, stdout=out)
    return out.getvalue()


def test_nothing_is_asked_without_an_endpoint(cast: Cast) -> None:
    asked_trials(cast, 1)
    with pytest.raises(CommandError) as refused:
        said(cast, *ASK)
    assert str(refused.value) == NOT_CONFIGURED
    assert said(cast, "list") == ""


def test_a_run_by_command(cast: Cast, settings: Settings) -> None:
    asked_trials(cast, 3)
    with endpoint(answers("fail"), replies(400), answers()) as server:
        settings.EVALSITE_JUDGE = server.settings()
        shown = settings.EVALSITE_JUDGE.shown
        assert said(cast, *ASK, "--dry-run") == f"3 requests to {shown}; none is sent.\n"
        assert server.asked == []
        assert said(cast, *ASK, "--wait") == (
            f"Judge run 1: 3 requests to {shown}\n"
            "1  done  truthful  site judge, m-1, prompt 1, rubric 2  3 of 3 trials, 1 error\n"
        )
        assert said(cast, *ASK, "--dry-run") == f"1 request to {shown}; none is sent.\n"
        assert said(cast, *ASK, "--again", "--most", "2", "--dry-run").startswith("2 requests")
        assert said(cast, "list", "1").splitlines()[1:] == [
            "  pass: 1",
            "  fail: 1",
            "  error: 1",
            "  1 × The endpoint answered 400.",
        ]
        document = json.loads(said(cast, "list", "1", "--json"))
        assert document["verdicts"] == {"pass": 1, "fail": 1, "error": 1}
        assert document["errors_by_reason"] == {"The endpoint answered 400.": 1}
        assert json.loads(said(cast, "list", "--json"))["n_done"] == 3


def test_a_run_is_left_to_a_worker_and_restarted(cast: Cast, settings: Settings) -> None:
    asked_trials(cast, 1)
    with endpoint() as server:
        settings.EVALSITE_JUDGE = server.settings()
        said(cast, *ASK)
    run = JudgeRun.objects.get()
    assert run.state == "waiting"
    with pytest.raises(CommandError, match="Judge run 1 has not stopped"):
        said(cast, "restart", "1")
    stop_judge_run(run, by=cast.reviewer, now=timezone.now())
    assert said(cast, "restart", "1") == "Judge run 1 goes on.\n"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("ask", "--criterion", "x", "--reason", "r", "--by", "engineer"), "no criterion 'x' with"),
        ((*ASK, "--rubric-version", "9"), "no criterion 'truthful' with a question"),
        ((*ASK, "--release", "9"), "has no release '9'"),
        ((*ASK, "--trial", "9"), "'9' is no id of a trial"),
        ((*ASK, "--most", "0"), "A run is of 1 to 5,000 trials"),
        ((*ASK[:-1], "viewer"), "Only an engineer or a reviewer of this system runs judges"),
        ((*ASK[:-1], "nobody"), "There is no person 'nobody'"),
        ((*ASK, "--family", "none"), "There is nothing to ask the judge about"),
        (("ask", "--probes", "4", "--reason", "r", "--by", "engineer"), "no batch of probes 4"),
        (("list", "4"), "has no judge run 4"),
        (("restart", "4"), "has no judge run 4"),
    ],
)
def test_what_cannot_be_done_is_said(
    cast: Cast, settings: Settings, words: tuple[str, ...], sentence: str
) -> None:
    asked_trials(cast, 1)
    with endpoint() as server:
        settings.EVALSITE_JUDGE = server.settings()
    with pytest.raises(CommandError, match=sentence):
        said(cast, *words)
    assert JudgeRun.objects.count() == 0
