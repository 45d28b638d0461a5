"""The members of a system: who they are, how they became it, and who is invited."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import time_text
from evalsite.common.shell import Crumb
from evalsite.web.shown_once import keep_secret, take_secret
from traces.core.text_marks import marked_text, says_nothing
from traces.models import Invitation, Member, MemberChange, Role, User
from traces.permissions.people import owners_of, removal_refusal, role_refusal
from traces.selectors.members import (
    MemberRow,
    members_page,
    newest_changes,
    newest_invitations,
)
from traces.services.invitations import (
    DAYS,
    LONGEST_NOTE,
    MOST_DAYS,
    make_invitation,
    revoke_invitation,
)
from traces.services.people import LONGEST_REASON, PeopleError, remove_member, set_member
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.pages.people import (
    ChangeLine,
    InvitationLine,
    MemberLine,
    MemberListPage,
    PeopleForm,
    ShownOnce,
)
from traces.web.shell import system_shell

_NO_MEMBER = "There is no such member of this system."
_NO_INVITATION = "There is no such invitation to this system."
_ROLE_HELP = (
    "Viewers read, comment and flag. Engineers upload and propose. Reviewers label and decide. "
    "Owners set thresholds, sign, and change members."
)
_ROLES = tuple((role.value, role.value) for role in Role)
_REASON = forms.Textarea(attrs={"rows": 2})


class RemovalForm(forms.Form):
    """Why somebody is no longer a member."""

    reason = forms.CharField(max_length=LONGEST_REASON, widget=_REASON)

    def clean_reason(self) -> str:
        """A reason that can be read."""
        reason: str = self.cleaned_data["reason"]
        if says_nothing(reason):
            raise ValidationError("Say why: the reason is what the next person reads.")
        return reason


class RoleForm(RemovalForm):
    """A member's other role, and why."""

    role = forms.ChoiceField(choices=_ROLES, help_text=_ROLE_HELP)
    field_order = ("role", "reason")


