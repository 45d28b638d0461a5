"""Signing a release, and what was signed."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.client_address import client_address
from evalsite.signing import (
    CHANGED,
    SigningError,
    SigningView,
    attestation_of,
    is_digest,
    sign_release,
    signing_page,
    void_sign_off,
)
from evalsite.signing_views import differences_between
from evalsite.web.gate_found import (
    SIGNATURES,
    GateFound,
    gate_found,
    gate_head,
    signing_of,
)
from evalsite.web.sign_forms import SignForm
from evalsite.web.sign_page import Refused, meaning_of, sign_page_of
from evalsite.web.sign_words import signature_row
from reviews.core.gate.states import Meaning
from reviews.models import SignOff
from traces.core.text_marks import clean_text
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.downloads import attachment
from traces.web.pages.gates import SignatureListPage, SignaturePage, SignatureRow
from traces.web.shell import system_shell

NO_SIGNATURE = "There is no such signature on this release."
_SIGNED = {
    Meaning.APPROVED: "Your approval is signed.",
    Meaning.WAIVER: "Your approval with waiver is signed.",
    Meaning.REJECTED: "Your rejection is signed.",
}


@sensitive_post_parameters("password")
@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def sign_page(request: SystemRequest, release: UUID) -> HttpResponse:
    """What one signs, and the form that signs it."""
    found = gate_found(request, release)
    if found.release.is_unversioned:
        raise Http404("This release has no gate, so there is nothing to sign.")
    now = timezone.now()
    signing = signing_page(found.release, request.access.user, now=now)
    view = signing.view
    meaning = meaning_of(request.GET.get("meaning", ""), view)
    joins = view.joins if view.joins is not None and view.joins.meaning is meaning else None
    if request.method != "POST":
        form = SignForm(meaning, joins=joins, digest=signing.digest)
        page = sign_page_of(request, found, signing, meaning, form)
        return render(request, "reviews/sign_form.html", {"page": page})
    form = SignForm(meaning, request.POST, joins=joins, digest=signing.digest)
    seen = request.POST.get("seen_digest", "")
    refused, status = None, 422
    if form.is_valid():
        try:
            signed = sign_release(
                found.release,
                by=request.access.user,
                password=form.cleaned_data["password"],
                terms=form.terms(view.waivable),
                seen_digest=form.cleaned_data["seen_digest"],
                now=timezone.now(),
                request_ip=client_address(request),
            )
        except SigningError as error:
            refused = Refused(error.sentence, error.differences, seen)
            status = error.status
        else:
            messages.success(request, f"{_SIGNED[Meaning(signed.meaning)]} Its record stays.")
            return redirect(Addresses.of(request.access.system.slug).gate(release))
    if refused is not None:
        signing = signing_page(found.release, request.access.user, now=timezone.now())
    if seen != signing.digest and is_digest(seen):
        # The form goes out with the digest of now: what became another since is said beside it.
        since = differences_between(seen, signing.digest)
        refused = refused or Refused(CHANGED, (), seen)
        refused = replace(refused, differences=refused.differences or since)
    page = sign_page_of(request, found, signing, meaning, form, refused=refused)
    return render(request, "reviews/sign_form.html", {"page": page}, status=status)


@require_GET
@in_system(Act.READ)
def signature_list(request: SystemRequest, release: UUID) -> HttpResponse:
    """All signatures on a release, newest first, void ones too."""
    found = gate_found(request, release)
    view = signing_of(request, found, now=timezone.now())
    rows = tuple(signature_row(request, found, line) for line in view.signatures)
    page = SignatureListPage(
        shell=system_shell(request.access, section="Releases"),
        head=gate_head(request, found, view, tab=SIGNATURES),
        rows=rows,
        empty=None
        if rows
        else pages.Empty(
            heading="Nobody has signed this release",
            sentence="An owner signs it on its gate, once the evidence decides every check, or "
            "rejects it at any time.",
            act=pages.Link("Open the gate", Addresses.of(request.access.system.slug).gate(release)),
        ),
    )
    return render(request, "reviews/signature_list.html", {"page": page})


@require_GET
@in_system(Act.READ)
def signature_page(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponse:
    """One signature, as it was given."""
    found = gate_found(request, release)
    view = signing_of(request, found, now=timezone.now())
    return render(
        request, "reviews/signature_detail.html", {"page": _page(request, found, view, sign_off)}
    )


def _page(
    request: SystemRequest, found: GateFound, view: SigningView, sign_off: UUID
) -> SignaturePage:
    line = next((each for each in view.signatures if each.uuid == sign_off), None)
    if line is None:
        raise Http404(NO_SIGNATURE)
    row = signature_row(request, found, line)
    head = gate_head(request, found, view, tab=SIGNATURES)
    return SignaturePage(
        shell=system_shell(request.access, section="Releases"),
        head=head,
        signature=row,
        states=_states(row, head.marks),
        differences=view.differences if row.is_newest else (),
        facts=_facts(request, found, row),
        verify=f"manage.py verify {_file_name(found, line.uuid)}",
        keys_url="/signing-keys/",
    )


def _states(row: SignatureRow, marks: tuple[pages.Badge, ...]) -> tuple[pages.Badge, ...]:
    if row.voided_by:
        return (pages.Badge("void"),)
    return marks if row.is_newest else (pages.Badge("a later one stands"),)


def _facts(request: SystemRequest, found: GateFound, row: SignatureRow) -> tuple[pages.Fact, ...]:
    return (
        pages.Fact("System", request.access.system.name),
        pages.Fact("Release", found.label),
        pages.Fact("Release id", str(found.release.uuid)),
        pages.Fact("Signature id", row.uuid),
        pages.Fact("Key", row.key_id),
    )


def _found(request: SystemRequest, release: UUID, sign_off: UUID) -> tuple[GateFound, SignOff]:
    found = gate_found(request, release)
    row = (
        SignOff.objects.select_related("release", "by")
        .filter(release=found.release, uuid=sign_off)
        .first()
    )
    if row is None:
        raise Http404(NO_SIGNATURE)
    return found, row


@require_GET
@in_system(Act.READ)
def attestation(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponseBase:
    """The signature as a file that is verified offline."""
    found, row = _found(request, release, sign_off)
    return attachment(
        [attestation_of(row)],
        file_name=_file_name(found, sign_off),
        content_type="application/json",
    )


def _file_name(found: GateFound, sign_off: UUID) -> str:
    kept = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "-" for c in found.label)
    return f"{kept.strip('-.')[:60] or 'release'}-{str(sign_off)[:8]}.intoto.json"


@sensitive_post_parameters("password")
@require_POST
@in_system(Act.OWN)
def sign_off_void(request: SystemRequest, release: UUID, sign_off: UUID) -> HttpResponse:
    """Declare a signature void, with the reason. It stays visible."""
    found, row = _found(request, release, sign_off)
    reason = clean_text(request.POST.get("reason", "")).replace("\r\n", "\n").strip()
    try:
        void_sign_off(
            row,
            by=request.access.user,
            password=request.POST.get("password", ""),
            reason=reason,
            now=timezone.now(),
            request_ip=client_address(request),
        )
    except SigningError as error:
        view = signing_of(request, found, now=timezone.now())
        page = replace(
            _page(request, found, view, sign_off), void_error=error.sentence, void_text=reason
        )
        return render(request, "reviews/signature_detail.html", {"page": page}, status=error.status)
    messages.success(request, "The signature is void. It stays in the history.")
    return redirect(Addresses.of(request.access.system.slug).gate(release))
