"""Keys as texts: how the keys of signatures and of the audit log are written, read and named.

A text holds keys, newest first, separated by commas or white space. `private:` in front of base64
is an Ed25519 key that signs, `public:` one that only verifies, `secret:` a key of the audit log; a
single word without a mark is a key that is in use. PEM, as `openssl genpkey -algorithm ed25519`
writes it, is read for keys of signatures too. Knows nothing of Django.
"""

from __future__ import annotations

import base64
import binascii
import re
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import sha256

from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key, load_pem_public_key

_PEM = re.compile(r"-----BEGIN (PRIVATE|PUBLIC) KEY-----.*?-----END \1 KEY-----", re.DOTALL)
_WORD = re.compile(r"[^\s,]+")
_N_BYTES = 32


class KeyTextError(Exception):
    """A text is not what a key looks like; the message completes "NAME …"."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """What verifies signatures: its id and its 32 bytes."""

    key_id: str
    raw: bytes

    def load(self) -> Ed25519PublicKey:
        """The key itself."""
        return Ed25519PublicKey.from_public_bytes(self.raw)


@dataclass(frozen=True, slots=True)
class SigningKey:
    """What signs."""

    key_id: str
    seed: bytes

    def __repr__(self) -> str:
        return f"SigningKey({self.key_id})"

    @property
    def public(self) -> PublicKey:
        """The half that verifies."""
        return public_key_of(_public_bytes(self.seed))

    def sign(self, message: bytes) -> bytes:
        """64 bytes of signature."""
        return Ed25519PrivateKey.from_private_bytes(self.seed).sign(message)


@dataclass(frozen=True, slots=True)
class SigningKeys:
    """The key that signs, and all that verify, that one first."""

    current: SigningKey
    public: tuple[PublicKey, ...]


@dataclass(frozen=True, slots=True)
class AuditKey:
    """A key of the audit log."""

    key_id: str
    secret: bytes

    def __repr__(self) -> str:
        return f"AuditKey({self.key_id})"


def new_secret() -> bytes:
    """32 random bytes, for either kind of key."""
    return secrets.token_bytes(_N_BYTES)


def signing_key_of(seed: bytes) -> SigningKey:
    """The key that has these 32 bytes."""
    return SigningKey(public_key_of(_public_bytes(seed)).key_id, seed)


def public_key_of(raw: bytes) -> PublicKey:
    """The key that has these 32 bytes; its id is the start of their SHA-256."""
    return PublicKey(sha256(raw).hexdigest()[:16], raw)


def audit_key_of(secret: bytes) -> AuditKey:
    """The key that has these bytes; its id tells nothing of them."""
    return AuditKey(sha256(b"evalsite audit key\0" + secret).hexdigest()[:16], secret)


def signing_keys_in(text: str) -> SigningKeys:
    """The keys of a text.

    Raises:
        KeyTextError: it holds no key that signs, or something else than keys.
    """
    seeds: list[bytes] = []
    public: list[bytes] = []
    for is_private, raw in _ed25519_keys(text):
        if is_private:
            seeds.append(raw)
        public.append(_public_bytes(raw) if is_private else raw)
    if not seeds:
        raise KeyTextError("holds no Ed25519 key that signs")
    first = _public_bytes(seeds[0])
    ordered = dict.fromkeys((first, *public))
    return SigningKeys(signing_key_of(seeds[0]), tuple(map(public_key_of, ordered)))


def public_keys_in(text: str) -> tuple[PublicKey, ...]:
    """The keys of a text, private ones by their public half.

    Raises:
        KeyTextError: it holds something else than keys, or nothing.
    """
    found = (_public_bytes(raw) if private else raw for private, raw in _ed25519_keys(text))
    keys = tuple(public_key_of(raw) for raw in dict.fromkeys(found))
    if not keys:
        raise KeyTextError("holds no key")
    return keys


def audit_keys_in(text: str) -> tuple[AuditKey, ...]:
    """The keys of a text, the one in use first.

    Raises:
        KeyTextError: it holds something else than keys of 32 bytes or more, or nothing.
    """
    found = [_bytes_of(word.removeprefix("secret:")) for word in _WORD.findall(text)]
    if not found:
        raise KeyTextError("holds no key")
    if any(len(secret) < _N_BYTES for secret in found):
        raise KeyTextError("holds a key of fewer than 32 bytes in base64")
    return tuple(audit_key_of(secret) for secret in dict.fromkeys(found))


def signing_text(current: SigningKey, older: Iterable[PublicKey]) -> str:
    """The text of a key that signs and of older ones that verify."""
    lines = [f"private:{_base64(current.seed)}"]
    lines += [f"public:{_base64(key.raw)}" for key in older if key.key_id != current.key_id]
    return "\n".join(lines) + "\n"


def audit_text(keys: Iterable[AuditKey]) -> str:
    """The text of keys of the audit log, the one in use first."""
    return "".join(f"secret:{_base64(key.secret)}\n" for key in keys)


def public_text(keys: Iterable[PublicKey]) -> str:
    """The text of keys that verify, as they are handed out."""
    return "".join(f"public:{_base64(key.raw)}\n" for key in keys)


def _ed25519_keys(text: str) -> list[tuple[bool, bytes]]:
    """Each key's bytes, and whether it signs."""
    found = [
        _pem_key(match.group(), is_private=match.group(1) == "PRIVATE")
        for match in _PEM.finditer(text)
    ]
    for word in _WORD.findall(_PEM.sub(" ", text)):
        raw = _bytes_of(word.removeprefix("private:").removeprefix("public:"))
        if len(raw) != _N_BYTES:
            raise KeyTextError("holds something that is no Ed25519 key of 32 bytes in base64")
        found.append((not word.startswith("public:"), raw))
    return found


def _pem_key(pem: str, *, is_private: bool) -> tuple[bool, bytes]:
    try:
        if is_private:
            key = load_pem_private_key(pem.encode(), password=None)
            if isinstance(key, Ed25519PrivateKey):
                return True, key.private_bytes_raw()
        else:
            public = load_pem_public_key(pem.encode())
            if isinstance(public, Ed25519PublicKey):
                return False, public.public_bytes_raw()
    except (ValueError, TypeError, UnsupportedAlgorithm):
        raise KeyTextError("holds PEM that cannot be read") from None
    raise KeyTextError("holds a key that is not Ed25519")


def _public_bytes(seed: bytes) -> bytes:
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


def _bytes_of(word: str) -> bytes:
    try:
        return base64.b64decode(word, validate=True)
    except (binascii.Error, ValueError):
        raise KeyTextError("holds something that is no base64") from None


def _base64(raw: bytes) -> str:
    return base64.b64encode(raw).decode("ascii")
