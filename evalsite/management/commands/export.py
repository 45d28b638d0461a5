"""Evidence written out again."""

import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management import BaseCommand, CommandError
from django.http import Http404

from evalsite.management.lookups import system_or_error
from reviews.api.figures import selection_of
from reviews.selectors.exports import csv_rows, jsonl_lines


class Command(BaseCommand):
    help = "Write the trials of a system as native JSON Lines, with their verdicts, or as CSV."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument("--release", metavar="R", help="else all of them")
        parser.add_argument("--run", metavar="N", help="else all of them")
        parser.add_argument("--format", choices=["jsonl", "csv"], default="jsonl")
        parser.add_argument("--output", metavar="FILE", help="else standard output")

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            selection = selection_of(
                system_or_error(options["system"]), options["release"], options["run"]
            )
        except Http404 as error:
            raise CommandError(str(error)) from None
        texts = jsonl_lines(selection) if options["format"] == "jsonl" else csv_rows(selection)
        try:
            if options["output"]:
                with Path(options["output"]).open("w", encoding="utf-8", newline="") as out:
                    out.writelines(texts)
            else:
                for text in texts:
                    self.stdout.write(text, ending="")
        except BrokenPipeError:
            # The reader has enough; Python would complain once more while it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except OSError as error:
            raise CommandError(
                f"{options['output']} cannot be written: {error.strerror}."
            ) from None
