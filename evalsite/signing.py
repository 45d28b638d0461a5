"""Signing a release: the one way in which it is done, and its being declared void.

The password is asked before the transaction, so that a wrong one is counted. The transaction takes
the locks that every writer of the release's evidence takes, reads the role again, computes the
gate from what is stored, and stores the signature, or nothing.
"""

from __future__ import annotations

import logging
import re
import uuid
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db import connection, transaction

from evalsite.common.audit import AuditedObject, record
from evalsite.gates import ComputedGate, compute_gate
from evalsite.reauthentication import password_refusal
from evalsite.sealing import statement_about
from evalsite.signing_keys import signing_key
from evalsite.signing_views import (
    NO_VERSION,
    NOT_COMPUTED,
    ONLY_OWNERS_VOID,
    VOID_ALREADY,
    Choice,
    GateNow,
    SignatureLine,
    SigningView,
    VoidLine,
    day,
    open_decision,
    signing_view,
    standing_of,
    view_of,
)
from reviews.core.gate.attestation import file_of
from reviews.core.gate.manifest import difference_of
from reviews.core.gate.model import Gate
from reviews.core.gate.signing import (
    SignOffStanding,
    Terms,
    approval_refusal,
    terms_refusal,
    waiver_refusal,
)
from reviews.core.gate.states import Meaning
from reviews.models import EvidenceManifest, ReleaseGate, SignOff, SignOffVoid
from reviews.permissions.sign_offs import (
    NOT_AN_OWNER,
    OTHER_DIGEST,
    OTHER_TERMS,
    SAID_ALREADY,
    SIGNED_ALREADY,
    why_not_second,
    why_not_sign,
)
from reviews.selectors.sign_offs import sign_offs_of, signed_release
from reviews.services.gate_rows import touch_gates
from reviews.services.sign_offs import (
    SignedWords,
    keep_manifest,
    manifest_in,
    store_sign_off,
    store_void,
)
from traces.core.text_marks import says_nothing
from traces.models import Release, Role, System, User
from traces.services.trials import ingest_locks

log = logging.getLogger("evalsite.signing")

CHANGED = "The evidence changed since you looked; nothing was signed."
NOTHING_SEEN = "Open the page to sign again: what was shown there is not known."
VOID_NEEDS_REASON = "A reason is needed."
VOID_REASON_LONG = "The reason has at most 4,000 characters."
_DIGEST = re.compile(r"[0-9a-f]{64}")
_MOST_REASON = 4_000


class SigningError(Exception):
    """A refusal. `status` is what page and API answer; `differences` what changed meanwhile."""

    def __init__(self, sentence: str, *, status: int, differences: tuple[str, ...] = ()) -> None:
        self.sentence = sentence
        self.status = status  # 403 | 409 | 422
        self.differences = differences
        super().__init__(sentence)


@dataclass(frozen=True, slots=True)
class SigningPage:
    """What somebody who opens the page to sign is shown, computed at that moment."""

    gate: Gate
    digest: str  # goes back with the form as `seen_digest`
    view: SigningView


def signing_page(release: Release, user: User, *, now: datetime) -> SigningPage:
    """The gate computed anew for somebody who is about to sign; keeps the manifest that is shown.

    Raises `SigningError` (422) for the release without a version.
    """
    _refuse_unversioned(release)
    computed = compute_gate(release.pk, now=now)
    keep_manifest(computed.manifest, computed.digest)
    known = GateNow(computed.gate, computed.digest, computed.revision)
    view = view_of(release, user, known, now=now)
    return SigningPage(computed.gate, computed.digest, view)


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
    """Sign a release on exactly the evidence that was seen, or raise `SigningError`.

    403: not this person, or not this password; 409: evidence, gate or signatures do not allow it,
    with the differences where the evidence changed; 422: the words are not whole.
    """
    _refuse_unversioned(release)
    terms = _trimmed(terms)
    if sentence := terms_refusal(terms, today=day(now)):
        raise SigningError(sentence, status=422)
    if not is_digest(seen_digest):
        raise SigningError(NOTHING_SEEN, status=422)
    _refuse_person(release, by, now=now)
    _refuse_password(release, by, password, act="sign_off.refused", now=now, request_ip=request_ip)
    with transaction.atomic():
        _lock(release, by)
        row = _signed(release, by, terms, seen_digest, now=now)
    log.info("release signed", extra={"release": release.pk, "sign_off": row.pk, "user": by.pk})
    return row


