"""Whether signatures, the rows that they cover and the audit log are as they were made.

What came later and in the ordinary way is no alteration: it makes a signature stale, which is said
and is no finding.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256

from cryptography.exceptions import InvalidSignature

from evalsite.audit.chain import ChainHead, verify_chain
from evalsite.key_texts import PublicKey
from evalsite.models import AuditEvent
from evalsite.sealed_rows import (
    WORDS,
    addition_rows,
    fetched,
    rows_by_key,
    trial_rows,
    verdict_rows,
)
from evalsite.sealing import iso
from evalsite.signing_keys import public_keys
from reviews.core.gate.attestation import (
    Alteration,
    CheckedFile,
    Verify,
    check_file,
    text_digest,
)
from reviews.models import EvidenceManifest, SignOff, SignOffVoid
from reviews.services.sign_offs import manifest_in
from traces.core.values import Json
from traces.models import Release, System, User


@dataclass(frozen=True, slots=True)
class VerifiedSignOff:
    """A signature with what was altered of it and of what it covers."""

    uuid: str
    release: str
    words: str  # "approved by Ines on 2026-12-01 10:00 UTC"
    is_void: bool
    alterations: tuple[Alteration, ...]


@dataclass(frozen=True, slots=True)
class VerifiedSystem:
    """What `verify --system` found."""

    sign_offs: tuple[VerifiedSignOff, ...]
    audit: tuple[Alteration, ...]

    @property
    def n_alterations(self) -> int:
        """How many things were altered."""
        return len(self.audit) + sum(len(each.alterations) for each in self.sign_offs)


def verifiers(keys: Iterable[PublicKey] | None = None) -> dict[str, Verify]:
    """How signatures are checked, by key id; with the keys of this site unless others are given."""
    found = public_keys().values() if keys is None else keys
    return {key.key_id: _verifier(key) for key in found}


def _verifier(key: PublicKey) -> Verify:
    def fits(signature: bytes, message: bytes) -> bool:
        try:
            key.load().verify(signature, message)
        except (InvalidSignature, ValueError):
            return False
        return True

    return fits


def verify_file(data: bytes, keys: Iterable[PublicKey] | None = None) -> CheckedFile:
    """Check an exported sign-off by itself: needs keys and no database."""
    return check_file(data, verifiers(keys))


def verify_system(
    system: System, *, release: str = "", head: tuple[int, str] | None = None
) -> VerifiedSystem:
    """Check every sign-off of a system against its rows, and the system's audit log.

    `release` limits the sign-offs to one release, by name or UUID. `head` is a number and hash of
    an audit event that was noted elsewhere: the log must still hold it.
    """
    keys = verifiers()
    chosen = [each for each in _stored(system.pk) if not release or each.is_of(release)]
    audit = (
        *_chain(system, head),
        *_signed_in_log(system.pk),
    )
    return VerifiedSystem(tuple(_sign_off(each, keys) for each in chosen), audit)


# --- one signature


@dataclass(frozen=True, slots=True)
class _Stored:
    """A signature with what its keys lead to; None where an edit made them lead nowhere."""

    row: SignOff
    release: Release | None
    manifest: EvidenceManifest | None
    by: User | None
    is_void: bool

    def is_of(self, release: str) -> bool:
        return self.release is not None and release in (self.release.name, str(self.release.uuid))


def _stored(system_pk: int) -> list[_Stored]:
    """Without joins: a key that was altered must not hide its row. 5 queries."""
    rows = list(SignOff.objects.filter(system=system_pk).order_by("pk"))
    releases = Release.objects.in_bulk({row.release_id for row in rows})
    manifests = EvidenceManifest.objects.in_bulk({row.manifest_id for row in rows})
    people = User.objects.in_bulk({row.by_id for row in rows})
    voids = set(
        SignOffVoid.objects.filter(sign_off__in=[row.pk for row in rows]).values_list(
            "sign_off", flat=True
        )
    )
    return [
        _Stored(
            row,
            releases.get(row.release_id),
            manifests.get(row.manifest_id),
            people.get(row.by_id),
            row.pk in voids,
        )
        for row in rows
    ]


def _sign_off(each: _Stored, keys: Mapping[str, Verify]) -> VerifiedSignOff:
    row = each.row
    checked = check_file(row.envelope.encode("utf-8", "surrogatepass"), keys)
    found = list(checked.alterations)
    if checked.statement is not None:
        predicate = _member(checked.statement, "predicate")
        found += _columns(each, predicate, checked.key_id)
        found += _manifest(each.manifest, predicate)
        found += _sealed(each, predicate)
    return VerifiedSignOff(
        uuid=str(row.uuid),
        release=each.release.name if each.release else "",
        words=f"{row.meaning.replace('_', ' ')} by {row.printed_name} on {iso(row.signed_at)}",
        is_void=each.is_void,
        alterations=tuple(dict.fromkeys(found)),
    )


def _columns(each: _Stored, predicate: Mapping[str, Json], key_id: str) -> Iterator[Alteration]:
    """What the row says beside the statement must be what the statement says."""
    row = each.row
    words = _member(predicate, "signOff")
    waiver = words.get("waiver")
    waived = waiver if isinstance(waiver, dict) else {}
    release = _member(predicate, "release")
    pairs: dict[str, tuple[Json, Json]] = {
        "uuid": (str(row.uuid), words.get("uuid")),
        "release": (str(each.release.uuid) if each.release else "", release.get("uuid")),
        "meaning": (row.meaning, words.get("meaning")),
        "by": (str(each.by.uuid) if each.by else "", words.get("userUuid")),
        "printed name": (row.printed_name, words.get("printedName")),
        "role": (row.role, words.get("role")),
        "time": (iso(row.signed_at), words.get("signedAt")),
        "intended use": (row.intended_use, words.get("intendedUse")),
        "scope": (row.scope, words.get("scope")),
        "expiry date": (
            row.expires_on.isoformat() if row.expires_on else None,
            words.get("expiresOn"),
        ),
        "reason": (row.reason, words.get("reason")),
        "next action": (row.next_action, words.get("nextAction")),
        "waived tier": (row.waived_tier, waived.get("tier", "")),
        "waived check": (row.waived_check, waived.get("check", "")),
        "number of owners": (row.n_needed, words.get("ownersNeeded")),
        "gate revision": (row.revision, words.get("gateRevision")),
        "key": (row.key_id, key_id),
    }
    for name, (stored, signed) in pairs.items():
        if stored != signed:
            yield Alteration(
                "column", f"sign_off.{name}", f"The sign-off's {name} is not what was signed."
            )


def _manifest(row: EvidenceManifest | None, predicate: Mapping[str, Json]) -> Iterator[Alteration]:
    signed = predicate.get("manifest")
    if row is None or row.digest != text_digest(signed):
        yield Alteration(
            "manifest", "evidence_manifest.digest", "The stored manifest has another digest."
        )
    kept = manifest_in(row) if row else None
    if kept is None or text_digest(kept) != text_digest(signed):
        yield Alteration(
            "manifest",
            "evidence_manifest.content",
            "The stored evidence manifest is not the one that was signed.",
        )


def _sealed(each: _Stored, predicate: Mapping[str, Json]) -> Iterator[Alteration]:
    """The rows that were sealed, against what the database holds now."""
    row, sealed = each.row, _member(predicate, "sealed")
    # By the sealed key: the row's own may have been altered.
    release_pk = _member(sealed, "ids").get("release")
    if not isinstance(release_pk, int):
        return
    yield from _trials(release_pk, sealed, _names(predicate))
    yield from _additions(release_pk, sealed)
    yield from _rows(sealed)
    if each.release is not None:
        yield from _details(each.release, _member(_member(predicate, "manifest"), "release"))
    yield from _splits(row.system_id, row.signed_at, _member(predicate, "manifest"))
    yield from _head(row.system_id, _head_in(sealed))


def _names(predicate: Mapping[str, Json]) -> dict[str, str]:
    """Trials by task and label, beside their UUID."""
    manifest = _member(predicate, "manifest")
    return {
        str(each.get("uuid")): f" (trial {each.get('label')} of task {each.get('task')})"
        for each in _members(manifest, "trials")
    }


def _trials(
    release_pk: int, sealed: Mapping[str, Json], names: Mapping[str, str]
) -> Iterator[Alteration]:
    last = sealed.get("last_verdict")
    rows = trial_rows(release_pk)
    verdicts = verdict_rows(release_pk, last=last if isinstance(last, int) else 0)
    for each in _members(sealed, "trials"):
        uuid = str(each.get("uuid"))
        name = f"{uuid}{names.get(uuid, '')}"
        if uuid not in rows:
            yield Alteration("removed", f"trial {uuid}", f"Trial {name} is missing.")
            continue
        if rows[uuid] != each.get("rows"):
            yield Alteration(
                "altered",
                f"trial {uuid}",
                f"Trial {name}: its row, record, transcript or trajectory was altered.",
            )
        n, digest = verdicts.get(uuid, (0, ""))
        if digest != each.get("verdicts"):
            yield Alteration(
                "altered",
                f"verdicts of trial {uuid}",
                f"Trial {name}: {_verdict_words(n, each.get('n_verdicts'))}",
            )


def _verdict_words(now: int, signed: Json) -> str:
    if not isinstance(signed, int) or now == signed:
        return "a verdict on it was altered."
    word = "fewer" if now < signed else "more"
    return f"{abs(signed - now)} {word} of its verdicts than when it was signed."


def _additions(release_pk: int, sealed: Mapping[str, Json]) -> Iterator[Alteration]:
    now = {uuid: digest for uuid, _, digest in addition_rows(release_pk)}
    for each in _members(sealed, "additions"):
        uuid = str(each.get("uuid"))
        if now.get(uuid) != each.get("row"):
            word = "was altered" if uuid in now else "is missing"
            yield Alteration(
                "altered",
                f"addition {uuid}",
                f"Trial {each.get('trial')}: evidence that was added to it {word}.",
            )


def _rows(sealed: Mapping[str, Json]) -> Iterator[Alteration]:
    by_table: dict[str, dict[str, str]] = defaultdict(dict)
    for each in _members(sealed, "rows"):
        table = str(each.get("table"))
        if table in WORDS:
            by_table[table][str(each.get("key"))] = str(each.get("row"))
    for table, signed in by_table.items():
        now = rows_by_key(table, signed)
        for key, digest in signed.items():
            if now.get(key) != digest:
                word = "was altered" if key in now else "is missing"
                yield Alteration(
                    "altered" if key in now else "removed",
                    f"{table} {key}",
                    f"The {WORDS[table]} with the key {key} {word}.",
                )


def _details(row: Release, release: Mapping[str, Json]) -> Iterator[Alteration]:
    """The version record: it is written once, maybe after the signature."""
    signed = release.get("details")
    now = sha256(row.details.encode()).hexdigest()
    if signed not in (now, sha256(b"").hexdigest()):
        yield Alteration(
            "altered",
            f"release {row.uuid}",
            f"The version record of release {row.name} was altered.",
        )


_SPLITS = """
SELECT k.task_id, k.split, k.family FROM traces_task k
WHERE k.system_id = %(system)s AND k.task_id = ANY(%(tasks)s)
  AND NOT EXISTS (SELECT FROM traces_splitchange c WHERE c.system_id = k.system_id
      AND c.changed_at >= %(since)s AND (c.task_id = k.id OR c.family = k.family))
  AND NOT EXISTS (SELECT FROM traces_taskversion v
      WHERE v.task_id = k.id AND v.created_at >= %(since)s)
