"""One's own account: systems, password and devices."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.contrib.auth.password_validation import password_validators_help_texts
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import signed_in, systems_of
from evalsite.client_address import client_address
from evalsite.devices import (
    devices_of,
    end_device,
    end_other_devices,
    is_this,
    keep_after_new_password,
)
from evalsite.passwords import change_password
from evalsite.reauthentication import NO_PASSWORD, reauthenticate
from evalsite.web.browser_words import browser_words
from traces.models import SignedInDevice, User
from traces.web import pages
from traces.web.pages.people import (
    AccountPage,
    DeviceLine,
    MembershipLine,
    PeopleForm,
)
from traces.web.shell import person_shell

log = logging.getLogger("evalsite.accounts")

_NO_DEVICE = "There is no such device of yours."
_LONGEST_PASSWORD = 1_000


class PasswordForm(forms.Form):
    """The password of now, and another one."""

    old = forms.CharField(
        label="Your password now",
        strip=False,
        max_length=_LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "current-password"}),
    )
    new = forms.CharField(
        label="New password",
        strip=False,
        max_length=_LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )
    again = forms.CharField(
        label="New password again",
        strip=False,
        max_length=_LONGEST_PASSWORD,
        widget=forms.PasswordInput(attrs={"autocomplete": "new-password"}),
    )

    def __init__(self, data: object = None) -> None:
        super().__init__(data)  # type: ignore[arg-type]
        self.fields["new"].help_text = " ".join(password_validators_help_texts())

    def clean(self) -> dict[str, object]:
        """The two new ones are the same."""
        if self.cleaned_data.get("new") != self.cleaned_data.get("again"):
            self.add_error("again", "The two passwords differ.")
        return self.cleaned_data


@require_GET
@signed_in
def account_page(request: HttpRequest) -> HttpResponse:
    """One's own name, systems, password and devices."""
    return _page(request, PasswordForm())


def _page(request: HttpRequest, form: PasswordForm, *, status: int = 200) -> HttpResponse:
    user, now = _user(request), timezone.now()
    devices = tuple(_device(row, request) for row in devices_of(user, now=now))
    has_password = user.has_usable_password()
    page = AccountPage(
        shell=person_shell(request),
        name=user.printed_name,
        username=user.username,
        memberships=tuple(
            MembershipLine(
                pages.Link(row.system.name, reverse("task-list", kwargs={"slug": row.system.slug})),
                row.role,
                row.since,
            )
            for row in systems_of(user)
        ),
        password=_password_form(form) if has_password else None,
        no_password="" if has_password else NO_PASSWORD,
        devices=devices,
        unlisted=""
        if any(device.is_this for device in devices)
        else "This session began before devices were listed; it is not among them.",
        end_others_url=reverse("devices-end-others"),
    )
    return render(request, "account/account.html", {"page": page}, status=status)


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user


def _password_form(form: PasswordForm) -> PeopleForm:
    return PeopleForm(
        heading="Change the password",
        sentence="You are signed out everywhere else.",
        form=form,
        action=reverse("account-password"),
        act="Change the password",
    )


def _device(row: SignedInDevice, request: HttpRequest) -> DeviceLine:
    here = is_this(request, row)
    return DeviceLine(
        words=browser_words(row.agent),
        agent=row.agent,
        address=row.address,
        since=row.signed_in_at,
        seen=timezone.now() if here else row.last_seen_at,
        is_this=here,
        end_url="" if here else reverse("device-end", kwargs={"device": row.uuid}),
    )


@sensitive_post_parameters()
@require_POST
@signed_in
def account_password(request: HttpRequest) -> HttpResponse:
    """Change one's own password; all other sessions end."""
    form, now = PasswordForm(request.POST), timezone.now()
    if form.is_valid() and (changed := _changed(request, form, now=now)):
        keep_after_new_password(request, changed)
        end_other_devices(request, changed, now=now)
        messages.success(request, "The password is changed; you are signed out everywhere else.")
        return redirect("account")
    return _page(request, form, status=422)


def _changed(request: HttpRequest, form: PasswordForm, *, now: datetime) -> User | None:
    """The person with the new password; None where it was refused, with the sentence in the form."""
    user = _user(request)
    answer = reauthenticate(
        user, form.cleaned_data["old"], address=client_address(request), now=now
    )
    if not answer.is_right:
        form.add_error("old", answer.sentence)
        return None
    try:
        return change_password(user, form.cleaned_data["new"], now=now)
    except ValidationError as error:
        form.add_error("new", error)
        return None


@require_POST
@signed_in
def device_end(request: HttpRequest, device: UUID) -> HttpResponse:
    """End one of one's own sessions."""
    row = SignedInDevice.objects.filter(uuid=device, user=_user(request), ended_at=None).first()
    if row is None:
        raise Http404(_NO_DEVICE)
    end_device(row, now=timezone.now())
    messages.success(request, "That device is signed out.")
    return redirect("sign-in" if is_this(request, row) else "account")


@require_POST
@signed_in
def devices_end_others(request: HttpRequest) -> HttpResponse:
    """End all of one's own sessions but this one."""
    end_other_devices(request, _user(request), now=timezone.now())
    messages.success(request, "You are signed out everywhere else.")
    return redirect("account")
