"""API keys of a system: make, list, revoke."""

from argparse import ArgumentParser
from datetime import timedelta
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.utils import timezone

from evalsite.management.lookups import person_or_error, system_or_error
from traces.models import ApiKey, Scope
from traces.services.people import MOST_DAYS, PeopleError, create_api_key, revoke_api_key


class Command(BaseCommand):
    help = "Make, list and revoke the API keys of a system."

    def add_arguments(self, parser: ArgumentParser) -> None:
        acts = parser.add_subparsers(dest="act", required=True, metavar="create | list | revoke")
        create = acts.add_parser("create", help="make a key; it is shown once")
        create.add_argument("system", metavar="SYSTEM")
        create.add_argument("username", metavar="USERNAME", help="an engineer of the system")
        create.add_argument("--name", default="", help="what the key is for")
        create.add_argument(
            "--scope",
            action="append",
            choices=[scope.value for scope in Scope],
            help="may be given twice; both by default",
        )
        create.add_argument("--days", type=int, default=90, help="until it expires (90)")
        show = acts.add_parser("list", help="show the keys of a system")
        show.add_argument("system", metavar="SYSTEM")
        revoke = acts.add_parser("revoke", help="end a key at once")
        revoke.add_argument("prefix", metavar="PREFIX", help="the digits behind evs_")

    def handle(self, *args: Any, act: str, **options: Any) -> None:
        match act:
            case "create":
                self._create(options)
            case "list":
                self._list(options["system"])
            case _:
                self._revoke(options["prefix"])

    def _create(self, options: dict[str, Any]) -> None:
        if not 1 <= options["days"] <= MOST_DAYS:
            raise CommandError(f"--days is a number from 1 to {MOST_DAYS}.")
        scopes = options["scope"] or [scope.value for scope in Scope]
        try:
            made = create_api_key(
                system_or_error(options["system"]),
                by=person_or_error(options["username"]),
                name=options["name"] or f"key of {options['username']}",
                scopes=tuple(Scope(scope) for scope in dict.fromkeys(scopes)),
                expires_at=timezone.now() + timedelta(days=options["days"]),
            )
        except PeopleError as error:
            raise CommandError(str(error)) from None
        self.stderr.write(
            f"Scopes {', '.join(made.key.scopes)}; expires {made.key.expires_at:%Y-%m-%d}. "
            "This is the only time that the key is shown:"
        )
        self.stdout.write(made.secret)

    def _list(self, name: str) -> None:
        rows = ApiKey.objects.select_related("user").filter(system=system_or_error(name))
        for key in rows.order_by("pk"):
            self.stdout.write(
                f"evs_{key.prefix}…  {key.user.username}  {','.join(key.scopes)}  "
                f"{_state(key)}  {key.name}"
            )

    def _revoke(self, prefix: str) -> None:
        key = ApiKey.objects.filter(prefix=prefix.removeprefix("evs_").partition("_")[0]).first()
        if key is None:
            raise CommandError(f"There is no key with the prefix {prefix!r}.")
        revoke_api_key(key, now=timezone.now())
        self.stdout.write(f"The key evs_{key.prefix}… ({key.name}) is revoked.")


def _state(key: ApiKey) -> str:
    if key.revoked_at:
        return f"revoked {key.revoked_at:%Y-%m-%d}"
    word = "expired" if key.expires_at <= timezone.now() else "expires"
    return f"{word} {key.expires_at:%Y-%m-%d}"
