"""Labels that people gave elsewhere, brought in as a calibration set. They vote nowhere."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction
from django.db.models import Q, QuerySet

from evalsite.common.audit import MOST_ROWS, AuditedObject, record
from evalsite.common.formatting import counted
from reviews.core.label_files import (
    FileLabel,
    ImportedItem,
    PlacedLabel,
    ReadLabels,
    RefusedLine,
    SortedLabels,
    TrialName,
    sorted_by_trial,
    word_shown,
)
from reviews.models import CalibrationItem, CalibrationSet, Criterion, Label, Sampling, Verdict
from reviews.permissions.calibration_sets import import_refusal
from reviews.permissions.flags import role_in
from reviews.selectors.calibration_candidates import LabelCriterion
from reviews.services.calibration_sets import (
    LONGEST_NAME,
    LONGEST_REASON,
    CalibrationSetDeniedError,
    CalibrationSetError,
    criterion_now,
    field_text,
    next_number,
)
from traces.core.canonical import digest_of
from traces.core.records import GraderKind, TrialStatus, VerdictValue
from traces.core.text_marks import clean_text
from traces.core.values import Json, JsonObject
from traces.models import Split, System, Trial, User

log = logging.getLogger("evalsite.label_imports")

LONGEST_SOURCE = 2_000  # characters
MOST_TRIALS = 10_000
NOTHING_LANDED = "No label landed."
NO_VERDICTS = "No imported verdict of a person is stored on this criterion."


@dataclass(frozen=True, slots=True)
class ImportWish:
    """What somebody says of the labels that they bring in."""

    name: str
    criterion: str
    criterion_digest: uuid.UUID | None
    sampling: Sampling  # how the trials were chosen, as far as is known
    source: str
    licence: str
    reason: str


@dataclass(frozen=True, slots=True)
class Imported:
    """What became of an import."""

    calibration_set: CalibrationSet | None  # None: nothing landed
    n_labels: int
    refused: tuple[RefusedLine, ...]
    is_known: bool = False  # the very labels were there already, as this set


@transaction.atomic
def import_labels(
    system: System, wish: ImportWish, read: ReadLabels, *, by: User, now: datetime
) -> Imported:
    """Keep the labels of a file as a set that is complete, and exploratory until vouched for.

    Good lines land, the others are told. The very same labels again add nothing and give the set that
    is there. Raises `CalibrationSetDeniedError` for who may not, and `CalibrationSetError` for a
    missing name, source, licence or reason and a criterion that nothing asks for.
    """
    said = _said(system, wish, by)
    criterion = criterion_now(system, wish.criterion, wish.criterion_digest)
    placed, refused = _placed(system, criterion, read.labels)
    return _kept(system, said, criterion, placed, [*read.refused, *refused], by=by, now=now)


@transaction.atomic
def import_from_verdicts(system: System, wish: ImportWish, *, by: User, now: datetime) -> Imported:
    """Make the set of the verdicts of people on a criterion that came in files (`import_labels`).

    Each grader is a labeller. Verdicts stay what they are.
    """
    said = _said(system, wish, by)
    criterion = criterion_now(system, wish.criterion, wish.criterion_digest)
    labels = tuple(_stored_labels(system, criterion))
    if not labels:
        raise CalibrationSetError(NO_VERDICTS)
    good = tuple(each for each in labels if each.value is not VerdictValue.ERROR)
    unread = [
        RefusedLine(0, f"{word_shown(each.labeller)} said {each.reason}.")
        for each in labels
        if each.value is VerdictValue.ERROR
    ]
    placed, refused = _placed(system, criterion, good)
    return _kept(system, said, criterion, placed, [*unread, *refused], by=by, now=now)


def _said(system: System, wish: ImportWish, by: User) -> ImportWish:
    if refusal := import_refusal(role_in(system.pk, by)):
        raise CalibrationSetDeniedError(refusal)
    missing = "Say where the labels are from, and under which licence."
    return replace(
        wish,
        name=field_text(wish.name, "A set has a name.", LONGEST_NAME),
        source=field_text(wish.source, missing, LONGEST_SOURCE),
        licence=field_text(wish.licence, missing, LONGEST_SOURCE),
        reason=field_text(wish.reason, "Say what these labels are for.", LONGEST_REASON),
    )


# --- which trial a label is of


@dataclass(frozen=True, slots=True)
class _Found:
    """A stored trial that a label may be of."""

    pk: int
    uuid: uuid.UUID
    task_id: str
    label: str
    run: str
    release: str
    attempt: int
    external_id: str
    is_completed: bool
    stands: bool
    split: str
    contract_pk: int | None

    def is_named_by(self, name: TrialName) -> bool:
        return (
            name.run in ("", self.run)
            and name.release in ("", self.release)
            and name.attempt in (None, self.attempt)
            and name.task_id in ("", self.task_id)
            and name.trial in ("", self.label)
        )


def _placed(
    system: System, criterion: LabelCriterion, labels: Sequence[FileLabel]
) -> tuple[list[PlacedLabel], list[RefusedLine]]:
    trials = _Trials(system, [label.trial for label in labels])
    placed: list[PlacedLabel] = []
    refused: list[RefusedLine] = []
    for label in labels:
        found = trials.named(label.trial)
        sentence = _unfit(found, label, criterion)
        if sentence:
            refused.append(RefusedLine(label.line, sentence))
        else:
            placed.append(PlacedLabel(label, found[0].pk))
    return placed, refused


class _Trials:
    """The stored trials that some labels name, found in three queries."""

    def __init__(self, system: System, names: Sequence[TrialName]) -> None:
        rows = Trial.objects.filter(system=system)
        by_id = {name.trial_id for name in names if name.trial_id}
        outside = {name.external_id for name in names if name.external_id}
        keyed = [name for name in names if name.task_id and name.trial]
        self._by_id = _by(rows.filter(uuid__in=by_id), "uuid") if by_id else {}
        self._outside = _by(rows.filter(external_id__in=outside), "external_id") if outside else {}
        self._keyed: dict[tuple[str, str], list[_Found]] = {}
        of_tasks = rows.filter(
            task__task_id__in={name.task_id for name in keyed},
            label__in={name.trial for name in keyed},
        )
        for each in _found(of_tasks) if keyed else ():
            self._keyed.setdefault((each.task_id, each.label), []).append(each)

    def named(self, name: TrialName) -> list[_Found]:
        """The trials that a name may mean: by its id, else by what else names it.

        Of several attempts it is the one that stands.
        """
        found = self._by_id.get(name.trial_id, [])
        if not found and name.external_id:
            found = self._outside.get(name.external_id, [])
        if not found and name.task_id and name.trial:
            found = self._keyed.get((name.task_id, name.trial), [])
        fitting = [each for each in found if each.is_named_by(name)]
        standing = [each for each in fitting if each.stands]
        return standing if len(standing) == 1 and name.attempt is None else fitting


def _by(rows: QuerySet[Trial], field: str) -> dict[object, list[_Found]]:
    found: dict[object, list[_Found]] = {}
    for each in _found(rows):
        found.setdefault(getattr(each, field), []).append(each)
    return found


def _found(rows: QuerySet[Trial]) -> Iterator[_Found]:
    for trial in rows.select_related("task", "run", "release", "disposition").order_by("pk"):
        decided = getattr(trial, "disposition", None)
        yield _Found(
            pk=trial.pk,
            uuid=trial.uuid,
            task_id=trial.task.task_id,
            label=trial.label,
            run=trial.run.name,
            release=trial.release.name,
            attempt=trial.attempt,
            external_id=trial.external_id,
            is_completed=trial.status == TrialStatus.COMPLETED.value,
            stands=bool(decided and decided.stands),
            split=trial.task.split,
            contract_pk=trial.task.contract_id,
        )


def _unfit(found: Sequence[_Found], label: FileLabel, criterion: LabelCriterion) -> str:
    """Why a label cannot be of the trials that it may mean; "" when it can."""
    if not found:
        return f"There is no trial {_shown(label.trial)} in this system."
    if len(found) > 1:
        return (
            f"{_shown(label.trial)} names {counted(len(found), 'trial')}: give run, release or "
            "attempt as well."
        )
    trial = found[0]
    if not trial.is_completed:
        return f"The harness broke in trial {_shown(label.trial)}: there is nothing to label."
    if trial.split == Split.TUNING.value:
        return f"The task of trial {_shown(label.trial)} is of split tuning: labels never count."
    is_asked = (
        trial.contract_pk is None
        if criterion.digest is None
        else trial.contract_pk in criterion.contract_pks
    )
    if not is_asked:
        return f"Trial {_shown(label.trial)} is not decided by this criterion as it stands now."
    return ""


def _shown(name: TrialName) -> str:
    if name.task_id and name.trial:
        return word_shown(f"{name.task_id} · {name.trial}")
    return str(name.trial_id) if name.trial_id else word_shown(name.external_id)


# --- what is kept


def _kept(
    system: System,
    wish: ImportWish,
    criterion: LabelCriterion,
    placed: Iterable[PlacedLabel],
    refused: Sequence[RefusedLine],
    *,
    by: User,
    now: datetime,
) -> Imported:
    found = sorted_by_trial(placed)
    told = tuple(sorted([*refused, *found.refused], key=lambda each: each.line))
    if not found.items:
        return Imported(None, 0, told)
    if len(found.items) > MOST_TRIALS:
        raise CalibrationSetError(f"An import has labels of at most {MOST_TRIALS:,} trials.")
    n_labels = sum(len(item.labels) for item in found.items)
    # The system's lock gives the number, and parts two imports of the same.
    System.objects.select_for_update(no_key=True).get(pk=system.pk)
    identity = _identity(system, wish, found)
    for there in CalibrationSet.objects.filter(uuid=identity, system=system):
        return Imported(there, n_labels, told, is_known=True)
    row = _stored_set(system, wish, criterion, identity, by=by, now=now)
    _store_items(row, found.items, now)
    labels = Label.objects.filter(item__set=row).order_by("pk")[:MOST_ROWS]
    record(
        "calibration_set.imported",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("calibration_set", str(row.number), f"Set {row.number}: {row.name}"),
        after={"n_labels": n_labels, "n_items": len(found.items), "n_refused": len(told)},
        reason=row.reason,
        rows=[("reviews_label", pk) for pk in labels.values_list("pk", flat=True)],
    )
    log.info(
        "labels brought in",
        extra={"set": row.pk, "by": by.username, "labels": n_labels, "refused": len(told)},
    )
    return Imported(row, n_labels, told)


def _identity(system: System, wish: ImportWish, found: SortedLabels) -> uuid.UUID:
    """What names the set of these labels: the same content has the same, whoever brings it in."""
    content: JsonObject = {
        "system": system.pk,
        "criterion": wish.criterion,
        "digest": wish.criterion_digest.hex if wish.criterion_digest else None,
        "sampling": wish.sampling.value,
        "labels": [
            _content(item.trial_pk, label)
            for item in sorted(found.items, key=lambda item: item.trial_pk)
            for label in sorted(item.labels, key=lambda label: label.labeller)
        ],
    }
    return uuid.UUID(bytes=digest_of(content))


def _content(trial_pk: int, label: FileLabel) -> Json:
    return [trial_pk, label.labeller, label.value.value, label.reason, list(label.steps)]


def _stored_set(
    system: System,
    wish: ImportWish,
    criterion: LabelCriterion,
    identity: uuid.UUID,
    *,
    by: User,
    now: datetime,
) -> CalibrationSet:
    return CalibrationSet.objects.create(
        uuid=identity,
        system=system,
        number=next_number(system),
        name=wish.name,
        criterion=Criterion.objects.get_or_create(system=system, name=criterion.name)[0],
        criterion_digest=criterion.digest,
        rubric_version=criterion.rubric_version,
        question=criterion.question,
        sampling=wish.sampling.value,
        reason=wish.reason,
        is_imported=True,
        source=f"{wish.source}\nLicence: {wish.licence}",
        by=by,
        created_at=now,
        completed_at=now,
    )


def _store_items(row: CalibrationSet, found: Sequence[ImportedItem], now: datetime) -> None:
    items = CalibrationItem.objects.bulk_create(
        CalibrationItem(
            set=row,
            trial_id=item.trial_pk,
            position=position,
            n_needed=len(item.labels),
            consensus=item.consensus.value,
            settled_at=now,
        )
        for position, item in enumerate(found, start=1)
    )
    Label.objects.bulk_create(
        Label(
            item=stored,
            labeller=label.labeller,
            round=number,
            value=label.value.value,
            reason=label.reason,
            cited_steps=list(label.steps),
            given_at=now,
        )
        for stored, item in zip(items, found, strict=True)
        for number, label in enumerate(item.labels, start=1)
    )


def _stored_labels(system: System, criterion: LabelCriterion) -> Iterator[FileLabel]:
    """Imported verdicts of people on the criterion, an error with its raw word as the reason."""
    rows = (
        Verdict.objects.filter(
            Q(contract=None) | Q(criterion_digest=criterion.digest),
            criterion__system=system,
            criterion__name=criterion.name,
            grader_version__grader__kind=GraderKind.HUMAN.value,
            by=None,
            trial__system=system,
        )
        .order_by("pk")
        .values_list(
            "trial__uuid",
            "grader_version__grader__name",
            "grader_version__version",
            "value",
            "raw_word",
            "rationale",
            "cited_steps",
        )
    )
    for trial, name, version, value, raw, rationale, steps in rows:
        labeller = clean_text(f"{name} {version}".strip() or "somebody")[:200]
        is_error = value == VerdictValue.ERROR.value
        reason = f"{word_shown(raw or value)} of trial {trial}" if is_error else rationale[:4_000]
        yield FileLabel(
            0,
            TrialName(trial_id=trial),
            labeller,
            VerdictValue(value),
            reason,
            tuple(steps),
        )
