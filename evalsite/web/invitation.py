"""Taking an invitation: its link makes one person a member of a system."""

from __future__ import annotations

import logging
from typing import Final
from uuid import UUID

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.forms import UsernameField
from django.contrib.auth.password_validation import password_validators_help_texts
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods

from evalsite.access import public
from evalsite.accounts import PASSWORD_BACKEND
from evalsite.client_address import client_address
from evalsite.devices import sign_in_to
from evalsite.sign_in_log import note_signed_in
from evalsite.tries import count_try, n_tries
from traces.models import Invitation, Member, Role, User
from traces.services.invitations import (
    LONGEST_PRINTED_NAME,
    InvitationOverError,
    NewPerson,
    PersonError,
    join_by_invitation,
    open_invitation,
    take_invitation,
)
from traces.services.people import PeopleError
from traces.web.addresses import address
from traces.web.pages.people import InvitationPage
from traces.web.shell import person_shell

log = logging.getLogger("evalsite.accounts")

_NO_INVITATION: Final = "There is no such invitation, or it has been used, revoked or has expired."
_TRIES_AT: Final = "invitations"
_TRIES_FACTOR: Final = 4  # colleagues behind one address open old links in good faith
_ROLE_WORDS: Final = {
    Role.VIEWER: "You read everything, comment and flag.",
    Role.ENGINEER: "You upload evidence and propose tasks, contracts and rules.",
    Role.REVIEWER: "You label, decide disputes and work on cases.",
    Role.OWNER: "You answer for the system: thresholds, signatures and members.",
}


class AccountForm(forms.Form):
    """Who somebody without an account is."""

    username = UsernameField(
        label="Name to sign in with",
        max_length=150,
        help_text="Letters, digits and @ . + - _",
        widget=forms.TextInput(attrs={"autocomplete": "username"}),
    )
    printed_name = forms.CharField(
        label="Your name as signatures show it",
        max_length=LONGEST_PRINTED_NAME,
        widget=forms.TextInput(attrs={"autocomplete": "name"}),
    )
    password = forms.CharField(
        strip=False,
        max_length=1_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="Password again",
        strip=False,
        max_length=1_000,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.fields["password"].help_text = " ".join(password_validators_help_texts())

    def clean(self) -> dict[str, object]:
        """The two passwords are the same."""
        if self.cleaned_data.get("password") != self.cleaned_data.get("again"):
            self.add_error("again", "The two passwords differ.")
        return self.cleaned_data


@never_cache
@sensitive_post_parameters()
@require_http_methods(["GET", "HEAD", "POST"])
@public
def invitation_take(request: HttpRequest, invitation: UUID, secret: str) -> HttpResponse:
    """Accept as the signed-in person, or make an account first. Over or unknown: 404 alike."""
    now, place = timezone.now(), client_address(request)
    most = settings.AXES_FAILURE_LIMIT * _TRIES_FACTOR
    if n_tries(_TRIES_AT, now=now, address=place) >= most:
        return render(request, "429.html", status=429)
    row = open_invitation(invitation, secret, now=now)
    if row is None:
        count_try(_TRIES_AT, address=place, now=now)
        raise Http404(_NO_INVITATION)
    try:
        if isinstance(request.user, User):
            return _as_person(request, request.user, row, secret)
        return _as_somebody_new(request, row, secret)
    except InvitationOverError:
        raise Http404(_NO_INVITATION) from None


def _as_person(request: HttpRequest, user: User, row: Invitation, secret: str) -> HttpResponse:
    refusal = ""
    if held := Member.objects.filter(system=row.system, user=user).first():
        refusal = f"You are a member of {row.system.name} already, as {held.role}."
    # The page may have been opened by another person, or by nobody.
    is_meant = request.method == "POST" and request.POST.get("as") == str(user.uuid)
    if is_meant and not refusal:
        try:
            take_invitation(row, by=user, now=timezone.now())
        except InvitationOverError:
            raise
        except PeopleError as error:
            refusal = str(error)
        else:
            return _welcome(request, row)
    status = 422 if request.method == "POST" else 200
    return _page(request, row, secret, user=user, why_not=refusal, form=None, status=status)


def _as_somebody_new(request: HttpRequest, row: Invitation, secret: str) -> HttpResponse:
    form = AccountForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        asked = form.cleaned_data
        person = NewPerson(asked["username"], asked["printed_name"], asked["password"])
        try:
            user = join_by_invitation(row, person, now=timezone.now())
        except PersonError as error:
            form.add_error(error.field, str(error))
        else:
            sign_in_to(request, user, backend=PASSWORD_BACKEND)
            note_signed_in(request, user, now=timezone.now(), is_demo=False)
            log.info("signed in by an invitation", extra={"user": user.pk})
            return _welcome(request, row)
    status = 422 if form.is_bound else 200
    return _page(request, row, secret, user=None, why_not="", form=form, status=status)


def _welcome(request: HttpRequest, row: Invitation) -> HttpResponse:
    messages.success(request, f"You are a member now, as {row.role}.")
    return redirect("task-list", slug=row.system.slug)


def _page(
    request: HttpRequest,
    row: Invitation,
    secret: str,
    *,
    user: User | None,
    why_not: str,
    form: AccountForm | None,
    status: int,
) -> HttpResponse:
    here = reverse("invitation-take", kwargs={"invitation": row.uuid, "secret": secret})
    page = InvitationPage(
        shell=person_shell(request),
        system=row.system.name,
        role=row.role,
        role_words=_ROLE_WORDS[Role(row.role)],
        by=row.made_by.printed_name,
        expires_at=row.expires_at,
        action=here,
        person=str(user.uuid) if user else "",
        signed_in_as=user.printed_name if user else "",
        why_not=why_not,
        form=form,
        sign_in_url=address(reverse("sign-in"), {"next": here}),
    )
    answer = render(request, "account/invitation.html", {"page": page}, status=status)
    # Not `no-referrer`: with it browsers hide the origin that the CSRF check reads.
    answer["Referrer-Policy"] = "strict-origin"
    return answer
