"""What a format reader makes of an upload: trials, verdicts, task definitions and findings.

Every format is translated into the native record (docs/design.md section 10) and read from there, so
that one place decides what a record means.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from enum import StrEnum

from traces.core.trajectory import Trajectory
from traces.core.values import JsonObject


class TrialStatus(StrEnum):
    COMPLETED = "completed"
    ERROR = "error"  # the harness broke: no evidence about the agent


class GraderKind(StrEnum):
    CODE = "code"
    MODEL = "model"
    HUMAN = "human"


class VerdictValue(StrEnum):
    PASS = "pass"
    FAIL = "fail"
    UNKNOWN = "unknown"
    ERROR = "error"


class CriterionClass(StrEnum):
    """Which class of failure a criterion stands for."""

    OUTCOME = "outcome"
    CONSTRAINT = "constraint"
    SEMANTIC = "semantic"


class Disposition(StrEnum):
    """What a trial comes to (docs/design.md section 6)."""

    PASS = "pass"
    FAIL = "fail"
    UNRESOLVED = "unresolved"
    HARNESS_ERROR = "harness_error"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something to say about one record: why it was refused, or what was odd about it."""

    code: str  # stable, kebab-case: "duplicate-key", "naive-time", "control-characters"
    place: str  # path inside the record, "" for the record itself: "verdicts[0].verdict"
    sentence: str  # for people, complete


@dataclass(frozen=True, slots=True)
class Source:
    """Where a record stands in its upload."""

    number: int  # line of a JSON Lines file, index from 1 of an array, 1-based across members
    member: str = ""  # archive member, "" when the upload is one file
    offset: int = 0  # bytes into the decompressed file or member
    length: int = 0  # bytes


@dataclass(frozen=True, slots=True)
class TrialKey:
    """The identity of a trial inside a release. `run` None means the release's default run."""

    run: str | None
    task_id: str  # NFC
    trial: str
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class ParsedVerdict:
    """One verdict as it arrived, with its word mapped by the written table."""

    grader: str
    grader_version: str
    kind: GraderKind
    criterion: str
    criterion_class: CriterionClass
    mandatory: bool
    value: VerdictValue
    raw_word: str  # the word as given, "" when absent
    key: str  # the verdict's own id, else a digest of its content
    score: Decimal | None = None
    rationale: str = ""
    cited_steps: tuple[int, ...] = ()
    overrides: str | None = None
    extra: JsonObject = field(default_factory=dict)  # raw answer, cost, issues: all else
    digest: bytes = b""  # of the whole verdict, so that other content under its key is seen


@dataclass(frozen=True, slots=True)
class ParsedTask:
    """A task definition that came with the evidence."""

    task_id: str
    title: str
    family: str
    split: str | None  # tuning | held_out | regression
    definition: JsonObject
    digest: bytes  # of input, facts and criteria: another digest is another task version


@dataclass(frozen=True, slots=True)
class ParsedTrial:
    """One attempt at a task, ready to be stored."""

    key: TrialKey
    agent_name: str
    agent_version: str | None  # None: the record names no version
    agent_model: str
    status: TrialStatus
    error: str
    environment: str
    external_id: str  # the id that the source gave, such as a simulation id; "" when none
    messages: list[JsonObject]  # native form
    rest: JsonObject  # the native record without messages and verdicts, unknown fields and all
    trajectory: Trajectory
    n_tool_calls: int
    n_rejected: int
    verdicts: tuple[ParsedVerdict, ...]
    cost_usd: Decimal | None
    input_tokens: int | None
    output_tokens: int | None
    started_at: datetime | None
    ended_at: datetime | None
    seconds: Decimal | None  # None when a time is missing or ends before it starts
    termination: str
    has_fault: bool
    task_digest: bytes | None  # the task definition it was run against, when the upload has one
    digest: bytes  # 16 bytes, of the canonical record without verdicts


@dataclass(frozen=True, slots=True)
class ParsedVerdicts:
    """Verdicts that came without their trial."""

    key: TrialKey | None  # None when only the external id is known
    external_id: str
    agent_version: str | None
    verdicts: tuple[ParsedVerdict, ...]


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What a file says of its run as a whole: the version record of the release."""

    details: JsonObject


@dataclass(frozen=True, slots=True)
class Item:
    """One record of an upload and what was found about it. `content` None: refused."""

    source: Source
    content: ParsedTrial | ParsedVerdicts | ParsedTask | RunFacts | None
    refusals: tuple[Finding, ...] = ()  # reasons why the record, or one verdict of it, was refused
    warnings: tuple[Finding, ...] = ()  # stored with the trial


class UnreadableUploadError(Exception):
    """The upload as a whole cannot be read. `finding` says where and why, for people."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.sentence)
        self.finding = finding
