"""Contracts through the API."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from reviews.models import Regrade
from tests.support.cast import Cast
from tests.support.contract_drafts import drafted, in_effect, planted, text_of
from tests.support.evidence import ingest, record
from tests.support.keys import header
from tests.support.visits import root
from traces.core.contracts.documents import MOST_TEXT_BYTES
from traces.models import ContractPreview, ContractProposal, Role, Scope
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

CONTRACTS = "/api/v1/contracts"
CASES = Path(__file__).parents[1] / "data" / "cases"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    return cast


def sent(
    client: Client, cast: Cast, act: str, body: str | bytes, *, kind: str = "application/yaml"
) -> Any:
    data = body.encode() if isinstance(body, str) else body
    headers = header(cast.system, cast.engineer)
    return client.post(f"{CONTRACTS}/{act}", data, content_type=kind, **headers)


def test_contracts_in_effect_are_read(client: Client, filled: Cast) -> None:
    proposal = in_effect(filled, text_of("t1"), text_of("t2"))
    first = proposal.versions.get(task__task_id="t1")
    headers = header(filled.system, filled.engineer, Scope.READ)
    answer = client.get(CONTRACTS, **headers)
    assert [each["task"] for each in answer.json()] == ["t1", "t2"]
    assert answer.json()[0] == {
        "task": "t1",
        "id": str(first.uuid),
        "version": 1,
        "digest": first.digest.hex,
        "text": text_of("t1"),
    }
    assert [each["task"] for each in client.get(f"{CONTRACTS}?task=t2", **headers).json()] == ["t2"]
    whole = client.get(f"{CONTRACTS}?format=yaml", **headers)
    assert whole.content.decode() == f"{text_of('t1')}---\n{text_of('t2')}"
    assert whole["Content-Type"] == "application/yaml; charset=utf-8"
    bad = client.get(f"{CONTRACTS}?format=xml", **headers)
    assert (bad.status_code, bad.json()["code"]) == (400, "unknown-format")


def test_a_check_names_every_mistake_with_its_place(client: Client, filled: Cast) -> None:
    answer = sent(client, filled, "check", text_of(rest="budget: {turns: -1}\n"))
    assert answer.status_code == 400
    body = answer.json()
    assert body["code"] == "bad-contract"
    assert [(each["line"], each["field"]) for each in body["findings"]] == [(4, "budget.turns")]
    assert body["detail"].startswith("4:")


def test_a_check_runs_the_grader_tests_and_keeps_nothing(client: Client, filled: Cast) -> None:
    answer = sent(client, filled, "check", text_of(rest=planted()), kind="text/plain")
    assert answer.json() == {
        "ok": True,
        "tasks": ["t1"],
        "grader_tests": [{"task": "t1", "name": "a right one", "met": True, "checks": []}],
    }
    answer = sent(client, filled, "check", text_of(rest=planted("fail")))
    assert answer.status_code == 200
    assert answer.json()["ok"] is False
    (test,) = answer.json()["grader_tests"]
    assert [(each["criterion"], each["expected"], each["found"]) for each in test["checks"]] == [
        ("looked", "fail", "pass")
    ]
    assert not ContractPreview.objects.exists()


def test_a_draft_is_previewed_and_proposed(client: Client, filled: Cast) -> None:
    answer = sent(client, filled, "previews", text_of())
    preview = ContractPreview.objects.get()
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"{CONTRACTS}/previews/{preview.uuid}"
    assert answer.json() == {
        "id": str(preview.uuid),
        "state": "waiting",
        "tasks": ["t1"],
        "n_done": 0,
        "n_total": None,
        "failure": "",
        "result": None,
        "page": f"{root(filled.system)}contracts/previews/{preview.uuid}/",
    }
    headers = header(filled.system, filled.engineer)
    assert client.get(answer.headers["Location"], **headers).json() == answer.json()
    early = sent(
        client,
        filled,
        f"previews/{preview.uuid}/propose",
        '{"reason": "So."}',
        kind="application/json",
    )
    assert (early.status_code, early.json()["code"]) == (409, "not-to-propose")
    assert early.json()["detail"] == "What these contracts would change is not worked out yet."


def test_a_finished_preview_is_proposed(client: Client, filled: Cast) -> None:
    preview = drafted(filled)
    act = f"previews/{preview.uuid}/propose"
    bad = sent(client, filled, act, "{}", kind="application/json")
    assert (bad.status_code, bad.json()["code"]) == (400, "invalid")
    answer = sent(client, filled, act, '{"reason": "So."}', kind="application/json")
    proposal = ContractProposal.objects.get()
    assert answer.status_code == 201
    assert answer.json() == {
        "number": 1,
        "versions": [{"id": str(proposal.versions.get().uuid), "task": "t1", "version": 1}],
        "page": f"{root(filled.system)}contracts/proposals/1/",
    }
    assert (proposal.created_by, proposal.reason) == (filled.engineer, "So.")
    assert not Regrade.objects.exists()


def test_what_is_in_effect_already_is_a_conflict(client: Client, filled: Cast) -> None:
    in_effect(filled)
    answer = sent(client, filled, "previews", text_of())
    assert (answer.status_code, answer.json()["code"]) == (409, "nothing-new")


def test_a_text_that_holds_no_longer_is_not_proposed(client: Client, filled: Cast) -> None:
    preview = drafted(filled, text_of(rest="family: f\nsplit: tuning\n"))
    task = preview.system.tasks.get(task_id="t2")
    task.family, task.split = "f", "held_out"
    task.save()
    act = f"previews/{preview.uuid}/propose"
    answer = sent(client, filled, act, '{"reason": "So."}', kind="application/json")
    assert (answer.status_code, answer.json()["findings"][0]["code"]) == (400, "parted-family")


def test_whoever_is_no_engineer_any_longer_drafts_nothing(client: Client, filled: Cast) -> None:
    headers = header(filled.system, filled.engineer)
    read = header(filled.system, filled.engineer, Scope.READ)

    def post(act: str, key: dict[str, str]) -> Any:
        body = text_of().encode()
        return client.post(f"{CONTRACTS}/{act}", body, content_type="text/yaml", **key)

    assert post("previews", read).status_code == 403
    set_member(filled.system, filled.engineer, Role.REVIEWER)
    answer = post("previews", headers)
    assert (answer.status_code, answer.json()["detail"]) == (
        403,
        "Only an engineer of this system proposes contracts.",
    )
    assert post("check", read).status_code == 200


def test_another_system_is_not_there(client: Client, filled: Cast) -> None:
    preview = drafted(filled)
    set_member(filled.other_system, filled.engineer, Role.ENGINEER)
    headers = header(filled.other_system, filled.engineer)
    for path in (f"{CONTRACTS}?system=airline", f"{CONTRACTS}/previews/{preview.uuid}"):
        assert client.get(path, **headers).status_code == 404
    assert client.get(CONTRACTS).status_code == 401


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "no-contract"),
        (b"\xff", "not-utf-8"),
        (b"a" * (MOST_TEXT_BYTES + 5), "text-too-large"),
    ],
    ids=["empty", "not-utf-8", "too-large"],
)
def test_a_body_that_is_no_text_is_answered(
    client: Client, filled: Cast, body: bytes, code: str
) -> None:
    answer = sent(client, filled, "check", body)
    assert answer.status_code == 400
    assert [each["code"] for each in answer.json()["findings"]] == [code]


@pytest.mark.parametrize("path", sorted(CASES.glob("contract-*.yaml")), ids=lambda path: path.stem)
def test_hostile_contracts_are_refused_at_once_with_their_line(
    client: Client, filled: Cast, path: Path
) -> None:
    for act in ("check", "previews"):
        began = time.monotonic()
        answer = sent(client, filled, act, path.read_bytes())
        assert time.monotonic() - began < 2
        assert answer.status_code == 400
        assert all(each["line"] for each in answer.json()["findings"])
    assert not ContractPreview.objects.exists()
    assert not Path("/tmp/pwned_by_contract").exists()
