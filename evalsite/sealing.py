"""The statement that a sign-off signs: what is said, by whom, on which manifest and which rows."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

from evalsite.common.audit import chain_head
from evalsite.sealed_rows import (
    SEAL_VERSION,
    addition_rows,
    fetched,
    last_verdict,
    rows_to_seal,
    trial_rows,
    verdict_rows,
)
from reviews.core.gate.attestation import ATTESTATION_VERSION, statement_of
from reviews.core.gate.model import Gate
from reviews.core.gate.states import Meaning
from reviews.services.sign_offs import SignedWords
from traces.core.values import Json
from traces.models import Release, Role, User

MEANING_WORDS = {
    Meaning.APPROVED: "approves release {0}",
    Meaning.WAIVER: "approves release {0} with a waiver",
    Meaning.REJECTED: "rejects release {0}",
}


def meaning_words(meaning: Meaning, release: str) -> str:
    """What a signature says, in words."""
    return MEANING_WORDS[meaning].format(release)


def iso(at: datetime) -> str:
    """An instant as a statement holds it: ISO 8601, UTC, microseconds."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def statement_about(
    release: Release,
    words: SignedWords,
    *,
    by: User,
    gate: Gate,
    manifest: Mapping[str, Json],
    digest: str,
) -> dict[str, Json]:
    """The statement of a signature. Reads the rows that it seals, in the signing transaction."""
    system = release.system
    predicate: dict[str, Json] = {
        "attestation": ATTESTATION_VERSION,
        "system": {"name": system.name, "slug": system.slug, "uuid": str(system.uuid)},
        "release": {"name": release.name, "uuid": str(release.uuid)},
        "signOff": signed_words(words, by=by, release=release, gate=gate),
        "gate": {"state": gate.state.value, "sentence": gate.sentence},
        "manifest": dict(manifest),
        "sealed": _sealed(release, manifest),
    }
    ((release_digest,),) = fetched(
        "SELECT encode(sha256(convert_to(details, 'UTF8')), 'hex') FROM traces_release"
        " WHERE id = %(pk)s",
        {"pk": release.pk},
    )
    return statement_of(
        release=f"{system.slug}/{release.name}",
        release_digest=release_digest,
        manifest_digest=digest,
        predicate=predicate,
    )


def signed_words(words: SignedWords, *, by: User, release: Release, gate: Gate) -> dict[str, Json]:
    """Who signed what, as the statement says it."""
    terms = words.terms
    waiver: dict[str, Json] | None = None
    if terms.meaning is Meaning.WAIVER:
        waiver = {"tier": terms.waived_tier, "check": terms.waived_check}
    return {
        "uuid": str(words.uuid),
        "meaning": terms.meaning.value,
        "words": meaning_words(terms.meaning, release.name),
        "tiers": [section.tier for section in gate.sections],
        "printedName": words.printed_name,
        "username": by.username,
        "userUuid": str(by.uuid),
        "role": Role.OWNER.value,
        "signedAt": iso(words.signed_at),
        "intendedUse": terms.intended_use,
        "scope": terms.scope,
        "expiresOn": terms.expires_on.isoformat() if terms.expires_on else None,
        "reason": terms.reason,
        "nextAction": terms.next_action,
        "waiver": waiver,
        "ownersNeeded": words.n_needed,
        "gateRevision": words.revision,
    }


def _sealed(release: Release, manifest: Mapping[str, Json]) -> dict[str, Json]:
    """The rows that the signature rests on, by their digests; not part of the manifest."""
    last = last_verdict(release.pk)
    verdicts = verdict_rows(release.pk, last=last)
    trials: list[Json] = []
    for trial, rows in trial_rows(release.pk).items():
        n, digest = verdicts.get(trial, (0, ""))
        trials.append({"uuid": trial, "rows": rows, "n_verdicts": n, "verdicts": digest})
    return {
        "version": SEAL_VERSION,
        "ids": {"system": release.system_id, "release": release.pk},
        "last_verdict": last,
        "trials": trials,
        "additions": [
            {"uuid": uuid, "trial": trial, "row": digest}
            for uuid, trial, digest in addition_rows(release.pk)
        ],
        "rows": [
            {"table": table, "key": key, "row": digest}
            for table, key, digest in rows_to_seal(
                release.pk, release.system_id, _contracts(manifest)
            )
        ],
        "audit": _audit_head(release.system_id),
    }


def _contracts(manifest: Mapping[str, Json]) -> list[str]:
    contracts = manifest.get("contracts")
    members = contracts if isinstance(contracts, list) else []
    return [str(each["uuid"]) for each in members if isinstance(each, dict)]


def _audit_head(system_pk: int) -> dict[str, Json]:
    head = chain_head(system_pk)
    return {"seq": head.seq, "hash": head.hash}
