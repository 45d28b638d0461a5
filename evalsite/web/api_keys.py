"""The API keys of a system: an engineer makes their own, owners see and end all."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import time_text
from evalsite.common.shell import Crumb
from evalsite.web.shown_once import keep_secret, take_secret
from traces.models import ApiKey, Role, Scope
from traces.permissions.people import key_refusal
from traces.selectors.members import keys_page
from traces.services.people import (
    LONGEST_KEY_NAME,
    MOST_DAYS,
    PeopleError,
    create_api_key,
    revoke_api_key,
)
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import number_in, pager_of
from traces.web.pages.people import KeyLine, KeyListPage, PeopleForm, ShownOnce
from traces.web.shell import system_shell

_NO_KEY = "There is no such key in this system."
_NOT_AN_ENGINEER = "Only an engineer of this system makes API keys, for themself."
_SCOPES = (
    (Scope.INGEST.value, "ingest: upload evidence, declare runs, propose"),
    (Scope.READ.value, "read: figures, paths, cases, gates"),
)


class KeyForm(forms.Form):
    """A new key of one's own."""

    name = forms.CharField(
        max_length=LONGEST_KEY_NAME,
        help_text="What uses it, such as the nightly job.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    scopes = forms.MultipleChoiceField(
        choices=_SCOPES,
        widget=forms.CheckboxSelectMultiple,
        initial=[Scope.INGEST.value],
        help_text="Give it no more than it needs.",
        error_messages={"required": "A key needs a scope: ingest, read or both."},
    )
    days = forms.IntegerField(label="Good for days", min_value=1, max_value=MOST_DAYS, initial=90)


@require_GET
@in_system(Act.READ)
def key_list(request: SystemRequest) -> HttpResponse:
    """The reader's own keys; an owner's page shows those of everybody."""
    return _page(request, KeyForm())


def _page(request: SystemRequest, form: KeyForm, *, status: int = 200) -> HttpResponse:
    access = request.access
    at, now = Addresses.of(access.system.slug), timezone.now()
    is_owner, may = access.may(Act.OWN), access.may(Act.CONTRIBUTE)
    found = keys_page(
        access.system.pk,
        of=None if is_owner else access.user.pk,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    page = KeyListPage(
        shell=system_shell(access, section="API keys"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("API keys")),
        fresh=_fresh(request, now=now) if may else None,
        keys=tuple(_line(key, request, now=now) for key in found.rows),
        pager=pager_of(found, at.api_keys, {}),
        new=_form(request, form) if may else None,
        new_why_not="" if may else _NOT_AN_ENGINEER,
        empty=None if found.rows else _nothing(is_owner=is_owner),
    )
    return render(request, "traces/api_key_list.html", {"page": page}, status=status)


def _nothing(*, is_owner: bool) -> pages.Empty:
    return pages.Empty(
        heading="No key yet",
        sentence="With a key a program uploads evidence, or reads figures and gates, in the name "
        f"of one engineer. {'Engineers of this system make their own.' if is_owner else ''}",
    )


def _fresh(request: SystemRequest, *, now: datetime) -> ShownOnce | None:
    secret = take_secret(request, f"key-{request.access.system.pk}", now=now)
    if not secret:
        return None
    return ShownOnce(
        heading="The key is made",
        sentence="Copy it now: it is stored as a hash only, and is never shown again. Send it as "
        "Authorization: Bearer, in no address.",
        secret=secret,
    )


def _form(request: SystemRequest, form: KeyForm) -> PeopleForm:
    return PeopleForm(
        heading="New key of yours",
        sentence="Whatever arrives with it counts as uploaded by you. It never signs, labels, "
        "approves or sets thresholds.",
        form=form,
        action=reverse("api-key-new", kwargs={"slug": request.access.system.slug}),
        act="Make the key",
    )


def _line(key: ApiKey, request: SystemRequest, *, now: datetime) -> KeyLine:
    access = request.access
    has_ended = key.revoked_at is not None or key.expires_at <= now
    why_not = key_refusal(key.user_id, by=access.user.pk, role=access.role)
    return KeyLine(
        name=key.name,
        prefix=f"evs_{key.prefix}…",
        holder=key.user.printed_name,
        scopes=", ".join(key.scopes),
        made_at=key.created_at,
        expires_at=key.expires_at,
        last_used_at=key.last_used_at,
        state=_state(key, now=now),
        revoke_url=""
        if has_ended or why_not
        else reverse("api-key-revoke", kwargs={"slug": access.system.slug, "key": key.uuid}),
        why_not="" if has_ended else why_not,
    )


def _state(key: ApiKey, *, now: datetime) -> pages.Badge:
    if key.revoked_at is not None:
        return pages.Badge(f"ended {time_text(key.revoked_at)}")
    if key.expires_at <= now:
        return pages.Badge("expired")
    if key.expires_at <= now + timedelta(days=7):
        return pages.Badge("expires soon", "unresolved")
    return pages.Badge("works", "pass")


@require_POST
@in_system(Act.CONTRIBUTE)
def key_new(request: SystemRequest) -> HttpResponse:
    """Make a key of one's own; it is shown on the next page, once."""
    access, now = request.access, timezone.now()
    form = KeyForm(request.POST)
    if form.is_valid():
        asked = form.cleaned_data
        try:
            made = create_api_key(
                access.system,
                by=access.user,
                name=asked["name"],
                scopes=tuple(scope for scope in Scope if scope.value in asked["scopes"]),
                expires_at=now + timedelta(days=asked["days"]),
                now=now,
            )
        except PeopleError as error:
            form.add_error(None, str(error))
        else:
            keep_secret(request, f"key-{access.system.pk}", made.secret, now=now)
            return redirect("api-keys", slug=access.system.slug)
    return _page(request, form, status=422)


@require_POST
@in_system(Act.RECOMPUTE)
def key_revoke(request: SystemRequest, key: UUID) -> HttpResponse:
    """End a key at once: one's own, or an owner any."""
    access = request.access
    row = ApiKey.objects.filter(system=access.system, uuid=key).first()
    if row is None:
        raise Http404(_NO_KEY)
    if refusal := key_refusal(row.user_id, by=access.user.pk, role=access.role):
        raise PermissionDenied(refusal)
    by_owner = access.role is Role.OWNER and row.user_id != access.user.pk
    revoke_api_key(
        row, by=access.user, now=timezone.now(), reason="Ended by an owner." if by_owner else ""
    )
    messages.success(request, f"The key evs_{row.prefix}… works no longer.")
    return redirect("api-keys", slug=access.system.slug)
