"""A reviewer decides a dispute, and the trial is decided anew in the same transaction."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from evalsite.after_review import decided_again, evidence_locked, mark_and_decide
from reviews.core.disposition import AdjudicationRuling, Mark
from reviews.models import Adjudication, CheckMark, ReviewDraft
from reviews.selectors.adjudicating import SeenBasis
from reviews.services.adjudications import (
    AdjudicationConflictError,
    AdjudicationDeniedError,
    AdjudicationError,
    adjudicate,
    prepare_adjudication,
)
from reviews.services.marks import OUTDATED, MarkDeniedError, MarkError, check_mark
from reviews.services.review_drafts import DraftRefusedError
from traces.models import System, Trial, User

Decided = Adjudication | CheckMark


def adjudicate_and_decide(
    trial: Trial,
    *,
    criterion: str,
    ruling: AdjudicationRuling,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str = "",
    is_blind_label: bool = False,
) -> Adjudication:
    """Decide a dispute (`reviews.services.adjudications.adjudicate`) and the trial on it."""
    system = System.objects.get(pk=trial.system_id)
    with evidence_locked(system, [trial.pk]):
        row = adjudicate(
            trial,
            criterion=criterion,
            ruling=ruling,
            reason=reason,
            steps=steps,
            by=by,
            now=now,
            seen=seen,
            is_blind_label=is_blind_label,
        )
        decided_again([trial.pk], system, now=now)
    return row


_DECISIONS: dict[str, AdjudicationRuling | Mark] = {
    **{ruling.value: ruling for ruling in AdjudicationRuling},
    **{mark.value: mark for mark in Mark},
}


def ruling_of(decision: str) -> AdjudicationRuling | Mark | None:
    """What a form's decision is: a ruling, a mark on the check, or nothing that is known."""
    return _DECISIONS.get(decision)


def decide_dispute(
    trial: Trial,
    *,
    criterion: str,
    decision: AdjudicationRuling | Mark,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str,
) -> Decided:
    """Decide what a deciding page sent: an adjudication, or that the check or task is at fault.

    Raises `AdjudicationError` as `adjudicate` does; a mark is refused in the sentences of marks.
    """
    if isinstance(decision, AdjudicationRuling):
        return adjudicate_and_decide(
            trial,
            criterion=criterion,
            ruling=decision,
            reason=reason,
            steps=steps,
            by=by,
            now=now,
            seen=seen,
        )
    had = SeenBasis.read(seen)
    try:
        return mark_and_decide(
            trial,
            criterion=criterion,
            mark=decision,
            reason=reason,
            by=by,
            now=now,
            seen=str(had.contract_pk) if had else "",
        )
    except MarkDeniedError as error:
        raise AdjudicationDeniedError(str(error)) from error
    except MarkError as error:
        refused = AdjudicationConflictError if str(error) == OUTDATED else AdjudicationError
        raise refused(str(error)) from error


def check_decision(
    trial: Trial,
    *,
    criterion: str,
    decision: AdjudicationRuling | Mark,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    seen: str,
) -> None:
    """Say at once why a decision could not be kept, before it is held. Nothing is written.

    What changes until its time comes is said then.
    """
    if isinstance(decision, AdjudicationRuling):
        prepare_adjudication(
            trial,
            criterion=criterion,
            ruling=decision,
            reason=reason,
            steps=steps,
            by=by,
            now=now,
            seen=seen,
        )
        return
    had = SeenBasis.read(seen)
    try:
        check_mark(
            trial,
            criterion=criterion,
            mark=decision,
            reason=reason,
            by=by,
            seen=str(had.contract_pk) if had else "",
        )
    except MarkDeniedError as error:
        raise AdjudicationDeniedError(str(error)) from error
    except MarkError as error:
        raise AdjudicationError(str(error)) from error


def finish_adjudication(draft: ReviewDraft, now: datetime) -> None:
    """Decide what a held draft says. Raises `DraftRefusedError` where it cannot be kept."""
    decision = ruling_of(draft.decision)
    try:
        if decision is None:
            raise AdjudicationError("Choose what it comes to.")
        decide_dispute(
            draft.trial,
            criterion=draft.criterion.name,
            decision=decision,
            reason=draft.reason,
            steps=draft.steps,
            by=draft.by,
            now=now,
            seen=draft.seen,
        )
    except AdjudicationError as error:
        raise DraftRefusedError(str(error)) from error
