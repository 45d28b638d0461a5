"""What the pages of a trial keep from a reviewer who may be asked for a blind label."""

from __future__ import annotations

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.after_label import label_and_decide
from evalsite.after_review import verdict_and_decide
from reviews.models import CalibrationSet, Case, Revelation
from reviews.selectors.blinding import HIDDEN
from tests.support.cast import Cast
from tests.support.labels import blind_set, seated
from tests.support.visits import root, visit
from traces.core.records import VerdictValue
from traces.models import Trial

pytestmark = pytest.mark.django_db

SECRETS = ("JUDGE-SAYS-SO", "LABEL-REASON", "second_reviewer says", "by second_reviewer")


def labelled_once(cast: Cast, value: VerdictValue = VerdictValue.FAIL) -> Trial:
    """A trial that one person labelled blind; another one is still wanted."""
    of = blind_set(cast, 1)
    item = seated(of, cast.second_reviewer, timezone.now()).item
    label_and_decide(
        item,
        value=value,
        reason="LABEL-REASON",
        steps=[2],
        by=cast.second_reviewer,
        now=timezone.now(),
    )
    return item.trial


def paths(cast: Cast, trial: Trial) -> list[str]:
    at = f"{root(cast.system)}trials/{trial.uuid}/"
    case = Case.objects.get(trial=trial)
    return [at, f"{at}verdict/", f"{at}mark/", f"{root(cast.system)}cases/{case.uuid}/"]


def test_reviewers_who_may_label_see_nothing_that_is_said(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    client.force_login(cast.reviewer)

    for path in paths(cast, trial):
        html = client.get(path).content.decode()
        assert [word for word in SECRETS if word in html] == [], path
        assert "idden" in html, path


def test_others_and_who_labelled_it_see_all(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    at, form, _, case = paths(cast, trial)
    for by in (cast.second_reviewer, cast.viewer):
        client.force_login(by)
        assert "LABEL-REASON" in client.get(at).content.decode()
        assert "LABEL-REASON" in client.get(case).content.decode()
    client.force_login(cast.second_reviewer)
    assert "second_reviewer says fail" in client.get(form).content.decode()


def test_a_case_hides_what_decides_and_shows_it_once_asked(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    path = paths(cast, trial)[3]

    page = visit(client, cast.reviewer, path)

    assert page.state.label == "hidden"
    assert page.closed_words == HIDDEN
    assert [(m.what, m.text) for m in page.history if m.kind == "verdict"] == [
        ("gave a verdict on tone", HIDDEN)
    ]
    assert page.hidden.names == ("tone",)
    client.post(
        page.hidden.action,
        {"trial": page.hidden.trial, "criterion": "tone", "back": page.hidden.back},
    )
    page = visit(client, cast.reviewer, path)
    assert (page.hidden, page.state.label) == (None, "fail")
    assert [(m.what, m.text) for m in page.history if m.kind == "verdict"] == [
        ("said fail on tone", "LABEL-REASON")
    ]


def test_what_is_hidden_and_waits_says_no_more_than_that(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast, VerdictValue.UNKNOWN)

    page = visit(client, cast.reviewer, paths(cast, trial)[3])

    assert [(each.criterion, each.sentence, each.votes) for each in page.reasons] == [
        ("tone", HIDDEN, ())
    ]
    choice = next(
        each
        for each in visit(client, cast.reviewer, paths(cast, trial)[1]).choices
        if each.value == "tone"
    )
    assert (choice.standing.label, choice.voters, choice.steps) == ("hidden", "", ())
    assert choice.rule.startswith(HIDDEN)


def test_what_fails_by_another_criterion_is_no_secret(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    verdict_and_decide(
        Trial.objects.get(pk=trial.pk),
        criterion="tone",
        value=VerdictValue.FAIL,
        reason="x",
        steps=(),
        by=cast.reviewer,
        now=timezone.now(),
    )
    page = visit(client, cast.reviewer, paths(cast, trial)[3])
    assert (page.hidden, page.state.label) == (None, "fail")


def test_the_raw_record_waits_until_the_person_asks(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    at = paths(cast, trial)[0]
    client.force_login(cast.reviewer)
    answer = client.get(f"{at}raw", follow=True)
    assert answer.redirect_chain == [(f"{at}#hidden-criteria", 302)]
    (message,) = answer.context["messages"]
    assert str(message).startswith("The raw record holds what others say of this trial")
    client.force_login(cast.second_reviewer)
    assert client.get(f"{at}raw").status_code == 200


def test_an_export_with_verdicts_gives_the_items_up(client: Client, cast: Cast) -> None:
    trial = labelled_once(cast)
    of = CalibrationSet.objects.get()
    seat = seated(of, cast.reviewer, timezone.now())
    for by in (cast.viewer, cast.second_reviewer, cast.reviewer, cast.reviewer):
        client.force_login(by)
        answer = client.get(f"{root(cast.system)}trials.jsonl", {"release": "1.0"})
        assert answer.status_code == 200
    api = f"/api/v1/trials/{trial.uuid}"
    assert client.get(api).status_code == 200
    seen = Revelation.objects.exclude(where="label").get()
    assert (seen.trial, seen.by, seen.where) == (trial, cast.reviewer, "export")
    seat.refresh_from_db()
    assert seat.ending == "given_up"
