from __future__ import annotations

import uuid

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.figures import count_writes, decide
from tests.support.visits import n_queries, root, visit
from traces.models import Member, Release, Role, System, Task, Trial
from traces.services.people import create_system

pytestmark = pytest.mark.django_db


def test_the_start_lists_ones_own_systems(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, verdicts=[verdict("fail")])])
    page = visit(client, cast.engineer, "/")
    outside = visit(client, cast.outsider, "/")

    assert [(s.name, s.role, s.n_tasks, s.n_releases, s.href) for s in page.systems] == [
        ("Airline", "engineer", 1, 1, "/systems/airline/tasks/")
    ]
    counts = page.systems[0].counts
    assert (counts.n_pass, counts.n_graded, counts.n_run) == (1, 2, 2)
    assert page.systems[0].last_upload_at is not None
    assert [s.name for s in outside.systems] == ["Elsewhere"]


def test_a_person_of_no_system_can_make_one(client: Client, cast: Cast) -> None:
    Member.objects.filter(user=cast.viewer).delete()
    page = visit(client, cast.viewer, "/")
    answer = client.post("/systems/new/", {"name": "Billing help"})

    assert page.empty.act.href == "/systems/new/"
    assert (answer.status_code, answer["Location"]) == (302, "/systems/billing-help/tasks/")
    member = Member.objects.get(user=cast.viewer)
    assert (member.system.name, member.role) == ("Billing help", Role.OWNER.value)


def test_a_new_system_takes_its_first_engineer(client: Client, cast: Cast) -> None:
    client.force_login(cast.owner)
    answer = client.post("/systems/new/", {"name": "Billing", "engineer": "engineer"})

    assert answer.status_code == 302
    members = Member.objects.filter(system__slug="billing").values_list("user__username", "role")
    assert dict(members) == {"owner": "owner", "engineer": "engineer"}


@pytest.mark.parametrize("engineer", ["nobody", "owner", "\x00"])
def test_an_engineer_who_cannot_be_one_answers_422(
    engineer: str, client: Client, cast: Cast
) -> None:
    client.force_login(cast.owner)
    answer = client.post("/systems/new/", {"name": "Billing", "engineer": engineer})

    assert answer.status_code == 422
    assert not System.objects.filter(slug="billing").exists()


@pytest.mark.parametrize("name", ["", "   ", "Airline", "—", "a\u202eb", "x" * 201, "\x00"])
def test_a_name_that_cannot_be_one_answers_422(name: str, client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    answer = client.post("/systems/new/", {"name": name})
    assert answer.status_code == 422
    assert System.objects.count() == 2


def test_the_menu_names_the_systems_and_the_place(client: Client, cast: Cast) -> None:
    create_system("Second", by=cast.engineer)
    page = visit(client, cast.engineer, root(cast.system) + "runs/")
    shell = page.shell

    assert [(s.name, s.is_current) for s in shell.systems] == [("Airline", True), ("Second", False)]
    assert [item.label for group in shell.nav for item in group.items if item.is_current] == [
        "Runs"
    ]
    assert (shell.person_name, shell.role) == ("engineer", "engineer")


def test_trials_are_listed_newest_first_and_found(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", "a"), record("t2", "b", verdicts=[verdict("fail")])])
    ingest(cast.system, [record("t1", "c", external_id="sim-7")], release="2.0")
    path = root(cast.system) + "trials/"
    trial = Trial.objects.get(label="b")

    def found(**query: str) -> list[str]:
        return [row.label for row in visit(client, cast.viewer, path, **query).rows]

    second = Release.objects.get(name="2.0")
    task = Task.objects.get(task_id="t1")
    assert found() == ["c", "b", "a"]
    assert found(q=str(trial.uuid)) == ["b"]
    assert found(q=trial.uuid.hex) == ["b"]
    assert found(q="a") == ["a"]
    assert found(disposition="fail") == ["b"]
    assert found(release=str(second.uuid)) == ["c"]
    assert found(task=str(task.uuid)) == ["c", "a"]
    assert found(task=str(uuid.uuid4())) == []
    assert found(release=str(uuid.uuid4())) == []
    assert found(q="\x00") == []
    assert visit(client, cast.viewer, path, q="zzz").empty.heading == "No trial is like that"


def test_pages_of_trials_show_each_once(
    client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    from traces.web import trials

    ingest(cast.system, [record("t1", n) for n in range(5)])
    original = trials.listed_trials
    monkeypatch.setattr(trials, "listed_trials", lambda *a, **k: original(*a, n=2, **k))
    url, back, seen = root(cast.system) + "trials/", "", []
    while url:
        page = visit(client, cast.viewer, url)
        seen += [row.label for row in page.rows]
        url, back = page.pager.next_url, page.pager.previous_url

    assert seen == ["4", "3", "2", "1", "0"]
    assert [row.label for row in visit(client, cast.viewer, back).rows] == ["2", "1"]


def test_query_count_of_the_start_does_not_grow(client: Client, cast: Cast) -> None:
    client.force_login(cast.engineer)
    one = n_queries(client, "/")
    for name in ("Two", "Three"):
        create_system(name, by=cast.engineer)
    assert (one, n_queries(client, "/")) == (4, 4)


def test_the_trials_behind_a_figure_are_listed(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            *(record("t1", n) for n in range(4)),
            record("t1", 4, fault={"kind": "timeout", "step": 2}),
            record("t1", 5, environment="live"),
        ],
    )
    decide(cast.system, "t1", 0, clean="fail", failed=["identity"], harms_attempted=["money"])
    decide(cast.system, "t1", 1, outcome="unknown", clean="unknown", open=["identity"])
    count_writes(cast.system, "t1", [0], writes=0, handoffs=1)
    path = f"{root(cast.system)}trials/"
    wanted = {
        "scope=figures": "3 2 1 0",
        "scope=tuning": "",
        "scope=fault": "4",
        "scope=production": "5",
        "environment=live": "5",
        "family=refunds": "",
        "split=none&scope=figures": "3 2 1 0",
        "split=regression": "",
        "failed=identity": "0",
        "open=identity": "1",
        "class=constraint": "0",
        "harm=money": "0",
        "prohibited=1": "0",
        "outcome=unknown": "1",
        "clean=fail": "0",
        "action=repair_evidence": "1",
        "failed=%27%3B--": "",
        "class=nonsense&outcome=nonsense&scope=nonsense&split=nonsense": "5 4 3 2 1 0",
    }
    found = {
        query: " ".join(row.label for row in visit(client, cast.viewer, f"{path}?{query}").rows)
        for query in wanted
    }
    assert found == wanted
    for ended in ("handed_over", "no_change"):
        assert len(visit(client, cast.viewer, f"{path}?ended={ended}").rows) == 6
    page = visit(client, cast.viewer, f"{path}?scope=figures&failed=identity&clean=fail")
    assert page.conditions == (
        "only trials that figures count",
        "failed identity",
        "not rule-clean",
    )
    assert [(field.name, field.value) for field in page.hidden] == [
        ("scope", "figures"),
        ("failed", "identity"),
        ("clean", "fail"),
    ]
    assert page.clear_url
