"""Rules that the stored paths of a system suggest."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management import BaseCommand, CommandError

from evalsite.common.formatting import counted
from evalsite.management.lookups import system_or_error
from traces.core.rule_suggestions import RuleSuggestions, suggestions_document
from traces.core.rule_words import rule_sentence
from traces.core.rules import RuleSet
from traces.core.text_marks import marked_text
from traces.selectors.rule_reach import RulesMovedError
from traces.selectors.rule_suggestions import suggested_rules
from traces.selectors.rules import rules_of, shown_rules

_LONGEST_VALUE = 90  # characters


class Command(BaseCommand):
    help = "Look for argument rules that would merge passing paths; nothing is changed."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--system", required=True, metavar="S", help="its address or its name")
        parser.add_argument("--json", action="store_true", help="print JSON instead of sentences")

    def handle(self, *args: Any, **options: Any) -> None:
        system = system_or_error(options["system"])
        try:
            found = suggested_rules(system, shown_rules(system), progress=_keep_quiet)
        except RulesMovedError:
            raise CommandError("Pages began to show other rules meanwhile; try again.") from None
        if options["json"]:
            self.stdout.write(json.dumps(suggestions_document(found)))
        else:
            self.stdout.write("\n".join(map(marked_text, _lines(found, rules_of(system)))))


def _keep_quiet(n_done: int, n_total: int) -> None:
    """Progress is for the pages."""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_VALUE else f"{text[: _LONGEST_VALUE - 1]}…"


def _lines(found: RuleSuggestions, rules: RuleSet) -> list[str]:
    tasks, paths = counted(found.n_tasks, "task"), counted(found.n_paths, "path")
    lines = [f"{tasks} with passing trials; {paths} that differ from others by arguments alone"]
    for suggestion in found.suggestions:
        lines.append(f"{suggestion.rule.kind}: {suggestion.sentence}")
        for example, values in zip(suggestion.examples, suggestion.values, strict=True):
            lines.append(f"    {example}")
            lines.extend(f"        {_short(value)}" for value in values)
    if not found.suggestions:
        lines.append("No rule is suggested.")
    if found.is_cut:
        lines.append("Only some of the places that differ were tried.")
    lines.extend(
        f"In force, and never applied: {rule_sentence(rule)}"
        for rule, n_calls in zip(rules.rules, found.n_calls, strict=True)
        if not n_calls
    )
    return lines
