"""Signatures as rows, and what a person may do about them."""

from __future__ import annotations

from collections.abc import Sequence

from django.urls import reverse

from evalsite.access import SystemRequest
from evalsite.common.formatting import counted, time_text
from evalsite.signing import Choice, SignatureLine, SigningView
from evalsite.web.gate_found import GateFound
from evalsite.web.gate_words import (
    MARK_SENTENCES,
    MEANINGS,
    SIGN_OFFS,
    mark_badges,
    waived_words,
)
from reviews.core.gate.states import Meaning, SignOffState
from traces.web.addresses import Addresses, address
from traces.web.pages.gates import SignatureRow, SignChoice, SigningPart

LABELS = {
    Meaning.APPROVED: "Approve release",
    Meaning.WAIVER: "Approve with waiver",
    Meaning.REJECTED: "Reject",
}
SIGNING_HELP = (
    "You will confirm your password. Your name, the time, the meaning of the signature and the "
    "digest of the evidence are recorded and cannot be edited."
)
_SENTENCES = {
    SignOffState.NONE: "Nobody has signed this release.",
    SignOffState.APPROVED: "This release is approved.",
    SignOffState.WAIVER: "This release is approved with a waiver.",
    SignOffState.REJECTED: "This release is rejected.",
    SignOffState.VOID: "Every signature on this release is void.",
}


def signing_part(request: SystemRequest, found: GateFound, view: SigningView) -> SigningPart:
    """The sign-off panel."""
    at = Addresses.of(request.access.system.slug)
    rows = tuple(signature_row(request, found, line) for line in view.signatures)
    shown = tuple(row for row in rows if row.is_newest)
    return SigningPart(
        state=SIGN_OFFS[view.state],
        marks=mark_badges(view.marks),
        sentence=_sentence(view),
        choices=tuple(_choice(each, found, at, view) for each in view.choices),
        why_not=view.why_not_sign,
        signatures=shown,
        n_older=len(rows) - len(shown),
        history_url=at.signatures(found.release.uuid),
        differences=view.differences,
        is_being_compared=view.is_being_compared,
    )


def _sentence(view: SigningView) -> str:
    if view.state is SignOffState.PARTLY:
        words = f"{view.n_signed:,} of {counted(view.n_needed, 'owner')} signed."
    else:
        words = _SENTENCES[view.state]
    if view.state is SignOffState.NONE and view.n_needed > 1:
        words += f" {counted(view.n_needed, 'owner')} have to sign it."
    if view.is_being_compared:
        return f"{words} New evidence came since; it is being compared with what was signed."
    return " ".join([words, *(MARK_SENTENCES[mark] for mark in view.marks)])


def _choice(choice: Choice, found: GateFound, at: Addresses, view: SigningView) -> SignChoice:
    why = view.why_not_sign or choice.why_not
    label = LABELS[choice.meaning]
    if view.joins is not None and choice.meaning is view.joins.meaning:
        label = f"{label}, as second owner"
    return SignChoice(
        label=label,
        href="" if why else address(at.sign(found.release.uuid), {"meaning": choice.meaning.value}),
        why_not=why,
        is_primary=choice.meaning is Meaning.APPROVED,
        id=f"why-not-{choice.meaning.value.replace('_', '-')}",
    )


def signature_row(request: SystemRequest, found: GateFound, line: SignatureLine) -> SignatureRow:
    """One signature."""
    slug = request.access.system.slug
    at = Addresses.of(slug)
    kwargs = {"slug": slug, "release": found.release.uuid, "sign_off": line.uuid}
    return SignatureRow(
        uuid=str(line.uuid),
        href=at.signature(found.release.uuid, line.uuid),
        words=line.meaning_words,
        meaning=MEANINGS[line.meaning],
        printed_name=line.printed_name,
        role=line.role,
        role_now="" if line.role_now == line.role else line.role_now or "no member any more",
        signed_at=line.signed_at,
        signed_words=time_text(line.signed_at),
        digest=line.digest,
        intended_use=line.intended_use,
        scope=line.scope,
        expires_on=line.expires_on,
        reason=line.reason,
        next_action=line.next_action,
        waived=waived_words(line.waived_tier, line.waived_check, found.gate),
        key_id=line.key_id,
        needed=f"one of {line.n_needed} signatures that the tiers ask for"
        if line.n_needed > 1 and line.meaning is not Meaning.REJECTED
        else "",
        is_newest=line.is_newest,
        attestation_url=reverse("attestation", kwargs=kwargs),
        voided_by=line.void.by if line.void else "",
        voided_words=time_text(line.void.at) if line.void else "",
        void_reason=line.void.reason if line.void else "",
        void_url="" if line.void or line.why_not_void else reverse("sign-off-void", kwargs=kwargs),
        why_not_void="" if line.void else line.why_not_void,
    )


def newest_of(lines: Sequence[SignatureLine]) -> SignatureLine | None:
    """The newest signature of the decision that stands; None without one."""
    return next((line for line in lines if line.is_newest), None)
