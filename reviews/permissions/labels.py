"""Who may label an item of a calibration set blind.

Each answer is "" or the sentence that says why not.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q

from reviews.models import (
    Adjudication,
    CalibrationItem,
    CalibrationSet,
    Label,
    Revelation,
    Seat,
    Verdict,
)
from reviews.permissions.flags import role_in
from reviews.permissions.verdicts import verdict_refusal
from traces.models import Role, Run, Trial, Upload, User

NOT_A_REVIEWER = "Only a reviewer of this system labels trials."
IMPORTED_SET = "The labels of this set came in a file; nobody labels it here."
CLOSED_SET = "This set is closed: nobody labels it any more."
DONE_SET = "This set is done: every item has the labels that it needs."
WITHDRAWN = "This item was withdrawn from the set meanwhile. Nothing of yours is kept as a label."
SETTLED = (
    "Others were faster: this item has the labels that it needs. Yours is not kept as a label."
)
LABELLED = "You have labelled this item already; a blind label is never changed."
LEFT = "You left this item to others; it is not offered to you again."
SEEN = "You have seen what others say of this; others label it."
OWN_VERDICT = "You have given a verdict on this criterion of the trial; others label it."


def labelling_refusal(of: CalibrationSet, user: User) -> str:
    """Why a person may label nothing of a set. One query."""
    if role_in(of.system_id, user) is not Role.REVIEWER:
        return NOT_A_REVIEWER
    if of.is_imported:
        return IMPORTED_SET
    if of.closed_at:
        return CLOSED_SET
    return DONE_SET if of.completed_at else ""


def item_refusal(item: CalibrationItem) -> str:
    """Why nobody labels an item any more."""
    if item.withdrawn_at:
        return WITHDRAWN
    return SETTLED if item.settled_at else ""


def label_refusal(item: CalibrationItem, trial: Trial, user: User) -> str:
    """Why a person may not label an item, whoever holds it. At most four queries.

    Whether the item still wants labels is not asked.
    """
    if refusal := verdict_refusal(trial, user):
        return refusal
    criterion = item.set.criterion_id
    found = (
        CalibrationItem.objects.filter(pk=item.pk)
        .annotate(
            is_labelled=Exists(Label.objects.filter(item=OuterRef("pk"), by=user)),
            is_left=Exists(
                Seat.objects.filter(item=OuterRef("pk"), by=user, ended_at__isnull=False)
            ),
            is_seen=Exists(Revelation.objects.filter(trial=trial, criterion=criterion, by=user))
            | Exists(Adjudication.objects.filter(trial=trial, criterion=criterion, by=user)),
            is_own=Exists(Verdict.objects.filter(trial=trial, criterion=criterion, by=user)),
        )
        .values_list("is_labelled", "is_left", "is_seen", "is_own")
        .get()
    )
    sentences = (LABELLED, LEFT, SEEN, OWN_VERDICT)
    return next((words for words, holds in zip(sentences, found, strict=True) if holds), "")


def releases_brought(system_pk: int, user: User) -> frozenset[int]:
    """The releases of a system that a person brought evidence of, or declared a run of.

    As `reviews.permissions.flags.brought_evidence` says for one release. One query.
    """
    theirs = Q(by=user) | Q(api_key__user=user)
    uploads = Upload.objects.filter(theirs, system=system_pk)
    named = uploads.filter(release__isnull=False).values_list("release")
    unnamed = Trial.objects.filter(upload__in=uploads.filter(release=None)).values_list("release")
    runs = Run.objects.filter(release__system=system_pk, declared_by=user).values_list("release")
    return frozenset(pk for (pk,) in named.union(unnamed, runs))
