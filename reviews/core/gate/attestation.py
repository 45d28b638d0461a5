"""A sign-off as a file: an in-toto Statement in a DSSE envelope, and what was altered in one.

Sources: in-toto Attestation Framework, Statement v1
(https://in-toto.io/Statement/v1); DSSE protocol v1
(https://github.com/secure-systems-lab/dsse/blob/master/protocol.md).

The file is the canonical text of the envelope (`traces.core.canonical`) and a line feed, so that
each statement has one file. What is signed are the bytes of the payload as they stand. Beside the
signature the statement holds a digest of each of its own parts: where the signature no longer
fits, they tell which trial, verdict or field is another.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from hashlib import sha256

from traces.core.canonical import canonical_text
from traces.core.values import Json

ATTESTATION_VERSION = 1
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
PREDICATE_TYPE = "urn:evalsite:release-sign-off:v1"
PAYLOAD_TYPE = "application/vnd.in-toto+json"

Verify = Callable[[bytes, bytes], bool]
"""Whether a signature (first) fits a message (second)."""


@dataclass(frozen=True, slots=True)
class Alteration:
    """Something in a file or a database that is not as it was signed."""

    code: str  # stable, for programs
    place: str  # "manifest.trials[…]", "envelope.signatures"
    sentence: str


@dataclass(frozen=True, slots=True)
class CheckedFile:
    """What became of checking a file. `statement` None: it cannot be read."""

    alterations: tuple[Alteration, ...]
    statement: dict[str, Json] | None
    key_id: str = ""


def text_digest(value: Json) -> str:
    """SHA-256 of the canonical text of a value, in hex."""
    return sha256(canonical_text(value).encode("ascii")).hexdigest()


def pae(payload: bytes, payload_type: str = PAYLOAD_TYPE) -> bytes:
    """What a DSSE signature covers: type and payload with their lengths."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def statement_of(
    *, release: str, release_digest: str, manifest_digest: str, predicate: dict[str, Json]
) -> dict[str, Json]:
    """The statement about a release and its evidence manifest, with digests of its parts."""
    statement: dict[str, Json] = {
        "_type": STATEMENT_TYPE,
        "subject": [
            {"name": release, "digest": {"sha256": release_digest}},
            {"name": "evidence-manifest.json", "digest": {"sha256": manifest_digest}},
        ],
        "predicateType": PREDICATE_TYPE,
        "predicate": predicate,
    }
    index: list[Json] = [[path, digest] for path, digest in parts_of(statement)]
    predicate["parts"] = index
    predicate["partsDigest"] = text_digest(index)
    return statement


def file_of(statement: dict[str, Json], *, key_id: str, sign: Callable[[bytes], bytes]) -> str:
    """The signed file of a statement, ASCII."""
    payload = canonical_text(statement).encode("ascii")
    envelope: dict[str, Json] = {
        "payload": base64.b64encode(payload).decode("ascii"),
        "payloadType": PAYLOAD_TYPE,
        "signatures": [
            {"keyid": key_id, "sig": base64.b64encode(sign(pae(payload))).decode("ascii")}
        ],
    }
    return canonical_text(envelope) + "\n"


def parts_of(statement: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
    """Path and digest of each part of a statement, in its order: entries of lists one by one."""
    for name in sorted(statement):
        if name != "predicate":
            yield name, text_digest(statement[name])
    predicate = statement.get("predicate")
    if isinstance(predicate, dict):
        for name in sorted(predicate):
            if name not in ("parts", "partsDigest"):
                yield from _parts(name, predicate[name], depth=0)


def _parts(path: str, value: Json, *, depth: int) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict) and depth < 2 and value:
        for name in sorted(value):
            yield from _parts(f"{path}.{name}", value[name], depth=depth + 1)
    elif isinstance(value, list) and value and all(isinstance(item, dict) for item in value):
        seen: dict[str, int] = {}
        for item in value:
            assert isinstance(item, dict)
            label = _label(item)
            seen[label] = again = seen.get(label, 0) + 1
            yield f"{path}[{label}{f' #{again}' if again > 1 else ''}]", text_digest(item)
    else:
        yield path, text_digest(value)


