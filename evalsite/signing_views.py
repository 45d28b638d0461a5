"""What pages and API show of the signatures on a release, and what a person may do about them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from uuid import UUID

from evalsite.sealing import meaning_words
from reviews.core.gate.documents import parse_gate
from reviews.core.gate.manifest import difference_of
from reviews.core.gate.model import Gate
from reviews.core.gate.signing import (
    Decision,
    OpenCheck,
    SignOffStanding,
    Terms,
    approval_refusal,
    decisions_of,
    sign_off_state,
    waivable,
)
from reviews.core.gate.states import Mark, Meaning, SignOffState
from reviews.models import EvidenceManifest, ReleaseGate, SignOff
from reviews.permissions.sign_offs import (
    NOT_AN_OWNER,
    OTHER_DIGEST,
    OTHER_TERMS,
    SIGNED_ALREADY,
    why_not_second,
    why_not_sign,
)
from reviews.selectors.sign_offs import (
    roles_now,
    sign_offs_of,
    signatures_of,
    signed_release,
    terms_of,
    void_of,
)
from reviews.services.sign_offs import manifest_in
from traces.models import Release, Role, User

NOT_COMPUTED = "The gate of this release is not computed yet."
NO_VERSION = "Evidence without a version belongs to no release that can be signed."
VOID_ALREADY = "This signature is void already."
ONLY_OWNERS_VOID = "Only an owner of this system declares a signature void."


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
    meaning_words: str  # "approves release 2.4.0"
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
    why_not_sign: str  # the rule that keeps the person from signing at all; "" none
    waivable: OpenCheck | None  # the one check that a waiver would name
    joins: Terms | None  # the words that a first owner signed and a second one takes over
    differences: tuple[str, ...]  # between what was signed and now; () where they are not known

    @property
    def may_sign(self) -> bool:
        """Whether the person may sign anything."""
        return any(not choice.why_not for choice in self.choices)


@dataclass(frozen=True, slots=True)
class GateNow:
    """A gate as it is known at the moment. `digest` None: it is being computed anew."""

    gate: Gate | None
    digest: str | None
    revision: int


def gate_now(release_pk: int) -> GateNow:
    """The stored gate of a release. One query."""
    row = ReleaseGate.objects.filter(release=release_pk).first()
    if row is None:
        return GateNow(None, None, 0)
    gate = parse_gate(row.document) if row.document is not None else None
    return GateNow(gate, row.digest if row.is_current else None, row.revision)


def signing_view(release: Release, user: User | None, *, now: datetime) -> SigningView:
    """What the signatures on a release come to, and what a person may do."""
    return view_of(release, user, gate_now(release.pk), now=now)


def view_of(release: Release, user: User | None, known: GateNow, *, now: datetime) -> SigningView:
    """The same for a gate that was just computed, or read."""
    rows = sign_offs_of(release.pk)
    standing = standing_of(rows, known, now=now)
    people = {row.by_id for row in rows} | ({user.pk} if user else set())
    roles = roles_now(release.system_id, people)
    role = roles.get(user.pk, "") if user else ""
    why_not, choices = choices_of(release, user, role, known, standing, now=now)
    found = waivable(known.gate) if known.gate else None
    open_one = open_decision(standing)
    return SigningView(
        state=standing.state,
        marks=standing.marks,
        is_being_compared=Mark.STALE in standing.marks and known.digest is None,
        n_signed=len(standing.newest.signatures) if standing.newest else 0,
        n_needed=_n_needed(standing, known.gate),
        signatures=tuple(_line(row, release, standing, roles, role) for row in reversed(rows)),
        choices=choices,
        why_not_sign=why_not,
        waivable=found if isinstance(found, OpenCheck) else None,
        joins=open_one.signatures[0].terms if open_one else None,
        differences=_since_signed(standing, known.digest),
    )


def standing_of(rows: Sequence[SignOff], known: GateNow, *, now: datetime) -> SignOffStanding:
    """What stored signatures come to."""
    signatures = signatures_of(rows)
    digest = known.digest
    revisions = {row.pk: row.revision for row in rows}
    for newest in decisions_of(signatures)[-1:]:
        # Nothing was touched since it was signed: as it was, computed again or not.
        if digest is None and revisions[newest.signatures[-1].key] == known.revision:
            digest = newest.digest
    return sign_off_state(signatures, digest=digest, today=day(now))


def day(now: datetime) -> date:
    """The day of an instant, in UTC."""
    return now.astimezone(UTC).date()


def open_decision(standing: SignOffStanding) -> Decision | None:
    """An approval that waits for its second owner."""
    newest = standing.newest
    return newest if newest and not newest.is_complete else None


def choices_of(
    release: Release,
    user: User | None,
    role: str,
    known: GateNow,
    standing: SignOffStanding,
    *,
    now: datetime,
) -> tuple[str, tuple[Choice, ...]]:
    """Why a person may sign nothing at all, and for each meaning why not. 8 queries for owners."""
    why_not = NOT_AN_OWNER if user is None or role != Role.OWNER.value else ""
    if release.is_unversioned:
        why_not = why_not or NO_VERSION
    second = ""
    if user and not why_not:
        signed, subject = signed_release(release.pk)
        why_not = why_not_sign(signed, user, now=now)
        if not why_not and (open_one := open_decision(standing)):
            second = _second_refusal(open_one, user, known.digest) or why_not_second(
                signed, user, begun_at=subject.first_begun_at
            )
    return why_not, tuple(
        Choice(meaning, why_not or _meaning_refusal(meaning, known.gate, standing, second))
        for meaning in Meaning
    )


def _second_refusal(open_one: Decision, user: User, digest: str | None) -> str:
    if any(each.by == user.pk for each in open_one.signatures):
        return SIGNED_ALREADY
    return "" if digest == open_one.digest else OTHER_DIGEST


def _meaning_refusal(
    meaning: Meaning, gate: Gate | None, standing: SignOffStanding, second: str
) -> str:
    if meaning is Meaning.REJECTED:
        return ""
    if gate is None:
        return NOT_COMPUTED
    if second:
        return second
    open_one = open_decision(standing)
    if open_one and open_one.meaning is not meaning:
        return OTHER_TERMS
    if meaning is Meaning.APPROVED:
        return approval_refusal(gate)
    found = waivable(gate)
    return found if isinstance(found, str) else ""


def _n_needed(standing: SignOffStanding, gate: Gate | None) -> int:
    if standing.newest:
        return standing.newest.n_needed
    return gate.n_owners if gate else 1


def _line(
    row: SignOff,
    release: Release,
    standing: SignOffStanding,
    roles: Mapping[int, str],
    role: str,
) -> SignatureLine:
    void = void_of(row)
    terms = terms_of(row)
    newest = standing.newest.signatures if standing.newest else ()
    may_void = role == Role.OWNER.value
    return SignatureLine(
        uuid=row.uuid,
        pk=row.pk,
        meaning=terms.meaning,
        meaning_words=meaning_words(terms.meaning, release.name),
        printed_name=row.printed_name,
        role=row.role,
        role_now=roles.get(row.by_id, ""),
        signed_at=row.signed_at,
        digest=row.manifest.digest,
        intended_use=terms.intended_use,
        scope=terms.scope,
        expires_on=terms.expires_on,
        reason=terms.reason,
        next_action=terms.next_action,
        waived_tier=terms.waived_tier,
        waived_check=terms.waived_check,
        n_needed=row.n_needed,
        key_id=row.key_id,
        void=VoidLine(void.by.printed_name, void.voided_at, void.reason) if void else None,
        is_newest=any(each.key == row.pk for each in newest),
        why_not_void=VOID_ALREADY if void else "" if may_void else ONLY_OWNERS_VOID,
    )


def _since_signed(standing: SignOffStanding, digest: str | None) -> tuple[str, ...]:
    """What changed since the newest decision, where both manifests are kept. One query."""
    if Mark.STALE not in standing.marks or standing.newest is None or digest is None:
        return ()
    return differences_between(standing.newest.digest, digest)


def differences_between(old: str, new: str) -> tuple[str, ...]:
    """How two kept manifests differ, in sentences; () where one of them is not kept. One query."""
    rows = EvidenceManifest.objects.filter(digest__in=[old, new])
    kept = {row.digest: manifest_in(row) for row in rows}
    was, now = kept.get(old), kept.get(new)
    if was is None or now is None:
        return ()
    return tuple(each.sentence for each in difference_of(was, now))
