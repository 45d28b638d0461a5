from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.pipeline import process_upload
from reviews.permissions.flags import (
    brought_evidence,
    closing_refusal,
    flagging_refusal,
    role_in,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, jsonl, receive, record
from tests.support.keys import new_key
from traces.models import Door, Release, Role, System, Upload, User
from traces.services.people import set_member
from traces.services.uploads import UploadRequest, receive_upload, staged
from traces.services.work import declare_run, release_named

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)

SECOND_LOOK = (
    "A flag asks for a second look by somebody who did not build the release: a reviewer "
    "of this system closes it. Whoever raised it may withdraw it."
)
BROUGHT = (
    "You uploaded evidence of this trial's release or declared a run of it; a reviewer who did "
    "neither closes its flags. Whoever raised one may withdraw it."
)


@pytest.mark.parametrize("role", Role)
def test_every_member_flags(role: Role) -> None:
    assert flagging_refusal(role) == ""


def test_nobody_else_flags_or_closes() -> None:
    assert flagging_refusal(None) == "Only a member of this system flags its trials."
    for is_own in (True, False):
        for has_brought in (True, False):
            assert closing_refusal(None, is_own=is_own, has_brought=has_brought) == (
                "Only a member of this system closes its flags."
            )


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (Role.VIEWER, SECOND_LOOK),
        (Role.ENGINEER, SECOND_LOOK),
        (Role.REVIEWER, ""),
        (Role.OWNER, SECOND_LOOK),
    ],
)
def test_a_reviewer_closes_any_flag_and_others_their_own(role: Role, sentence: str) -> None:
    assert closing_refusal(role, is_own=False, has_brought=False) == sentence
    assert closing_refusal(role, is_own=False, has_brought=True) == (sentence or BROUGHT)
    for has_brought in (True, False):
        assert closing_refusal(role, is_own=True, has_brought=has_brought) == ""


# ---- who brought evidence of a release ----


def versioned(version: str) -> dict[str, Any]:
    return record("t1", 0, agent={"name": "airline", "version": version})


def upload_for_a_named_release(system: System, by: User) -> None:
    ingest(system, [record("t1", 0)], release="1.0", by=by)


def upload_whose_records_name_it(system: System, by: User) -> None:
    ingest(system, [versioned("0.9"), versioned("1.0")], release=None, by=by)


def upload_that_is_not_read_yet(system: System, by: User) -> None:
    receive(system, jsonl([record("t1", 0)]), release="1.0", by=by)


def upload_by_key(system: System, by: User) -> None:
    set_member(system, by, Role.ENGINEER)
    request = UploadRequest(
        system=system,
        release=None,
        run_name="",
        file_name="trials.jsonl",
        format_asked="auto",
        door=Door.API,
        by=None,
        api_key=new_key(system, by)[0],
    )
    with staged([jsonl([versioned("1.0")])], max_bytes=None) as file:
        process_upload(receive_upload(file, request, now=NOW).pk)
    assert Upload.objects.get(api_key__user=by).by_id is None


def declared_run(system: System, by: User) -> None:
    release = release_named(system, "1.0", by=None)
    declare_run(release, "nightly", trials=3, by=by, now=NOW)


WAYS = [
    upload_for_a_named_release,
    upload_whose_records_name_it,
    upload_that_is_not_read_yet,
    upload_by_key,
    declared_run,
]


@pytest.mark.django_db
@pytest.mark.parametrize("bring", WAYS, ids=lambda bring: bring.__name__)
def test_evidence_is_brought_by_upload_key_or_declaration_whatever_the_role_is_now(
    bring: Callable[[System, User], None], cast: Cast
) -> None:
    later = release_named(cast.system, "2.0", by=None)
    bring(cast.system, cast.reviewer)
    set_member(cast.system, cast.reviewer, Role.REVIEWER)
    brought = Release.objects.get(system=cast.system, name="1.0")
    foreign = release_named(cast.other_system, "1.0", by=None)

    with CaptureQueriesContext(connection) as captured:
        assert brought_evidence(brought.pk, cast.reviewer) is True
    assert len(captured) == 1
    assert [
        brought_evidence(release.pk, person)
        for release in (brought, later, foreign)
        for person in (cast.reviewer, cast.second_reviewer)
    ] == [True, False, False, False, False, False]


@pytest.mark.django_db
def test_evidence_of_another_system_is_none_of_this_one(cast: Cast) -> None:
    ingest(cast.other_system, [versioned("1.0")], release=None, by=cast.reviewer)
    ingest(cast.system, [versioned("1.0")], release=None, by=None)

    release = Release.objects.get(system=cast.system, name="1.0")

    assert brought_evidence(release.pk, cast.reviewer) is False


@pytest.mark.django_db
def test_a_role_is_that_of_an_active_member_of_the_system(cast: Cast) -> None:
    for role, person in cast.members().items():
        assert role_in(cast.system.pk, person) is role
        assert role_in(cast.other_system.pk, person) is None
    assert role_in(cast.system.pk, cast.outsider) is None

    cast.reviewer.is_active = False
    cast.reviewer.save()
    assert role_in(cast.system.pk, cast.reviewer) is None
