"""The form that makes or changes a rule, and the other acts that begin with a preview."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb, Option
from traces.core.canonical import canonical_text, digest_of, nfc
from traces.core.rule_changes import RuleChange, RulePlace, change_between
from traces.core.rule_fits import fitting_terms
from traces.core.rule_words import argument_name, rule_sentence
from traces.core.rules import Alias, ArgumentRule, Ignore, RuleSet, RuleTerms, path_tokens
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.text_marks import clean_text
from traces.core.trajectory import ToolKind
from traces.models import RulesOutcome, RulesPreview, RulesVersion
from traces.selectors.rule_choices import (
    MOST_TOOLS,
    SeenTool,
    TaskName,
    known_tool,
    seen_arguments,
    seen_tools,
    task_name,
    task_named,
    task_names,
)
from traces.selectors.rules import newest_approved, rules_in
from traces.services.rules import RulesError, preview_again, start_preview
from traces.tasks import hint_preview
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of
from traces.web.rule_forms import (
    RuleForm,
    initial_of,
    initial_terms,
    rule_of_text,
)
from traces.web.rule_kinds import (
    KIND_WORDS,
    KINDS,
    NO_KIND,
    KindWords,
    calls_words,
    fit_words,
    short_name,
)
from traces.web.rules import rules_answer
from traces.web.shell import system_shell

LONGEST_VALUE = 2_000


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def rule_form(request: SystemRequest) -> HttpResponse:
    """Make, change or drop a rule, or say the kind of a tool: leads to a preview."""
    if request.method != "POST":
        what = request.GET.get("what", "")
        return _kinds_page(request) if what == "kinds" else _first_page(request)
    match request.POST.get("what", ""):
        case "kinds":
            return _post_kinds(request)
        case "suggested":
            return _post_suggested(request)
        case "drop":
            return _post_drop(request)
        case "back":
            return _post_back(request)
        case "again":
            return _post_again(request)
        case _:
            return _post_rule(request)


# A rule


@dataclass(frozen=True, slots=True)
class _Difference:
    """Two values that a reader found different; None: absent."""

    left: str | None
    right: str | None

    @classmethod
    def of(cls, given: Mapping[str, str]) -> _Difference | None:
        """What an address or a form tells of it; None where that is nothing or nonsense."""
        if "left" not in given and "right" not in given:
            return None
        try:
            sides = [_value_text(given[name]) if name in given else None for name in _SIDES]
        except (StrictJsonError, ValueError):
            return None
        return None if sides[0] == sides[1] else cls(*sides)

    @property
    def hidden(self) -> tuple[pages.Hidden, ...]:
        sides = zip(_SIDES, (self.left, self.right), strict=True)
        return tuple(pages.Hidden(name, value) for name, value in sides if value is not None)


_SIDES = ("left", "right")


def _value_text(text: str) -> str:
    if len(text) > LONGEST_VALUE:
        raise ValueError("too long to be carried along")
    return canonical_text(loads_text(text))


def _first_page(request: SystemRequest) -> HttpResponse:
    """The empty form, or one filled as the address asks for."""
    system_id = request.access.system.pk
    rules = rules_in(newest_approved(request.access.system))
    given = request.GET
    made = rule_of_text(given.get("rule", ""))
    name = made.tool if made else given.get("tool", "")
    tool = _tool_named(system_id, name, rules)
    difference = _Difference.of(given)
    task = task_named(system_id, made.task_id) if made and made.task_id else _task(request)
    initial: dict[str, Any] = {"task": str(task.uuid) if task else ""}
    if made:
        initial |= initial_of(made)
    elif "argument" in given:
        initial["argument"] = json.dumps(given["argument"])
    if difference:
        fits = fitting_terms(difference.left, difference.right)
        for terms in reversed(fits):
            initial |= initial_terms(terms)
        if not isinstance(fits[0], Alias | Ignore):
            initial["kind"] = _kind_of(fits[0])
    return _rule_page(request, RuleForm(initial=initial), tool, rules, difference, task)


def _post_rule(request: SystemRequest) -> HttpResponse:
    access = request.access
    rules = rules_in(newest_approved(access.system))
    form = RuleForm(request.POST)
    tool = _tool_named(access.system.pk, request.POST.get("tool", ""), rules)
    task = _task(request)
    if request.POST.get("task") and task is None:
        form.add_error("task", "There is no such task in this system.")
    if not tool:
        form.add_error(None, "Choose a tool that a stored trace, or a rule, knows.")
    if form.is_valid():
        rule = form.rule(
            tool=tool, author=access.user.username, task_id=task.task_id if task else None
        )
        if rule is not None:
            try:
                return _to_preview(request, RuleChange(put=(rule,)))
            except RulesError as error:
                form.add_error(None, str(error))
    return _rule_page(request, form, tool, rules, _Difference.of(request.POST), task)


def _to_preview(request: SystemRequest, change: RuleChange) -> HttpResponse:
    """Start the preview and go to it. Raises `RulesError`."""
    access = request.access
    preview = start_preview(access.system, change, by=access.user, now=timezone.now())
    return _at_preview(request, preview)


def _at_preview(request: SystemRequest, preview: RulesPreview) -> HttpResponse:
    hint_preview(preview.pk)
    return redirect("rules-preview", slug=request.access.system.slug, preview=preview.uuid)


def _task(request: SystemRequest, name: str = "task") -> TaskName | None:
    """The task that an address or a form names; None for none of this system."""
    given = request.POST if request.method == "POST" else request.GET
    identity = uuid_of(given.get(name, ""))
    return task_name(request.access.system.pk, identity) if identity else None


def _tool_named(system_id: int, name: str, rules: RuleSet) -> str:
    """The tool of that name, as it is stored; "" where no trace, kind or rule knows it.

    Forms send a name as JSON, so that no character of it is lost; links send it as it is.
    """
    spellings = {nfc(clean_text(text)) for text in (name, _text_of_json(name)) if text}
    declared = {tool for tool, _ in rules.tool_kinds} | {rule.tool for rule in rules.rules}
    found = next(iter(sorted(spellings & declared)), "")
    return found or known_tool(system_id, spellings)


def _text_of_json(text: str) -> str:
    """The text that a JSON text spells; "" for anything else."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return ""
    return value if isinstance(value, str) else ""


def _rule_page(
    request: SystemRequest,
    form: RuleForm,
    tool: str,
    rules: RuleSet,
    difference: _Difference | None,
    task: TaskName | None,
) -> HttpResponse:
    system = request.access.system
    at = Addresses.of(system.slug)
    argument = _argument_of(form)
    near = _task(request, "near")
    fits = {
        _kind_of(terms): terms
        for terms in (fitting_terms(difference.left, difference.right) if difference else ())
    }
    values = (difference.left, difference.right) if difference else ()
    choices = {
        words.kind.value: _choice(form, words, _fit(tool, argument, fits, words, values))
        for words in KINDS
    }
    page = pages.RuleFormPage(
        shell=system_shell(request.access, section="Rules"),
        crumbs=_crumbs(system.name, at, "Rule"),
        heading="A rule about an argument",
        action=at.rule_form,
        cancel_url=at.rules,
        form=form,
        tool=tool,
        tool_value=json.dumps(tool),
        tools=() if tool else _tool_options(system.pk, rules),
        other_tool_url=at.rule_form,
        hidden=(
            *(difference.hidden if difference else ()),
            *((pages.Hidden("near", str(near.uuid)),) if near else ()),
        ),
        arguments=_argument_options(system.pk, tool, argument) if tool else (),
        is_argument_typed=form.is_bound and form["argument"].value() == "",
        tasks=_task_options(system.pk, task, near) if tool else (),
        left=difference.left if difference else None,
        right=difference.right if difference else None,
        has_values=difference is not None,
        fitting=tuple(choices[kind] for kind in fits),
        kinds=tuple(choice for kind, choice in choices.items() if kind not in fits),
        earlier=_earlier(rules, tool, argument, task),
    )
    status = 422 if form.is_bound else 200
    return render(request, "traces/rule_form.html", {"page": page}, status=status)


def _kind_of(terms: RuleTerms) -> str:
    return ArgumentRule("", "", terms).kind.value


def _fit(
    tool: str,
    argument: str | None,
    fits: Mapping[str, RuleTerms],
    words: KindWords,
    values: tuple[str | None, ...],
) -> str:
    terms = fits.get(words.kind.value)
    return "" if terms is None else fit_words(tool, argument or "", terms, values)


def _choice(form: RuleForm, words: KindWords, fit: str) -> pages.KindChoice:
    return pages.KindChoice(
        value=words.kind.value,
        id=f"id_kind_{words.kind.value}",
        label=words.label,
        line=words.line,
        fit=fit,
        is_checked=form["kind"].value() == words.kind.value,
        fields=tuple(form[name] for name in words.fields),
    )


def _argument_of(form: RuleForm) -> str | None:
    """The argument that the form names so far; None for none."""
    return _text_of_json(form["argument"].value() or "") or None


def _tool_options(system_id: int, rules: RuleSet) -> tuple[Option, ...]:
    return tuple(
        Option(json.dumps(tool.name), short_name(tool.name))
        for tool in _all_tools(system_id, rules)
    )


def _argument_options(system_id: int, tool: str, chosen: str | None) -> tuple[Option, ...]:
    seen = seen_arguments(system_id, tool)
    options = [
        Option(
            json.dumps(each.argument),
            f"{_argument_name(each.argument)}, such as {each.example}",
            is_selected=each.argument == chosen,
        )
        for each in seen
    ]
    if chosen is not None and not any(option.is_selected for option in options):
        option = Option(json.dumps(chosen), _argument_name(chosen), is_selected=True)
        options.insert(0, option)
    return tuple(options)


def _argument_name(argument: str) -> str:
    return argument_name("", path_tokens(argument)).removeprefix(".") or "all arguments"


def _task_options(
    system_id: int, chosen: TaskName | None, near: TaskName | None
) -> tuple[Option, ...]:
    """All tasks, the one that the reader comes from, and the others."""
    first = [task for task in dict.fromkeys((near, chosen)) if task is not None]
    tasks = (*first, *(task for task in task_names(system_id) if task not in first))
    return (
        Option("", "All tasks of the system", is_selected=chosen is None),
        *(
            Option(str(task.uuid), f"Only task {task.task_id}", is_selected=task == chosen)
            for task in tasks
        ),
    )


def _earlier(rules: RuleSet, tool: str, argument: str | None, task: TaskName | None) -> str:
    """The rule that a new one at this place replaces."""
    if not tool or argument is None:
        return ""
    key = RulePlace(tool, argument, task.task_id if task else None).key
    found = (r for r in rules.rules if RulePlace(r.tool, r.argument, r.task_id).key == key)
    return next((rule_sentence(rule) for rule in found), "")


def _crumbs(system_name: str, at: Addresses, last: str) -> tuple[Crumb, ...]:
    return (Crumb(system_name, at.tasks), Crumb("Rules", at.rules), Crumb(last))


# Other ways to a preview, each one button


def _post_suggested(request: SystemRequest) -> HttpResponse:
    """Rules that were suggested, by their documents."""
    author = request.access.user.username
    made = [rule_of_text(text, author=author) for text in request.POST.getlist("rule")]
    rules = tuple(rule for rule in made if rule is not None)
    if not made:
        return rules_answer(request, error="Choose a suggestion first.")
    if len(rules) < len(made):
        return rules_answer(request, error="This suggestion cannot be read. Look for it again.")
    try:
        return _to_preview(request, RuleChange(put=rules))
    except RulesError as error:
        return rules_answer(request, error=str(error))


def _post_drop(request: SystemRequest) -> HttpResponse:
    """A rule less."""
    place = _place_of(request.POST.get("place", ""))
    if place is None:
        return rules_answer(request, error="This rule cannot be found. Choose it again.")
    try:
        return _to_preview(request, RuleChange(drop=(place,)))
    except RulesError as error:
        return rules_answer(request, error=str(error))


def _place_of(text: str) -> RulePlace | None:
    try:
        match json.loads(text):
            case [str(tool), str(argument), (str() | None) as task]:
                return RulePlace(tool, argument, task)
            case _:
                return None
    except (ValueError, RecursionError):
        return None


def _post_back(request: SystemRequest) -> HttpResponse:
    """All rules and kinds as they were in an earlier version."""
    version = _version(request)
    if version.based_on is not None and not _is_approved(version):
        error = f"Version {version.number} never was in force: there is no way back to it."
        return rules_answer(request, error=error)
    newest = rules_in(newest_approved(request.access.system))
    try:
        return _to_preview(request, change_between(newest, rules_in(version)))
    except RulesError as error:
        return rules_answer(request, error=str(error))


def _is_approved(version: RulesVersion) -> bool:
    decision = getattr(version, "decision", None)
    return decision is not None and decision.outcome == RulesOutcome.APPROVED.value


def _post_again(request: SystemRequest) -> HttpResponse:
    """The change of a version or a preview, on the newest approved version."""
    access = request.access
    identity = uuid_of(request.POST.get("preview", ""))
    made: RulesVersion | RulesPreview | None
    if identity is not None:
        previews = RulesPreview.objects.select_related("system", "base")
        made = previews.filter(system=access.system, uuid=identity).first()
    else:
        made = _version(request)
    if made is None:
        raise Http404("There is no such preview in this system.")
    try:
        preview = preview_again(made, by=access.user, now=timezone.now())
    except RulesError as error:
        return rules_answer(request, error=str(error))
    return _at_preview(request, preview)


def _version(request: SystemRequest) -> RulesVersion:
    text = request.POST.get("number", "")
    versions = RulesVersion.objects.select_related("system", "based_on", "decision")
    found = (
        versions.filter(system=request.access.system, number=int(text)).first()
        if text.isascii() and text.isdigit() and len(text) < 9
        else None
    )
    if found is None:
        raise Http404("There is no such version of the rules.")
    return found


# Tool kinds


def _kinds_page(request: SystemRequest, *, error: str = "") -> HttpResponse:
    system = request.access.system
    at = Addresses.of(system.slug)
    rules = rules_in(newest_approved(system))
    tools = _all_tools(system.pk, rules)
    page = pages.ToolKindsPage(
        shell=system_shell(request.access, section="Rules"),
        crumbs=_crumbs(system.name, at, "Tool kinds"),
        action=at.rule_form,
        cancel_url=at.rules,
        error=error,
        rows=tuple(_kind_row(tool, rules, request.POST) for tool in tools),
        words=counted(len(tools), "tool")
        if len(tools) < MOST_TOOLS
        else f"The first {MOST_TOOLS} tools by name.",
    )
    status = 422 if error else 200
    return render(request, "traces/tool_kinds_form.html", {"page": page}, status=status)


def _post_kinds(request: SystemRequest) -> HttpResponse:
    system = request.access.system
    rules = rules_in(newest_approved(system))
    kinds: list[tuple[str, ToolKind | None]] = []
    for tool in _all_tools(system.pk, rules):
        word = request.POST.get(_kind_field(tool.name))
        if word is None:
            continue
        if word and word not in set(ToolKind):
            return _kinds_page(request, error="A tool reads, writes or hands over.")
        kind = ToolKind(word) if word else None
        if kind != _declared(rules, tool.name):
            kinds.append((tool.name, kind))
    if not kinds:
        return _kinds_page(request, error="No kind was changed.")
    try:
        return _to_preview(request, RuleChange(kinds=tuple(kinds)))
    except RulesError as error:
        return _kinds_page(request, error=str(error))


def _all_tools(system_id: int, rules: RuleSet) -> Sequence[SeenTool]:
    """Tools of traces and tools that only the rules know; those without a kind first."""
    seen = list(seen_tools(system_id))
    names = {tool.name for tool in seen}
    declared = dict.fromkeys(
        (*(tool for tool, _ in rules.tool_kinds), *(rule.tool for rule in rules.rules))
    )
    seen += [SeenTool(name, 0) for name in declared if name not in names]
    return sorted(seen[:MOST_TOOLS], key=lambda tool: (rules.is_declared(tool.name), tool.name))


def _declared(rules: RuleSet, tool: str) -> ToolKind | None:
    return rules.kind_of(tool) if rules.is_declared(tool) else None


def _kind_field(tool: str) -> str:
    return f"kind-{digest_of(tool).hex()}"


def _kind_row(tool: SeenTool, rules: RuleSet, given: Mapping[str, str]) -> pages.ToolKindRow:
    declared = _declared(rules, tool.name)
    field = _kind_field(tool.name)
    chosen = given.get(field, declared.value if declared else "")
    return pages.ToolKindRow(
        name=short_name(tool.name),
        field=field,
        options=(
            Option("", NO_KIND, is_selected=not chosen),
            *(Option(k.value, words, is_selected=k == chosen) for k, words in KIND_WORDS.items()),
        ),
        calls=calls_words(tool.n_calls),
        is_set=declared is not None,
    )
