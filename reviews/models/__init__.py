"""What we make of what happened."""

from reviews.models.verdicts import Criterion, Grader, GraderVersion, Verdict, WaitingVerdict

__all__ = ["Criterion", "Grader", "GraderVersion", "Verdict", "WaitingVerdict"]
