"""The keys that sign-offs are signed with and that tag the audit log. Never in the database.

They come from the environment (EVALSITE_SIGNING_KEY, EVALSITE_AUDIT_KEY, or files named by the
same with _FILE), else from the folder `keys` of EVALSITE_DATA, where they are made on first use.
A site of several hosts gives all of them the same keys by the environment. Older keys stay, so
that what they signed can be verified.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Callable, Iterator
from enum import StrEnum
from functools import lru_cache
from pathlib import Path

from django.conf import settings

from evalsite.key_texts import (
    AuditKey,
    PublicKey,
    SigningKey,
    SigningKeys,
    audit_key_of,
    audit_keys_in,
    audit_text,
    new_secret,
    signing_key_of,
    signing_keys_in,
    signing_text,
)


class KeyKind(StrEnum):
    """What a key is for."""

    SIGNING = "signing"
    AUDIT = "audit"


class KeysError(Exception):
    """Keys cannot be used or changed; the message is a sentence for people."""


def signing_key() -> SigningKey:
    """The key that signs now."""
    return signing_keys_in(_text(KeyKind.SIGNING)).current


def signing_keys() -> SigningKeys:
    """The key that signs now, and all that verify."""
    return signing_keys_in(_text(KeyKind.SIGNING))


def public_keys() -> dict[str, PublicKey]:
    """Every key that verifies, by its id, the newest first."""
    return {key.key_id: key for key in signing_keys().public}


def audit_key() -> tuple[str, bytes]:
    """The id and the bytes of the key that tags audit events now."""
    newest = audit_keys_in(_text(KeyKind.AUDIT))[0]
    return newest.key_id, newest.secret


def audit_keys() -> dict[str, bytes]:
    """Every key that ever tagged audit events, by its id, the newest first."""
    return {key.key_id: key.secret for key in audit_keys_in(_text(KeyKind.AUDIT))}


def is_given(kind: KeyKind) -> bool:
    """Whether the environment gives the keys, so that they are not kept here."""
    return bool(_given(kind))


def rotate(kind: KeyKind) -> str:
    """Make a new key and use it from now on; its id. The older ones verify on.

    Raises:
        KeysError: the environment gives the keys: they are changed there.
    """
    if is_given(kind):
        name = f"EVALSITE_{kind.upper()}_KEY"
        raise KeysError(f"{name} gives the key: put a new one in front of it there, on every host.")
    if kind is KeyKind.SIGNING:
        return _rotate_signing()
    return _rotate_audit()


def _rotate_signing() -> str:
    with _one_at_a_time():
        kept = signing_keys_in(_kept(KeyKind.SIGNING))
        fresh = signing_key_of(new_secret())
        _write(_file(KeyKind.SIGNING), signing_text(fresh, kept.public))
    return fresh.key_id


def _rotate_audit() -> str:
    with _one_at_a_time():
        kept = audit_keys_in(_kept(KeyKind.AUDIT))
        fresh = audit_key_of(new_secret())
        _write(_file(KeyKind.AUDIT), audit_text((fresh, *kept)))
    return fresh.key_id


def _text(kind: KeyKind) -> str:
    return _given(kind) or _made_once(kind)


def _given(kind: KeyKind) -> str:
    given: str = (
        settings.EVALSITE_SIGNING_KEY if kind is KeyKind.SIGNING else settings.EVALSITE_AUDIT_KEY
    )
    return given


def _made_once(kind: KeyKind) -> str:
    """The text of the kept keys; the first one is made where there is none."""
    file = _file(kind)
    try:
        found = file.stat()
    except FileNotFoundError:
        with _one_at_a_time():
            return _kept(kind)
    return _read(file, (found.st_mtime_ns, found.st_size, found.st_ino))


@lru_cache(maxsize=8)
def _read(file: Path, _state: tuple[int, int, int]) -> str:
    """What a file holds, read again when it was written anew."""
    return file.read_text(encoding="ascii")


def _kept(kind: KeyKind) -> str:
    """Call it with the lock held."""
    file = _file(kind)
    if not file.exists():
        _write(file, _FIRST[kind]())
    return file.read_text(encoding="ascii")


def _first_signing() -> str:
    return signing_text(signing_key_of(new_secret()), ())


def _first_audit() -> str:
    return audit_text([audit_key_of(new_secret())])


_FIRST: dict[KeyKind, Callable[[], str]] = {
    KeyKind.SIGNING: _first_signing,
    KeyKind.AUDIT: _first_audit,
}


def _file(kind: KeyKind) -> Path:
    return _folder() / f"{kind}.keys"


def _folder() -> Path:
    folder: Path = settings.EVALSITE_KEYS
    return folder


@contextlib.contextmanager
def _one_at_a_time() -> Iterator[None]:
    """Let no other process of this host make or change keys meanwhile."""
    folder = _folder()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(file: Path, text: str) -> None:
    """Replace a file in one step; nobody else may read it."""
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())
    fresh.replace(file)


__all__ = [
    "AuditKey",
    "KeyKind",
    "KeysError",
    "PublicKey",
    "SigningKey",
    "SigningKeys",
    "audit_key",
    "audit_keys",
    "is_given",
    "public_keys",
    "rotate",
    "signing_key",
    "signing_keys",
]
