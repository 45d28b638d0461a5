"""Verdicts that signed-in people give. None is ever changed: a correction is a row of its own."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Sequence
from datetime import datetime

from django.db import transaction
from django.db.models import Max

from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import count_text, counted
from reviews.models import CaseEventKind, Criterion, Grader, GraderVersion, Label, Verdict
from reviews.permissions.verdicts import CORRECTED, NOT_ONES_OWN, verdict_refusal
from reviews.selectors.gradable import Gradable, gradable_criteria
from reviews.services.cases import note_on_trial
from traces.core.canonical import digest_of
from traces.core.records import GraderKind, VerdictValue
from traces.core.text_marks import clean_text, count_marks
from traces.core.values import JsonObject
from traces.models import EvidenceAddition, Release, Task, Trial, User

log = logging.getLogger("evalsite.verdicts")

LONGEST_REASON = 4_000  # characters
MOST_STEPS = 50
PEOPLE_SAY = (VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN)
GIVEN_ALREADY = (
    "You have given a verdict on this criterion already; correct that one, with a reason."
)


OF_ANOTHER_CONTRACT = (
    "That verdict is on what an earlier contract asked, and votes no more; give a new one."
)
BLIND_LABEL = "That verdict is a blind label; it is never corrected."
OUTDATED = (
    "The contract or the evidence of this trial changed since you opened this form. Look at it as "
    "it is now; nothing is kept yet."
)


class VerdictError(Exception):
    """A refusal, with its sentence for people."""


class VerdictDeniedError(VerdictError):
    """Somebody who may not do that."""


@transaction.atomic
def give_verdict(
    trial: Trial,
    *,
    criterion: str,
    value: VerdictValue,
    reason: str,
    steps: Iterable[int],
    by: User,
    now: datetime,
    corrects: Verdict | None = None,
    seen: str = "",
    is_blind_label: bool = False,
) -> Verdict:
    """Say what one criterion of a trial comes to. The same again adds nothing.

    It is given under the contract in effect, for the criterion as that contract has it, on the
    evidence there is now. With `corrects` it takes the place of an earlier verdict of the same
    person, which stays visible. `seen` is what the person had before them (`basis_words`); with
    it nothing is kept once another contract or more evidence is there. Raises `VerdictDeniedError` when the person may not, and
    `VerdictError` for a criterion that the trial is not decided by, steps that do not exist, a
    missing or too long reason, a second verdict, and one that was corrected already.

    The caller decides the trial anew. `is_blind_label`: whoever asks records the act, blind.
    """
    # The release's lock, as every writer of its evidence takes it; it parts two clicks as well.
    Release.objects.select_for_update(no_key=True).get(pk=trial.release_id)
    if refusal := verdict_refusal(trial, by):
        raise VerdictDeniedError(refusal)
    if value not in PEOPLE_SAY:
        raise VerdictError("A person says pass, fail or unknown.")
    found = gradable_criteria(trial).get(criterion)
    if found is None:
        raise VerdictError(f"This trial is not decided by a criterion {clean_text(criterion)!r}.")
    why, cited = checked_reason(reason), checked_steps(steps, trial)
    order = EvidenceAddition.objects.filter(trial=trial).aggregate(n=Max("order"))["n"] or 0
    if seen and seen != basis_words(contract_in_effect_pk(trial), order):
        raise VerdictError(OUTDATED)
    row = Verdict(
        trial=trial,
        criterion_class=found.criterion_class.value,
        is_mandatory=found.mandatory,
        value=value.value,
        raw_word=value.value,
        key=uuid.uuid4().hex,
        rationale=why,
        cited_steps=list(cited),
        evidence_digest=trial.digest,
        by=by,
        contract_id=found.contract_pk,
        criterion_digest=found.stored_digest,
        evidence_order=order,
        corrects=corrects,
    )
    earlier = list(
        Verdict.objects.filter(trial=trial, criterion__name=criterion, by=by).order_by("pk")
    )
    gone = {each.corrects_id for each in earlier}
    for each in earlier:
        if each.pk not in gone and _is_same(each, row):
            return each
    _check_place(row, [each for each in earlier if each.pk not in gone], found, corrects)
    stored = _store(row, found, now)
    if not is_blind_label:
        _record(stored, found.criterion, now)
    return stored


def _record(row: Verdict, criterion: str, now: datetime) -> None:
    corrected = row.corrects
    record(
        "verdict.corrected" if corrected else "verdict.given",
        system_pk=row.trial.system_id,
        by_pk=row.by_id,
        at=now,
        obj=AuditedObject("trial", str(row.trial.uuid), f"{criterion} of trial {row.trial.label}"),
        before={"value": corrected.value, "verdict": corrected.pk} if corrected else None,
        after={"criterion": criterion, "value": row.value, "verdict": row.pk},
        reason=row.rationale,
        rows=[("reviews_verdict", row.pk)],
    )


def _is_same(earlier: Verdict, row: Verdict) -> bool:
    names = ("value", "rationale", "cited_steps", "contract_id", "criterion_digest", "corrects_id")
    return all(getattr(earlier, name) == getattr(row, name) for name in names)


def basis_words(contract_pk: int | None, evidence_order: int) -> str:
    """What a verdict is given on: the contract version in effect, and how much evidence there is."""
    return f"{contract_pk or 0}.{evidence_order}"


def contract_in_effect_pk(trial: Trial) -> int | None:
    """The contract version that decides a trial now, whatever the object at hand holds."""
    return Task.objects.values_list("contract", flat=True).get(pk=trial.task_id)


def _check_place(
    row: Verdict, standing: Sequence[Verdict], found: Gradable, corrects: Verdict | None
) -> None:
    """Raises `VerdictError` where the verdict would vote beside one that it should correct."""
    if corrects is None:
        if any(
            found.takes(each.contract_id, each.criterion_digest)
            and (each.evidence_order >= row.evidence_order or _stays_beside(each, row))
            for each in standing
        ):
            raise VerdictError(GIVEN_ALREADY)
        return
    if corrects.by_id != row.by_id:
        raise VerdictDeniedError(NOT_ONES_OWN)
    if corrects.trial_id != row.trial_id or corrects.criterion.name != found.criterion:
        raise VerdictError("A verdict is corrected on the same criterion of the same trial.")
    if Label.objects.filter(verdict=corrects).exists():
        raise VerdictError(BLIND_LABEL)
    if corrects.pk not in {each.pk for each in standing}:
        raise VerdictError(CORRECTED)
    if not found.takes(corrects.contract_id, corrects.criterion_digest):
        raise VerdictError(OF_ANOTHER_CONTRACT)


def _stays_beside(earlier: Verdict, row: Verdict) -> bool:
    """Whether an earlier verdict would vote beside one on more evidence, and against it.

    An unknown gives way to it; pass and fail never do.
    """
    return earlier.value not in (VerdictValue.UNKNOWN.value, row.value)


def _store(row: Verdict, found: Gradable, now: datetime) -> Verdict:
    trial, by = row.trial, row.by
    assert by is not None
    name = clean_text(by.username)
    grader, _ = Grader.objects.get_or_create(
        system_id=trial.system_id, kind=GraderKind.HUMAN.value, name=name
    )
    row.grader_version, _ = GraderVersion.objects.get_or_create(grader=grader, version="")
    row.criterion, _ = Criterion.objects.get_or_create(
        system_id=trial.system_id, name=found.criterion
    )
    content: JsonObject = {
        "criterion": found.criterion,
        "value": row.value,
        "rationale": row.rationale,
        "steps": list(row.cited_steps),
        "key": row.key,
    }
    row.digest = uuid.UUID(bytes=digest_of(content))
    row.save()
    words = "corrected" if row.corrects_id else "gave"
    note_on_trial(
        trial.pk,
        CaseEventKind.VERDICT,
        f"{words} {row.value} on {found.criterion}: {row.rationale}",
        by=by,
        now=now,
        detail={"criterion": found.criterion, "value": row.value},
    )
    log.info(
        "person's verdict",
        extra={"trial": str(trial.uuid), "verdict": row.pk, "by": by.username},
    )
    return row


def checked_reason(text: str) -> str:
    """A reason as it is kept. Raises `VerdictError` for a missing or too long one."""
    reason = clean_text(text).strip()
    if count_marks(reason) >= len("".join(reason.split())):
        raise VerdictError("Say why: the reason is what the next person reads.")
    if len(reason) > LONGEST_REASON:
        raise VerdictError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return reason


def checked_steps(steps: Iterable[int], trial: Trial) -> tuple[int, ...]:
    """Cited steps in order. Raises `VerdictError` for one that there is not, and for too many."""
    cited = tuple(sorted(set(steps)))
    for step in cited:
        if not 1 <= step <= trial.n_messages:
            raise VerdictError(
                f"There is no step {count_text(step)}; the transcript has "
                f"{counted(trial.n_messages, 'step')}."
            )
    if len(cited) > MOST_STEPS:
        raise VerdictError(f"A verdict cites at most {MOST_STEPS} steps.")
    return cited
