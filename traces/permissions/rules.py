"""Who may do what with rules. Each answer is "" or the sentence that says why not.

The page's disabled button, the error of the service and the log show this same sentence.
"""

from __future__ import annotations

from django.db.models import Q

from traces.models import (
    Member,
    Role,
    RulesDecision,
    RulesJob,
    RulesOutcome,
    RulesPreview,
    RulesVersion,
    Run,
    System,
    Upload,
    User,
    WorkState,
)

NOT_AN_ENGINEER = "Only an engineer of this system proposes rules."
NOT_A_DECIDER = (
    "Only a reviewer or an owner of this system decides on proposed rules and contracts."
)
OWN_PROPOSAL = "You proposed this version; somebody else decides on it."
BROUGHT_EVIDENCE = (
    "You uploaded evidence of this system or declared a run of it; somebody who did neither "
    "decides on its rules."
)
NOT_A_WORKER = "A viewer does not stop or restart work on rules and contracts."
NOT_THE_PROPOSER = "Only the person who proposed a version withdraws it."

_APPROVED = Q(decision__outcome=RulesOutcome.APPROVED.value) | Q(decision=None, based_on=None)


def newest_approved_number(system: System) -> int:
    """The number of the version that a change of rules starts from."""
    versions = RulesVersion.objects.filter(_APPROVED, system=system)
    return versions.order_by("-number").values_list("number", flat=True)[0]


def shown_number(system: System) -> int:
    """The number of the version that the system's pages show by now."""
    rows = System.objects.filter(pk=system.pk).values_list("shown_rules__number", flat=True)
    return rows.get() or 0


def draft_refusal(system: System, user: User) -> str:
    """Why a person may not have a change of rules worked out, and so not propose one."""
    return "" if _role(system, user) == Role.ENGINEER else NOT_AN_ENGINEER


def proposal_refusal(preview: RulesPreview, user: User) -> str:
    """Why a person may not propose the change of a preview."""
    if refusal := draft_refusal(preview.system, user):
        return refusal
    if preview.by_id != user.pk:
        return f"This preview is a draft of {preview.by.printed_name}; make one of your own."
    if preview.proposed_as is not None:
        return f"This change is proposed already, as version {preview.proposed_as.number}."
    if preview.state != WorkState.DONE.value:
        return "What this change does is not worked out yet."
    return _overtaken(preview.base)


def decision_refusal(version: RulesVersion, user: User) -> str:
    """Why a person may neither approve nor reject a proposed version."""
    if _role(version.system, user) not in (Role.REVIEWER, Role.OWNER):
        return NOT_A_DECIDER
    if refusal := decided_sentence(version):
        return refusal
    if version.created_by_id == user.pk:
        return OWN_PROPOSAL
    return BROUGHT_EVIDENCE if _brought_evidence(version.system, user) else ""


def approval_refusal(version: RulesVersion, user: User) -> str:
    """Why a person may not approve a proposed version; an overtaken one may still be rejected."""
    return decision_refusal(version, user) or overtaken_sentence(version)


def overtaken_sentence(version: RulesVersion) -> str:
    """That the base of a proposed version is no longer the newest approved one; "" while it is."""
    return "" if version.based_on is None else _overtaken(version.based_on)


def withdrawal_refusal(version: RulesVersion, user: User) -> str:
    """Why a person may not withdraw a proposed version."""
    if version.created_by_id != user.pk:
        return NOT_THE_PROPOSER
    return decided_sentence(version)


def stop_refusal(version: RulesVersion, user: User) -> str:
    """Why a person may not stop the work on an approved version."""
    if refusal := _work_refusal(version, user):
        return refusal
    job = RulesJob.objects.filter(rules=version).first()
    return "" if job and job.is_open else f"Nobody works on version {version.number}."


def restart_refusal(version: RulesVersion, user: User) -> str:
    """Why a person may not take up the work on an approved version again."""
    return _work_refusal(version, user) or unfit_to_restart(version)


def unfit_to_restart(version: RulesVersion) -> str:
    """Why the work on a version cannot be taken up again, whoever asks."""
    job = RulesJob.objects.filter(rules=version).first()
    if job is None or job.state not in (WorkState.CANCELLED.value, WorkState.FAILED.value):
        return f"The work on version {version.number} has not stopped."
    return shown_later(version)


def shown_later(version: RulesVersion) -> str:
    """That pages show a version that was approved after this one; "" where they do not."""
    shown = shown_number(version.system)
    return f"Version {shown}, approved later, is shown already." if shown > version.number else ""


def decided_sentence(version: RulesVersion) -> str:
    """What became of a version; "" while it waits for a decision."""
    decision = RulesDecision.objects.select_related("by").filter(rules=version).first()
    if decision is not None:
        by = decision.by.printed_name
        return f"Version {version.number} was {decision.outcome} by {by}."
    if version.based_on_id is None:
        return f"The system was made with version {version.number}; nobody decides on it."
    return ""


def _overtaken(base: RulesVersion) -> str:
    newest = newest_approved_number(base.system)
    if newest == base.number:
        return ""
    return (
        f"Version {newest} was approved meanwhile, and this change was made on version "
        f"{base.number}: preview it again on version {newest}."
    )


def _work_refusal(version: RulesVersion, user: User) -> str:
    role = _role(version.system, user)
    return NOT_A_WORKER if role is None or role == Role.VIEWER else ""


def _role(system: System, user: User) -> Role | None:
    member = Member.objects.filter(system=system, user=user, user__is_active=True).first()
    return None if member is None else Role(member.role)


def _brought_evidence(system: System, user: User) -> bool:
    uploads = Upload.objects.filter(system=system).filter(Q(by=user) | Q(api_key__user=user))
    runs = Run.objects.filter(release__system=system, declared_by=user)
    return uploads.exists() or runs.exists()