_NAMING = (
    "table",
    "key",
    "run",
    "trial",
    "tier",
    "task",
    "judge",
    "number",
    "version",
    "criterion",
    "criterion_digest",
    "kind",
    "k",
    "name",
)


def _label(item: Mapping[str, Json]) -> str:
    if isinstance(item.get("uuid"), str):
        return str(item["uuid"])
    if isinstance(item.get("verdict"), str):
        return f"{item['verdict']} of trial {item.get('trial')} on {item.get('requirement')}"
    named = [item.get(name) for name in _NAMING]
    return " ".join(str(value)[:200] for value in named if isinstance(value, str | int))


def check_file(data: bytes, keys: Mapping[str, Verify]) -> CheckedFile:
    """Check a file against keys that verify, and name whatever is altered in it."""
    found: list[Alteration] = []
    envelope = _envelope(data, found)
    if envelope is None:
        return CheckedFile(tuple(found), None)
    payload = _base64(envelope.get("payload"), "envelope.payload", "the payload", found)
    key_id = _check_signature(envelope, payload, keys, found)
    if payload is None:
        return CheckedFile(tuple(found), None, key_id)
    statement = _object(payload, "the statement", "statement", found)
    if statement is None:
        return CheckedFile(tuple(found), None, key_id)
    _check_statement(statement, found)
    return CheckedFile(tuple(found), statement, key_id)


# --- the envelope


def _envelope(data: bytes, found: list[Alteration]) -> dict[str, Json] | None:
    body = data.removesuffix(b"\n")
    envelope = _object(body, "the envelope", "envelope", found)
    if envelope is None:
        return None
    if data == body:
        _tell(found, "form", "envelope", "The line feed at the end of the file is missing.")
    wanted = {"payload", "payloadType", "signatures"}
    for name in sorted(set(envelope) ^ wanted):
        word = "is missing" if name in wanted else "was added"
        _tell(found, "envelope", f"envelope.{name}", f"The member {name!r} {word} in the envelope.")
    if envelope.get("payloadType") != PAYLOAD_TYPE:
        _tell(
            found,
            "payload_type",
            "envelope.payloadType",
            f"The payload type is not {PAYLOAD_TYPE}.",
        )
    return envelope


def _check_signature(
    envelope: Mapping[str, Json],
    payload: bytes | None,
    keys: Mapping[str, Verify],
    found: list[Alteration],
) -> str:
    signatures = envelope.get("signatures")
    if not isinstance(signatures, list) or len(signatures) != 1:
        _tell(found, "signature", "envelope.signatures", "The envelope has not one signature.")
        return ""
    entry = signatures[0]
    if not isinstance(entry, dict) or set(entry) != {"keyid", "sig"}:
        _tell(found, "signature", "envelope.signatures", "The signature is not one key and value.")
        return ""
    key_id = str(entry["keyid"])
    signature = _base64(entry["sig"], "envelope.signatures.sig", "the signature", found)
    verify = keys.get(key_id)
    if verify is None:
        _tell(
            found,
            "key",
            "envelope.signatures.keyid",
            f"The key {key_id[:64]!r} is none of those that sign here.",
        )
    elif signature is not None and payload is not None and not verify(signature, pae(payload)):
        _tell(
            found,
            "signature",
            "envelope.signatures.sig",
            "The signature does not fit: statement, key or signature is another than was signed.",
        )
    return key_id


