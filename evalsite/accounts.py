"""Signing in and out."""

from __future__ import annotations

import ipaddress
import logging

from django import forms
from django.conf import settings
from django.contrib.auth import logout
from django.contrib.auth.forms import AuthenticationForm, UsernameField
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_http_methods, require_POST

from evalsite.access import public
from evalsite.demo_password import has_demo_password
from evalsite.devices import note_sign_out, sign_in_to
from evalsite.sign_in_log import note_refused, note_signed_in, note_signed_out
from traces.models import User
from traces.web import pages

log = logging.getLogger("evalsite.accounts")

PASSWORD_BACKEND = "django.contrib.auth.backends.ModelBackend"
_LOCAL_NAMES = frozenset({"localhost", "127.0.0.1", "[::1]"})
_PROXY_SIGNS = tuple(
    f"HTTP_{name}"
    for name in (
        "X_FORWARDED_FOR",
        "X_FORWARDED_HOST",
        "X_FORWARDED_PROTO",
        "X_REAL_IP",
        "FORWARDED",
        "VIA",
        "CF_CONNECTING_IP",
        "TRUE_CLIENT_IP",
    )
)
DEMO_ROLES = (
    pages.DemoRole("engineer", "Engineer", "uploads traces, writes contracts, compares paths"),
    pages.DemoRole(
        "reviewer", "Reviewer", "labels, decides disputes, works cases, approves contracts"
    ),
    pages.DemoRole(
        "reviewer-2",
        "Second reviewer",
        "labels blind beside the first, decides what that one may not",
    ),
    pages.DemoRole("owner", "Owner", "answers for the system, sets thresholds, signs releases"),
    pages.DemoRole("viewer", "Viewer", "reads, comments and flags"),
)
_DEMO_NAMES = frozenset(role.value for role in DEMO_ROLES)


class SignInForm(AuthenticationForm):
    """Name and password."""

    # Django's own form only tells the browser how long a name may be.
    username = UsernameField(max_length=150, widget=forms.TextInput(attrs={"autofocus": True}))

    error_messages = {
        "invalid_login": "The name or the password is wrong. Both heed upper and lower case.",
        "inactive": "The name or the password is wrong. Both heed upper and lower case.",
    }


@never_cache
@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@public
def sign_in(request: HttpRequest) -> HttpResponse:
    """The sign-in page. Too many wrong tries are refused for a while."""
    if request.user.is_authenticated:
        return redirect(local_address(request, request.GET.get("next", "")))
    form = SignInForm(request, request.POST if request.method == "POST" else None)
    if form.is_valid():
        # A new session key: one that was planted before is worth nothing.
        sign_in_to(request, form.get_user())
        note_signed_in(request, form.get_user(), now=timezone.now(), is_demo=False)
        log.info("signed in", extra={"user": form.get_user().pk})
        return redirect(local_address(request, request.POST.get("next", "")))
    if form.is_bound:
        note_refused(request, request.POST.get("username", ""), now=timezone.now())
    status = 422 if form.is_bound else 200
    return render(request, "account/sign_in.html", {"page": _page(request, form)}, status=status)


def _page(request: HttpRequest, form: forms.Form) -> pages.SignInPage:
    asked = request.POST.get("next") or request.GET.get("next", "")
    next_url = local_address(request, asked)
    offers_demo = is_demo_allowed(request)
    return pages.SignInPage(
        form=form,
        action_url=reverse("sign-in"),
        next_url=next_url if asked else "",
        demo_url=reverse("demo-sign-in") if offers_demo else "",
        demo_roles=DEMO_ROLES if offers_demo else (),
    )


def local_address(request: HttpRequest, url: str) -> str:
    """The address to go on to, if it is one of this site; else the start page."""
    # Without its slash, a word would be looked up as the name of a route.
    if url.startswith("/") and url_has_allowed_host_and_scheme(
        url, allowed_hosts={request.get_host()}, require_https=request.is_secure()
    ):
        return url
    return reverse("system-list")


@require_POST
@public
def sign_out(request: HttpRequest) -> HttpResponse:
    """End the session."""
    note_sign_out(request)
    if request.user.is_authenticated:
        note_signed_out(request.user, now=timezone.now())
    logout(request)
    return redirect("sign-in")


@require_POST
@public
def demo_sign_in(request: HttpRequest) -> HttpResponse:
    """Sign in as a role of the demo, without a password; only in demo mode, only on this machine."""
    if not is_demo_allowed(request):
        raise Http404("There is no demo here.")
    word = request.POST.get("role", "")
    person = demo_person(word) if word in _DEMO_NAMES else None
    if person is None:
        raise Http404("The demo has nobody of that role.")
    sign_in_to(request, person, backend=PASSWORD_BACKEND)
    note_signed_in(request, person, now=timezone.now(), is_demo=True)
    log.info("signed in to the demo", extra={"user": person.pk})
    return redirect(local_address(request, request.POST.get("next", "")))


def is_demo_allowed(request: HttpRequest) -> bool:
    """Whether the demo's sign-in is open: in demo mode, asked for from and at this machine.

    The name that was asked for counts too, so that another site's page cannot reach it through a
    name of its own, and so does any sign of a proxy in between.
    """
    if not settings.EVALSITE_DEMO:
        return False
    headers = request.META
    if any(name in headers for name in _PROXY_SIGNS):
        return False
    host = headers.get("HTTP_HOST", "").rsplit(":", 1)
    name = headers.get("HTTP_HOST", "") if host[-1].endswith("]") else host[0]
    return name in _LOCAL_NAMES and _is_loopback(headers.get("REMOTE_ADDR", ""))


def _is_loopback(text: str) -> bool:
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def demo_person(name: str) -> User | None:
    """The person of the demo of that name, if they have no password of their own."""
    person = User.objects.filter(username=name, is_active=True).first()
    if person is None or not person.has_usable_password():
        return person
    return person if has_demo_password(person, settings.EVALSITE_DATA) else None
