"""Rights of the database role of web and worker."""

from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.db import connection, transaction

from evalsite.database_roles import RoleError, statements


class Command(BaseCommand):
    help = (
        "Print, or give, the rights of the database role that web and worker connect as. Run it "
        "as the role that owns the tables, after each migration."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--app", metavar="ROLE", required=True, help="role of web and worker")
        parser.add_argument("--apply", action="store_true", help="give the rights, else print them")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            found = statements(options["app"])
        except RoleError as error:
            raise CommandError(str(error)) from None
        if not options["apply"]:
            for statement in found:
                self.stdout.write(f"{statement};")
            return
        with transaction.atomic(), connection.cursor() as cursor:
            for statement in found:
                cursor.execute(statement)
        self.stdout.write(f"The role {options['app']} reads and adds, and changes no evidence.")
