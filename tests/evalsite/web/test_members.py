from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from evalsite.models import AuditEvent
from tests.support.cast import Cast, person, role_of
from tests.support.keys import header
from tests.support.visits import n_queries, root, visit
from traces.models import ApiKey, Invitation, Member, MemberChange, Role, User
from traces.permissions.people import NOT_AN_OWNER, OWN_ROLE
from traces.services.people import PeopleError, set_member

pytestmark = pytest.mark.django_db

LAST = "owner is the only owner of this system: make somebody else one first."


def members(cast: Cast) -> str:
    return f"{root(cast.system)}members/"


def act(client: Client, cast: Cast, user: User, what: str, **form: Any) -> Any:
    path = reverse(f"member-{what}", kwargs={"slug": cast.system.slug, "person": user.uuid})
    return client.post(path, form)


def refusal(answer: Any) -> tuple[int, list[str]]:
    return answer.status_code, list(answer.context["page"].form.form.non_field_errors())


def test_members_are_listed_with_role_since_and_by(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.viewer, Role.REVIEWER, by=cast.owner, reason="Trained now.")
    page = visit(client, cast.owner, members(cast))

    assert [(row.username, row.role, row.by, row.why_not) for row in page.members] == [
        ("owner", "owner", "owner", LAST),
        ("engineer", "engineer", "the operator", ""),
        ("reviewer", "reviewer", "the operator", ""),
        ("second_reviewer", "reviewer", "the operator", ""),
        ("viewer", "reviewer", "owner", ""),
    ]
    assert [(row.name, row.words, row.by, row.reason) for row in page.changes][0] == (
        "viewer",
        "reviewer, before: viewer",
        "owner",
        "Trained now.",
    )
    assert page.members[4].since == MemberChange.objects.latest("pk").changed_at


def test_whoever_is_no_owner_reads_only(client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, members(cast), change=str(cast.viewer.uuid))

    assert (page.form, page.invite, page.invitations) == (None, None, ())
    assert page.invite_why_not == "Only an owner of this system does that."
    assert {(r.change_url, r.remove_url, r.last_sign_in) for r in page.members} == {("", "", None)}
    assert act(client, cast, cast.viewer, "role", role="owner", reason="x").status_code == 403
    assert act(client, cast, cast.viewer, "remove", reason="x").status_code == 403


def test_an_owner_changes_a_role_with_a_reason(client: Client, cast: Cast) -> None:
    asked = visit(client, cast.owner, members(cast), change=str(cast.viewer.uuid)).form
    assert asked.heading == "Another role for viewer, now viewer"
    answer = act(client, cast, cast.viewer, "role", role="engineer", reason="Joins the team.")

    assert (answer.status_code, answer["Location"]) == (302, members(cast))
    change = MemberChange.objects.latest("pk")
    assert (change.user, change.old, change.new, change.by, change.reason) == (
        cast.viewer,
        "viewer",
        "engineer",
        cast.owner,
        "Joins the team.",
    )
    event = AuditEvent.objects.filter(system=cast.system).latest("seq")
    assert (event.act, event.object_id, event.before, event.after, event.role) == (
        "member.role_changed",
        str(cast.viewer.uuid),
        '{"role":"viewer"}',
        '{"role":"engineer"}',
        "owner",
    )


@pytest.mark.parametrize("reason", [" ", "\u200b \u2060"])
def test_a_change_needs_a_reason_and_a_role_that_exists(
    reason: str, client: Client, cast: Cast
) -> None:
    client.force_login(cast.owner)
    answer = act(client, cast, cast.viewer, "role", role="king", reason=reason)
    assert (answer.status_code, set(answer.context["page"].form.form.errors)) == (
        422,
        {"role", "reason"},
    )
    assert role_of(cast.viewer, cast.system) == "viewer"


def test_nobody_changes_their_own_role(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.viewer, Role.OWNER)
    client.force_login(cast.owner)
    answer = act(client, cast, cast.owner, "role", role="engineer", reason="x")
    assert refusal(answer) == (422, [OWN_ROLE])
    assert role_of(cast.owner, cast.system) == "owner"


def test_the_last_owner_stays(client: Client, cast: Cast) -> None:
    client.force_login(cast.owner)
    assert refusal(act(client, cast, cast.owner, "role", role="viewer", reason="x")) == (
        422,
        [LAST],
    )
    assert refusal(act(client, cast, cast.owner, "remove", reason="x")) == (422, [LAST])
    assert role_of(cast.owner, cast.system) == "owner"


def test_an_owner_who_cannot_sign_in_is_no_other_owner(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.viewer, Role.OWNER)
    User.objects.filter(pk=cast.viewer.pk).update(is_active=False)
    client.force_login(cast.owner)
    assert refusal(act(client, cast, cast.owner, "remove", reason="x")) == (422, [LAST])
    assert act(client, cast, cast.viewer, "remove", reason="Left.").status_code == 302


def test_an_owner_may_leave_while_another_stays(client: Client, cast: Cast) -> None:
    set_member(cast.system, cast.viewer, Role.OWNER)
    client.force_login(cast.owner)
    answer = act(client, cast, cast.owner, "remove", reason="Another job.")

    assert (answer.status_code, answer["Location"]) == (302, "/")
    assert not Member.objects.filter(system=cast.system, user=cast.owner).exists()
    event = AuditEvent.objects.filter(system=cast.system).latest("seq")
    assert (event.act, event.actor, event.role) == ("member.removed", cast.owner, "owner")
    assert client.get(members(cast)).status_code == 404


