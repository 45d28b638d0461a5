from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from reviews.api import disputes as api
from reviews.models import Dispute
from tests.support.cast import Cast, person
from tests.support.disputes import disputed, judged
from tests.support.evidence import ingest, record
from tests.support.keys import header
from tests.support.labels import stored_set
from traces.models import Role, Scope, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PATH = "/api/v1/disputes"


def get(client: Client, cast: Cast, path: str = PATH, **query: str) -> Any:
    return client.get(path, query or None, **header(cast.system, cast.engineer, Scope.READ))


def names(answer: Any) -> list[str]:
    return [each["task_id"] for each in answer.json()["disputes"]]


def test_a_dispute_says_who_says_what_and_what_it_changes(client: Client, cast: Cast) -> None:
    (dispute,) = disputed(cast, judged(terse="pass"))

    answer = get(client, cast)

    assert answer.status_code == 200
    assert answer.json() == {
        "disputes": [
            {
                "id": str(dispute.uuid),
                "state": "open",
                "criterion": "outcome",
                "class": "outcome",
                "rubric_version": None,
                "decides": False,
                "why_not": "code_decides",
                "counting_graders_disagree": False,
                "between": ["code_judge"],
                "says": [
                    {
                        "kind": "code",
                        "grader": "state check",
                        "grader_version": "",
                        "verdicts": ["fail"],
                        "counts": True,
                        "imported": True,
                    },
                    {
                        "kind": "model",
                        "grader": "terse",
                        "grader_version": "1",
                        "verdicts": ["pass"],
                        "counts": False,
                        "imported": True,
                    },
                ],
                "n_more_graders": 0,
                "ruling": None,
                "stands": True,
                "release": "1.0",
                "run": dispute.trial.run.name,
                "task_id": "t1",
                "family": "",
                "split": None,
                "trial": "0",
                "attempt": 1,
                "trial_id": str(dispute.trial.uuid),
                "opened_at": dispute.opened_at.isoformat(),
                "closed_at": None,
            }
        ],
        "next": None,
    }


def test_filters_and_pages_of_the_list(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "PAGE_DISPUTES", 2)
    disputed(
        cast,
        judged("idle", terse="pass"),
        judged("tone", code=None, criterion="tone", terse="pass", long="fail"),
        judged("manner", code=None, criterion="manner", terse="pass", long="fail"),
    )

    page = get(client, cast)
    assert names(page) == ["manner", "tone"] or names(page) == ["tone", "manner"]
    rest = get(client, cast, page.json()["next"])
    assert (names(rest), rest.json()["next"]) == (["idle"], None)
    assert names(get(client, cast, deciding="1", criterion="tone")) == ["tone"]
    assert names(get(client, cast, **{"class": "outcome"})) == ["idle"]
    assert names(get(client, cast, kind="code_judge")) == ["idle"]
    assert names(get(client, cast, criterion="nul\x00")) == []
    Dispute.objects.filter(criterion="outcome").update(state="over", closed_at=timezone.now())
    assert names(get(client, cast, state="over")) == ["idle"]
    assert len(names(get(client, cast, state="all", after="1.0.0.0"))) == 2


def test_a_reviewer_who_may_label_a_trial_blind_reads_none_of_its_disputes(
    client: Client, cast: Cast
) -> None:
    on_outcome = judged(terse="pass")["verdicts"]
    on_tone = judged(code=None, criterion="tone", terse="pass", long="fail")["verdicts"]
    ingest(cast.system, [record(trial=n, verdicts=on_outcome + on_tone) for n in (0, 1)])
    stored_set(cast.system, [Trial.objects.get(label="0")], by=cast.owner)

    def read(by: User, **query: str) -> list[tuple[str, str]]:
        client.force_login(by)
        answer = client.get(PATH, {"system": cast.system.slug, **query})
        return sorted((each["trial"], each["criterion"]) for each in answer.json()["disputes"])

    everything = [("0", "outcome"), ("0", "tone"), ("1", "outcome"), ("1", "tone")]
    assert read(cast.viewer) == everything
    assert read(cast.reviewer) == [("0", "outcome"), ("1", "outcome"), ("1", "tone")]
    assert read(cast.reviewer, kind="judge_judge") == [("1", "tone")]
    asked = client.get(f"/api/v1/trials/{Trial.objects.get(label='0').uuid}")
    # Whoever reads the trial has seen what is said of it.
    assert asked.status_code == 200
    assert read(cast.reviewer) == everything


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"state": "lost"}, "unknown-state"),
        ({"kind": "lost"}, "unknown-kind"),
        ({"class": "lost"}, "unknown-class"),
        ({"deciding": "yes"}, "bad-deciding"),
        ({"after": "x"}, "bad-after"),
        ({"after": "1.2.3"}, "bad-after"),
        ({"after": "2.2.3.4"}, "bad-after"),
    ],
)
def test_what_it_cannot_read_it_refuses(
    client: Client, cast: Cast, query: dict[str, str], code: str
) -> None:
    answer = get(client, cast, **query)

    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_a_key_reads_its_own_system_alone(client: Client, cast: Cast) -> None:
    disputed(cast)
    stranger = person("stranger")
    set_member(cast.other_system, stranger, Role.ENGINEER)
    theirs: dict[str, Any] = header(cast.other_system, stranger, Scope.READ)

    assert client.get(PATH, **theirs).json() == {"disputes": [], "next": None}
    assert client.get(PATH, {"system": cast.system.slug}, **theirs).status_code == 404
    ingest_only: dict[str, Any] = header(cast.system, cast.engineer, Scope.INGEST)
    assert client.get(PATH, **ingest_only).status_code == 403
    assert client.get(PATH).status_code == 401


@pytest.mark.parametrize("n", [1, 3])
def test_the_list_takes_as_many_queries_for_any_number(client: Client, cast: Cast, n: int) -> None:
    disputed(cast, *(judged(f"t{k}", terse="pass") for k in range(n)))
    key: dict[str, Any] = header(cast.system, cast.engineer, Scope.READ)
    client.get(PATH, **key)

    with CaptureQueriesContext(connection) as captured:
        answer = client.get(PATH, **key)

    assert (len(names(answer)), len(captured)) == (n, 4)


def test_older_ones_come_first_among_their_like(client: Client, cast: Cast) -> None:
    first, second = disputed(cast, judged("a", terse="pass"), judged("b", terse="pass"))
    Dispute.objects.filter(pk=second.pk).update(opened_at=first.opened_at - timedelta(days=1))

    assert names(get(client, cast)) == [second.task.task_id, first.task.task_id]