"""


def _splits(system_pk: int, since: datetime, manifest: Mapping[str, Json]) -> Iterator[Alteration]:
    """Tasks in another split or family, though nobody moved them and no version came."""
    signed = {str(each.get("task")): each for each in _members(manifest, "tasks")}
    values = {"system": system_pk, "tasks": list(signed), "since": since}
    for task, split, family in fetched(_SPLITS, values):
        was = signed[task]
        for name, now in (("split", split), ("family", family)):
            if was.get(name) != now:
                yield Alteration(
                    "altered", f"task {task}", f"The {name} of task {task} was altered."
                )


# --- the audit log


def _chain(system: System, head: tuple[int, str] | None) -> Iterator[Alteration]:
    """What the log of a system shows, and that of the site, which knows when each one began."""
    noted = ChainHead(*head) if head else None
    for found in verify_chain(system, noted=noted):
        yield Alteration(found.code, f"audit {found.seq}", found.sentence)
    for found in verify_chain(None):
        sentence = f"In the log of the site: {found.sentence}"
        yield Alteration(found.code, f"site audit {found.seq}", sentence)


def _head_in(sealed: Mapping[str, Json]) -> tuple[int, str] | None:
    audit = _member(sealed, "audit")
    seq, value = audit.get("seq"), audit.get("hash")
    return (seq, value) if isinstance(seq, int) and isinstance(value, str) else None


def _head(system_pk: int, head: tuple[int, str] | None) -> Iterator[Alteration]:
    """That the log still holds the event that was its last one when a signature was made."""
    if head is None or head[0] == 0:
        return
    seq, value = head
    found = AuditEvent.objects.filter(system=system_pk, seq=seq).values_list("hash", flat=True)
    stored = found.first()
    if stored == value:
        return
    newest = AuditEvent.objects.filter(system=system_pk).order_by("-seq").first()
    if stored is None and (newest is None or newest.seq < seq):
        ends = newest.seq if newest else 0
        sentence = f"The audit log ends early: at event {ends:,}, and event {seq:,} was noted."
    elif stored is None:
        sentence = f"The audit event {seq:,} is missing."
    else:
        sentence = f"The audit event {seq:,} is not the one that was noted."
    yield Alteration("audit", f"audit {seq}", sentence)


def _signed_in_log(system_pk: int) -> Iterator[Alteration]:
    """Signatures and voids against the events that tell of them."""
    events = list(
        AuditEvent.objects.filter(
            system=system_pk, act__in=("sign_off.made", "sign_off.voided")
        ).order_by("seq")
    )
    stored = {
        str(u) for u in SignOff.objects.filter(system=system_pk).values_list("uuid", flat=True)
    }
    rows = SignOffVoid.objects.filter(sign_off__system=system_pk).select_related("sign_off")
    voids = {str(each.sign_off.uuid): each for each in rows}
    told = {event.object_id for event in events if event.act == "sign_off.made"}
    voided = {event.object_id: event for event in events if event.act == "sign_off.voided"}
    for uuid in sorted(told - stored):
        yield Alteration("removed", f"sign_off {uuid}", f"The sign-off {uuid} is missing.")
    for uuid in sorted(voided.keys() - voids.keys()):
        yield Alteration("removed", f"void {uuid}", f"The void of sign-off {uuid} is missing.")
    if not events:
        return
    for uuid in sorted(stored - told):
        yield Alteration(
            "added", f"sign_off {uuid}", f"The audit log does not know the sign-off {uuid}."
        )
    for uuid, void in sorted(voids.items()):
        event = voided.get(uuid)
        if event is None:
            yield Alteration(
                "added", f"void {uuid}", f"The audit log does not know the void of sign-off {uuid}."
            )
        elif (event.reason, event.actor_id, event.at) != (void.reason, void.by_id, void.voided_at):
            yield Alteration("altered", f"void {uuid}", f"The void of sign-off {uuid} was altered.")


# --- reading a statement that may be anything


def _member(value: Mapping[str, Json], name: str) -> dict[str, Json]:
    found = value.get(name)
    return found if isinstance(found, dict) else {}


def _members(value: Mapping[str, Json], name: str) -> list[dict[str, Json]]:
    found = value.get(name)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []
