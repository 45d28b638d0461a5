"""What happened: the stored evidence, and the projections that pages read."""

from traces.core.records import Disposition
from traces.models.additions import EvidenceAddition, HeldOutExposure, TaskOrigin
from traces.models.contracts import (
    ContractDecision,
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    ContractVersion,
    SplitChange,
)
from traces.models.people import ApiKey, Member, Role, Scope, System, User
from traces.models.projections import TaskFigures, TrialDisposition, TrialFixture
from traces.models.rules import (
    BackgroundWork,
    RulesDecision,
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesSuggestions,
    RulesVersion,
    WorkState,
)
from traces.models.trials import (
    DistinctCall,
    Tool,
    Trajectory,
    TrajectoryPaths,
    TranscriptChunk,
    Trial,
    TrialRecord,
)
from traces.models.uploads import (
    Door,
    LineOutcome,
    Upload,
    UploadJob,
    UploadLine,
    UploadState,
)
from traces.models.work import Release, Run, RunTask, Split, Task, TaskVersion

__all__ = [
    "ApiKey",
    "BackgroundWork",
    "ContractDecision",
    "ContractOutcome",
    "ContractPreview",
    "ContractProposal",
    "ContractVersion",
    "Disposition",
    "DistinctCall",
    "Door",
    "EvidenceAddition",
    "HeldOutExposure",
    "LineOutcome",
    "Member",
    "Release",
    "Role",
    "RulesDecision",
    "RulesJob",
    "RulesOutcome",
    "RulesPreview",
    "RulesSuggestions",
    "RulesVersion",
    "Run",
    "RunTask",
    "Scope",
    "Split",
    "SplitChange",
    "System",
    "Task",
    "TaskFigures",
    "TaskOrigin",
    "TaskVersion",
    "Tool",
    "Trajectory",
    "TrajectoryPaths",
    "TranscriptChunk",
    "Trial",
    "TrialDisposition",
    "TrialFixture",
    "TrialRecord",
    "Upload",
    "UploadJob",
    "UploadLine",
    "UploadState",
    "User",
    "WorkState",
]
