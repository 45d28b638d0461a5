"""tau2-bench results (`docs/source-formats.md` sections 2 and 3).

One file holds everything (`info`, `tasks`, `simulations`); of a directory, `results.json` holds
the first two and each simulation is a file of its own; a file may hold task definitions alone.
The tasks are read first, wherever they stand, and simulations one by one.

The reward is the verdict on `outcome`. Each part of the reward's basis and each single check has
a criterion of its own that decides nothing: `db`, `communicate`, `action:<id>`,
`communicate:<text>`, `env:<function>`, `nl:<text>`. Crash terminations are errors of the harness;
every other termination counts as its reward says.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from traces.core.canonical import canonical_text, digest_of
from traces.core.formats.checks import (
    MOST_TITLE_CHARS,
    Checks,
    carried,
    number_of,
    object_or_empty,
    objects_in,
    short,
    text_or_empty,
)
from traces.core.formats.containers import Member
from traces.core.formats.fields import RefusedError, identifier, kind_of
from traces.core.formats.native import item_of
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.parts import Part, part_of, refused
from traces.core.formats.scanning import Slice, document_parts, record_slices
from traces.core.formats.tau2_messages import agent_tokens, native_messages
from traces.core.formats.tau2_voice import messages_of_ticks
from traces.core.records import Finding, Item, ParsedTask, RunFacts, Source
from traces.core.text_marks import marked_text
from traces.core.values import Json, JsonObject

GRADER: Final = "tau2"

HARNESS_ERRORS: Final = frozenset(("infrastructure_error", "unexpected_error"))
"""The terminations that say nothing about the agent. An agent's or a user's error does."""

_SPLIT: Final = ("tasks", "simulations")
_MEASURES = re.compile(
    r"(?:agent_cost|user_cost|duration|reward_info\..*|messages\[[0-9]+\]\.(?:cost|usage\..*))\Z"
)
_TAG = re.compile(r"\[([^\[\]]{1,200})\]")
_TRANSLATED: Final = frozenset(
    [
        "id",
        "task_id",
        "trial",
        "start_time",
        "end_time",
        "termination_reason",
        "agent_cost",
        "messages",
        "ticks",
    ]
)
_TASK_VERSION_FIELDS: Final = ("user_scenario", "ticket", "initial_state", "evaluation_criteria")
_TRIAL_MISSING: Final = Finding(
    "trial-number-missing",
    "trial",
    "The simulation has no trial number: it is numbered by its place among those of its task.",
)


@dataclass(frozen=True, slots=True)
class Context:
    """What a results file says of all its simulations."""

    top: JsonObject = field(default_factory=dict)  # the members at the top, lists apart
    task_digests: Mapping[str, bytes] = field(default_factory=dict)

    def info(self, name: str) -> JsonObject:
        """A part of `info`, such as `agent_info`."""
        return object_or_empty(object_or_empty(self.top.get("info")).get(name))

    def domain(self) -> str:
        """The domain that the agent worked in."""
        named = self.info("environment_info").get("domain_name", self.top.get("domain"))
        return text_or_empty(named)


NO_CONTEXT: Final = Context()


class ResultsReader:
    """Reads a results file: first its head (facts and tasks), then its trials."""

    def __init__(self, member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> None:
        self._member = member
        self._options = options
        self._top: JsonObject = {}
        self._top_bytes = 0
        self._digests: dict[str, bytes] = {}

    def context(self) -> Context:
        """What `head` has found."""
        return Context(self._top, self._digests)

    def head(self) -> Iterator[Item]:
        """The task definitions and the facts of the run."""
        has_tasks = False
        with self._member.open() as stream:
            for piece in document_parts(stream, _SPLIT, self._options.limits):
                if piece.key == "simulations" and piece.number:
                    if has_tasks and "info" in self._top:
                        break
                elif piece.key == "tasks" and piece.number:
                    has_tasks = True
                    yield self._task(piece)
                elif piece.key is not None:
                    yield from self._take_top(piece)
        yield Item(Source(0, self._member.name), RunFacts(self._top))

    def trials(self) -> Iterator[Item]:
        """The simulations, after `head`."""
        context, numbers = self.context(), Counter[str]()
        with self._member.open() as stream:
            for piece in document_parts(stream, _SPLIT, self._options.limits):
                if piece.key is None or (piece.key == "simulations" and piece.number):
                    yield _simulation(piece, self._member, context, numbers, self._options)

    def _task(self, piece: Slice) -> Item:
        part = part_of(piece, self._member.name, self._options, _never)
        if isinstance(part, Item):
            return part
        item = _task_item(part, self.context().domain(), self._options)
        if isinstance(item.content, ParsedTask):
            if len(self._digests) >= self._options.limits.steps:
                sentence = f"Too many tasks (max {self._options.limits.steps})."
                return refused(part.source, "too-many-tasks", "", sentence)
            self._digests[item.content.task_id] = item.content.digest
        return item

    def _take_top(self, piece: Slice) -> Iterator[Item]:
        self._top_bytes += piece.length
        part = part_of(piece, self._member.name, self._options, _never)
        if isinstance(part, Item):
            yield part
        elif self._top_bytes > self._options.limits.record_bytes:
            sentence = (
                f'"{marked_text((piece.key or "")[:200])}" makes the head of the file too large.'
            )
            yield refused(part.source, "record-too-large", "", sentence)
        elif piece.key not in _SPLIT:
            self._top[piece.key or ""] = part.value
        elif part.value is not None:
            sentence = f"{piece.key} must be a list, this is {kind_of(part.value)}."
            yield refused(part.source, "wrong-type", piece.key or "", sentence)


def read_tau2(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The tasks, facts and trials of a results file, in this order."""
    reader = ResultsReader(member, options)
    yield from reader.head()
    yield from reader.trials()


def read_tau2_simulation(
    member: Member, options: ReadOptions = DEFAULT_OPTIONS, context: Context = NO_CONTEXT
) -> Iterator[Item]:
    """The trial of a simulation's own file."""
    numbers = Counter[str]()
    with member.open() as stream:
        for piece in record_slices(stream, options.limits):
            yield _simulation(piece, member, context, numbers, options)


def read_tau2_tasks(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The tasks of a file of task definitions."""
    with member.open() as stream:
        for piece in record_slices(stream, options.limits):
            part = part_of(piece, member.name, options, _never)
            yield part if isinstance(part, Item) else _task_item(part, "", options)


def _is_measure(place: str) -> bool:
    return _MEASURES.match(place) is not None


def _never(_: str) -> bool:
    return False


def _task_item(part: Part, domain: str, options: ReadOptions) -> Item:
    task = part.value
    if not isinstance(task, dict):
        sentence = f"A task must be a JSON object, this is {kind_of(task)}."
        return refused(part.source, "not-an-object", "", sentence)
    try:
        task_id = identifier(task.get("id"), "id", options.limits)
    except RefusedError as error:
        return Item(part.source, None, (error.finding,))
    digest = digest_of({name: task.get(name) for name in _TASK_VERSION_FIELDS})
    family = _family(task_id, task, domain)
    return Item(part.source, ParsedTask(task_id, _title(task, task_id), family, None, task, digest))


def _family(task_id: str, task: JsonObject, domain: str) -> str:
    tag = _TAG.match(task_id)
    if tag is not None:
        return tag[1]
    return (domain or text_or_empty(_instructions(task).get("domain")))[:200]


def _title(task: JsonObject, task_id: str) -> str:
    scenario = object_or_empty(task.get("user_scenario"))
    texts = (
        object_or_empty(task.get("description")).get("purpose"),
        _instructions(task).get("reason_for_call"),
        scenario.get("instructions"),
        task.get("ticket"),
    )
    title = next((text for text in texts if isinstance(text, str) and text.strip()), task_id)
    return short(title, MOST_TITLE_CHARS)


def _instructions(task: JsonObject) -> JsonObject:
    return object_or_empty(object_or_empty(task.get("user_scenario")).get("instructions"))


def _simulation(
    piece: Slice,
    member: Member,
    context: Context,
    numbers: Counter[str],
    options: ReadOptions,
) -> Item:
    part = part_of(piece, member.name, options, _is_measure)
    if isinstance(part, Item):
        return part
    simulation = part.value
    if not isinstance(simulation, dict):
        sentence = f"A simulation must be a JSON object, this is {kind_of(simulation)}."
        return refused(part.source, "not-an-object", "", sentence)
    if "messages" not in simulation and "ticks" not in simulation:
        return refused(part.source, "missing-field", "messages", "messages is missing.")
    task_id = canonical_text(simulation.get("task_id")).strip('"')
    number = simulation.get("trial")
    is_numbered = number is not None
    if not is_numbered:
        number = numbers[task_id]
        numbers[task_id] += 1
    return item_of(
        native_of(simulation, number, context),
        part.source,
        options,
        data=part.data,
        missing=part.missing,
        warnings=() if is_numbered else (_TRIAL_MISSING,),
        task_digest=context.task_digests.get(task_id),
    )


def native_of(simulation: JsonObject, trial: Json, context: Context = NO_CONTEXT) -> JsonObject:
    """The native record of a simulation."""
    messages = _messages(simulation)
    termination = simulation.get("termination_reason")
    is_crash = isinstance(termination, str) and termination in HARNESS_ERRORS
    native: JsonObject = {
        "task_id": simulation.get("task_id"),
        "trial": trial,
        "external_id": simulation.get("id"),
        "agent": _agent(context),
        "domain": context.domain(),
        "messages": messages,
        "verdicts": [] if is_crash else _verdicts(simulation, context),
        "usage": _usage(simulation, messages),
        "started_at": simulation.get("start_time"),
        "ended_at": simulation.get("end_time"),
        "termination_reason": termination,
    }
    if is_crash:
        native |= {"status": "error", "error": f"The run ended with {termination}."}
    rest = carried(simulation, _TRANSLATED)
    return {name: value for name, value in rest.items() if value is not None} | native


def _messages(simulation: JsonObject) -> Json:
    messages = simulation.get("messages")
    if isinstance(messages, list) and messages:
        return native_messages(messages)
    if messages:
        return messages  # refused by name where all messages are checked
    return native_messages(list(messages_of_ticks(objects_in(simulation.get("ticks")))))


def _agent(context: Context) -> JsonObject:
    info = context.info("agent_info")
    name = info.get("implementation", context.top.get("agent"))
    return {"name": name, "model": info.get("llm", context.top.get("model"))}


def _usage(simulation: JsonObject, messages: Json) -> JsonObject:
    sent, received = agent_tokens(messages if isinstance(messages, list) else [])
    return {
        "cost_usd": simulation.get("agent_cost"),
        "input_tokens": sent,
        "output_tokens": received,
    }


def _verdicts(simulation: JsonObject, context: Context) -> list[Json]:
    given = object_or_empty(simulation.get("reward_info"))
    version = text_or_empty(object_or_empty(context.top.get("info")).get("git_commit"))
    checks = Checks(GRADER, version)
    reward = number_of(given.get("reward"))
    parts = _basis_parts(given)
    if reward is not None:
        product = ", ".join(f"{name} {score}" for name, score, _ in parts if score is not None)
        checks.outcome(reward, product)
    for name, score, in_basis in parts:
        checks.check(name.lower(), "", score, score=score, in_basis=in_basis)
    _add_checks(checks, given, frozenset(name for name, _, in_basis in parts if in_basis))
    return checks.records


def _basis_parts(given: JsonObject) -> list[tuple[str, Json, bool]]:
    """Each part of the reward with its score, and whether the reward depends on it."""
    basis = given.get("reward_basis")
    names = [name for name in basis if isinstance(name, str)] if isinstance(basis, list) else []
    scores = dict(object_or_empty(given.get("reward_breakdown")))
    db_check = object_or_empty(given.get("db_check"))
    if scores.get("DB") is None and db_check:
        scores["DB"] = db_check.get("db_reward", db_check.get("db_match"))
    return [(name, scores.get(name), name in names) for name in dict.fromkeys([*names, *scores])]


def _add_checks(checks: Checks, given: JsonObject, basis: frozenset[str]) -> None:
    for item in objects_in(given.get("action_checks")):
        action = object_or_empty(item.get("action"))
        name = text_or_empty(action.get("name"))
        checks.check(
            "action",
            text_or_empty(action.get("action_id")) or name,
            item.get("action_match"),
            score=item.get("action_reward"),
            rationale=short(f"{name} {canonical_text(action.get('arguments'))}", 400),
            in_basis="ACTION" in basis,
        )
    for item in objects_in(given.get("env_assertions")):
        assertion = object_or_empty(item.get("env_assertion"))
        checks.check(
            "env",
            text_or_empty(assertion.get("func_name")),
            item.get("met"),
            score=item.get("reward"),
            rationale=assertion.get("message"),
            in_basis="ENV_ASSERTION" in basis,
        )
    for item in objects_in(given.get("communicate_checks")):
        checks.check(
            "communicate",
            text_or_empty(item.get("info")),
            item.get("met"),
            rationale=item.get("justification"),
            in_basis="COMMUNICATE" in basis,
        )
    for item in objects_in(given.get("nl_assertions")):
        checks.check(
            "nl",
            text_or_empty(item.get("nl_assertion")),
            item.get("met"),
            rationale=item.get("justification"),
            in_basis="NL_ASSERTION" in basis,
            is_judged=True,
        )
