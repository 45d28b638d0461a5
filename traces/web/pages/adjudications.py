"""The page of a dispute: its evidence, who says what, and the form that decides it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from evalsite.common.shell import Crumb, Pager, Shell
from traces.web.pages.deciding import DecisionBar, HeldDecision
from traces.web.pages.parts import Badge, Link, Notice
from traces.web.pages.standings import RequirementRow
from traces.web.pages.tasks import Hidden
from traces.web.pages.trials import TextBlock, TranscriptStep, VerdictRow


@dataclass(frozen=True, slots=True)
class ContractLines:
    """A part of what is asked: its heading and its sentences."""

    heading: str
    lines: tuple[str, ...]
    n_more: int = 0


@dataclass(frozen=True, slots=True)
class AskedCard:
    """What the criterion asks: rubric or check, and the contract around it."""

    contract: Link | None  # "version 3"; None: the task has no contract
    question: TextBlock | None  # the text of the rubric
    guide: TextBlock | None  # what the rubric says beside its question
    rubric: Link | None  # the version of the rubric, where the site keeps its text
    parts: tuple[ContractLines, ...]


@dataclass(frozen=True, slots=True)
class OtherStanding:
    """Another criterion of the trial and what it comes to."""

    name: str
    value: Badge
    note: str = ""


@dataclass(frozen=True, slots=True)
class SpokenVerdict:
    """A verdict on the criterion, as its judge or person gave it."""

    row: VerdictRow
    state: Badge
    cited: tuple[Link, ...]  # without an address the step does not exist
    answer: TextBlock | None  # the raw answer
    is_silent: bool  # it says nothing on the criterion as it stands
    is_check: bool = False


@dataclass(frozen=True, slots=True)
class HeldRulingRow:
    """A decision on the criterion that stands beside the verdicts."""

    ruling: Badge
    by: str
    at: datetime
    reason: str
    cited: tuple[Link, ...]
    notes: tuple[str, ...]  # "decided by a party", "corrects an earlier decision"
    is_replaced: bool
    is_elsewhere: bool  # under another version of the criterion: it decides nothing now


@dataclass(frozen=True, slots=True)
class RefusedDecision:
    """Something this person submitted that was not kept, with why."""

    words: str  # "pass on truthful, task t1, trial 0"
    sentence: str
    href: str


@dataclass(frozen=True, slots=True)
class EffectLine:
    """One thing that a decision would change or leave."""

    name: str
    before: str
    after: str  # "" where it stays as it is
    href: str = ""
    state_before: str = ""
    state_after: str = ""


@dataclass(frozen=True, slots=True)
class DisputeEffect:
    """What the chosen decision would do."""

    decision: str  # "pass"
    lines: tuple[EffectLine, ...]
    why_nothing: str  # "" where the trial's disposition changes
    alike: Link | None  # other open disputes under the same version of the rubric
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EffectPart:
    """The place of the effect on the page, which asks for itself anew as choices change."""

    url: str
    effect: DisputeEffect | None
    is_offered: bool  # this person may decide something


@dataclass(frozen=True, slots=True)
class DisputeDetailPage:
    """A dispute and, for reviewers, the form that decides it."""

    shell: Shell
    crumbs: tuple[Crumb, ...]
    heading: str
    sub: tuple[Link, ...]
    sentences: tuple[str, ...]  # between whom, and whether it decides something
    state: Badge
    progress: str  # "3 of 6"
    previous_url: str
    next_url: str
    trial_url: str
    case: Link | None
    asked: AskedCard
    others: tuple[OtherStanding, ...]
    own: RequirementRow | None  # how the criterion stands now
    steps: tuple[TranscriptStep, ...]
    n_steps: int
    cited_words: str  # "2 cited steps of 18"
    missing_words: str  # cited steps that do not exist
    cited_links: tuple[Link, ...]
    next_cited_url: str  # the next cited step that is on no page so far
    pager: Pager
    step_action: str
    step_hidden: tuple[Hidden, ...]
    step_asked: int | None
    verdicts: tuple[SpokenVerdict, ...]
    silent: tuple[SpokenVerdict, ...]
    rulings: tuple[HeldRulingRow, ...]
    hidden: str  # why this person does not see who says what; "" when they do
    reveal_url: str
    set_link: Link | None  # the calibration set whose blind label it waits for
    notices: tuple[Notice, ...]
    bar: DecisionBar | None  # None: this person decides nothing here
    read_only: str  # the sentence why
    effect: EffectPart | None
    fixture_url: str  # of the form that marks the task's fixture
    held: tuple[HeldDecision, ...] = ()
    refused: tuple[RefusedDecision, ...] = ()
