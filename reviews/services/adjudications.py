"""What reviewers decide on disputes. None is ever changed: a correction is a row of its own.

The decisions on one criterion of a trial form a chain; its last one counts. The caller decides the
trial anew.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable
from datetime import datetime

from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import count_text, counted, time_text
from reviews.core.disposition import AdjudicationRuling
from reviews.models import (
    Adjudication,
    CalibrationItem,
    CaseEventKind,
    Criterion,
    Dispute,
    DisputeSkip,
    DisputeState,
)
from reviews.permissions.adjudications import may_decide
from reviews.permissions.flags import role_in
from reviews.selectors.adjudicating import DisputeBasis, SeenBasis, awaited_label, dispute_basis
from reviews.services.cases import note_on_trial
from reviews.services.rubrics import open_request
from traces.core.text_marks import clean_text, count_marks
from traces.models import Release, Role, Trial, User

log = logging.getLogger("evalsite.adjudications")

LONGEST_REASON = 4_000  # characters
LONGEST_SKIP = 2_000
MOST_STEPS = 50
NO_REASON = "Say why: the reason is what the next person reads."
NO_DISPUTE = "There is no dispute to decide here: the verdicts on this criterion agree by now."
OTHER_CONTRACT = (
    "Another contract came into effect since you opened this. Look at what it asks; nothing is "
    "decided yet."
)
MORE_EVIDENCE = (
    "Evidence was added to the trial since you opened this. Look at it; nothing is decided yet."
)
OTHER_VERDICTS = (
    "The verdicts on this criterion changed since you opened this. Look at them; nothing is "
    "decided yet."
)
NOT_SEEN = "It is decided already. Open it and correct that decision; what you wrote is kept here."


class AdjudicationError(Exception):
    """A refusal, with its sentence for people."""


class AdjudicationDeniedError(AdjudicationError):
    """Somebody who may not decide that."""


class AdjudicationConflictError(AdjudicationError):
    """What the decision was made on is not what there is now: somebody was faster."""


@transaction.atomic
def adjudicate(
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
    """Decide a dispute on a criterion of a trial. The same again adds nothing.

    It is decided for the criterion as the contract in effect has it, on the evidence there is now.
    `seen` is what the person had before them (`DisputeBasis.seen`): where the contract, the
    evidence, the verdicts or an earlier decision are others by now, nothing is kept and
    `AdjudicationConflictError` says so. Where it names an earlier decision, this one corrects it;
    without it a decided dispute is not decided again. Raises `AdjudicationDeniedError` when the
    person may not decide it so, `AdjudicationError` where there is no dispute, a blind label is
    awaited, and for a bad reason or steps. `is_blind_label`: the third label of an item whose
    first two differ, which awaits nothing and is given without sight of what there is.
    """
    # The release's lock, as every writer of its evidence takes it; it parts two clicks as well.
    Release.objects.select_for_update(no_key=True).get(pk=trial.release_id)
    row = prepare_adjudication(
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
    if row.pk:
        return row
    stored = _store(row, criterion)
    if not is_blind_label:
        _record(stored, criterion)
    return stored


def _record(row: Adjudication, criterion: str) -> None:
    replaced = row.replaces
    record(
        "adjudication.corrected" if replaced else "adjudication.made",
        system_pk=row.system_id,
        by_pk=row.by_id,
        at=row.decided_at,
        obj=AuditedObject("trial", str(row.trial.uuid), f"{criterion} of trial {row.trial.label}"),
        before={"ruling": replaced.ruling, "adjudication": str(replaced.uuid)}
        if replaced
        else None,
        after={
            "criterion": criterion,
            "ruling": row.ruling,
            "adjudication": str(row.uuid),
            "is_by_party": row.is_by_party,
        },
        reason=row.reason,
        rows=[("reviews_adjudication", row.pk)],
    )


def prepare_adjudication(
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
    """The row that `adjudicate` would store now, or the stored one that says the same.

    Raises as `adjudicate` does, and writes nothing.
    """
    allowed = may_decide(trial, criterion, by)
    if refusal := allowed.refusal(ruling):
        raise AdjudicationDeniedError(refusal)
    why, cited = _reason(reason, LONGEST_REASON), _steps(steps, trial)
    basis = dispute_basis(trial, criterion)
    head = head_of(basis)
    row = Adjudication(
        system_id=trial.system_id,
        trial=trial,
        criterion_digest=basis.criterion_digest,
        rubric_version=basis.rubric_version,
        contract_id=basis.contract_pk,
        ruling=ruling.value,
        reason=why,
        cited_steps=list(cited),
        seen=list(basis.verdict_pks),
        evidence_order=basis.evidence_order,
        evidence_digest=trial.digest,
        replaces_id=basis.last_pk,
        is_by_party=allowed.is_party,
        by=by,
        decided_at=now,
    )
    if head is not None and _is_same(head, row):
        return head
    if not is_blind_label:
        _check_open(trial, basis, head, seen)
    return row


def head_of(basis: DisputeBasis) -> Adjudication | None:
    """The decision in force, with who made it."""
    if basis.head_pk is None:
        return None
    return Adjudication.objects.select_related("by").get(pk=basis.head_pk)


def _is_same(head: Adjudication, row: Adjudication) -> bool:
    names = ("by_id", "ruling", "reason", "cited_steps", "contract_id", "evidence_order")
    return all(getattr(head, name) == getattr(row, name) for name in names)


def _check_open(trial: Trial, basis: DisputeBasis, head: Adjudication | None, seen: str) -> None:
    """Raises where it is not the person's to decide by now, or they have not seen what there is."""
    # First: who may still label it is not told of an earlier decision.
    if item := awaited_label(trial.pk, basis.criterion):
        raise AdjudicationError(awaits_words(item))
    if conflict := conflict_of(basis, head, seen):
        raise AdjudicationConflictError(conflict)
    dispute = Dispute.objects.filter(trial=trial, criterion=basis.criterion).first()
    if head is None and (dispute is None or dispute.state == DisputeState.OVER.value):
        raise AdjudicationError(NO_DISPUTE)


