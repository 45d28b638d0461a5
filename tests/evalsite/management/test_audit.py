"""`manage.py audit`."""

from __future__ import annotations

import csv
import io
import json

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from tests.support.cast import PASSWORD, Cast
from traces.models import Role
from traces.services.people import set_member

pytestmark = pytest.mark.django_db


def test_the_log_of_a_system_is_printed_newest_first_and_narrowed(
    cast: Cast, capsys: pytest.CaptureFixture[str]
) -> None:
    set_member(cast.system, cast.viewer, Role.ENGINEER)
    call_command("audit", system="airline")
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    numbers = [int(row["seq"]) for row in rows]
    assert numbers == sorted(numbers, reverse=True)
    assert (rows[0]["act"], rows[0]["person"]) == ("member.role_changed", "")

    call_command("audit", system="airline", act="member.role_changed", format="json")
    (changed,) = json.loads(capsys.readouterr().out)
    assert (changed["before"]["role"], changed["after"]["role"]) == ("viewer", "engineer")


def test_the_site_has_a_log_of_its_own_with_sign_ins(
    cast: Cast, client: Client, capsys: pytest.CaptureFixture[str]
) -> None:
    client.post("/sign-in/", {"username": "owner", "password": "wrong"})
    client.post("/sign-in/", {"username": "owner", "password": PASSWORD})
    call_command("audit", site=True, kind="person", format="json")
    events = json.loads(capsys.readouterr().out)
    assert len(events) == 2
    assert {event["object"] for event in events} == {"owner"}


def test_an_unknown_system_is_wrong_usage() -> None:
    with pytest.raises(CommandError, match="There is no system 'nowhere'") as refused:
        call_command("audit", system="nowhere")
    assert refused.value.returncode == 2