class InvitationForm(forms.Form):
    """Whom an owner invites."""

    note = forms.CharField(
        label="For whom",
        max_length=LONGEST_NOTE,
        help_text="So that you know later whose it was. Whoever opens the link does not see it.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    role = forms.ChoiceField(choices=_ROLES, help_text=_ROLE_HELP)
    days = forms.IntegerField(label="Good for days", min_value=1, max_value=MOST_DAYS, initial=DAYS)


@require_GET
@in_system(Act.READ)
def member_list(request: SystemRequest) -> HttpResponse:
    """The members of a system; with ?change= or ?remove= an owner's form for one of them."""
    return _page(request, form=_asked_form(request))


def _asked_form(request: SystemRequest) -> PeopleForm | None:
    if not request.access.may(Act.OWN):
        return None
    if person := uuid_of(request.GET.get("change", "")):
        member = _member(request, person)
        return _role_form(request, member, RoleForm(initial={"role": member.role}))
    if person := uuid_of(request.GET.get("remove", "")):
        return _removal_form(request, _member(request, person), RemovalForm())
    return None


def _page(
    request: SystemRequest,
    *,
    form: PeopleForm | None = None,
    invite: InvitationForm | None = None,
    status: int = 200,
) -> HttpResponse:
    access = request.access
    at, now = Addresses.of(access.system.slug), timezone.now()
    is_owner = access.may(Act.OWN)
    after, before = number_in(request, "after"), number_in(request, "before")
    found = members_page(access.system.pk, after=after, before=before)
    owners = owners_of(access.system.pk) if is_owner else frozenset[int]()
    page = MemberListPage(
        shell=system_shell(access, section="Members"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Members")),
        is_owner=is_owner,
        fresh=_fresh(request, now=now) if is_owner else None,
        form=form,
        members=tuple(_line(row, request, owners) for row in found.rows),
        pager=pager_of(found, at.members, {}),
        invite=_invite_form(request, invite or InvitationForm()) if is_owner else None,
        invite_why_not=access.refusal(Act.OWN),
        invitations=tuple(
            _invitation(row, request, owners, now=now)
            for row in (newest_invitations(access.system.pk) if is_owner else ())
        ),
        changes=tuple(_change(row) for row in newest_changes(access.system.pk)),
        audit_url=address(at.audit, {"kind": "person"}),
    )
    return render(request, "traces/member_list.html", {"page": page}, status=status)


def _fresh(request: SystemRequest, *, now: datetime) -> ShownOnce | None:
    path = take_secret(request, f"invitation-{request.access.system.pk}", now=now)
    if not path:
        return None
    return ShownOnce(
        heading="The invitation is made",
        sentence="Send this link to that person in private. It is shown only now, works once, and "
        "whoever has it can use it.",
        secret=request.build_absolute_uri(path),
    )


def _line(row: MemberRow, request: SystemRequest, owners: AbstractSet[int]) -> MemberLine:
    access, member, person = request.access, row.member, row.member.user
    at = Addresses.of(access.system.slug)
    is_owner = access.may(Act.OWN)
    change = role_refusal(person, by=access.user.pk, owners=owners) if is_owner else ""
    removal = removal_refusal(person, by=access.user.pk, owners=owners) if is_owner else ""
    who = str(person.uuid)
    return MemberLine(
        name=person.printed_name,
        username=person.username,
        role=member.role,
        is_oneself=person == access.user,
        is_inactive=not person.is_active,
        since=member.since,
        by=row.by.printed_name if row.by else "the operator",
        last_sign_in=person.last_login if is_owner else None,
        change_url=_form_url(at, "change", who) if is_owner and not change else "",
        remove_url=_form_url(at, "remove", who) if is_owner and not removal else "",
        why_not=removal or change,
    )


def _form_url(at: Addresses, act: str, person: str) -> str:
    return address(at.members, {act: person}, place="#form")


def _change(row: MemberChange) -> ChangeLine:
    words = "removed" if not row.new else row.new
    return ChangeLine(
        name=row.user.printed_name,
        words=f"{words}, before: {row.old}" if row.old else f"{words}, new",
        by=row.by.printed_name if row.by else "the operator",
        at=row.changed_at,
        reason=row.reason,
    )


def _invitation(
    row: Invitation, request: SystemRequest, owners: AbstractSet[int], *, now: datetime
) -> InvitationLine:
    if row.taken_by is not None:
        state = pages.Badge("taken", "pass")
        detail = f"by {row.taken_by.printed_name}, {time_text(row.taken_at)}"
    elif row.revoked_at is not None:
        state, detail = pages.Badge("revoked"), time_text(row.revoked_at)
    elif row.expires_at <= now:
        state, detail = pages.Badge("expired"), time_text(row.expires_at)
    elif row.made_by_id not in owners:
        state, detail = pages.Badge("void"), "its maker is no owner any more"
    else:
        state, detail = pages.Badge("open", "waiting"), f"until {time_text(row.expires_at)}"
    is_over = row.taken_at or row.revoked_at or row.expires_at <= now
    return InvitationLine(
        note=row.note,
        role=row.role,
        by=row.made_by.printed_name,
        at=row.made_at,
        state=state,
        detail=detail,
        revoke_url=""
        if is_over
        else reverse(
            "invitation-revoke",
            kwargs={"slug": request.access.system.slug, "invitation": row.uuid},
        ),
    )


def _invite_form(request: SystemRequest, form: InvitationForm) -> PeopleForm:
    return PeopleForm(
        heading="Invite somebody",
        sentence="You get a link to send. It makes one person a member, once; without an account "
        "they make one there.",
        form=form,
        action=reverse("member-invite", kwargs={"slug": request.access.system.slug}),
        act="Make the link",
    )


def _role_form(request: SystemRequest, member: Member, form: RoleForm) -> PeopleForm:
    access, person = request.access, member.user
    refusal = role_refusal(person, by=access.user.pk, owners=owners_of(access.system.pk))
    return PeopleForm(
        heading=f"Another role for {person.printed_name}, now {member.role}",
        sentence="It holds from their next page on. What they did as "
        f"{member.role} stays, and keeps counting for who may sign and decide.",
        form=form,
        action=reverse("member-role", kwargs={"slug": access.system.slug, "person": person.uuid}),
        act="Change the role",
        cancel_url=Addresses.of(access.system.slug).members,
        why_not=refusal,
    )


def _removal_form(request: SystemRequest, member: Member, form: RemovalForm) -> PeopleForm:
    access, person = request.access, member.user
    refusal = removal_refusal(person, by=access.user.pk, owners=owners_of(access.system.pk))
    oneself = person == access.user
    return PeopleForm(
        heading="Leave this system" if oneself else f"Remove {person.printed_name}, {member.role}",
        sentence="From the next page on nothing of this system is open to "
        f"{'you' if oneself else 'them'}, and {'your' if oneself else 'their'} API keys end at "
        "once. Evidence, verdicts and signatures stay.",
        form=form,
        action=reverse("member-remove", kwargs={"slug": access.system.slug, "person": person.uuid}),
        act="Leave" if oneself else "Remove the member",
        cancel_url=Addresses.of(access.system.slug).members,
        why_not=refusal,
    )


def _member(request: SystemRequest, person: UUID) -> Member:
    """The member of that person. Raises `Http404` for somebody of another system, as for nobody."""
    member = (
        Member.objects.select_related("user")
        .filter(system=request.access.system, user__uuid=person)
        .first()
    )
    if member is None:
        raise Http404(_NO_MEMBER)
    return member


def _person_name(user: User) -> str:
    return marked_text(user.printed_name)


@require_POST
@in_system(Act.OWN)
def member_invite(request: SystemRequest) -> HttpResponse:
    """Make an invitation; its link is shown on the next page, once."""
    access, now = request.access, timezone.now()
    form = InvitationForm(request.POST)
    if form.is_valid():
        try:
            made = make_invitation(
                access.system,
                role=Role(form.cleaned_data["role"]),
                note=form.cleaned_data["note"],
                days=form.cleaned_data["days"],
                by=access.user,
                now=now,
            )
        except PeopleError as error:
            form.add_error(None, str(error))
        else:
            path = reverse(
                "invitation-take",
                kwargs={"invitation": made.invitation.uuid, "secret": made.secret},
            )
            keep_secret(request, f"invitation-{access.system.pk}", path, now=now)
            return redirect("members", slug=access.system.slug)
    return _page(request, invite=form, status=422)


@require_POST
@in_system(Act.OWN)
def member_role(request: SystemRequest, person: UUID) -> HttpResponse:
    """Give a member another role."""
    access, member = request.access, _member(request, person)
    form = RoleForm(request.POST)
    if form.is_valid():
        role, reason = Role(form.cleaned_data["role"]), form.cleaned_data["reason"]
        try:
            set_member(access.system, member.user, role, by=access.user, reason=reason)
        except PeopleError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{_person_name(member.user)} is {role.value} now.")
            return redirect("members", slug=access.system.slug)
    return _page(request, form=_role_form(request, member, form), status=422)


@require_POST
@in_system(Act.OWN)
def member_remove(request: SystemRequest, person: UUID) -> HttpResponse:
    """Take a member out of the system."""
    access, member = request.access, _member(request, person)
    form = RemovalForm(request.POST)
    if form.is_valid():
        try:
            remove_member(
                access.system, member.user, by=access.user, reason=form.cleaned_data["reason"]
            )
        except PeopleError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"{_person_name(member.user)} is no longer a member.")
            if member.user == access.user:
                return redirect("system-list")
            return redirect("members", slug=access.system.slug)
    return _page(request, form=_removal_form(request, member, form), status=422)


@require_POST
@in_system(Act.OWN)
def invitation_revoke(request: SystemRequest, invitation: UUID) -> HttpResponse:
    """End an invitation that nobody has taken."""
    access = request.access
    row = Invitation.objects.filter(system=access.system, uuid=invitation).first()
    if row is None:
        raise Http404(_NO_INVITATION)
    try:
        revoke_invitation(row, by=access.user, now=timezone.now())
    except PeopleError as error:
        messages.error(request, str(error))
    else:
        messages.success(request, "The invitation works no longer.")
    return redirect("members", slug=access.system.slug)
