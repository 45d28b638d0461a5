"""`manage.py gate` and the API: one function, and an exit status for CI."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from evalsite.gate_report import ExitStatus
from reviews.core.gate.states import Meaning
from reviews.models import EvidenceManifest, SignOff, SignOffVoid
from tests.support.cast import Cast
from tests.support.evidence import ingest
from tests.support.gates import (
    approved_contract,
    gate_of,
    refund,
    refund_contract,
    thresholds_in_force,
)
from tests.support.keys import header
from traces.models import Release, Scope
from traces.services.work import tasks_named

pytestmark = pytest.mark.django_db


def gate(*words: str, release: str = "1.0") -> tuple[int, str]:
    """The exit status of the command, and what it prints."""
    out = StringIO()
    try:
        call_command("gate", "--system", "airline", "--release", release, *words, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue()
    except CommandError as error:
        return error.returncode, str(error)
    return 0, out.getvalue()


@pytest.fixture
def ready(cast: Cast) -> Cast:
    """One clean trial, with thresholds and a contract in force before it."""
    thresholds_in_force(cast.system, by=cast.owner)
    tasks_named(cast.system, ["t1"])
    approved_contract(
        cast.system,
        refund_contract("t1"),
        by=cast.engineer,
        at=timezone.now() - timedelta(days=1),
    )
    ingest(cast.system, [refund("t1", 0)])
    return cast


def sign(cast: Cast, meaning: Meaning = Meaning.APPROVED, **more: Any) -> SignOff:
    """A signature on the evidence as it is."""
    computed = gate_of(cast.system)
    manifest, _ = EvidenceManifest.objects.get_or_create(
        digest=computed.digest, defaults={"content": b""}
    )
    words = {
        Meaning.APPROVED: {"intended_use": "Refunds.", "scope": "All."},
        Meaning.WAIVER: {"scope": "All.", "waived_check": "unresolved"},
        Meaning.REJECTED: {"next_action": "Mend it."},
    }[meaning]
    now = timezone.now()
    fields: dict[str, Any] = {
        "system": cast.system,
        "release": Release.objects.get(system=cast.system, name="1.0"),
        "manifest": manifest,
        "revision": computed.revision,
        "meaning": meaning.value,
        "by": cast.owner,
        "printed_name": "Owner",
        "role": "owner",
        "signed_at": now,
        "reason": "Read.",
        "expires_on": None if meaning is Meaning.REJECTED else (now + timedelta(days=30)).date(),
        "n_needed": 1,
        "key_id": "k",
        "envelope": "{}",
        **words,
        **more,
    }
    return SignOff.objects.create(**fields)


def test_a_ready_gate_ends_with_0_and_5_where_a_signature_is_asked_for(ready: Cast) -> None:
    assert gate()[0] == ExitStatus.AS_REQUIRED
    assert gate("--require", "ready")[0] == ExitStatus.AS_REQUIRED
    status, text = gate("--require", "signed")
    assert status == ExitStatus.UNSIGNED
    assert "Nobody has signed it." in text


def test_a_valid_signature_is_over_this_evidence_and_within_its_date(ready: Cast) -> None:
    signed = sign(ready)
    assert gate("--require", "signed")[0] == ExitStatus.AS_REQUIRED
    ingest(ready.system, [refund("t1", 1)])
    status, text = gate("--require", "signed")
    assert (status, "The signature is stale" in text) == (ExitStatus.UNSIGNED, True)
    today = timezone.now().date()
    SignOffVoid.objects.create(
        sign_off=signed, reason="Too early.", by=ready.owner, voided_at=timezone.now()
    )
    status, text = gate("--require", "signed")
    assert (status, "declared void" in text) == (ExitStatus.UNSIGNED, True)
    sign(ready, expires_on=today - timedelta(days=1))
    status, text = gate("--require", "signed")
    assert (status, "has expired" in text) == (ExitStatus.UNSIGNED, True)
    sign(ready, Meaning.REJECTED)
    status, text = gate("--require", "signed")
    assert (status, "It is rejected." in text) == (ExitStatus.UNSIGNED, True)


def test_one_owner_of_two_is_no_signature(ready: Cast) -> None:
    sign(ready, n_needed=2)
    status, text = gate("--require", "signed")
    assert (status, "One of two owners has signed it." in text) == (ExitStatus.UNSIGNED, True)


def test_a_waiver_passes_what_is_not_met_where_a_signature_is_asked_for(ready: Cast) -> None:
    ingest(ready.system, [refund("t1", 1, verdicts=[])])
    assert gate("--require", "signed")[0] == ExitStatus.WAITING
    sign(ready, Meaning.WAIVER)
    assert gate("--require", "signed")[0] == ExitStatus.AS_REQUIRED
    assert gate()[0] == ExitStatus.WAITING


def test_a_blocked_gate_ends_with_3(ready: Cast) -> None:
    ingest(ready.system, [refund("t1", 1, amount="500.0")])
    for words in ([], ["--require", "signed"], ["--json"], ["--markdown"]):
        assert gate(*words)[0] == ExitStatus.BLOCKED


def test_wrong_usage_ends_with_2(ready: Cast) -> None:
    assert gate(release="9.9") == (ExitStatus.USAGE, "airline has no release '9.9'.")
    with pytest.raises(CommandError) as raised:
        call_command("gate", "--system", "nowhere", "--release", "1.0")
    assert raised.value.returncode == ExitStatus.USAGE


def test_hostile_names_stay_text_in_markdown(cast: Cast) -> None:
    name = "<b>|x|</b> @all #1 `c` [a](http://b)\u202e"
    thresholds_in_force(cast.system, by=cast.owner, tier=name[:40])
    ingest(cast.system, [refund("t1", 0)], release=name)
    status, text = gate("--markdown", release=name)
    assert status == ExitStatus.WAITING
    lines = [line for line in text.splitlines() if line.startswith("| ") and "---" not in line]
    assert all(line.replace("&#124;", "").count("|") == 6 for line in lines)
    for hostile in ("<b>", "@all", "`c`", "](", "http:", "\u202e", " #1"):
        assert hostile not in text


def test_the_api_says_what_the_command_says(ready: Cast, client: Client) -> None:
    sign(ready)
    release = Release.objects.get(system=ready.system, name="1.0")
    headers = header(ready.system, ready.engineer, Scope.READ)
    path = f"/api/v1/systems/airline/releases/{release.uuid}/gate"
    said = client.get(path, **headers).json()
    named = client.get("/api/v1/systems/airline/releases/gate?name=1.0", **headers).json()
    printed = json.loads(gate("--json")[1])
    for each in (said, named, printed):
        each.pop("computed_at")
    assert said == named == printed
    assert (said["state"], said["sign_off"]["state"], said["sign_off"]["is_valid"]) == (
        "ready",
        "approved",
        True,
    )


def test_another_systems_release_is_like_an_absent_one(ready: Cast, client: Client) -> None:
    release = Release.objects.get(system=ready.system, name="1.0")
    path = f"/api/v1/systems/airline/releases/{release.uuid}/gate"
    assert client.get(path).status_code == 401
    client.force_login(ready.viewer)
    assert client.get(path).status_code == 200
    client.force_login(ready.outsider)
    assert client.get(path).status_code == 404
    ingest(ready.other_system, [refund("t1", 0)], release="2.0")
    foreign = Release.objects.get(system=ready.other_system)
    client.force_login(ready.owner)
    absent = client.get("/api/v1/systems/airline/releases/gate?name=9.9")
    strange = client.get(f"/api/v1/systems/airline/releases/{foreign.uuid}/gate")
    assert (absent.status_code, strange.status_code) == (404, 404)
    assert absent.json() == strange.json()


def test_a_key_that_may_not_read_learns_nothing(ready: Cast, client: Client) -> None:
    headers = header(ready.system, ready.engineer, Scope.INGEST)
    answer = client.get("/api/v1/systems/airline/releases/gate?name=1.0", **headers)
    assert answer.status_code == 403
