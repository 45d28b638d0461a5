"""What a form about rules offers: tools, their arguments in stored calls, and tasks."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from uuid import UUID

from django.db import connection

from traces.core.canonical import canonical_text, value_of_text
from traces.core.pointers import escaped
from traces.core.values import Json
from traces.models import Task, Tool

MOST_TOOLS = 500
MOST_COUNTED = 1_000
MOST_TASKS = 300
_LOOKED_AT = 200  # distinct calls of a tool
_LONGEST_LOOKED_AT = 20_000  # characters of one call's arguments
_DEEPEST = 4
_MOST_PLACES = 40
_MOST_IN_ONE = 200  # places looked at in one call
_LONGEST_EXAMPLE = 80


@dataclass(frozen=True, slots=True)
class SeenTool:
    """A tool of the stored traces. `n_calls` counts distinct calls, up to `MOST_COUNTED`."""

    name: str
    n_calls: int


def seen_tools(system_id: int, *, n: int = MOST_TOOLS) -> tuple[SeenTool, ...]:
    """The tools of a system's traces by name, in one query whose work is bounded for each."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.name, c.n FROM traces_tool t CROSS JOIN LATERAL"
            " (SELECT count(*) AS n FROM"
            "  (SELECT 1 FROM traces_distinctcall WHERE tool_id = t.id LIMIT %s) few) c"
            " WHERE t.system_id = %s ORDER BY t.name, t.id LIMIT %s",
            [MOST_COUNTED, system_id, n],
        )
        return tuple(SeenTool(*row) for row in cursor.fetchall())


def known_tool(system_id: int, names: Iterable[str]) -> str:
    """The first of some names that a stored trace of the system knows as a tool; else ""."""
    rows = Tool.objects.filter(system_id=system_id, name__in=list(names)).order_by("pk")
    return rows.values_list("name", flat=True).first() or ""


@dataclass(frozen=True, slots=True)
class SeenArgument:
    """A place in the arguments of a tool's stored calls, as a rule names it."""

    argument: str
    n_calls: int  # of the calls that were looked at
    example: str  # canonical text, cut when long


def seen_arguments(system_id: int, tool: str) -> tuple[SeenArgument, ...]:
    """Places in a tool's newest distinct calls, most used first, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.arguments FROM traces_distinctcall c JOIN traces_tool t ON t.id = c.tool_id"
            " WHERE t.system_id = %s AND t.name = %s AND c.form = 'json'"
            " AND length(c.arguments) <= %s ORDER BY c.id DESC LIMIT %s",
            [system_id, tool, _LONGEST_LOOKED_AT, _LOOKED_AT],
        )
        texts = [text for (text,) in cursor.fetchall()]
    counts: dict[str, int] = {}
    examples: dict[str, str] = {}
    for text in texts:
        places: set[str] = set()
        for argument, value in _first(_places(value_of_text(text), "", 0), _MOST_IN_ONE):
            places.add(argument)
            if argument not in examples:
                examples[argument] = _short(canonical_text(value))
        for argument in places:
            counts[argument] = counts.get(argument, 0) + 1
    most_used = sorted(counts, key=lambda each: (-counts[each], each.count("/"), each))
    return tuple(
        SeenArgument(argument, counts[argument], examples[argument])
        for argument in most_used[:_MOST_PLACES]
    )


def _places(value: Json, pointer: str, depth: int) -> Iterator[tuple[str, Json]]:
    if pointer:
        yield argument_of_pointer(pointer), value
    if depth >= _DEEPEST:
        return
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _places(item, f"{pointer}/{token_of_name(name)}", depth + 1)
    elif isinstance(value, list):
        for item in value:
            yield from _places(item, f"{pointer}/*", depth + 1)


def _first(places: Iterator[tuple[str, Json]], n: int) -> Iterator[tuple[str, Json]]:
    for _, place in zip(range(n), places, strict=False):
        yield place


def token_of_name(name: str) -> str:
    """A member's name as it stands in the argument path of a rule."""
    return escaped(name).replace("*", "~2")


def argument_of_pointer(pointer: str) -> str:
    """An argument path as rules are written: the plain name for a member of the arguments."""
    name = pointer[1:]
    if pointer.count("/") != 1 or not name or name == "*" or "~" in name:
        return pointer
    return name


def rule_argument(arguments: Json, path: str) -> str:
    """The argument of a rule at the place that a JSON Pointer names in a call's arguments.

    A rule reaches the elements of a list by `*` alone, so that all of them follow it.
    """
    pointer, value = "", arguments
    for part in path.split("/")[1:]:
        name = part.replace("~1", "/").replace("~0", "~")
        if isinstance(value, list):
            at = int(name) if name.isascii() and name.isdigit() else len(value)
            pointer, value = f"{pointer}/*", value[at] if at < len(value) else None
        else:
            pointer = f"{pointer}/{token_of_name(name)}"
            value = value.get(name) if isinstance(value, dict) else None
    return argument_of_pointer(pointer) if pointer else ""


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_EXAMPLE else f"{text[: _LONGEST_EXAMPLE - 1]}…"


@dataclass(frozen=True, slots=True)
class TaskName:
    """A task by its address and name."""

    uuid: UUID
    task_id: str


def task_names(system_id: int, *, n: int = MOST_TASKS) -> tuple[TaskName, ...]:
    """The first tasks of a system in their order, in one query."""
    rows = Task.objects.filter(system_id=system_id).order_by("sort_key", "pk")
    return tuple(TaskName(*row) for row in rows.values_list("uuid", "task_id")[:n])


def task_name(system_id: int, task: UUID) -> TaskName | None:
    """The task of that address in the system; None when there is none."""
    row = Task.objects.filter(system_id=system_id, uuid=task).values_list("uuid", "task_id").first()
    return TaskName(*row) if row else None


def task_named(system_id: int, task_id: str) -> TaskName | None:
    """The task of that id in the system; None when there is none."""
    rows = Task.objects.filter(system_id=system_id, task_id=task_id)
    row = rows.values_list("uuid", "task_id").first()
    return TaskName(*row) if row else None
