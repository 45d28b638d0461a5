"""What an owner who signs a release is shown."""

from __future__ import annotations

from dataclasses import dataclass, replace

from evalsite.access import SystemRequest
from evalsite.signing import Choice, SigningPage, SigningView, is_digest
from evalsite.web.gate_found import GateFound, gate_head
from evalsite.web.gate_rows import GateView, gate_sections
from evalsite.web.gate_words import GATES, gate_sentence, results_words, rules_words, waived_words
from evalsite.web.sign_forms import WORDS, SignForm
from evalsite.web.sign_words import LABELS
from reviews.core.gate.model import Gate
from reviews.core.gate.signing import MOST_CHARACTERS
from reviews.core.gate.states import Meaning
from traces.core.text_marks import clean_text
from traces.web.addresses import Addresses, address
from traces.web.pages import Fact
from traces.web.pages.gates import GateCheck, SignField, SignPage
from traces.web.shell import system_shell

_HELP = {
    Meaning.APPROVED: "It may go out, for the use, in the scope and until the day that you name.",
    Meaning.WAIVER: "It may go out although one check is not met, which you name and answer for.",
    Meaning.REJECTED: "It does not go out. You say why, and what has to happen next.",
}
_SUBMIT = {
    Meaning.APPROVED: "Sign the approval",
    Meaning.WAIVER: "Sign the approval with waiver",
    Meaning.REJECTED: "Sign the rejection",
}


@dataclass(frozen=True, slots=True)
class Refused:
    """Why a signature was not taken, and what changed meanwhile."""

    sentence: str
    differences: tuple[str, ...] = ()
    seen_digest: str = ""


def meaning_of(text: str, view: SigningView) -> Meaning:
    """The meaning that an address names; else the first one that may be signed."""
    if text in set(Meaning):
        return Meaning(text)
    free = (each.meaning for each in view.choices if not each.why_not)
    return next(free, Meaning.REJECTED)


def sign_page_of(
    request: SystemRequest,
    found: GateFound,
    signing: SigningPage,
    meaning: Meaning,
    form: SignForm,
    *,
    refused: Refused | None = None,
) -> SignPage:
    """The page, for a form that is empty or was refused."""
    at = Addresses.of(request.access.system.slug)
    view, gate = signing.view, signing.gate
    found = replace(found, gate=gate)
    head = gate_head(request, found, view, tab="Sign")
    why_not = view.why_not_sign or _why_not(view, meaning)
    waived = _waived(view, meaning, gate)
    return SignPage(
        shell=system_shell(request.access, section="Releases"),
        head=head,
        statement=_statement(request, found, meaning),
        rules=rules_words(gate, found.begun_at),
        digest=signing.digest,
        facts=_facts(request, found, gate, signing.digest),
        checks=_checks(at, found, gate),
        meanings=tuple(_choice(each, meaning, found, at) for each in view.choices),
        form=None if why_not else form,
        kept=_kept(form) if why_not else (),
        why_not=why_not,
        waived=waived,
        joins="Another owner signed these words first; you sign the same ones, with a reason of "
        "your own."
        if form.joins
        else "",
        action=address(at.sign(found.release.uuid), {"meaning": meaning.value}),
        submit=_SUBMIT[meaning],
        cancel_url=at.gate(found.release.uuid),
        refusal=refused.sentence if refused else "",
        differences=refused.differences if refused else (),
        digest_before=refused.seen_digest
        if refused and is_digest(refused.seen_digest) and refused.seen_digest != signing.digest
        else "",
    )


def _kept(form: SignForm) -> tuple[Fact, ...]:
    """What was typed in a form that cannot be shown again, so that it can be copied."""
    if not form.is_bound:
        return ()
    typed = ((field.label, field.value()) for field in form if field.name in WORDS)
    return tuple(
        Fact(str(label), clean_text(text)[:MOST_CHARACTERS])
        for label, text in typed
        if isinstance(text, str) and text.strip()
    )


def _why_not(view: SigningView, meaning: Meaning) -> str:
    return next((each.why_not for each in view.choices if each.meaning is meaning), "")


def _waived(view: SigningView, meaning: Meaning, gate: Gate) -> str:
    if meaning is not Meaning.WAIVER:
        return ""
    if view.joins is not None:
        return waived_words(view.joins.waived_tier, view.joins.waived_check, gate)
    if view.waivable is None:
        return ""
    return waived_words(view.waivable.tier, view.waivable.kind.value, gate)


def _choice(choice: Choice, meaning: Meaning, found: GateFound, at: Addresses) -> SignField:
    return SignField(
        value=choice.meaning.value,
        label=LABELS[choice.meaning],
        help=_HELP[choice.meaning],
        href=address(at.sign(found.release.uuid), {"meaning": choice.meaning.value}),
        is_current=choice.meaning is meaning,
        why_not=choice.why_not,
    )


def _statement(request: SystemRequest, found: GateFound, meaning: Meaning) -> str:
    verb = {
        Meaning.APPROVED: "approve",
        Meaning.WAIVER: "approve with a waiver",
        Meaning.REJECTED: "reject",
    }[meaning]
    return (
        f"You, {request.access.user.printed_name}, {request.access.role.value} of "
        f"{request.access.system.name}, {verb} release {found.label} on the evidence below."
    )


def _facts(request: SystemRequest, found: GateFound, gate: Gate, digest: str) -> tuple[Fact, ...]:
    facts = [
        Fact("System", request.access.system.name),
        Fact("Release", found.label),
        Fact("Gate", f"{GATES[gate.state].label}: {results_words(gate) or 'no check'}"),
        Fact("In words", gate_sentence(found.label, gate)),
        Fact("Digest of the evidence, SHA-256", digest),
    ]
    return tuple(facts)


def _checks(
    at: Addresses, found: GateFound, gate: Gate
) -> tuple[tuple[str, tuple[GateCheck, ...]], ...]:
    view = GateView(at, found.release.uuid, found.begun_at, {}, n_details=0, n_trials=0)
    return tuple((section.title, section.checks) for section in gate_sections(gate, view))
