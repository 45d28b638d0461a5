from __future__ import annotations

from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evalsite.models import AuditEvent
from tests.support.cast import Cast, role_of
from tests.support.visits import root
from traces.models import Invitation, Member, MemberChange, Role, User
from traces.services.invitations import (
    HIDDEN,
    NAME_TAKEN,
    NewInvitation,
    make_invitation,
    revoke_invitation,
)
from traces.services.people import PeopleError, remove_member, set_member

pytestmark = pytest.mark.django_db

GOOD = {
    "username": "ada",
    "printed_name": "Ada  Lovelace",
    "password": "a long enough secret",
    "again": "a long enough secret",
}


def made(cast: Cast, role: Role = Role.REVIEWER) -> NewInvitation:
    return make_invitation(cast.system, role=role, note="Ada", by=cast.owner, now=timezone.now())


def path_of(new: NewInvitation, secret: str | None = None) -> str:
    kwargs = {"invitation": new.invitation.uuid, "secret": secret or new.secret}
    return reverse("invitation-take", kwargs=kwargs)


def test_somebody_new_makes_an_account_and_is_signed_in(client: Client, cast: Cast) -> None:
    new = made(cast)
    page = client.get(path_of(new))
    planted = client.session.session_key
    answer = client.post(path_of(new), GOOD)
    ada = User.objects.get(username="ada")

    assert page.status_code == 200
    assert page["Referrer-Policy"] == "strict-origin"
    assert page["Cache-Control"] is not None
    assert "no-store" in page["Cache-Control"]
    assert (answer.status_code, answer["Location"]) == (302, f"{root(cast.system)}tasks/")
    assert client.session["_auth_user_id"] == str(ada.pk)
    assert client.session.session_key != planted
    assert (ada.printed_name, ada.check_password("a long enough secret")) == ("Ada Lovelace", True)
    assert role_of(ada, cast.system) == "reviewer"
    change = MemberChange.objects.latest("pk")
    assert (change.user, change.by, change.reason) == (ada, cast.owner, "Invited: Ada")
    acts = list(
        AuditEvent.objects.filter(system=cast.system)
        .order_by("seq")
        .values_list("act", "actor__username")
    )[-3:]
    assert acts == [
        ("invitation.made", "owner"),
        ("member.added", "owner"),
        ("invitation.taken", "ada"),
    ]


def test_a_signed_in_person_accepts(client: Client, cast: Cast) -> None:
    new = made(cast, Role.VIEWER)
    client.force_login(cast.outsider)
    page = client.get(path_of(new)).context["page"]
    not_meant = client.post(path_of(new), {"as": str(cast.owner.uuid)})
    answer = client.post(path_of(new), {"as": page.person})

    assert (page.signed_in_as, page.form, page.why_not) == ("outsider", None, "")
    assert not_meant.status_code == 422
    assert answer.status_code == 302
    assert role_of(cast.outsider, cast.system) == "viewer"
    assert Invitation.objects.get().taken_by == cast.outsider


def test_nobody_gets_a_second_role_by_an_invitation(client: Client, cast: Cast) -> None:
    new = made(cast, Role.OWNER)
    client.force_login(cast.engineer)
    page = client.get(path_of(new)).context["page"]
    answer = client.post(path_of(new), {"as": str(cast.engineer.uuid)})

    assert page.why_not == "You are a member of Airline already, as engineer."
    assert answer.status_code == 422
    assert role_of(cast.engineer, cast.system) == "engineer"
    assert Invitation.objects.get().taken_at is None


def test_what_is_used_expired_revoked_void_or_unknown_answers_alike(
    client: Client, cast: Cast
) -> None:
    used, expired, revoked, void, wrong = (made(cast) for _ in range(5))
    client.force_login(cast.outsider)
    client.post(path_of(used), {"as": str(cast.outsider.uuid)})
    client.logout()
    Invitation.objects.filter(pk=expired.invitation.pk).update(expires_at=timezone.now())
    revoke_invitation(revoked.invitation, by=cast.owner, now=timezone.now())
    Invitation.objects.filter(pk=void.invitation.pk).update(made_by=cast.viewer)
    absent = reverse("invitation-take", kwargs={"invitation": uuid4(), "secret": "x"})
    paths = [path_of(each) for each in (used, expired, revoked, void)]
    answers = [client.get(p) for p in (*paths, path_of(wrong, "x" * 43), absent)]
    answers += [client.post(path, GOOD) for path in paths]

    assert [answer.status_code for answer in answers] == [404] * 10
    assert len({answer.content for answer in answers}) == 1
    assert not User.objects.filter(username="ada").exists()


def test_an_invitation_of_a_removed_owner_is_void(client: Client, cast: Cast) -> None:
    new = made(cast)
    set_member(cast.system, cast.viewer, Role.OWNER)
    remove_member(cast.system, cast.owner, by=cast.viewer)
    assert client.get(path_of(new)).status_code == 404


@pytest.mark.parametrize(
    ("more", "field", "word"),
    [
        ({"username": "OWNER"}, "username", NAME_TAKEN),
        ({"username": "a b"}, "username", "valid username"),
        ({"username": "x" * 151}, "username", "150"),
        ({"printed_name": "Ada\u202eecaleL"}, "printed_name", HIDDEN),
        ({"printed_name": ""}, "printed_name", "required"),
        ({"password": "12345678", "again": "12345678"}, "password", "too common"),
        ({"again": "something else"}, "again", "The two passwords differ."),
    ],
)
def test_an_account_that_cannot_be_is_refused(
    more: dict[str, str], field: str, word: str, client: Client, cast: Cast
) -> None:
    new = made(cast)
    answer = client.post(path_of(new), {**GOOD, **more})

    found = dict(answer.context["page"].form.errors)
    assert (answer.status_code, list(found)) == (422, [field])
    assert word in " ".join(found[field])
    assert Invitation.objects.get().taken_at is None
    assert Member.objects.filter(system=cast.system).count() == 5


def test_guessing_is_refused_after_a_while(client: Client, cast: Cast) -> None:
    new = made(cast)
    most = settings.AXES_FAILURE_LIMIT * 4
    codes = [client.get(path_of(new, f"guess-{n}")).status_code for n in range(most)]
    assert codes == [404] * most
    assert client.get(path_of(new)).status_code == 429
    assert client.get(path_of(new), REMOTE_ADDR="192.0.2.9").status_code == 200


def test_a_revoked_invitation_is_revoked_once_and_a_taken_one_not(
    client: Client, cast: Cast
) -> None:
    new = made(cast)
    path = reverse(
        "invitation-revoke",
        kwargs={"slug": cast.system.slug, "invitation": new.invitation.uuid},
    )
    client.force_login(cast.owner)
    assert [client.post(path).status_code for _ in range(2)] == [302, 302]
    assert AuditEvent.objects.filter(act="invitation.revoked").count() == 1

    taken = made(cast)
    client.force_login(cast.outsider)
    client.post(path_of(taken), {"as": str(cast.outsider.uuid)})
    with pytest.raises(PeopleError, match="has been taken"):
        revoke_invitation(taken.invitation, by=cast.owner, now=timezone.now())
    with pytest.raises(PeopleError, match="Only an owner"):
        revoke_invitation(new.invitation, by=cast.engineer, now=timezone.now())


def test_hostile_words_of_an_invitation_are_text(client: Client, cast: Cast) -> None:
    cast.system.name = "<i>Air\u202eline</i>"
    cast.system.save()
    body: Any = client.get(path_of(made(cast))).content.decode()
    assert "<i>Air" not in body
    assert "U+202E" in body
