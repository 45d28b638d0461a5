"""Flags as pages show them: what the codes mean in plain words, and rows."""

from __future__ import annotations

from reviews.models import FlagCode
from reviews.selectors.flags import FlaggedTrial, ListedFlag, RaisedFlag
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.rows import STATES, trial_label

WHY = {
    FlagCode.PERSON: "Flagged by a person",
    FlagCode.FAILED_CHECK_OUTSIDE_BASIS: "A check that is not mandatory failed",
    FlagCode.CITED_STEP_MISSING: "A verdict cites a step that does not exist",
    FlagCode.VERDICT_AGAINST_SCORE: "A verdict contradicts its own score",
    FlagCode.PASS_ON_EMPTY_TRAJECTORY: "A pass, but the agent took no step",
    FlagCode.ERROR_STATUS_WITH_PASS: "A pass, but the harness broke",
    FlagCode.IMPORTED_HUMAN_VERDICT: "A person's verdict came in a file",
    FlagCode.UNKNOWN_CRITERION: "A verdict names a criterion that the contract does not have",
}
"""Why a trial is flagged, in a few words."""

THE_PRODUCT = "the product"
SHORT_REASON = 160  # characters of a reason beside a box
_QUIET = frozenset({FlagCode.IMPORTED_HUMAN_VERDICT})


def flag_note(flag: RaisedFlag, at: Addresses) -> pages.FlagNote:
    """A stored flag as pages show it."""
    return pages.FlagNote(
        why=WHY[flag.code],
        reason=flag.reason,
        href=at.flag(flag.uuid),
        by=flag.by_name or THE_PRODUCT,
        at=flag.raised_at,
        criterion=flag.criterion,
        level="info" if flag.code in _QUIET else "warning",
        closed_by=flag.closed_by,
        closed_at=flag.closed_at,
        closing_reason=flag.closing_reason,
    )


def other_flag(flag: RaisedFlag, at: Addresses, *, is_chosen: bool) -> pages.OtherFlag:
    """An open flag of the same trial, in short, as it is chosen to be closed as well."""
    is_whole = len(flag.reason) <= SHORT_REASON
    return pages.OtherFlag(
        value=str(flag.uuid),
        why=WHY[flag.code],
        reason=flag.reason if is_whole else f"{flag.reason[:SHORT_REASON]}…",
        by=flag.by_name or THE_PRODUCT,
        href=at.flag(flag.uuid),
        is_chosen=is_chosen,
    )


def flag_row(listed: ListedFlag, at: Addresses) -> pages.FlagRow:
    """A stored flag with its trial, as the list shows it."""
    trial = listed.trial
    return pages.FlagRow(
        note=flag_note(listed.flag, at),
        trial=trial_link(trial, at),
        task=pages.Link(trial.task_id, at.task(trial.task_uuid)),
        release=pages.Link(trial.release_name or NO_RELEASE, at.release(trial.release_uuid)),
        disposition=disposition_badge(trial),
        detail="" if trial.stands else "an earlier attempt: a later one stands",
    )


def trial_link(trial: FlaggedTrial, at: Addresses) -> pages.Link:
    """The trial that is flagged: its label, with its address."""
    return pages.Link(trial_label(trial.label, trial.attempt), at.trial(trial.uuid))


def disposition_badge(trial: FlaggedTrial) -> pages.Badge:
    """What the trial comes to, in shape and word."""
    return pages.Badge(trial.disposition.value.replace("_", " "), STATES[trial.disposition])