def _base64(value: Json, place: str, what: str, found: list[Alteration]) -> bytes | None:
    if not isinstance(value, str):
        _tell(found, "base64", place, f"{what.capitalize()} is no text.")
        return None
    try:
        raw = base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        _tell(found, "base64", place, f"{what.capitalize()} is no base64{_bad_at(value)}.")
        return None
    if base64.b64encode(raw).decode("ascii") != value:
        _tell(found, "base64", place, f"{what.capitalize()} is not base64 in its one right form.")
    return raw


def _bad_at(value: str) -> str:
    bad = re.search(r"[^A-Za-z0-9+/=]|=(?!=?\Z)", value)
    return f" at character {bad.start() + 1:,}" if bad else ""


# --- JSON


class _AgainError(Exception):
    """A member stands twice in one object."""


def _object(data: bytes, what: str, place: str, found: list[Alteration]) -> dict[str, Json] | None:
    """The JSON object in some bytes; None, and what is wrong, where there is none.

    Bytes that are not its canonical text are told too.
    """
    try:
        text = data.decode("ascii")
    except UnicodeDecodeError as error:
        near = _near(data[: error.start] + b"?" + data[error.start + 1 :], error.start)
        _tell(found, "form", place, f"Byte {error.start + 1:,} of {what} is no ASCII{near}.")
        return None
    try:
        value: Json = json.loads(
            text, parse_float=Decimal, parse_constant=_constant, object_pairs_hook=_pairs
        )
        wanted = canonical_text(value).encode("ascii")
    except _AgainError as error:
        _tell(found, "duplicate_key", place, f"The member {error} stands twice in {what}.")
        return None
    except json.JSONDecodeError as error:
        near = _near(data, error.pos)
        _tell(found, "form", place, f"Character {error.pos + 1:,} of {what} is no JSON{near}.")
        return None
    except (ValueError, RecursionError):
        _tell(found, "form", place, f"{what.capitalize()} holds a value that is no JSON.")
        return None
    if not isinstance(value, dict):
        _tell(found, "form", place, f"{what.capitalize()} is no JSON object.")
        return None
    if data != wanted:
        pairs = zip(data, wanted, strict=False)
        at = next((n for n, (one, other) in enumerate(pairs) if one != other), len(wanted))
        words = f"{what.capitalize()} is not in canonical form, from byte {at + 1:,} on."
        _tell(found, "form", place, words)
    return value


