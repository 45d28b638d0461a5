"""Adjudications as rows of the list of decided disputes."""

from __future__ import annotations

from evalsite.common.formatting import counted
from evalsite.common.shell import Choice
from evalsite.web.dispute_rows import Hidden
from evalsite.web.dispute_words import RULING_STATES, RULINGS
from reviews.selectors.blinding import HIDDEN
from reviews.selectors.decided_disputes import DecidedDispute
from traces.selectors.releases import NO_RELEASE
from traces.web.addresses import Addresses, address
from traces.web.pages.disputes import DecidedRow
from traces.web.pages.parts import Badge, Link
from traces.web.rows import trial_label

BY_PARTY = "decided by a party"
BLIND = "third label of a blind set"


def decided_row(decided: DecidedDispute, at: Addresses, hidden: Hidden) -> DecidedRow:
    """An adjudication of the list. A hidden one tells neither ruling nor reason."""
    is_blind = decided.criterion in hidden.get(decided.trial_pk, frozenset())
    is_replaced = decided.corrected_by is not None
    notes = [
        words
        for words, holds in (
            ("corrected since", is_replaced),
            (BY_PARTY, decided.is_by_party),
            (BLIND, decided.is_label),
            (f"cites {counted(len(decided.cited_steps), 'step')}", bool(decided.cited_steps)),
        )
        if holds
    ]
    where = decided.dispute_uuid
    return DecidedRow(
        id=f"decided-{decided.uuid}",
        trial=Link(
            f"{decided.task_id} · trial {trial_label(decided.label, decided.attempt)}",
            at.dispute(where) if where else at.trial(decided.trial_uuid),
            title=decided.task_title,
        ),
        below=tuple(each for each in (decided.release_name or NO_RELEASE, decided.family) if each),
        criterion=decided.criterion,
        about=(f"rubric version {decided.rubric_version}",) if decided.rubric_version else (),
        ruling=Badge("hidden")
        if is_blind
        else Badge(RULINGS[decided.ruling], RULING_STATES[decided.ruling]),
        notes=() if is_blind else tuple(notes),
        reason="" if is_blind else decided.reason,
        is_cut=decided.is_cut and not is_blind,
        by=decided.by_name,
        at=decided.decided_at,
        corrects=Link(
            f"corrects: {RULINGS[decided.corrects_ruling]}", f"#decided-{decided.corrects}"
        )
        if decided.corrects_ruling and not is_blind
        else None,
        corrected_by=Link("the decision in force", f"#decided-{decided.corrected_by}")
        if is_replaced
        else None,
        hidden=HIDDEN if is_blind else "",
    )


def decided_tabs(at: Addresses, *, is_mine: bool) -> tuple[Choice, ...]:
    """All decisions, or those of the person alone."""
    return (
        Choice("All", at.decided_disputes, is_current=not is_mine),
        Choice("Mine", address(at.decided_disputes, {"by": "me"}), is_current=is_mine),
    )