def _signed(
    release: Release, by: User, terms: Terms, seen_digest: str, *, now: datetime
) -> SignOff:
    """Under the locks: everything is looked at again."""
    computed = compute_gate(release.pk, now=now)
    standing = standing_of(
        sign_offs_of(release.pk), GateNow(computed.gate, computed.digest, -1), now=now
    )
    _refuse_person(release, by, now=now)
    _refuse_changed(standing, terms, computed, seen_digest)
    _refuse_signatures(release, by, terms, standing, computed)
    _refuse_gate(terms, computed.gate)
    row = _stored(release, by, terms, computed, now=now)
    after = standing_of(
        sign_offs_of(release.pk), GateNow(computed.gate, computed.digest, -1), now=now
    )
    if after.newest and after.newest.is_complete:
        # The last signed release of all others may be another one now.
        others = Release.objects.filter(system=release.system_id).exclude(pk=release.pk)
        touch_gates(others.values_list("pk", flat=True), now=now)
    _tell(
        "sign_off.made",
        release,
        by,
        now,
        obj=("sign_off", str(row.uuid), f"{release.name}: {row.meaning}"),
        before={"state": standing.state.value},
        after={
            "state": after.state.value,
            "release": str(release.uuid),
            "meaning": row.meaning,
            "digest": computed.digest,
            "key": row.key_id,
        },
        reason=row.reason,
        rows=[("reviews_signoff", row.pk)],
    )
    return row


def _stored(
    release: Release, by: User, terms: Terms, computed: ComputedGate, *, now: datetime
) -> SignOff:
    revision = ReleaseGate.objects.filter(release=release.pk).values_list("revision", flat=True)
    words = SignedWords(
        uuid=uuid.uuid4(),
        terms=terms,
        printed_name=by.printed_name,
        signed_at=now,
        n_needed=1 if terms.meaning is Meaning.REJECTED else computed.gate.n_owners,
        revision=revision.first() or 0,
    )
    statement = statement_about(
        release,
        words,
        by=by,
        gate=computed.gate,
        manifest=computed.manifest,
        digest=computed.digest,
    )
    key = signing_key()
    return store_sign_off(
        release,
        words,
        by=by,
        manifest=keep_manifest(computed.manifest, computed.digest),
        key_id=key.key_id,
        envelope=file_of(statement, key_id=key.key_id, sign=key.sign),
    )


def void_sign_off(
    sign_off: SignOff,
    *,
    by: User,
    password: str,
    reason: str,
    now: datetime,
    request_ip: str = "",
) -> SignOffVoid:
    """Declare a signature void, or raise `SigningError`. The signature stays visible."""
    reason = reason.strip()
    if says_nothing(reason):
        raise SigningError(VOID_NEEDS_REASON, status=422)
    if len(reason) > _MOST_REASON or "\0" in reason:
        raise SigningError(VOID_REASON_LONG, status=422)
    release = sign_off.release
    _refuse_no_owner(release, by, ONLY_OWNERS_VOID)
    _refuse_password(release, by, password, act="sign_off.refused", now=now, request_ip=request_ip)
    with transaction.atomic():
        _lock(release, by)
        _refuse_no_owner(release, by, ONLY_OWNERS_VOID)
        if SignOffVoid.objects.filter(sign_off=sign_off.pk).exists():
            raise SigningError(VOID_ALREADY, status=409)
        row = store_void(sign_off, reason=reason, by=by, now=now)
        touch_gates(
            Release.objects.filter(system=release.system_id).values_list("pk", flat=True), now=now
        )
        _tell(
            "sign_off.voided",
            release,
            by,
            now,
            obj=("sign_off", str(sign_off.uuid), f"{release.name}: {sign_off.meaning}"),
            before={"is_void": False},
            after={"is_void": True, "release": str(release.uuid)},
            reason=reason,
            rows=[("reviews_signoffvoid", sign_off.pk)],
        )
    log.info("signature void", extra={"sign_off": sign_off.pk, "user": by.pk})
    return row


def is_digest(text: str) -> bool:
    """Whether a text is a SHA-256 as pages show it."""
    return _DIGEST.fullmatch(text) is not None


def attestation_of(sign_off: SignOff) -> bytes:
    """The file that is handed out: a DSSE envelope in canonical JSON."""
    return sign_off.envelope.encode("ascii")


def _tell(
    act: str,
    release: Release,
    by: User,
    now: datetime,
    *,
    obj: tuple[str, str, str],
    **more: Any,
) -> None:
    """Put an act into the audit log."""
    record(act, system_pk=release.system_id, by_pk=by.pk, at=now, obj=AuditedObject(*obj), **more)


# --- refusals