def test_removing_an_engineer_ends_their_keys_and_keeps_the_history(
    client: Client, cast: Cast
) -> None:
    headers: Any = header(cast.system, cast.engineer)
    assert client.get("/api/v1/figures", **headers).status_code == 200
    client.force_login(cast.owner)
    answer = act(client, cast, cast.engineer, "remove", reason="Left the company.")

    assert answer.status_code == 302
    assert Client().get("/api/v1/figures", **headers).status_code == 401
    assert ApiKey.objects.get().revoked_at is not None
    change = MemberChange.objects.latest("pk")
    assert (change.old, change.new, change.reason) == ("engineer", "", "Left the company.")
    acts = AuditEvent.objects.filter(system=cast.system).order_by("-seq").values_list("act")[:2]
    assert [act for (act,) in acts] == ["member.removed", "api_key.revoked"]

    set_member(cast.system, cast.engineer, Role.ENGINEER)
    assert Client().get("/api/v1/figures", **headers).status_code == 401


def test_people_of_other_systems_are_absent(client: Client, cast: Cast) -> None:
    client.force_login(cast.owner)
    assert act(client, cast, cast.outsider, "role", role="viewer", reason="x").status_code == 404
    assert act(client, cast, cast.outsider, "remove").status_code == 404
    assert client.get(members(cast), {"change": str(cast.outsider.uuid)}).status_code == 404


def test_an_owner_of_before_may_not_any_more(cast: Cast) -> None:
    with pytest.raises(PeopleError, match=NOT_AN_OWNER):
        set_member(cast.system, cast.viewer, Role.OWNER, by=cast.engineer)
    assert role_of(cast.viewer, cast.system) == "viewer"


def test_an_invitation_is_shown_once_and_listed(client: Client, cast: Cast) -> None:
    client.force_login(cast.owner)
    invite = reverse("member-invite", kwargs={"slug": cast.system.slug})
    made = client.post(invite, {"note": "Ada <b>\u202e", "role": "reviewer", "days": "7"})
    first = client.get(members(cast)).context["page"]
    second = client.get(members(cast)).context["page"]

    assert (made.status_code, made["Location"]) == (302, members(cast))
    row = Invitation.objects.get()
    assert first.fresh.secret.startswith(f"http://testserver/invitations/{row.uuid}/")
    assert second.fresh is None
    assert first.fresh.secret.split("/")[-2] not in str(bytes(row.secret_sha256))
    assert [(r.note, r.role, r.state.label) for r in first.invitations] == [
        ("Ada <b>\u202e", "reviewer", "open")
    ]
    assert timedelta(days=6, hours=23) < row.expires_at - timezone.now() <= timedelta(days=7)


@pytest.mark.parametrize(
    "form",
    [
        {"note": "", "role": "viewer", "days": "7"},
        {"note": "x", "role": "king", "days": "7"},
        {"note": "x", "role": "viewer", "days": "31"},
        {"note": "x" * 201, "role": "viewer", "days": "0"},
        {"note": "\u200b", "role": "viewer", "days": "7"},
    ],
)
def test_an_invitation_that_cannot_be_is_refused(
    form: dict[str, str], client: Client, cast: Cast
) -> None:
    client.force_login(cast.owner)
    invite = reverse("member-invite", kwargs={"slug": cast.system.slug})
    assert client.post(invite, form).status_code == 422
    assert Invitation.objects.count() == 0


def test_hostile_names_are_text(client: Client, cast: Cast) -> None:
    bad = "<script>alert(1)</script>\u202egnp"
    User.objects.filter(pk=cast.viewer.pk).update(first_name=bad)
    client.force_login(cast.owner)
    act(client, cast, cast.reviewer, "role", role="viewer", reason=bad * 3)
    for path in (members(cast), f"{members(cast)}?remove={cast.viewer.uuid}"):
        body = client.get(path).content.decode()
        assert "<script>alert" not in body
        assert "U+202E" in body


def test_queries_do_not_grow_with_members(client: Client, cast: Cast) -> None:
    client.force_login(cast.owner)
    n_before = n_queries(client, members(cast))
    for n in range(3):
        set_member(cast.system, person(f"p{n}"), Role.VIEWER, by=cast.owner)
    assert n_before == n_queries(client, members(cast)) == 9


def test_many_members_are_paged(client: Client, cast: Cast) -> None:
    people = User.objects.bulk_create(User(username=f"p{n}") for n in range(250))
    Member.objects.bulk_create(Member(system=cast.system, user=p, role="viewer") for p in people)
    page = visit(client, cast.owner, members(cast))
    seen = [row.username for row in page.members]
    while page.pager.next_url:
        page = visit(client, cast.owner, page.pager.next_url)
        seen += [row.username for row in page.members]
    back = visit(client, cast.owner, page.pager.previous_url)

    assert len(seen) == len(set(seen)) == 255
    assert [row.username for row in back.members] == seen[100:200]
