"""The file of a sign-off: what is signed, and what is named of an altered one."""

from __future__ import annotations

import base64
import json
import random
from collections.abc import Callable
from typing import Any

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from reviews.core.gate.attestation import (
    PAYLOAD_TYPE,
    Alteration,
    check_file,
    differences_of_parts,
    file_of,
    pae,
    parts_of,
    statement_of,
    text_digest,
    words_of,
)
from traces.core.canonical import canonical_text

KEY = Ed25519PrivateKey.from_private_bytes(bytes(range(32)))
OTHER = Ed25519PrivateKey.from_private_bytes(bytes(range(1, 33)))


def verifier(key: Ed25519PrivateKey) -> Callable[[bytes, bytes], bool]:
    def fits(signature: bytes, message: bytes) -> bool:
        try:
            key.public_key().verify(signature, message)
        except InvalidSignature:
            return False
        return True

    return fits


KEYS = {"k1": verifier(KEY), "k2": verifier(OTHER)}


def statement() -> dict[str, Any]:
    manifest: dict[str, Any] = {
        "state": "ready",
        "release": {"name": "1.4.0", "uuid": "r"},
        "trials": [{"uuid": f"t{n}", "label": str(n), "disposition": "pass"} for n in range(5)],
        "verdicts": [
            {"verdict": str(n), "trial": f"t{n}", "requirement": "outcome", "value": "pass"}
            for n in range(5)
        ],
        "checks": [{"tier": "payments", "kind": "prohibited", "k": 0, "result": "met"}],
        "marks": [],
    }
    return statement_of(
        release="loansdesk/1.4.0",
        release_digest="0" * 64,
        manifest_digest=text_digest(manifest),
        predicate={
            "signOff": {"printedName": "Ines", "waiver": None, "tiers": ["payments"]},
            "manifest": manifest,
            "sealed": {
                "audit": {"seq": 3, "hash": "ff"},
                "trials": [{"uuid": "t0", "rows": "aa"}],
                "rows": [{"table": "traces_run", "key": "1", "row": "aa"}] * 2,
            },
        },
    )


def signed(value: dict[str, Any] | None = None) -> bytes:
    return file_of(value or statement(), key_id="k1", sign=KEY.sign).encode()


def envelope(**changes: Any) -> bytes:
    value = {**json.loads(signed()), **changes}
    return (canonical_text({k: v for k, v in value.items() if v is not None}) + "\n").encode()


def with_payload(change: Callable[[dict[str, Any]], None]) -> bytes:
    """The file with another statement and the old signature."""
    value = json.loads(signed())
    payload = json.loads(base64.b64decode(value["payload"]))
    change(payload)
    value["payload"] = base64.b64encode(canonical_text(payload).encode()).decode()
    return (canonical_text(value) + "\n").encode()


def found(data: bytes) -> set[tuple[str, str]]:
    return {(each.code, each.place) for each in check_file(data, KEYS).alterations}


def test_a_file_as_it_was_signed_has_no_finding() -> None:
    checked = check_file(signed(), KEYS)
    assert checked.alterations == ()
    assert checked.statement == statement()
    assert checked.key_id == "k1"


def test_what_is_signed_is_the_pre_authentication_encoding() -> None:
    assert pae(b"hello world", "http://example.com/HelloWorld") == (
        b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    )


