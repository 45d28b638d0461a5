"""The states of a gate and of a release's sign-off, in one table that the docs draw."""

from __future__ import annotations

from enum import StrEnum


class CheckResult(StrEnum):
    """What a check comes to."""

    MET = "met"
    NOT_MET = "not_met"
    CANNOT_TELL = "cannot_tell"
    DOES_NOT_APPLY = "does_not_apply"  # counts as met


class GateState(StrEnum):
    """What a gate comes to."""

    BLOCKED = "blocked"  # a check is not met
    WAITING = "waiting"  # none is, and one cannot be told
    READY = "ready"


class Meaning(StrEnum):
    """What a signature says."""

    APPROVED = "approved"
    WAIVER = "approved_with_waiver"
    REJECTED = "rejected"


class SignOffState(StrEnum):
    """What the signatures on a release come to."""

    NONE = "none"
    PARTLY = "partly_signed"  # one owner of two
    APPROVED = "approved"
    WAIVER = "approved_with_waiver"
    REJECTED = "rejected"
    VOID = "void"


class Mark(StrEnum):
    """What is said beside an approval, and stays visible."""

    STALE = "stale"  # the evidence is another by now
    EXPIRED = "expired"  # its date has passed
