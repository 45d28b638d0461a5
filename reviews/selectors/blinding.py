"""What pages keep from reviewers who may still be asked for a blind label."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Exists, OuterRef, QuerySet

from reviews.models import Adjudication, CalibrationItem, Label, Revelation, Verdict
from traces.models import Role

HIDDEN = "Hidden from you: this trial is in a blind set."


def open_items() -> QuerySet[CalibrationItem]:
    """Items that people may still be asked to label."""
    return CalibrationItem.objects.filter(
        settled_at=None,
        withdrawn_at=None,
        set__completed_at=None,
        set__closed_at=None,
        set__is_imported=False,
    )


def hidden_criteria(
    user_pk: int, role: Role | None, trial_pks: Iterable[int]
) -> dict[int, frozenset[str]]:
    """Criteria of trials on which a page keeps from a person what others say, by trial.

    Those of open blind sets, from reviewers who have neither labelled the item, nor asked to see
    it, nor given a verdict of their own on it, nor decided on it. One query; none for people who
    are no reviewers.
    """
    wanted = list(trial_pks)
    if role is not Role.REVIEWER or not wanted:
        return {}
    about = {"trial": OuterRef("trial"), "criterion": OuterRef("set__criterion"), "by": user_pk}
    found = open_items().filter(
        ~Exists(Label.objects.filter(item=OuterRef("pk"), by=user_pk)),
        ~Exists(Revelation.objects.filter(**about)),
        ~Exists(Verdict.objects.filter(**about)),
        ~Exists(Adjudication.objects.filter(**about)),
        trial__in=wanted,
    )
    names: dict[int, set[str]] = {}
    for trial, name in found.values_list("trial", "set__criterion__name"):
        names.setdefault(trial, set()).add(name)
    return {trial: frozenset(each) for trial, each in names.items()}


def hidden_in(user_pk: int, role: Role | None, system_pk: int) -> dict[int, frozenset[str]]:
    """The same of all trials of a system that people are asked to label. At most two queries."""
    if role is not Role.REVIEWER:
        return {}
    items = open_items().filter(set__system=system_pk)
    return hidden_criteria(user_pk, role, items.values_list("trial", flat=True).distinct())


def is_hidden(user_pk: int, role: Role | None, trial_pk: int, criterion: str) -> bool:
    """Whether pages keep from a person what others say of one criterion of a trial. One query."""
    return criterion in hidden_criteria(user_pk, role, [trial_pk]).get(trial_pk, frozenset())