def _pairs(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value: dict[str, Json] = {}
    for name, item in pairs:
        if name in value:
            raise _AgainError(repr(name[:200]))
        value[name] = item
    return value


def _constant(word: str) -> Json:
    raise ValueError(word)


_IDENTITY = re.compile(rb'"(?:uuid|verdict|trial)":"([^"]{1,200})"')


def _near(data: bytes, at: int) -> str:
    """Which part of a statement a place that cannot be read belongs to: the next one named."""
    named = _IDENTITY.search(data, at) or _IDENTITY.search(data, max(0, at - 2_000))
    return f", near {named.group(1).decode('ascii', 'replace')}" if named else ""


# --- the statement


def _check_statement(statement: dict[str, Json], found: list[Alteration]) -> None:
    for name, wanted in (("_type", STATEMENT_TYPE), ("predicateType", PREDICATE_TYPE)):
        if statement.get(name) != wanted:
            _tell(found, "type", name, f"The statement's {name} is not {wanted}.")
    predicate = statement.get("predicate")
    if not isinstance(predicate, dict):
        _tell(found, "predicate", "predicate", "The statement has no predicate.")
        return
    is_manifest_whole = _check_manifest_digest(statement, predicate, found)
    _check_parts(statement, predicate, found, is_manifest_whole=is_manifest_whole)


def _check_manifest_digest(
    statement: Mapping[str, Json], predicate: Mapping[str, Json], found: list[Alteration]
) -> bool:
    digest = text_digest(predicate.get("manifest"))
    if digest == _subject_digest(statement):
        return True
    _tell(
        found,
        "manifest",
        "predicate.manifest",
        "The evidence manifest is another than the one that the statement's subject names.",
    )
    return False


def _subject_digest(statement: Mapping[str, Json]) -> Json:
    subject = statement.get("subject")
    if isinstance(subject, list) and len(subject) == 2 and isinstance(subject[1], dict):
        digest = subject[1].get("digest")
        if isinstance(digest, dict):
            return digest.get("sha256")
    return None


def _check_parts(
    statement: Mapping[str, Json],
    predicate: Mapping[str, Json],
    found: list[Alteration],
    *,
    is_manifest_whole: bool,
) -> None:
    index = predicate.get("parts")
    if text_digest(index) != predicate.get("partsDigest"):
        _tell(
            found,
            "parts",
            "predicate.parts",
            "The list of digests of the statement's parts was altered.",
        )
    signed = _pairs_of(index)
    if signed is None:
        _tell(found, "parts", "predicate.parts", "The list of digests of parts cannot be read.")
        return
    for each in differences_of_parts(signed, tuple(parts_of(statement))):
        is_listed_only = is_manifest_whole and each.place.startswith("manifest.")
        found.append(_of_list(each) if is_listed_only else each)


def _of_list(each: Alteration) -> Alteration:
    """The manifest is whole: what differs is its digest in the list of parts."""
    words = f"In the list of digests, not in the evidence itself: {each.sentence}"
    return Alteration("parts", f"parts:{each.place}", words)


def _pairs_of(index: Json) -> tuple[tuple[str, str], ...] | None:
    if not isinstance(index, list):
        return None
    pairs = []
    for entry in index:
        match entry:
            case [str(path), str(digest)]:
                pairs.append((path, digest))
            case _:
                return None
    return tuple(pairs)


def differences_of_parts(
    signed: Sequence[tuple[str, str]], now: Sequence[tuple[str, str]]
) -> Iterator[Alteration]:
    """What differs between two lists of parts: altered, missing, added, in another order."""
    old, new = dict(signed), dict(now)
    for path, digest in signed:
        if path not in new:
            yield Alteration("removed", path, f"{words_of(path)} is missing.")
        elif new[path] != digest:
            yield Alteration("altered", path, f"{words_of(path)} was altered.")
    for path, _ in now:
        if path not in old:
            yield Alteration("added", path, f"{words_of(path)} was added.")
    yield from _moved([path for path, _ in signed if path in new], [p for p, _ in now if p in old])
    if len(signed) != len(old):
        yield Alteration("parts", "parts", "The list of digests names a part twice.")


def _moved(signed: Sequence[str], now: Sequence[str]) -> Iterator[Alteration]:
    """Lists whose entries stand in another order than was signed."""
    lists = dict.fromkeys(p.partition("[")[0] for p, q in zip(signed, now, strict=False) if p != q)
    for name in lists:
        yield Alteration("order", name, f"The order of {name} was altered.")


_SINGULAR = {
    "manifest.trials": "The trial",
    "manifest.verdicts": "The verdict",
    "manifest.adjudications": "The adjudication",
    "manifest.runs": "The run",
    "manifest.contracts": "The contract",
    "manifest.thresholds": "The threshold set",
    "manifest.threshold_sets": "The threshold set",
    "manifest.tiers": "The tier",
    "manifest.marks": "The mark",
    "manifest.calibrations": "The calibration",
    "manifest.checks": "The check result",
    "sealed.trials": "The sealed rows of trial",
    "sealed.rows": "The sealed row",
    "sealed.uploads": "The upload",
}


def words_of(path: str) -> str:
    """A part in words: "The trial 0b5c…", "The part signOff.scope"."""
    name, bracket, rest = path.partition("[")
    if bracket and name in _SINGULAR:
        return f"{_SINGULAR[name]} {rest.removesuffix(']')}"
    return f"The part {path}"


def _tell(found: list[Alteration], code: str, place: str, sentence: str) -> None:
    found.append(Alteration(code, place, sentence))
