"""Who may decide a dispute, and what. Each refusal is the sentence that page, service and log show."""

from __future__ import annotations

from dataclasses import dataclass

from django.db.models import Exists, OuterRef, Q, QuerySet

from reviews.core.disposition import AdjudicationRuling
from reviews.models import Verdict
from reviews.permissions.flags import brought_evidence, role_in
from reviews.permissions.verdicts import uploaded_verdicts
from traces.models import (
    ContractVersion,
    EvidenceAddition,
    Member,
    Role,
    Run,
    Task,
    Trial,
    Upload,
    User,
)

NOT_A_REVIEWER = "Only a reviewer of this system decides disputes."
BROUGHT_EVIDENCE = (
    "You uploaded evidence of this trial's release or declared a run of it; a reviewer who did "
    "neither decides its disputes."
)
OWN_CONTRACT = (
    "You proposed the contract that this trial is decided by; another reviewer decides its "
    "disputes."
)
ADDED_EVIDENCE = "You added evidence to this trial; another reviewer decides its disputes."
UPLOADED_VERDICTS = "You uploaded verdicts on this trial; another reviewer decides its disputes."
OWN_VERDICT = (
    "You gave a verdict on this criterion of the trial yourself; another reviewer decides it."
)
PARTY_ONLY = (
    "You gave a verdict on this yourself and no other reviewer is eligible, so you may decide "
    "only fail or insufficient evidence. It is shown as decided by a party."
)
PARTY_RULINGS = frozenset({AdjudicationRuling.FAIL, AdjudicationRuling.INSUFFICIENT_EVIDENCE})


@dataclass(frozen=True, slots=True)
class MayDecide:
    """Whether somebody may decide a dispute: not at all, as a party, or freely."""

    why_not: str = ""
    is_party: bool = False

    def refusal(self, ruling: AdjudicationRuling) -> str:
        """Why they may not decide it so; "" when they may."""
        if self.why_not:
            return self.why_not
        return PARTY_ONLY if self.is_party and ruling not in PARTY_RULINGS else ""


def may_decide(trial: Trial, criterion: str, user: User) -> MayDecide:
    """Whether a person may decide a dispute on a criterion of a trial.

    Nobody decides on their own verdict, whatever became of it. Where no other reviewer is eligible
    they may, as a party (docs/design.md section 9). At most four queries.
    """
    if role_in(trial.system_id, user) is not Role.REVIEWER:
        return MayDecide(NOT_A_REVIEWER)
    if brought_evidence(trial.release_id, user):
        return MayDecide(BROUGHT_EVIDENCE)
    has_proposed, has_added, has_uploaded, has_voted = (
        Trial.objects.filter(pk=trial.pk)
        .annotate(
            has_proposed=Exists(
                ContractVersion.objects.filter(
                    proposal__created_by=user, pk=OuterRef("task__contract")
                )
            ),
            has_added=Exists(_added(trial, Q(by=user) | Q(api_key__user=user))),
            has_uploaded=Exists(uploaded_verdicts(trial, user)),
            has_voted=Exists(_voted(trial, criterion, Q(by=user))),
        )
        .values_list("has_proposed", "has_added", "has_uploaded", "has_voted")
        .get()
    )
    if has_proposed:
        return MayDecide(OWN_CONTRACT)
    if has_added:
        return MayDecide(ADDED_EVIDENCE)
    if has_uploaded:
        return MayDecide(UPLOADED_VERDICTS)
    if not has_voted:
        return MayDecide()
    is_alone = not _others_eligible(trial, criterion, user)
    return MayDecide(is_party=True) if is_alone else MayDecide(OWN_VERDICT)


def _others_eligible(trial: Trial, criterion: str, user: User) -> bool:
    """Whether a reviewer other than the person could decide it. One query."""
    by = Q(by=OuterRef("user")) | Q(api_key__user=OuterRef("user"))
    uploads = Upload.objects.filter(by)
    unnamed = Trial.objects.filter(
        Q(upload__by=OuterRef("user")) | Q(upload__api_key__user=OuterRef("user")),
        upload__release=None,
        release=trial.release_id,
    )
    proposed = ContractVersion.objects.filter(
        proposal__created_by=OuterRef("user"),
        pk__in=Task.objects.filter(pk=trial.task_id).values("contract"),
    )
    barred = (
        Exists(uploads.filter(release=trial.release_id))
        | Exists(unnamed)
        | Exists(Run.objects.filter(release=trial.release_id, declared_by=OuterRef("user")))
        | Exists(proposed)
        | Exists(_added(trial, by))
        | Exists(uploaded_verdicts(trial, OuterRef("user")))
        | Exists(_voted(trial, criterion, Q(by=OuterRef("user"))))
    )
    reviewers = Member.objects.filter(
        system=trial.system_id, role=Role.REVIEWER.value, user__is_active=True
    ).exclude(user=user)
    return reviewers.filter(~barred).exists()


def _added(trial: Trial, who: Q) -> QuerySet[EvidenceAddition]:
    return EvidenceAddition.objects.filter(who, trial=trial)


def _voted(trial: Trial, criterion: str, who: Q) -> QuerySet[Verdict]:
    return Verdict.objects.filter(who, trial=trial, criterion__name=criterion)
