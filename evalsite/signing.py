"""Signing a release: what pages, API and commands ask, and the one way in which it is done."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from reviews.core.gate.model import Gate
from reviews.core.gate.signing import OpenCheck, SignOffState, Terms
from reviews.core.gate.states import Mark, Meaning
from reviews.models import SignOff, SignOffVoid
from traces.models import Release, User


class SigningError(Exception):
    """A refusal. `status` is what page and API answer; `differences` what changed meanwhile."""

    def __init__(self, sentence: str, *, status: int, differences: tuple[str, ...] = ()) -> None:
        self.sentence = sentence
        self.status = status  # 403 | 409 | 422
        self.differences = differences
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class VoidLine:
    """That a signature is void."""

    by: str
    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class SignatureLine:
    """One signature as page, print, export and API show it."""

    uuid: UUID
    pk: int
    meaning: Meaning
    meaning_words: str  # "approves release 2.4.0 with a waiver"
    printed_name: str
    role: str
    role_now: str  # "" when the signer is no member any more
    signed_at: datetime
    digest: str  # of the evidence manifest
    intended_use: str
    scope: str
    expires_on: date | None
    reason: str
    next_action: str
    waived_tier: str
    waived_check: str  # kind of the check; "" without a waiver
    n_needed: int
    key_id: str
    void: VoidLine | None
    is_newest: bool  # belongs to the decision that stands
    why_not_void: str  # "" when the person may declare it void


@dataclass(frozen=True, slots=True)
class Choice:
    """One meaning that a person may sign, or why not."""

    meaning: Meaning
    why_not: str  # the sentence on the disabled button; "" when it may be signed


@dataclass(frozen=True, slots=True)
class SigningView:
    """All that pages show of a release's signatures, for one person."""

    state: SignOffState
    marks: tuple[Mark, ...]
    is_being_compared: bool  # new evidence since; the gate is being computed
    n_signed: int  # of the newest decision
    n_needed: int
    signatures: tuple[SignatureLine, ...]  # newest first, void ones too
    choices: tuple[Choice, ...]
    why_not_sign: str  # the separation rule that keeps the person from signing; "" none
    waivable: OpenCheck | None  # the one check that a waiver would name
    joins: Terms | None  # the words that a first owner signed and a second one takes over
    differences: tuple[str, ...]  # what changed since the newest decision was signed, when stale


@dataclass(frozen=True, slots=True)
class SigningPage:
    """What somebody who opens the page to sign is shown, computed at that moment."""

    gate: Gate
    digest: str  # goes back with the form as `seen_digest`
    view: SigningView


def signing_view(release: Release, user: User | None, *, now: datetime) -> SigningView:
    """What the signatures on a release come to, and what a person may do. Few queries."""
    raise NotImplementedError


def signing_page(release: Release, user: User, *, now: datetime) -> SigningPage:
    """The gate computed anew for somebody who is about to sign; keeps the manifest that is shown."""
    raise NotImplementedError


def sign_release(
    release: Release,
    *,
    by: User,
    password: str,
    terms: Terms,
    seen_digest: str,
    now: datetime,
    request_ip: str = "",
) -> SignOff:
    """Sign a release, or raise `SigningError` with the sentence why not."""
    raise NotImplementedError


def void_sign_off(
    sign_off: SignOff,
    *,
    by: User,
    password: str,
    reason: str,
    now: datetime,
    request_ip: str = "",
) -> SignOffVoid:
    """Declare a signature void, or raise `SigningError` with the sentence why not."""
    raise NotImplementedError


def attestation_of(sign_off: SignOff) -> bytes:
    """The file that is handed out: a DSSE envelope in canonical JSON."""
    return sign_off.envelope.encode("ascii")
