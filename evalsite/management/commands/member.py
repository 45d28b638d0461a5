"""Members of a system: make, list, remove."""

import getpass
import sys
import warnings
from argparse import ArgumentParser
from typing import Any

from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.core.management import BaseCommand, CommandError
from django.db import transaction

from evalsite.management.lookups import person_or_error, system_or_error
from traces.models import Member, Role, System, User
from traces.services.people import PeopleError, remove_member, set_member

_ROLES = ", ".join(role.value for role in Role)


class Command(BaseCommand):
    help = (
        "Give a person a role in a system: member SYSTEM USERNAME ROLE. The system is there once "
        f"`ingest` has put evidence into it; a role is one of {_ROLES}. "
        "Also: member list SYSTEM; member remove SYSTEM USERNAME."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("words", nargs="+", metavar="SYSTEM USERNAME ROLE")
        parser.add_argument(
            "--create", action="store_true", help="make the person first; asks for a password"
        )
        parser.add_argument("--email", default="", help="of the person to make")
        parser.add_argument("--name", default="", help="printed name of the person to make")
        parser.add_argument("--reason", default="", help="why; kept with the change of role")
        parser.add_argument(
            "--password-stdin",
            action="store_true",
            help="read the password of the person to make from standard input",
        )

    def handle(self, *args: Any, words: list[str], **options: Any) -> None:
        match words:
            case ["list", name]:
                self._list(system_or_error(name))
            case ["remove", name, username]:
                person = person_or_error(username)
                self._remove(system_or_error(name), person, options["reason"])
            case [name, username, role]:
                self._set(system_or_error(name), username, _role(role), options)
            case _:
                raise CommandError(self.help)

    def _set(self, system: System, username: str, role: Role, options: dict[str, Any]) -> None:
        with transaction.atomic():
            if options["create"]:
                person = _new_person(username, options)
            else:
                person = person_or_error(username, hint=" Add --create to make one.")
            try:
                set_member(system, person, role, reason=options["reason"])
            except PeopleError as error:
                raise CommandError(str(error)) from None
        self.stdout.write(f"{username} is {role.value} of {system.slug}.")

    def _list(self, system: System) -> None:
        rows = Member.objects.select_related("user").filter(system=system)
        if not rows:
            self.stdout.write(f"{system.slug} has no members.")
        for row in rows.order_by("role", "user__username"):
            name = row.user.get_full_name()
            self.stdout.write(f"{row.role:<9} {row.user.username}{f'  {name}' if name else ''}")

    def _remove(self, system: System, person: User, reason: str) -> None:
        try:
            remove_member(system, person, reason=reason)
        except PeopleError as error:
            raise CommandError(str(error)) from None
        self.stdout.write(f"{person.username} is no longer a member of {system.slug}.")


def _role(word: str) -> Role:
    try:
        return Role(word)
    except ValueError:
        raise CommandError(f"{word!r} is not a role: {_ROLES}.") from None


def _new_person(username: str, options: dict[str, Any]) -> User:
    if User.objects.filter(username=username).exists():
        raise CommandError(f"There is a person {username!r} already; leave --create out.")
    first, _, last = options["name"].partition(" ")
    person = User(username=username, email=options["email"], first_name=first, last_name=last)
    password = _password(from_input=options["password_stdin"])
    try:
        validate_password(password, person)
        person.set_password(password)
        person.full_clean(exclude=["password"])
    except ValidationError as error:
        raise CommandError(" ".join(error.messages)) from None
    person.save()
    return person


def _password(*, from_input: bool) -> str:
    if from_input:
        return sys.stdin.readline().rstrip("\r\n")
    try:
        with warnings.catch_warnings():
            # Without a terminal getpass would warn and then read the password in the open.
            warnings.simplefilter("error", getpass.GetPassWarning)
            password = getpass.getpass("Password: ")
            again = getpass.getpass("Password again: ")
    except (EOFError, getpass.GetPassWarning):
        raise CommandError(
            "There is no terminal to ask for the password on: add --password-stdin and send it "
            "on standard input."
        ) from None
    if again != password:
        raise CommandError("The two passwords differ.")
    return password
