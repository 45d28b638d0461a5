"""What we make of what happened."""

from reviews.models.accepted import AcceptedPath, AcceptedPathWithdrawal
from reviews.models.flags import Flag, FlagClosing, FlagCode
from reviews.models.verdicts import Criterion, Grader, GraderVersion, Verdict, WaitingVerdict

__all__ = [
    "AcceptedPath",
    "AcceptedPathWithdrawal",
    "Criterion",
    "Flag",
    "FlagClosing",
    "FlagCode",
    "Grader",
    "GraderVersion",
    "Verdict",
    "WaitingVerdict",
]
