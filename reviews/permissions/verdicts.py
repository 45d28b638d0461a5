"""Who may give a verdict on a trial, and who may correct one.

Each answer is "" or the sentence that says why not; page, service and log show the same one.
"""

from __future__ import annotations

from django.db.models import Exists, OuterRef, Q, QuerySet

from reviews.models import Verdict
from reviews.permissions.flags import brought_evidence, role_in
from traces.models import ContractVersion, EvidenceAddition, Role, Trial, User

NOT_A_REVIEWER = "Only a reviewer of this system gives verdicts."
BROUGHT_EVIDENCE = (
    "You uploaded evidence of this trial's release or declared a run of it; a reviewer who did "
    "neither gives verdicts on it."
)
OWN_CONTRACT = (
    "You proposed the contract that this trial is decided by; another reviewer gives verdicts "
    "on it."
)
ADDED_EVIDENCE = "You added evidence to this trial; another reviewer gives verdicts on it."
UPLOADED_VERDICTS = "You uploaded verdicts on this trial; another reviewer gives verdicts on it."
NOT_ONES_OWN = "Only the person who gave a verdict corrects it."
CORRECTED = "This verdict was corrected already; correct the later one."


def verdict_refusal(trial: Trial, user: User) -> str:
    """Why a person may not give a verdict on a trial; "" when they may. At most three queries."""
    if role_in(trial.system_id, user) is not Role.REVIEWER:
        return NOT_A_REVIEWER
    if brought_evidence(trial.release_id, user):
        return BROUGHT_EVIDENCE
    theirs = Q(by=user) | Q(api_key__user=user)
    added = EvidenceAddition.objects.filter(theirs, trial=trial)
    proposed = ContractVersion.objects.filter(
        proposal__created_by=user, pk=OuterRef("task__contract")
    )
    found = (
        Trial.objects.filter(pk=trial.pk)
        .annotate(
            has_proposed=Exists(proposed),
            has_added=Exists(added),
            has_uploaded=Exists(uploaded_verdicts(trial, user)),
        )
        .values_list("has_proposed", "has_added", "has_uploaded")
        .get()
    )
    sentences = (OWN_CONTRACT, ADDED_EVIDENCE, UPLOADED_VERDICTS)
    return next((words for words, holds in zip(sentences, found, strict=True) if holds), "")


def uploaded_verdicts(trial: Trial, who: User | OuterRef) -> QuerySet[Verdict]:
    """The verdicts on a trial that a person, or a key of theirs, uploaded."""
    return Verdict.objects.filter(Q(upload__by=who) | Q(upload__api_key__user=who), trial=trial)