def awaits_words(item: CalibrationItem) -> str:
    """Why a dispute is not decided while people label its trial blind."""
    return (
        f"It waits for a blind label: this trial is an item of calibration set {item.set.number}, "
        "whose labels must not know of a decision. A reviewer may withdraw the item from the set, "
        "with a reason."
    )


def conflict_of(basis: DisputeBasis, head: Adjudication | None, seen: str) -> str:
    """How what there is differs from what a person had before them; "" where it does not."""
    had = SeenBasis.read(seen) if seen else None
    if had is None:
        return NOT_SEEN if head is not None else ""
    there = basis.seen
    if had.head_pk != there.head_pk:
        return overtaken_words(head) if head else OTHER_CONTRACT
    if had.contract_pk != there.contract_pk:
        return OTHER_CONTRACT
    if had.evidence_order != there.evidence_order:
        return MORE_EVIDENCE
    return OTHER_VERDICTS if had.verdicts != there.verdicts else ""


def overtaken_words(head: Adjudication) -> str:
    """That somebody decided first, and what."""
    return (
        f"{clean_text(head.by.printed_name)} decided this at {time_text(head.decided_at)}: "
        f"{ruling_words(head.ruling)}. Your own text is kept here. Read both; if theirs is wrong, "
        "correct it."
    )


def ruling_words(ruling: str) -> str:
    """A ruling in words."""
    return ruling.replace("_", " ")


def _store(row: Adjudication, criterion: str) -> Adjudication:
    trial, by = row.trial, row.by
    row.criterion, _ = Criterion.objects.get_or_create(system_id=trial.system_id, name=criterion)
    row.save()
    note_on_trial(
        trial.pk,
        CaseEventKind.ADJUDICATED,
        row.reason,
        by=by,
        now=row.decided_at,
        detail={
            "criterion": criterion,
            "ruling": row.ruling,
            "is_correction": row.replaces_id is not None,
            "is_by_party": row.is_by_party,
        },
    )
    if row.ruling == AdjudicationRuling.RUBRIC_UNCLEAR.value:
        open_request(row)
    log.info(
        "dispute decided",
        extra={"trial": str(trial.uuid), "adjudication": str(row.uuid), "by": by.username},
    )
    return row


@transaction.atomic
def skip_dispute(dispute: Dispute, *, reason: str, by: User, now: datetime) -> DisputeSkip:
    """Leave a dispute to others, and say why. The same again adds nothing.

    Raises `AdjudicationDeniedError` for somebody who is no reviewer, and `AdjudicationError`
    without a reason.
    """
    if role_in(dispute.system_id, by) is not Role.REVIEWER:
        raise AdjudicationDeniedError("Only a reviewer of this system skips disputes.")
    why = _reason(reason, LONGEST_SKIP)
    Dispute.objects.select_for_update(no_key=True).get(pk=dispute.pk)
    earlier = DisputeSkip.objects.filter(dispute=dispute, by=by, reason=why).first()
    if earlier is not None:
        return earlier
    row = DisputeSkip.objects.create(dispute=dispute, by=by, reason=why, at=now)
    record(
        "dispute.skipped",
        system_pk=dispute.system_id,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("dispute", str(dispute.uuid), dispute.criterion),
        reason=why,
        rows=[("reviews_disputeskip", row.pk)],
    )
    return row


def _reason(text: str, longest: int) -> str:
    reason = clean_text(text).replace("\r\n", "\n").strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise AdjudicationError(NO_REASON)
    if len(reason) > longest:
        raise AdjudicationError(f"A reason has at most {longest:,} characters.")
    return reason


def _steps(steps: Iterable[int], trial: Trial) -> tuple[int, ...]:
    cited = tuple(sorted(set(steps)))
    for step in cited:
        if not 1 <= step <= trial.n_messages:
            raise AdjudicationError(
                f"There is no step {count_text(step)}; the transcript has "
                f"{counted(trial.n_messages, 'step')}."
            )
    if len(cited) > MOST_STEPS:
        raise AdjudicationError(f"A decision cites at most {MOST_STEPS} steps.")
    return cited
