"""The calibration card of a judge version on a criterion: figures, and the items behind them."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from django.db import connection

from reviews.core.calibration import CalibrationFigures, LabelledItem, figures_of
from reviews.models import Criterion
from reviews.selectors.blinding import hidden_criteria
from reviews.selectors.calibration_items import (
    CriterionKey,
    Labelled,
    adjudicated_items,
    exploratory_items,
    judge_words,
    labelled_items,
)
from reviews.selectors.judges import (
    ListedJudge,
    StoredCalibration,
    calibration_history,
    judges_of,
)
from traces.models import Role, System

MOST_HISTORY = 50


@dataclass(frozen=True, slots=True)
class CriterionText:
    """A text of a criterion under which people labelled or a calibration was read."""

    digest: uuid.UUID | None  # None: an imported criterion, no contract
    rubric_version: str


@dataclass(frozen=True, slots=True)
class ItemTrial:
    """The trial of an item."""

    pk: int
    uuid: uuid.UUID
    task_id: str
    label: str
    attempt: int


@dataclass(frozen=True, slots=True)
class CardItem:
    """One labelled item with its trial."""

    item: LabelledItem
    trial: ItemTrial


@dataclass(frozen=True, slots=True)
class CardPart:
    """Items of one kind, and the figures over them."""

    figures: CalibrationFigures
    items: tuple[CardItem, ...]  # by family and task


@dataclass(frozen=True, slots=True)
class JudgeCard:
    """Everything that is known of a judge version on a criterion."""

    judge: ListedJudge
    versions: tuple[ListedJudge, ...]  # of the same judge on the criterion, newest first
    criterion: Criterion
    texts: tuple[CriterionText, ...]  # that there are labels or calibrations of, newest first
    text: CriterionText  # the one that is shown
    labelled: CardPart  # what decides
    adjudicated: CardPart  # a selection: decides nothing
    exploratory: CardPart  # imported labels that nobody vouched for: decides nothing
    history: tuple[StoredCalibration, ...]  # newest first, at most `MOST_HISTORY`

    @property
    def stored(self) -> StoredCalibration | None:
        """The row that holds; None: none was read yet."""
        return next(iter(self.history), None)


ANY_TEXT = object()
"""Stands for the text that says most: of the calibration that holds, else of the newest labels."""


def judge_card(
    system: System,
    version_pk: int,
    criterion_pk: int,
    *,
    digest: uuid.UUID | object | None = ANY_TEXT,
) -> JudgeCard | None:
    """The card of a judge version on a criterion of a text, in at most 15 queries.

    None where the system has no such judge or criterion, where the judge never said anything of
    it, and where no labels and no calibration are of that text.
    """
    criterion = Criterion.objects.filter(system=system, pk=criterion_pk).first()
    if criterion is None:
        return None
    listed = judges_of(system.pk, criterion_pk=criterion_pk)
    judge = next((each for each in listed if each.version_pk == version_pk), None)
    if judge is None:
        return None
    texts = _texts(criterion, judge)
    if digest is ANY_TEXT:
        current = judge.current
        shown = current.digest if current else texts[0].digest
    else:
        shown = digest if isinstance(digest, uuid.UUID) else None
    text = next((each for each in texts if each.digest == shown), None)
    if text is None:
        return None
    key = CriterionKey(criterion, text.digest)
    parts = [
        _said(key, found, version_pk)
        for found in (labelled_items(key), adjudicated_items(key), exploratory_items(key))
    ]
    trials = _trials({pk for _, by_key in parts for pk in by_key.values()})
    labelled, adjudicated, exploratory = (_part(*part, trials) for part in parts)
    return JudgeCard(
        judge=judge,
        versions=tuple(each for each in listed if each.judge_pk == judge.judge_pk),
        criterion=criterion,
        texts=texts,
        text=text,
        labelled=labelled,
        adjudicated=adjudicated,
        exploratory=exploratory,
        history=calibration_history(
            system.pk, version_pk, criterion_pk, text.digest, most=MOST_HISTORY
        ),
    )


_TEXTS = """
SELECT s.criterion_digest, (array_agg(s.rubric_version ORDER BY s.id DESC))[1]
FROM reviews_calibrationset s WHERE s.criterion_id = %s
GROUP BY s.criterion_digest ORDER BY max(s.id) DESC
"""


def _texts(criterion: Criterion, judge: ListedJudge) -> tuple[CriterionText, ...]:
    """The texts that there are sets or calibrations of; the plain one where there are none."""
    with connection.cursor() as cursor:
        cursor.execute(_TEXTS, [criterion.pk])
        found: dict[uuid.UUID | None, str] = dict(cursor.fetchall())
    for stored in judge.calibrations:
        found.setdefault(stored.digest, stored.rubric_version)
    if not found:
        return (CriterionText(None, ""),)
    return tuple(CriterionText(digest, rubric) for digest, rubric in found.items())


def _said(
    key: CriterionKey, labelled: Labelled, version_pk: int
) -> tuple[tuple[LabelledItem, ...], Mapping[str, int]]:
    """The items with what the judge version says of them, and the trial of each by its key."""
    words = judge_words(key, labelled)
    items = next((said for each, said in words.items() if each.pk == version_pk), labelled.items)
    return items, labelled.trials


def _part(
    items: tuple[LabelledItem, ...], by_key: Mapping[str, int], trials: Mapping[int, ItemTrial]
) -> CardPart:
    listed = [CardItem(item, trials[by_key[item.key]]) for item in items]
    listed.sort(key=_place)
    return CardPart(figures_of(items), tuple(listed))


def _place(each: CardItem) -> tuple[str, str, int, str]:
    return (each.item.family, each.trial.task_id, each.trial.pk, each.item.key)


def _trials(pks: Iterable[int]) -> dict[int, ItemTrial]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t.id, t.uuid, k.task_id, t.label, t.attempt FROM traces_trial t"
            " JOIN traces_task k ON k.id = t.task_id WHERE t.id = ANY(%s)",
            [sorted(pks)],
        )
        return {row[0]: ItemTrial(*row) for row in cursor.fetchall()}


def hidden_trials(card: JudgeCard, user_pk: int, role: Role | None) -> frozenset[int]:
    """Trials of the card whose labels are kept from a person who may still label them. One query."""
    parts = (card.labelled, card.adjudicated, card.exploratory)
    trials = {each.trial.pk for part in parts for each in part.items}
    found = hidden_criteria(user_pk, role, trials)
    name = card.criterion.name
    return frozenset(pk for pk, names in found.items() if name in names)
