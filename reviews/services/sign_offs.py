"""Signatures and voids as rows. `evalsite.signing` decides whether they may be stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from zstandard import ZstdError

from evalsite.common import blobs
from reviews.core.gate.signing import Terms
from reviews.models import EvidenceManifest, SignOff, SignOffVoid
from traces.core.canonical import canonical_text
from traces.core.values import Json
from traces.models import Release, Role, User


@dataclass(frozen=True, slots=True)
class SignedWords:
    """All that a signature's row says beside what it is signed with."""

    uuid: UUID
    terms: Terms
    printed_name: str
    signed_at: datetime
    n_needed: int
    revision: int  # of the gate


def keep_manifest(manifest: Mapping[str, Json], digest: str) -> EvidenceManifest:
    """The row of a manifest; one that was shown or signed before is kept once."""
    content = blobs.pack_text(canonical_text(dict(manifest)))
    row, _ = EvidenceManifest.objects.get_or_create(digest=digest, defaults={"content": content})
    return row


def manifest_in(row: EvidenceManifest) -> dict[str, Json] | None:
    """A kept manifest; None where its bytes were altered and hold none."""
    try:
        manifest = blobs.unpack(row.content)
    except (ValueError, ZstdError):
        return None
    return manifest if isinstance(manifest, dict) else None


def store_sign_off(
    release: Release,
    words: SignedWords,
    *,
    by: User,
    manifest: EvidenceManifest,
    key_id: str,
    envelope: str,
) -> SignOff:
    """Store a signature. Part of the transaction that holds the release's lock."""
    terms = words.terms
    return SignOff.objects.create(
        uuid=words.uuid,
        system_id=release.system_id,
        release=release,
        manifest=manifest,
        revision=words.revision,
        meaning=terms.meaning.value,
        by=by,
        printed_name=words.printed_name,
        role=Role.OWNER.value,
        signed_at=words.signed_at,
        intended_use=terms.intended_use,
        scope=terms.scope,
        expires_on=terms.expires_on,
        reason=terms.reason,
        next_action=terms.next_action,
        waived_tier=terms.waived_tier,
        waived_check=terms.waived_check,
        n_needed=words.n_needed,
        key_id=key_id,
        envelope=envelope,
    )


def store_void(sign_off: SignOff, *, reason: str, by: User, now: datetime) -> SignOffVoid:
    """Store that a signature is void. Part of the transaction that holds the release's lock."""
    return SignOffVoid.objects.create(sign_off=sign_off, reason=reason, by=by, voided_at=now)