ENVELOPES: list[tuple[bytes, tuple[str, str]]] = [
    (b"", ("form", "envelope")),
    (b"[]\n", ("form", "envelope")),
    (b"\xff\n", ("form", "envelope")),
    (b'{"payload":NaN}', ("form", "envelope")),
    (b"[" * 100_000, ("form", "envelope")),
    (signed().removesuffix(b"\n"), ("form", "envelope")),
    (signed() + b"\n", ("form", "envelope")),
    (
        signed().replace(b'{"payload"', b'{"payload":"x","payload"', 1),
        ("duplicate_key", "envelope"),
    ),
    (envelope(extra=1), ("envelope", "envelope.extra")),
    (envelope(payloadType=None), ("envelope", "envelope.payloadType")),
    (envelope(payloadType="text/plain"), ("payload_type", "envelope.payloadType")),
    (envelope(payload=None), ("base64", "envelope.payload")),
    (envelope(payload="e30*"), ("base64", "envelope.payload")),
    (envelope(payload="e31="), ("base64", "envelope.payload")),
    (envelope(signatures=[]), ("signature", "envelope.signatures")),
    (envelope(signatures=[1]), ("signature", "envelope.signatures")),
    (envelope(signatures=[{"keyid": "k1", "sig": 1}]), ("base64", "envelope.signatures.sig")),
    (envelope(signatures=[{"keyid": "k9", "sig": ""}]), ("key", "envelope.signatures.keyid")),
    (
        envelope(signatures=[{"keyid": "k2", "sig": "AAAA"}]),
        ("signature", "envelope.signatures.sig"),
    ),
]


@pytest.mark.parametrize(("data", "wanted"), ENVELOPES)
def test_what_is_altered_in_the_envelope_is_named(data: bytes, wanted: tuple[str, str]) -> None:
    assert wanted in found(data)


def swap_trials(value: dict[str, Any]) -> None:
    trials = value["predicate"]["manifest"]["trials"]
    trials[1], trials[3] = trials[3], trials[1]


STATEMENTS: list[tuple[Callable[[dict[str, Any]], Any], tuple[str, str]]] = [
    (
        lambda s: s["predicate"]["manifest"]["trials"][2].update(disposition="fail"),
        ("altered", "manifest.trials[t2]"),
    ),
    (lambda s: s["predicate"]["manifest"]["trials"].pop(2), ("removed", "manifest.trials[t2]")),
    (
        lambda s: s["predicate"]["manifest"]["trials"].append({"uuid": "t9"}),
        ("added", "manifest.trials[t9]"),
    ),
    (swap_trials, ("order", "manifest.trials")),
    (
        lambda s: s["predicate"]["manifest"]["verdicts"][4].update(value="fail"),
        ("altered", "manifest.verdicts[4 of trial t4 on outcome]"),
    ),
    (
        lambda s: s["predicate"]["manifest"]["checks"][0].update(result="not_met"),
        ("altered", "manifest.checks[payments prohibited 0]"),
    ),
    (lambda s: s["predicate"]["manifest"].update(state="x"), ("altered", "manifest.state")),
    (
        lambda s: s["predicate"]["signOff"].update(printedName="Tomo"),
        ("altered", "signOff.printedName"),
    ),
    (lambda s: s["predicate"]["sealed"]["trials"].clear(), ("removed", "sealed.trials[t0]")),
    (lambda s: s["predicate"]["sealed"]["rows"].pop(), ("removed", "sealed.rows[traces_run 1 #2]")),
    (lambda s: s["subject"][0].update(name="x"), ("altered", "subject")),
    (lambda s: s["subject"].pop(), ("manifest", "predicate.manifest")),
    (lambda s: s["subject"][1].update(digest=1), ("manifest", "predicate.manifest")),
    (lambda s: s.update(_type="x"), ("type", "_type")),
    (lambda s: s.update(predicateType="x"), ("type", "predicateType")),
    (lambda s: s.update(predicate=[]), ("predicate", "predicate")),
    (lambda s: s["predicate"].update(partsDigest="x"), ("parts", "predicate.parts")),
    (lambda s: s["predicate"].update(parts={}), ("parts", "predicate.parts")),
    (lambda s: s["predicate"]["parts"].append([1, 2]), ("parts", "predicate.parts")),
    (lambda s: s["predicate"]["parts"].append(s["predicate"]["parts"][0]), ("parts", "parts")),
]


@pytest.mark.parametrize(("change", "wanted"), STATEMENTS)
def test_what_is_altered_in_the_statement_is_named_beside_the_signature(
    change: Callable[[dict[str, Any]], Any], wanted: tuple[str, str]
) -> None:
    names = found(with_payload(change))
    assert wanted in names
    assert ("signature", "envelope.signatures.sig") in names


