"""Two paths or trials side by side."""

from __future__ import annotations

from dataclasses import dataclass

from evalsite.common.shell import Choice, Crumb, Option, Shell
from traces.web.pages.parts import Link, Notice
from traces.web.pages.tasks import Hidden


@dataclass(frozen=True, slots=True)
class ComparedArgument:
    """One argument of a compared call."""

    name: str
    value: str  # as JSON text, shortened
    is_different: bool = False
    note: str = ""  # 'also "600 * 2" in 2 trials', 'equal by rule arithmetic value'
    rules: tuple[Link, ...] = ()  # to the form that makes a rule of the difference


@dataclass(frozen=True, slots=True)
class ComparedStep:
    """A call, or an agent message, of one side."""

    name: str  # of the tool; "" for an agent message
    colour: int
    kind: str  # read | write | handoff | message
    arguments: tuple[ComparedArgument, ...] = ()
    is_rejected: bool = False
    note: str = ""  # "arguments were not recorded"
    href: str = ""  # the step in its trial
    step: int | None = None


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """One row of the alignment; a side without a step has None."""

    number: int
    left: ComparedStep | None
    right: ComparedStep | None
    is_equal: bool
    is_first_divergence: bool = False


@dataclass(frozen=True, slots=True)
class ComparedStretch:
    """Rows that belong together. An equal stretch is folded when it is long."""

    is_equal: bool
    rows: tuple[ComparedRow, ...]
    is_folded: bool = False

    @property
    def words(self) -> str:
        """What the fold hides."""
        if len(self.rows) == 1:
            return f"step {self.rows[0].number} is equal"
        return f"steps {self.rows[0].number} to {self.rows[-1].number} are equal"


@dataclass(frozen=True, slots=True)
class ComparedSide:
    """What stands on one side."""

    name: str  # "Path A" or "Trial 3"
    href: str
    state: str  # pass | fail | unresolved | harness-error
    words: str  # "4 trials of 2 releases; shown: trial 0 of 2.4.0"
    options: tuple[Option, ...]  # the other paths and trials of the task


@dataclass(frozen=True, slots=True)
class ComparePage:
    """Two paths or trials of one task, aligned."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    title: str  # "Path A against Path B"
    divergence: str  # one sentence that names the first divergence, or says that there is none
    divergence_href: str  # "#row-4", "" without one
    n_different: int
    n_equal: int
    levels: tuple[Choice, ...]
    more_levels: tuple[Choice, ...]
    messages: tuple[Choice, ...]
    action: str
    hidden: tuple[Hidden, ...]
    left: ComparedSide
    right: ComparedSide
    swap_url: str
    stretches: tuple[ComparedStretch, ...]
    notices: tuple[Notice, ...] = ()
    note: str = ""  # such as: cut after 400 steps
