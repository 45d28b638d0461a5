"""What we make of what happened."""

from reviews.models.accepted import AcceptedPath, AcceptedPathWithdrawal
from reviews.models.cases import Case, CaseEvent, CaseEventKind, CaseState
from reviews.models.flags import Flag, FlagClosing, FlagCode
from reviews.models.marks import CheckMark, CheckMarkWithdrawal
from reviews.models.regrades import Regrade
from reviews.models.verdicts import Criterion, Grader, GraderVersion, Verdict, WaitingVerdict

__all__ = [
    "AcceptedPath",
    "AcceptedPathWithdrawal",
    "Case",
    "CaseEvent",
    "CaseEventKind",
    "CaseState",
    "CheckMark",
    "CheckMarkWithdrawal",
    "Criterion",
    "Flag",
    "FlagClosing",
    "FlagCode",
    "Grader",
    "GraderVersion",
    "Regrade",
    "Verdict",
    "WaitingVerdict",
]
