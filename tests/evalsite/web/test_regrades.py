"""The list of regrades, and the page of one."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.regrading import work_out_regrade
from reviews.models import Regrade
from reviews.services.regrades import start_regrade
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.models import Task, Trial

pytestmark = pytest.mark.django_db

CONTRACT = "task: t1\nbudget: {tool_calls: 0}\n"
NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)


def list_of(cast: Cast) -> str:
    return f"{root(cast.system)}regrades/"


def asked(cast: Cast, reason: str = "The checks changed.") -> Regrade:
    """A regrade that waits; the contract in effect came behind the product's back."""
    if not Task.objects.filter(system=cast.system, task_id="t1").exists():
        ingest(cast.system, [record("t1", 0), record("t1", 1)])
        contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    return start_regrade(
        cast.system,
        tasks=Task.objects.filter(system=cast.system),
        reason=reason,
        by=cast.engineer,
        now=NOW,
    )


def finished(cast: Cast, **more: Any) -> Regrade:
    regrade = asked(cast, **more)
    work_out_regrade(regrade.pk)
    return Regrade.objects.get(pk=regrade.pk)


@pytest.mark.parametrize("n", [1, 3])
def test_list_takes_the_same_queries_for_every_number_of_regrades(
    n: int, client: Client, cast: Cast
) -> None:
    for number in range(n):
        finished(cast, reason=f"reason {number}")
    client.force_login(cast.viewer)

    assert n_queries(client, list_of(cast)) == 6
    rows = client.get(list_of(cast)).context["page"].rows
    assert [row.why for row in rows] == [f"reason {i}" for i in reversed(range(n))]


def test_page_says_what_changed_and_names_the_trials(client: Client, cast: Cast) -> None:
    regrade = finished(cast)
    page = visit(client, cast.viewer, f"{list_of(cast)}{regrade.number}/")

    assert page.badge.label == "done"
    assert page.work is None
    assert page.effect.heading == "Dispositions that changed"
    assert page.effect.headline == "2 of 2 trials came out otherwise"
    assert page.effect.tasks[0].counts == "2 of 2 trials changed"
    (move,) = page.effect.tasks[0].moves
    assert (move.before.label, move.after.label, move.n_trials) == ("pass", "fail", 2)
    assert {example.href for example in move.examples} == {
        f"{root(cast.system)}trials/{uuid}/"
        for uuid in Trial.objects.values_list("uuid", flat=True)
    }


def test_second_regrade_under_the_same_contract_changes_nothing(client: Client, cast: Cast) -> None:
    finished(cast)
    again = finished(cast)

    page = visit(client, cast.viewer, f"{list_of(cast)}{again.number}/")
    assert page.effect.headline == "No disposition changed"
    assert page.effect.nothing == "Every stored trial kept its disposition."
    assert ("Verdicts added", "0") in [(fact.name, fact.value) for fact in page.facts]


def test_person_asks_for_a_regrade_and_lands_on_its_page(client: Client, cast: Cast) -> None:
    finished(cast)
    client.force_login(cast.engineer)
    answer = client.post(f"{list_of(cast)}new", {"task": "t1", "reason": "Look again."})

    made = Regrade.objects.order_by("-number")[0]
    assert answer["Location"] == f"{list_of(cast)}{made.number}/"
    assert (made.reason, made.by, made.state) == ("Look again.", cast.engineer, "waiting")


@pytest.mark.parametrize(
    ("sent", "sentence"),
    [
        ({"reason": ""}, "Say why, in a sentence."),
        ({"reason": "x", "task": "t9"}, "There is no task of this id in this system."),
    ],
    ids=["no reason", "no such task"],
)
def test_bad_order_is_answered_with_the_form_and_its_mistake(
    sent: dict[str, str], sentence: str, client: Client, cast: Cast
) -> None:
    finished(cast)
    client.force_login(cast.engineer)
    answer = client.post(f"{list_of(cast)}new", sent)

    assert answer.status_code == 422
    assert sentence in answer.content.decode()
    assert Regrade.objects.count() == 1


def test_regrade_without_any_contract_is_refused_in_a_sentence(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.engineer)
    answer = client.post(f"{list_of(cast)}new", {"reason": "x"})

    assert answer.status_code == 422
    assert "None of these tasks has a contract in effect" in answer.content.decode()


def test_work_is_stopped_and_taken_up_again(client: Client, cast: Cast) -> None:
    regrade = asked(cast)
    here = f"{list_of(cast)}{regrade.number}/"
    client.force_login(cast.engineer)
    assert client.get(here).context["page"].work.is_moving

    client.post(f"{here}work", {"act": "stop"})
    stopped = client.get(here).context["page"]
    assert (stopped.work.badge.label, stopped.poll_url) == ("stopped", "")
    assert stopped.work.may_restart

    client.post(f"{here}work", {"act": "restart"})
    assert Regrade.objects.get(pk=regrade.pk).state == "waiting"


@pytest.mark.parametrize(
    ("act", "sentence"),
    [
        ("stop", "Nobody works on regrade 1."),
        ("restart", "Regrade 1 has not stopped."),
        ("dance", "Say whether to stop or to restart the work."),
    ],
    ids=["stop", "restart", "dance"],
)
def test_act_that_does_not_fit_is_refused(
    act: str, sentence: str, client: Client, cast: Cast
) -> None:
    regrade = finished(cast)
    client.force_login(cast.engineer)
    answer = client.post(f"{list_of(cast)}{regrade.number}/work", {"act": act})

    assert answer.status_code == 422
    assert sentence in answer.content.decode()


def test_list_continues_behind_a_page(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    for _ in range(3):
        finished(cast)
    monkeypatch.setattr("evalsite.web.regrades.PAGE", 2)
    monkeypatch.setattr("reviews.selectors.regrades.PAGE", 2)

    first = visit(client, cast.viewer, list_of(cast))
    assert [row.label for row in first.rows] == ["Regrade 3", "Regrade 2"]
    second = client.get(first.pager.next_url).context["page"]
    assert [row.label for row in second.rows] == ["Regrade 1"]
    assert (second.pager.next_url, second.pager.previous_url) == ("", list_of(cast))


def test_empty_list_says_when_it_fills(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, list_of(cast))
    assert page.empty.heading == "Nothing was graded again"
    assert page.form is None


def test_failed_regrade_says_why(client: Client, cast: Cast) -> None:
    regrade = asked(cast)
    Regrade.objects.filter(pk=regrade.pk).update(
        state="failed", failure="It <b>broke</b>.", finished_at=timezone.now()
    )
    client.force_login(cast.viewer)
    answer = client.get(f"{list_of(cast)}{regrade.number}/")

    assert "It &lt;b&gt;broke&lt;/b&gt;." in answer.content.decode()
    assert answer.context["page"].work.why_not.startswith("A viewer does not stop")
