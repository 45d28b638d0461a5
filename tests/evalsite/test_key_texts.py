"""Keys as texts: every form that is read, and what is refused."""

import base64

import pytest
from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    PublicFormat,
)

from evalsite.key_texts import (
    KeyTextError,
    audit_key_of,
    audit_keys_in,
    audit_text,
    new_secret,
    public_keys_in,
    public_text,
    signing_key_of,
    signing_keys_in,
    signing_text,
)

SEED, OLD = bytes(range(32)), bytes(range(32, 64))


def b64(raw: bytes) -> str:
    return base64.b64encode(raw).decode()


def pem(key: Ed25519PrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def test_signing_keys_in_reads_what_signing_text_writes() -> None:
    key, old = signing_key_of(SEED), signing_key_of(OLD)
    keys = signing_keys_in(signing_text(key, (old.public, key.public)))
    assert keys.current == key
    assert keys.public == (key.public, old.public)
    assert public_keys_in(public_text(keys.public)) == keys.public


def test_key_id_is_the_start_of_the_digest_of_the_public_key() -> None:
    assert signing_key_of(SEED).key_id == "56475aa75463474c"
    assert repr(signing_key_of(SEED)) == "SigningKey(56475aa75463474c)"


def test_signing_keys_in_reads_plain_words_and_pem() -> None:
    old = Ed25519PrivateKey.from_private_bytes(OLD)
    public = old.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo).decode()
    wanted = signing_keys_in(f"{b64(SEED)},{b64(OLD)}")
    assert wanted.current.seed == SEED
    assert signing_keys_in(pem(Ed25519PrivateKey.from_private_bytes(SEED)) + public) == wanted


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "holds no Ed25519 key that signs"),
        (f"public:{b64(SEED)}", "holds no Ed25519 key that signs"),
        ("private:AAEC", "holds something that is no Ed25519 key of 32 bytes in base64"),
        ("private:é", "holds something that is no base64"),
        (
            "-----BEGIN PRIVATE KEY-----\nAAEC\n-----END PRIVATE KEY-----",
            "holds PEM that cannot be read",
        ),
        (
            generate_private_key(SECP256R1())
            .private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
            .decode(),
            "holds a key that is not Ed25519",
        ),
        (
            generate_private_key(SECP256R1())
            .public_key()
            .public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
            .decode(),
            "holds a key that is not Ed25519",
        ),
    ],
)
def test_signing_keys_in_names_what_is_wrong(text: str, sentence: str) -> None:
    with pytest.raises(KeyTextError) as caught:
        signing_keys_in(text)
    assert str(caught.value) == sentence


def test_public_keys_in_refuses_an_empty_text() -> None:
    with pytest.raises(KeyTextError, match="holds no key"):
        public_keys_in("\n")


def test_audit_keys_in_reads_what_audit_text_writes() -> None:
    keys = (audit_key_of(SEED), audit_key_of(OLD))
    assert audit_keys_in(audit_text(keys)) == keys
    assert audit_keys_in(b64(SEED)) == keys[:1]
    assert b64(SEED) not in repr(keys[0])


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (" ", "holds no key"),
        ("secret:AAEC", "holds a key of fewer than 32 bytes in base64"),
        ("secret:?", "holds something that is no base64"),
    ],
)
def test_audit_keys_in_names_what_is_wrong(text: str, sentence: str) -> None:
    with pytest.raises(KeyTextError) as caught:
        audit_keys_in(text)
    assert str(caught.value) == sentence


def test_a_signature_verifies_under_its_key_only() -> None:
    from cryptography.exceptions import InvalidSignature

    key = signing_key_of(new_secret())
    signature = key.sign(b"message")
    key.public.load().verify(signature, b"message")
    with pytest.raises(InvalidSignature):
        signing_key_of(OLD).public.load().verify(signature, b"message")