def _refuse_unversioned(release: Release) -> None:
    if release.is_unversioned:
        raise SigningError(NO_VERSION, status=422)


def _trimmed(terms: Terms) -> Terms:
    """Without what a meaning does not carry, and without white space around."""
    is_approval = terms.meaning is not Meaning.REJECTED
    is_waiver = terms.meaning is Meaning.WAIVER
    return replace(
        terms,
        intended_use=terms.intended_use.strip() if is_approval else "",
        scope=terms.scope.strip() if is_approval else "",
        expires_on=terms.expires_on if is_approval else None,
        reason=terms.reason.strip(),
        next_action="" if is_approval else terms.next_action.strip(),
        waived_tier=terms.waived_tier if is_waiver else "",
        waived_check=terms.waived_check if is_waiver else "",
    )


def _refuse_person(release: Release, by: User, *, now: datetime) -> None:
    signed, _ = signed_release(release.pk)
    if sentence := why_not_sign(signed, by, now=now):
        raise SigningError(sentence, status=403)


_OWNER = """
SELECT true FROM traces_member m JOIN traces_user u ON u.id = m.user_id AND u.is_active
WHERE m.system_id = %s AND m.user_id = %s AND m.role = %s
"""


def _refuse_no_owner(release: Release, by: User, sentence: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_OWNER, [release.system_id, by.pk, Role.OWNER.value])
        if cursor.fetchone() is None:
            raise SigningError(sentence, status=403)


def _refuse_password(
    release: Release, by: User, password: str, *, act: str, now: datetime, request_ip: str
) -> None:
    sentence = password_refusal(by, password, address=request_ip, now=now)
    if not sentence:
        return
    with transaction.atomic():
        _tell(
            act,
            release,
            by,
            now,
            obj=("release", str(release.uuid), release.name),
            after={"why": sentence},
        )
    raise SigningError(sentence, status=403)


def _lock(release: Release, by: User) -> None:
    """The release's evidence, then the signer's role, until the transaction ends."""
    ingest_locks(System.objects.get(pk=release.system_id), [release])
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT role FROM traces_member WHERE system_id = %s AND user_id = %s FOR SHARE",
            [release.system_id, by.pk],
        )


def _refuse_changed(
    standing: SignOffStanding, terms: Terms, computed: ComputedGate, seen_digest: str
) -> None:
    open_one = open_decision(standing)
    is_approval = terms.meaning is not Meaning.REJECTED
    if is_approval and open_one and open_one.digest != seen_digest:
        raise SigningError(OTHER_DIGEST, status=409)
    if seen_digest == computed.digest:
        return
    seen = EvidenceManifest.objects.filter(digest=seen_digest).first()
    was = manifest_in(seen) if seen else None
    found = difference_of(was, computed.manifest) if was is not None else ()
    raise SigningError(
        CHANGED, status=409, differences=tuple(difference.sentence for difference in found)
    )


def _refuse_signatures(
    release: Release, by: User, terms: Terms, standing: SignOffStanding, computed: ComputedGate
) -> None:
    """What stands already keeps this signature from being given."""
    newest = standing.newest
    if newest is None:
        return
    mine = [each for each in newest.signatures if each.by == by.pk]
    if mine and newest.digest == computed.digest and mine[-1].terms.shared == terms.shared:
        raise SigningError(SAID_ALREADY if newest.is_complete else SIGNED_ALREADY, status=409)
    if newest.is_complete or terms.meaning is Meaning.REJECTED:
        return
    if mine:
        raise SigningError(SIGNED_ALREADY, status=409)
    if newest.signatures[0].terms.shared != terms.shared:
        raise SigningError(OTHER_TERMS, status=409)
    signed, subject = signed_release(release.pk)
    if sentence := why_not_second(signed, by, begun_at=subject.first_begun_at):
        raise SigningError(sentence, status=403)


def _refuse_gate(terms: Terms, gate: Gate) -> None:
    sentence = ""
    if terms.meaning is Meaning.APPROVED:
        sentence = approval_refusal(gate)
    elif terms.meaning is Meaning.WAIVER:
        sentence = waiver_refusal(gate, tier=terms.waived_tier, check=terms.waived_check)
    if sentence:
        raise SigningError(sentence, status=409)


__all__ = [
    "CHANGED",
    "NOT_AN_OWNER",
    "NOT_COMPUTED",
    "Choice",
    "SignatureLine",
    "SigningError",
    "SigningPage",
    "SigningView",
    "VoidLine",
    "attestation_of",
    "is_digest",
    "sign_release",
    "signing_page",
    "signing_view",
    "void_sign_off",
]
