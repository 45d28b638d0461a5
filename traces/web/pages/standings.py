"""What a trial comes to, requirement by requirement."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from traces.web.pages.parts import Link


@dataclass(frozen=True, slots=True)
class WrongField:
    """One place where the final state is not as the contract wants it."""

    pointer: str
    wanted: str
    found: str


@dataclass(frozen=True, slots=True)
class RulingRow:
    """What a reviewer decided where graders disagreed."""

    value: str  # pass | fail | unresolved
    word: str  # "insufficient evidence"
    by: str
    at: datetime
    reason: str
    steps: tuple[Link, ...]
    notes: tuple[str, ...]  # "decided by a party", "corrects an earlier pass"
    is_replaced: bool  # a later one corrects it: it decides nothing
    href: str  # the dispute; "" where there is none


@dataclass(frozen=True, slots=True)
class RequirementRow:
    """One requirement with its standing and why."""

    name: str
    value: str  # pass | fail | unresolved | harness-error (void)
    word: str  # pass | fail | open | void
    notes: tuple[str, ...]  # "not mandatory", "harm: money"
    rule: str  # the sentence of the rule that gives the standing
    why: str  # what the check found
    action: str  # "Next: repair evidence", "" when it is settled
    steps: tuple[Link, ...]
    fields: tuple[WrongField, ...]
    n_more_fields: int
    voters: tuple[str, ...]  # "Rita Cho says pass"; the check itself left aside
    marks: tuple[str, ...]  # "marked as defective by Rita Cho: …"
    question: str  # of a rubric
    verdict_url: str
    mark_url: str
    is_folded: bool  # it passes, or decides nothing
    rulings: tuple[RulingRow, ...] = ()  # adjudications of it, the newest first


@dataclass(frozen=True, slots=True)
class RequirementGroup:
    """Requirements of one kind."""

    title: str  # "Outcome", "Required", "Prohibited" …
    rows: tuple[RequirementRow, ...]


@dataclass(frozen=True, slots=True)
class WentWrong:
    """Where the run first went wrong."""

    criterion: str
    sentence: str
    step: Link | None  # None: no single step shows it


@dataclass(frozen=True, slots=True)
class ReachedActions:
    """Which required actions a run reached that did not pass."""

    words: str  # "3 of 4 required actions"
    reached: tuple[Link, ...]  # names with their first step
    missed: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TouchedRow:
    """A collection of the state, with the records that the run touched."""

    name: str
    fates: tuple[tuple[str, str], ...]  # "created 2", "R-1, R-2"


@dataclass(frozen=True, slots=True)
class AdditionRow:
    """Evidence that was added to the trial; its content stays apart from the record."""

    order: int
    parts: str  # "final state, tokens"
    source: str
    reason: str
    by: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Standings:
    """Everything that says what a trial comes to."""

    contract: Link | None  # None: no contract, the imported criteria decide
    earlier_note: str  # "graded under version 1; version 2 is in effect"
    groups: tuple[RequirementGroup, ...]
    wrong: WentWrong | None
    reached: ReachedActions | None
    touched: tuple[TouchedRow, ...]
    touched_words: str  # why nothing can be said, or that nothing was touched
    missing: tuple[str, ...]  # declared evidence that was not recorded
    faults: tuple[str, ...]  # of the fixture
    acts: tuple[Link, ...]  # what can be done next, the first one first
    additions: tuple[AdditionRow, ...]
    made: tuple[Link, ...]  # tasks that were made of the trial
