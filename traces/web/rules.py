"""Argument rules and tool kinds of a system: in force, proposed, suggested, and their history."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb
from traces.core.rule_changes import PlaceKey, RulePlace, place_of
from traces.core.rule_suggestions import RuleSuggestions, Suggestion, parse_suggestions
from traces.core.rule_words import rule_name, rule_sentence
from traces.core.rules import RuleSet
from traces.models import RulesSuggestions, RulesVersion, WorkState
from traces.selectors.rule_choices import MOST_TOOLS, SeenTool, seen_tools
from traces.selectors.rules import rules_in, shown_rules
from traces.selectors.rules_history import (
    changes_up_to,
    drafts_of,
    open_proposals,
    unfinished_work,
    version_page,
)
from traces.selectors.rules_work import percent_done
from traces.services.rules import ask_suggestions
from traces.tasks import hint_suggestions
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of
from traces.web.polling import polled
from traces.web.rule_forms import rule_text
from traces.web.rule_kinds import KIND_WORDS, NO_KIND, calls_words, short_name
from traces.web.rule_rows import change_of, listed_sentences, version_line, version_work
from traces.web.shell import system_shell

LISTED_RULES = 300
LISTED_SUGGESTIONS = 20
LISTED_EXAMPLES = 3


@require_GET
@in_system()
def rules_page(request: SystemRequest) -> HttpResponse:
    """The rules in force, proposals, suggestions and the history."""
    return rules_answer(request)


@require_POST
@in_system(Act.RECOMPUTE)
def rules_suggest(request: SystemRequest) -> HttpResponse:
    """Look for suggestions anew."""
    row = ask_suggestions(request.access.system, now=timezone.now())
    hint_suggestions(row.pk)
    return redirect(f"{Addresses.of(request.access.system.slug).rules}#suggestions")


def rules_answer(request: SystemRequest, *, error: str = "") -> HttpResponse:
    """The page of rules; with an error, the answer to an act on it that was refused."""
    access = request.access
    system = access.system
    at = Addresses.of(system.slug)
    version = shown_rules(system)
    rules = rules_in(version)
    work = unfinished_work(system.pk)
    history = version_page(
        system.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    tools = seen_tools(system.pk)
    search = RulesSuggestions.objects.filter(rules=version).first()
    found = parse_suggestions(search.result) if search and search.result else None
    may_propose = access.may(Act.CONTRIBUTE)
    suggestions = _suggestions(search, found, access, at)
    unset = [tool for tool in tools if not rules.is_declared(tool.name)]
    page = pages.RulesPage(
        shell=system_shell(access, section="Rules"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Rules")),
        sentence=_sentence(version, rules),
        error=error,
        work=version_work(work, at, why_not=access.refusal(Act.RECOMPUTE)) if work else None,
        proposals=tuple(version_line(row, at) for row in open_proposals(system.pk)),
        drafts=_drafts(access, at) if may_propose else (),
        rules=_rule_rows(version, rules, found, at, may_propose=may_propose),
        rules_words=_rules_words(rules),
        use_words=_use_words(search, found),
        tools=_tool_rows(tools, rules),
        tools_words=_tools_words(tools, unset),
        n_unset=len(unset),
        suggestions=suggestions,
        history=tuple(version_line(row, at) for row in history.rows),
        pager=pager_of(history, at.rules, {}, place="#history"),
        new_url=at.rule_form if may_propose else "",
        kinds_url=address(at.rule_form, {"what": "kinds"}) if may_propose else "",
        action=at.rule_form,
        why_not=access.refusal(Act.CONTRIBUTE),
        poll_url=at.rules
        if suggestions.is_moving or (work and work.work and work.work.is_open)
        else "",
    )
    status = 422 if error else 200
    answer = render(request, "traces/rules_page.html", {"page": page}, status=status)
    return polled(request, answer, is_moving=bool(page.poll_url))


def _sentence(version: RulesVersion, rules: RuleSet) -> str:
    n_rules = counted(len(rules.rules), "argument rule")
    n_kinds = counted(len(rules.tool_kinds), "tool kind")
    return f"Version {version.number} is in force: {n_rules} and {n_kinds}."


def _drafts(access: Access, at: Addresses) -> tuple[pages.Link, ...]:
    return tuple(
        pages.Link(
            " ".join(listed_sentences(draft.change)[:1]) or "A large change",
            at.rules_preview(draft.uuid),
            title=time_text(draft.asked_at),
        )
        for draft in drafts_of(access.system.pk, access.user.pk)
    )


def _rule_rows(
    version: RulesVersion,
    rules: RuleSet,
    found: RuleSuggestions | None,
    at: Addresses,
    *,
    may_propose: bool,
) -> tuple[pages.RuleRow, ...]:
    if not rules.rules:
        return ()
    since = _sources(version)
    rows: list[pages.RuleRow] = []
    counts: Sequence[int | None] = found.n_calls if found else ()
    for at_rule, rule in enumerate(rules.rules[:LISTED_RULES]):
        place = place_of(rule)
        number = since.get(place.key, since.get(None, version.number))
        n_calls = counts[at_rule] if at_rule < len(counts) else None
        rows.append(
            pages.RuleRow(
                name=rule_name(rule),
                sentence=rule_sentence(rule).removeprefix(f"{rule_name(rule)}: "),
                scope="" if rule.task_id is None else f"task {rule.task_id} only",
                reason=rule.reason,
                author=rule.author,
                since=pages.Link(f"version {number}", at.rules_version(number)),
                use=_use(n_calls),
                is_unused=n_calls == 0,
                change_url=address(at.rule_form, {"rule": rule_text(rule)}) if may_propose else "",
                place=place_text(place) if may_propose else "",
            )
        )
    return tuple(rows)


def place_text(place: RulePlace) -> str:
    """The place of a rule as a form sends it back: ASCII JSON."""
    return json.dumps([place.tool, place.argument, place.task_id])


def _sources(version: RulesVersion) -> Mapping[PlaceKey | None, int]:
    """Which version brought each rule; under None, the one that brought all others."""
    since: dict[PlaceKey | None, int] = {}
    for number, change in changes_up_to(version.system_id, version.number):
        if change is None:
            since[None] = number
            continue
        for rule in change_of(change).put:
            since.setdefault(place_of(rule).key, number)
    return since


def _use(n_calls: int | None) -> str:
    if n_calls is None:
        return "not counted yet"
    return f"applied to {counted(n_calls, 'distinct call')}" if n_calls else "never applied"


def _rules_words(rules: RuleSet) -> str:
    n = len(rules.rules)
    if n > LISTED_RULES:
        return f"The first {LISTED_RULES} of {counted(n, 'rule')}"
    return counted(n, "rule") if n else ""


def _use_words(search: RulesSuggestions | None, found: RuleSuggestions | None) -> str:
    if search is None or found is None or search.result_at is None or not found.n_calls:
        return ""
    return f"Use counted over all stored calls, {time_text(search.result_at)}."


def _tool_rows(tools: Sequence[SeenTool], rules: RuleSet) -> tuple[pages.ToolRow, ...]:
    names = {tool.name for tool in tools}
    known = [*tools, *(SeenTool(name, 0) for name, _ in rules.tool_kinds if name not in names)]
    ordered = sorted(known, key=lambda tool: (rules.is_declared(tool.name), tool.name))
    return tuple(
        pages.ToolRow(
            name=short_name(tool.name),
            kind=KIND_WORDS[rules.kind_of(tool.name)] if rules.is_declared(tool.name) else NO_KIND,
            is_set=rules.is_declared(tool.name),
            calls=calls_words(tool.n_calls),
        )
        for tool in ordered[:MOST_TOOLS]
    )


def _tools_words(tools: Sequence[SeenTool], unset: Sequence[SeenTool]) -> str:
    if len(tools) >= MOST_TOOLS:
        return f"The first {MOST_TOOLS} tools by name"
    if unset:
        return f"{counted(len(unset), 'tool')} of {len(tools)} without a kind"
    return "Every tool in the traces has a kind" if tools else "No tool in any trace yet"


def _suggestions(
    search: RulesSuggestions | None, found: RuleSuggestions | None, access: Access, at: Addresses
) -> pages.Suggestions:
    is_moving = search is not None and search.is_open
    return pages.Suggestions(
        rows=tuple(
            _suggestion_row(one, access, at) for one in found.suggestions[:LISTED_SUGGESTIONS]
        )
        if found
        else (),
        words=_suggestions_words(search, found),
        found_at=search.result_at if search else None,
        percent=percent_done(search.n_done, search.n_total) if search and is_moving else None,
        is_moving=is_moving,
        failure=search.failure if search and search.state == WorkState.FAILED.value else "",
        again_url=f"{at.rules}suggest" if access.may(Act.RECOMPUTE) else "",
    )


def _suggestions_words(search: RulesSuggestions | None, found: RuleSuggestions | None) -> str:
    if found is None:
        if search is not None and search.is_open:
            return "The stored paths are being searched."
        return "Nobody has looked yet."
    over = f"{counted(found.n_paths, 'passing path')} that differ by arguments alone"
    cut = " More places differ than were tried." if found.is_cut else ""
    if not found.n_paths:
        return f"No passing path of {counted(found.n_tasks, 'task')} differs by arguments alone."
    if not found.suggestions:
        return f"No rule would merge any of {over}.{cut}"
    n = len(found.suggestions)
    shown = (
        f"The first {LISTED_SUGGESTIONS} of {n} suggestions"
        if n > LISTED_SUGGESTIONS
        else (counted(n, "suggestion"))
    )
    return f"{shown}, from {over}. None is applied by itself.{cut}"


def _suggestion_row(one: Suggestion, access: Access, at: Addresses) -> pages.SuggestionRow:
    text = rule_text(one.rule) if access.may(Act.CONTRIBUTE) else ""
    return pages.SuggestionRow(
        sentence=rule_sentence(one.rule),
        effect=f"{counted(one.n_merged, 'path')} fewer in {counted(one.n_tasks, 'task')}"
        if one.n_merged
        else "no path fewer yet",
        examples=one.examples[:LISTED_EXAMPLES],
        rule=text,
        edit_url=address(at.rule_form, {"rule": text}) if text else "",
    )