def test_an_altered_list_of_digests_is_told_from_altered_evidence() -> None:
    def change(value: dict[str, Any]) -> None:
        parts = value["predicate"]["parts"]
        next(each for each in parts if each[0] == "manifest.trials[t2]")[1] = "0" * 64

    assert found(with_payload(change)) == {
        ("signature", "envelope.signatures.sig"),
        ("parts", "predicate.parts"),
        ("parts", "parts:manifest.trials[t2]"),
    }


def raw_payload(payload: bytes) -> bytes:
    return envelope(payload=base64.b64encode(payload).decode())


def test_a_statement_that_cannot_be_read_is_named_with_what_stands_near() -> None:
    payload = base64.b64decode(json.loads(signed())["payload"])
    at = payload.index(b'"label":"2"')
    broken = payload[:at] + b"\x7f" + payload[at + 1 :]
    checked = check_file(raw_payload(broken), KEYS)
    assert checked.statement is None
    assert checked.alterations[-1] == Alteration(
        "form", "statement", f"Character {at + 1:,} of the statement is no JSON, near t2."
    )
    high = payload[:at] + b"\xff" + payload[at + 1 :]
    assert check_file(raw_payload(high), KEYS).alterations[-1].sentence == (
        f"Byte {at + 1:,} of the statement is no ASCII, near t2."
    )


def test_a_statement_in_another_form_or_with_a_member_twice_is_named() -> None:
    payload = base64.b64decode(json.loads(signed())["payload"])
    spaced = payload.replace(b'"state":"ready"', b'"state": "ready"')
    assert ("form", "statement") in found(raw_payload(spaced))
    twice = payload.replace(b'"state":"ready"', b'"state":"ready","state":"ready"')
    assert ("duplicate_key", "statement") in found(raw_payload(twice))
    assert ("form", "statement") in found(raw_payload(b"1e999999999999999999"))
    assert ("form", "statement") in found(
        raw_payload(payload.replace(b'"seq":3', b'"seq":' + b"9" * 5_000))
    )


def test_parts_that_differ() -> None:
    old = (("a[x]", "1"), ("a[y]", "2"), ("b", "3"))
    assert list(differences_of_parts(old, old)) == []
    assert [
        each.code for each in differences_of_parts(old, (("a[y]", "2"), ("a[x]", "1"), ("c", "3")))
    ] == [
        "removed",
        "added",
        "order",
    ]
    assert words_of("manifest.trials[t1]") == "The trial t1"
    assert words_of("signOff.scope") == "The part signOff.scope"
    assert list(parts_of({"a": 1})) == [("a", text_digest(1))]


def test_one_hundred_and_sixty_edits_are_all_named() -> None:
    """100 bytes flipped, 20 entries removed, 20 added, 20 swapped; the file itself is clean."""
    draw = random.Random(20261201)  # noqa: S311 - a seeded draw of edits
    whole = signed()
    assert found(whole) == set()
    for _ in range(100):
        at = draw.randrange(len(whole))
        flipped = whole[:at] + bytes([whole[at] ^ (1 << draw.randrange(8))]) + whole[at + 1 :]
        assert found(flipped), at
    for kind in ["remove", "add", "swap"] * 20:
        name = draw.choice(["trials", "verdicts"])
        one, two = draw.sample(range(5), 2)

        def change(
            value: dict[str, Any],
            kind: str = kind,
            name: str = name,
            one: int = one,
            two: int = two,
        ) -> None:
            entries = value["predicate"]["manifest"][name]
            if kind == "remove":
                entries.pop(one)
            elif kind == "add":
                entries.insert(one, {**entries[two], "uuid": "new", "verdict": "new"})
            else:
                entries[one], entries[two] = entries[two], entries[one]

        codes = {code for code, place in found(with_payload(change)) if f"manifest.{name}" in place}
        assert {"remove": "removed", "add": "added", "swap": "order"}[kind] in codes
    assert found(whole) == set()
    assert PAYLOAD_TYPE == "application/vnd.in-toto+json"
