"""Keys that sign sign-offs and tag the audit log: list, rotate, hand out the public ones."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.key_texts import public_text
from evalsite.signing_keys import (
    KeyKind,
    KeysError,
    audit_keys,
    is_given,
    public_keys,
    rotate,
    signing_keys,
)


class Command(BaseCommand):
    help = "List and rotate the keys of this site, and hand out those that verify signatures."
    requires_system_checks = ()

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="list | rotate | export")
        acts.add_parser("list", help="ids of the keys and where they come from")
        turn = acts.add_parser("rotate", help="make a new key; older ones verify on")
        turn.add_argument("kind", choices=[kind.value for kind in KeyKind])
        acts.add_parser("export", help="print the public keys that verify sign-offs")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        match act:
            case "list":
                self._list()
            case "rotate":
                self._rotate(KeyKind(options["kind"]))
            case _:
                self.stdout.write(public_text(signing_keys().public), ending="")

    def _list(self) -> None:
        for kind, ids in ((KeyKind.SIGNING, public_keys()), (KeyKind.AUDIT, audit_keys())):
            source = "environment" if is_given(kind) else "data folder"
            for number, key_id in enumerate(ids):
                state = "in use" if number == 0 else "verifies only"
                self.stdout.write(f"{kind}  {key_id}  {state}  {source}")

    def _rotate(self, kind: KeyKind) -> None:
        try:
            key_id = rotate(kind)
        except KeysError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"The {kind} key is {key_id} from now on; older ones verify on.")
