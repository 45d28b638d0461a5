"""The signed file of a sign-off through the API."""

from __future__ import annotations

import pytest
from django.test import Client

from evalsite.signing import attestation_of
from tests.support.cast import Cast
from tests.support.keys import header
from tests.support.signing import a_ready_release, signed
from traces.models import Member, Role

pytestmark = pytest.mark.django_db


def test_the_file_is_handed_out_byte_for_byte_to_members_only(cast: Cast, client: Client) -> None:
    row = signed(a_ready_release(cast))
    path = f"/api/v1/systems/{cast.system.slug}/sign-offs/{row.uuid}/attestation"
    answer = client.get(path, **header(cast.system, cast.engineer))
    assert (answer.status_code, answer["Content-Type"]) == (200, "application/json")
    assert answer.content == attestation_of(row)
    assert client.get(path).status_code == 401
    Member.objects.filter(user=cast.outsider).update(role=Role.ENGINEER.value)
    foreign = header(cast.other_system, cast.outsider)
    absent = path.replace(str(row.uuid), "0" * 8 + str(row.uuid)[8:])
    other = path.replace(cast.system.slug, cast.other_system.slug)
    assert client.get(path, **foreign).status_code == 404
    assert (
        client.get(other, **foreign).json()
        == client.get(absent.replace(cast.system.slug, cast.other_system.slug), **foreign).json()
    )
