"""What we make of what happened."""

from reviews.core.calibration import CalibrationStatus
from reviews.core.consensus import Consensus
from reviews.models.accepted import AcceptedPath, AcceptedPathWithdrawal
from reviews.models.adjudications import Adjudication, DraftPurpose, ReviewDraft, Vouch
from reviews.models.cases import Case, CaseEvent, CaseEventKind, CaseState
from reviews.models.disputes import Dispute, DisputeSkip, DisputeState
from reviews.models.flags import Flag, FlagClosing, FlagCode
from reviews.models.gates import (
    AlertSeen,
    ExclusionConfirmation,
    ExclusionEnd,
    GateAlert,
    GateReevaluation,
    ReleaseGate,
    RunExclusion,
)
from reviews.models.judges import (
    Calibration,
    JudgeRun,
    JudgeRunItem,
    Probe,
    ProbeBatch,
    ProbeVerdict,
)
from reviews.models.labels import (
    CalibrationItem,
    CalibrationSet,
    Label,
    Revelation,
    Sampling,
    Seat,
    SeatEnding,
    SetVouch,
)
from reviews.models.marks import CheckMark, CheckMarkWithdrawal
from reviews.models.regrades import Regrade
from reviews.models.rubrics import Rubric, RubricRequest, RubricVersion
from reviews.models.signoffs import EvidenceManifest, SignOff, SignOffVoid
from reviews.models.thresholds import (
    RiskTier,
    ThresholdSet,
    TierAssignment,
    TierRetirement,
)
from reviews.models.verdicts import Criterion, Grader, GraderVersion, Verdict, WaitingVerdict

__all__ = [
    "AcceptedPath",
    "AcceptedPathWithdrawal",
    "Adjudication",
    "AlertSeen",
    "Calibration",
    "CalibrationItem",
    "CalibrationSet",
    "CalibrationStatus",
    "Case",
    "CaseEvent",
    "CaseEventKind",
    "CaseState",
    "CheckMark",
    "CheckMarkWithdrawal",
    "Consensus",
    "Criterion",
    "Dispute",
    "DisputeSkip",
    "DisputeState",
    "DraftPurpose",
    "EvidenceManifest",
    "ExclusionConfirmation",
    "ExclusionEnd",
    "Flag",
    "FlagClosing",
    "FlagCode",
    "GateAlert",
    "GateReevaluation",
    "Grader",
    "GraderVersion",
    "JudgeRun",
    "JudgeRunItem",
    "Label",
    "Probe",
    "ProbeBatch",
    "ProbeVerdict",
    "Regrade",
    "ReleaseGate",
    "Revelation",
    "ReviewDraft",
    "RiskTier",
    "Rubric",
    "RubricRequest",
    "RubricVersion",
    "RunExclusion",
    "Sampling",
    "Seat",
    "SeatEnding",
    "SetVouch",
    "SignOff",
    "SignOffVoid",
    "ThresholdSet",
    "TierAssignment",
    "TierRetirement",
    "Verdict",
    "Vouch",
    "WaitingVerdict",
]
