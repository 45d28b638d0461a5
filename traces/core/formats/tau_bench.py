"""tau-bench results (`docs/source-formats.md` section 1): an array of records, or one record.

The file names neither the agent nor the domain, and no cost of the agent: `info.user_cost` is the
simulated user's, or a count of tokens, and is kept as it is. A record with `info.error` is a crash
of the harness, whatever its reward says. A numeric reward without a crash counts as given.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from traces.core.canonical import digest_of
from traces.core.formats.checks import (
    MOST_TITLE_CHARS,
    Checks,
    carried,
    number_of,
    object_or_empty,
    short,
    text_or_empty,
)
from traces.core.formats.containers import Member
from traces.core.formats.fields import RefusedError, identifier, kind_of
from traces.core.formats.native import item_of
from traces.core.formats.options import DEFAULT_OPTIONS, ReadOptions
from traces.core.formats.parts import Part, part_of, refused
from traces.core.formats.scanning import record_slices
from traces.core.records import Finding, Item, ParsedTask
from traces.core.values import Json, JsonObject

GRADER: Final = "tau-bench"

_MEASURES = re.compile(r"(?:reward|info\.user_cost|info\.reward_info\.reward)\Z")
_DOUBTFUL_TRIAL: Final = Finding(
    "doubtful-trial-number",
    "trial",
    "In this file each trial number equals the task id: it may number no trials.",
)
_TRANSLATED: Final = frozenset(("task_id", "trial", "reward", "info", "traj"))


def read_tau_bench(member: Member, options: ReadOptions = DEFAULT_OPTIONS) -> Iterator[Item]:
    """The trials of a tau-bench file, each task definition before its first trial."""
    doubtful = _trial_is_task_index(member, options)
    seen: set[tuple[str, bytes]] = set()
    with member.open() as stream:
        for piece in record_slices(stream, options.limits):
            part = part_of(piece, member.name, options, _is_measure)
            if isinstance(part, Item):
                yield part
                continue
            task = _task_of(part, options)
            if task is not None and (task.task_id, task.digest) not in seen:
                seen.add((task.task_id, task.digest))
                yield Item(part.source, task)
            yield _trial_item(part, task, options, doubtful=doubtful)


def _is_measure(place: str) -> bool:
    return _MEASURES.match(place) is not None


def _trial_is_task_index(member: Member, options: ReadOptions) -> bool:
    """Whether every record's trial number equals its task id, so that it numbers no trials."""
    n_records = 0
    with member.open() as stream:
        for piece in record_slices(stream, options.limits):
            part = part_of(piece, member.name, options, _is_measure)
            if isinstance(part, Item) or not isinstance(part.value, dict):
                continue
            task_id, trial = part.value.get("task_id"), part.value.get("trial")
            if task_id is None or str(task_id) != str(trial):
                return False
            n_records += 1
    return n_records > 1


def _task_of(part: Part, options: ReadOptions) -> ParsedTask | None:
    record = object_or_empty(part.value)
    task = object_or_empty(record.get("info")).get("task")
    if not isinstance(task, dict):
        return None
    try:
        task_id = identifier(record.get("task_id"), "task_id", options.limits)
    except RefusedError:
        return None  # the trial is refused for the same reason
    title = short(text_or_empty(task.get("instruction")), MOST_TITLE_CHARS)
    return ParsedTask(task_id, title, "", None, task, digest_of(task))


def _trial_item(
    part: Part, task: ParsedTask | None, options: ReadOptions, *, doubtful: bool
) -> Item:
    record = part.value
    if not isinstance(record, dict):
        sentence = f"A record must be a JSON object, this is {kind_of(record)}."
        return refused(part.source, "not-an-object", "", sentence)
    if "traj" not in record:
        return refused(part.source, "missing-field", "traj", "traj is missing.")
    return item_of(
        native_of(record, task),
        part.source,
        options,
        data=part.data,
        missing=part.missing,
        warnings=(_DOUBTFUL_TRIAL,) if doubtful else (),
        task_digest=task.digest if task else None,
    )


def native_of(record: JsonObject, task: ParsedTask | None) -> JsonObject:
    """The native record of a tau-bench record."""
    info = object_or_empty(record.get("info"))
    crash = info.get("error")
    native: JsonObject = {
        "task_id": record.get("task_id"),
        "trial": record.get("trial"),
        "agent": {},
        "messages": record["traj"],
        "verdicts": [] if crash is not None else _verdicts(record, info),
        "reward": record.get("reward"),
        "info": {name: value for name, value in info.items() if name != "task"},
    }
    if crash is not None:
        native |= {"status": "error", "error": crash}
    if task is not None:
        native["task_version"] = task.digest.hex()
    return carried(record, _TRANSLATED) | native


def _verdicts(record: JsonObject, info: JsonObject) -> list[Json]:
    checks = Checks(GRADER, "")
    reward = number_of(record.get("reward"))
    reward_info = object_or_empty(info.get("reward_info"))
    if reward is not None:
        note = "" if reward_info else "The record gives the reward without details."
        checks.outcome(reward, note)
    details = object_or_empty(reward_info.get("info"))
    checks.check("actions", "", details.get("r_actions"), in_basis=True)
    checks.check("outputs", "", details.get("r_outputs"), in_basis=True)
    for text, was_said in object_or_empty(details.get("outputs")).items():
        checks.check("output", text, was_said, in_basis=True)
    return checks.records
