"""Whether a sign-off's file, or a system's signatures, rows and audit log are as they were made."""

from __future__ import annotations

import json
import re
import sys
from argparse import ArgumentParser
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.key_texts import KeyTextError, PublicKey, public_keys_in
from evalsite.management.lookups import system_or_error
from evalsite.verification import VerifiedSystem, verify_file, verify_system
from reviews.core.gate.attestation import Alteration, CheckedFile

ALTERED = 1
_HEAD = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})")


class Command(BaseCommand):
    help = (
        "Verify the file of a sign-off without a database, or all signatures of a system, the "
        "rows that they cover and its audit log. Exits with 1 where something was altered."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("file", nargs="?", metavar="FILE", help="a downloaded attestation")
        parser.add_argument("--keys", metavar="FILE", help="public keys, as `keys export` prints")
        parser.add_argument("--system", metavar="SYSTEM")
        parser.add_argument("--release", default="", metavar="RELEASE", help="name or UUID")
        parser.add_argument(
            "--head",
            default="",
            metavar="SEQ:HASH|FILE",
            help="an audit event that was noted elsewhere, or an attestation that holds one",
        )
        parser.add_argument("--json", action="store_true", help="print the findings as JSON")

    def handle(self, *args: Any, file: str | None, system: str | None, **options: Any) -> None:
        if (file is None) == (system is None):
            raise CommandError("Name a file, or a system with --system.", returncode=2)
        as_json = options["json"]
        if file is not None:
            checked = verify_file(_bytes(file), _keys(options["keys"]))
            self._tell_file(file, checked, as_json=as_json)
            n_altered = len(checked.alterations)
        else:
            assert system is not None
            verified = verify_system(
                system_or_error(system),
                release=options["release"],
                head=_head(options["head"]),
            )
            self._tell_system(verified, as_json=as_json)
            n_altered = verified.n_alterations
        if n_altered:
            sys.exit(ALTERED)

    def _tell_file(self, name: str, checked: CheckedFile, *, as_json: bool) -> None:
        if as_json:
            self._json(
                {"file": name, "key": checked.key_id, "findings": _told(checked.alterations)}
            )
            return
        if checked.statement is not None:
            self.stdout.write(_summary(checked.statement))
        if checked.alterations:
            self._sentences(checked.alterations)
        else:
            self.stdout.write(f"Intact: signed with key {checked.key_id}, nothing was altered.")

    def _tell_system(self, verified: VerifiedSystem, *, as_json: bool) -> None:
        if as_json:
            self._json(
                {
                    "sign_offs": [
                        {
                            "uuid": each.uuid,
                            "release": each.release,
                            "words": each.words,
                            "is_void": each.is_void,
                            "findings": _told(each.alterations),
                        }
                        for each in verified.sign_offs
                    ],
                    "audit": _told(verified.audit),
                }
            )
            return
        for each in verified.sign_offs:
            void = ", void" if each.is_void else ""
            state = "altered" if each.alterations else "intact"
            self.stdout.write(f"{each.release}: {each.words}{void}: {state}")
            self._sentences(each.alterations)
        self.stdout.write(f"audit log: {'altered' if verified.audit else 'intact'}")
        self._sentences(verified.audit)

    def _sentences(self, alterations: Iterable[Alteration]) -> None:
        for each in alterations:
            self.stdout.write(f"  {_printable(each.sentence)}")

    def _json(self, value: Any) -> None:
        self.stdout.write(json.dumps(value, indent=1))


def _told(alterations: Iterable[Alteration]) -> list[dict[str, str]]:
    return [
        {"code": each.code, "place": each.place, "sentence": each.sentence} for each in alterations
    ]


def _summary(statement: dict[str, Any]) -> str:
    predicate = statement.get("predicate")
    words = predicate.get("signOff") if isinstance(predicate, dict) else None
    if not isinstance(words, dict):
        return "The statement says nothing of a sign-off."
    return _printable(
        f"{words.get('printedName')}, {words.get('role')}, {words.get('words')}, "
        f"{words.get('signedAt')}"
    )


def _printable(text: str) -> str:
    """Without characters that a terminal would act on."""
    return "".join(c if c.isprintable() else f"\\u{ord(c):04x}" for c in text)


def _bytes(name: str) -> bytes:
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandError(f"{name} cannot be read: {error.strerror}.", returncode=2) from None


def _keys(name: str | None) -> tuple[PublicKey, ...] | None:
    if name is None:
        return None
    try:
        return public_keys_in(_bytes(name).decode("utf-8", "replace"))
    except KeyTextError as error:
        raise CommandError(f"{name} {error}.", returncode=2) from None


def _head(text: str) -> tuple[int, str] | None:
    if not text:
        return None
    if match := _HEAD.fullmatch(text):
        return int(match.group(1)), match.group(2)
    statement = verify_file(_bytes(text)).statement or {}
    try:
        audit = statement["predicate"]["sealed"]["audit"]  # type: ignore[index,call-overload]
        return int(audit["seq"]), str(audit["hash"])  # type: ignore[index,call-overload,arg-type]
    except (KeyError, TypeError, ValueError):
        raise CommandError(
            "--head is a number and a hash, as 12:0f3c…, or the file of a sign-off.", returncode=2
        ) from None
