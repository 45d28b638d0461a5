"""What only a system can say of drafted contracts: its tools, its families, what is in effect."""

from __future__ import annotations

import difflib
import uuid
from collections.abc import Iterable, Iterator, Sequence

from reviews.core.contract_drafts import (
    MOST_FINDINGS,
    ContractSource,
    DraftedContract,
    DraftFinding,
    ReadDrafts,
    drafts_of,
    tools_named,
)
from traces.core.canonical import nfc
from traces.core.contracts.places import quoted
from traces.models import System, Task, Tool
from traces.selectors.rules import rules_of

_MOST_GUESSED_FROM = 2_000  # names of tools
SPLIT_WORDS = {"tuning": "tuning", "held_out": "held out", "regression": "regression"}


def checked_contracts(system: System, sources: Iterable[ContractSource]) -> ReadDrafts:
    """Contract texts read and checked against a system, in a few queries whatever their number."""
    read = drafts_of(sources)
    found = (*_unknown_tools(system, read.contracts), *_parted_families(system, read.contracts))
    findings = sorted(
        (*read.findings, *found), key=lambda each: (each.source, each.line, each.column)
    )
    return ReadDrafts(read.contracts, tuple(findings[:MOST_FINDINGS]), read.n_documents)


def unchanged_tasks(system: System, contracts: Iterable[DraftedContract]) -> frozenset[str]:
    """The tasks for which a draft says the same as the contract in effect, in one query."""
    digests = {each.contract.task_id: uuid.UUID(bytes=each.contract.digest) for each in contracts}
    rows = Task.objects.filter(system=system, task_id__in=digests, contract__isnull=False)
    in_effect = rows.values_list("task_id", "contract__digest")
    return frozenset(task_id for task_id, digest in in_effect if digests[task_id] == digest)


def _unknown_tools(system: System, contracts: Sequence[DraftedContract]) -> Iterator[DraftFinding]:
    """A finding for each tool that neither the system's tool kinds nor a stored trace knows."""
    named = {nfc(tool) for drafted in contracts for _, tool in tools_named(drafted)}
    if not named:
        return
    catalogue = {tool for tool, _ in rules_of(system).tool_kinds}
    stored = Tool.objects.filter(system=system)
    known = catalogue | set(stored.filter(name__in=named).values_list("name", flat=True))
    if named <= known:
        return
    guesses = catalogue | set(
        stored.order_by("pk").values_list("name", flat=True)[:_MOST_GUESSED_FROM]
    )
    for drafted in contracts:
        for field, tool in tools_named(drafted):
            if nfc(tool) not in known:
                sentence = (
                    f"No tool {quoted(tool)} is known: neither the tool kinds of this system nor "
                    f"a stored trace names it.{_guess(tool, guesses)}"
                )
                yield drafted.finding("unknown-tool", field, sentence)


def _guess(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name[:100], sorted(known), n=1)
    return f" Is {quoted(near[0])} meant?" if near else ""


def _parted_families(
    system: System, contracts: Sequence[DraftedContract]
) -> Iterator[DraftFinding]:
    """A finding for each contract whose split is not that of the rest of its family."""
    stored = {
        task.task_id: task
        for task in Task.objects.filter(
            system=system, task_id__in={each.contract.task_id for each in contracts}
        )
    }
    families = {
        each.contract.task_id: _family(each, stored.get(each.contract.task_id))
        for each in contracts
    }
    splits = {
        each.contract.task_id: each.contract.split or _split(stored.get(each.contract.task_id))
        for each in contracts
    }
    # Of each family: its splits outside of the draft, each with a task that stands in it.
    others: dict[str, dict[str, str]] = {}
    rows = (
        Task.objects.filter(system=system, family__in={name for name in families.values() if name})
        .exclude(split="")
        .exclude(task_id__in=families)
        .order_by("sort_key", "pk")
        .values_list("family", "split", "task_id")
    )
    for family, split, task_id in rows:
        others.setdefault(family, {}).setdefault(split, task_id)
    for drafted in contracts:
        task_id = drafted.contract.task_id
        family, split = families[task_id], splits[task_id]
        if not family or not split:
            continue
        elsewhere = others.setdefault(family, {})
        for other, example in elsewhere.items():
            if other != split:
                sentence = (
                    f"Family {quoted(family)} stays together in one split: its task "
                    f"{quoted(example)} is {SPLIT_WORDS.get(other, other)}. Write that split "
                    "here, or put the whole family into the other split."
                )
                yield drafted.finding("parted-family", "split", sentence)
                break
        else:
            elsewhere.setdefault(split, task_id)


def _family(drafted: DraftedContract, task: Task | None) -> str:
    return drafted.contract.family or (task.family if task else "")


def _split(task: Task | None) -> str:
    return task.split if task else ""
