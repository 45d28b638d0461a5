"""Blind labelling: the item that is reserved for a person, with its evidence and nothing else."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Crumb, Pager, Shell
from traces.web.pages.deciding import DecisionBar, HeldDecision
from traces.web.pages.parts import Empty, Fact, Link
from traces.web.pages.trials import StateDifference, TextBlock, TranscriptStep


@dataclass(frozen=True, slots=True)
class AskedLines:
    """A part of what the contract asks: its heading and its sentences."""

    heading: str
    lines: tuple[str, ...]
    n_more: int = 0


@dataclass(frozen=True, slots=True)
class Reserved:
    """Until when the item is the person's."""

    until: datetime
    words: str  # "14:32 UTC"
    seconds_left: int  # when the page was made
    extend_url: str  # takes a POST
    item: str


@dataclass(frozen=True, slots=True)
class RefusedLabel:
    """A label that was submitted and not kept, with what its author wrote."""

    words: str  # "Your label on task t1, trial 3 was not kept."
    sentence: str  # why
    decision: str
    reason: str
    item: str
    drop_url: str  # takes a POST
    see: Link | None  # where the verdicts of others stand, once they are no secret


@dataclass(frozen=True, slots=True)
class LabelItem:
    """The item at hand."""

    title: str
    sub: tuple[str, ...]
    question: TextBlock | None  # of the rubric
    guide: TextBlock | None  # what the rubric says beside its question
    rubric_version: str
    asked: tuple[AskedLines, ...]  # of the contract around it
    facts: tuple[Fact, ...]
    steps: tuple[TranscriptStep, ...]
    n_steps: int
    step_asked: int | None
    pager: Pager
    state: StateDifference | None
    reserved: Reserved
    bar: DecisionBar


@dataclass(frozen=True, slots=True)
class LabelPage:
    """What a person labels now, or why there is nothing to label."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    criterion: str
    here: str
    progress: tuple[str, ...]  # "12 of 50 by you", "set: 61 of 100"
    n_done: int
    n_items: int
    item: LabelItem | None
    empty: Empty | None
    held: tuple[HeldDecision, ...] = ()
    refused: tuple[RefusedLabel, ...] = ()
    last: Link | None = None  # what others say of the item that was labelled last
