"""Who may do what with contracts. Each answer is "" or the sentence that says why not.

The page's disabled button, the error of the service, the API and the log show this same sentence.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from django.db.models import F, Q

from reviews.models import Regrade
from reviews.permissions.flags import role_in
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    ContractVersion,
    Role,
    Run,
    System,
    Upload,
    User,
    WorkState,
)

NOT_AN_ENGINEER = "Only an engineer of this system proposes contracts."
NOT_A_DECIDER = (
    "Only a reviewer or an owner of this system decides on proposed rules and contracts."
)
OWN_PROPOSAL = "You proposed these contracts; somebody else decides on them."
BROUGHT_EVIDENCE = (
    "You uploaded evidence of this system or declared a run of it; somebody who did neither "
    "decides on its contracts."
)
NOT_THE_PROPOSER = "Only the person who proposed contracts withdraws them."
NOT_WORKED_OUT = "What these contracts would change is not worked out yet."
_NAMED_TASKS = 3


def draft_refusal(system: System, user: User) -> str:
    """Why a person may not have contracts previewed, and so not propose any."""
    return "" if role_in(system.pk, user) is Role.ENGINEER else NOT_AN_ENGINEER


def proposal_refusal(preview: ContractPreview, user: User) -> str:
    """Why a person may not propose the contracts of a preview; grader tests aside."""
    if refusal := draft_refusal(preview.system, user):
        return refusal
    if preview.by_id != user.pk:
        return f"This preview is a draft of {preview.by.printed_name}; make one of your own."
    if proposed := ContractProposal.objects.filter(preview=preview).first():
        return f"These contracts are proposed already, as proposal {proposed.number}."
    if preview.state == WorkState.FAILED.value:
        return "The preview could not be worked out; preview the contracts again."
    if preview.state != WorkState.DONE.value:
        return NOT_WORKED_OUT
    return moved_sentence(preview)


def moved_sentence(preview: ContractPreview) -> str:
    """That a contract came into effect after a preview began, for one of its tasks; else ""."""
    if preview.started_at is None:
        return ""
    # A version is in effect from some moment of its regrade on: looked at by its last one.
    moved = list(
        ContractVersion.objects.select_related("task")
        .filter(
            Q(proposal__regrade__touched_at__gt=preview.started_at),
            task__system=preview.system_id,
            task__task_id__in=list(preview.texts),
            task__contract=F("pk"),
        )
        .order_by("task__sort_key", "pk")[: _NAMED_TASKS + 1]
    )
    if not moved:
        return ""
    names = _listed([f"version {each.number} for task {each.task.task_id}" for each in moved])
    return f"A contract came into effect since this preview began: {names}. Preview it again."


def decision_refusal(proposal: ContractProposal, user: User) -> str:
    """Why a person may neither approve nor reject proposed contracts."""
    if role_in(proposal.system_id, user) not in (Role.REVIEWER, Role.OWNER):
        return NOT_A_DECIDER
    if refusal := decided_sentence(proposal):
        return refusal
    if proposal.created_by_id == user.pk:
        return OWN_PROPOSAL
    return BROUGHT_EVIDENCE if brought_evidence(proposal.system_id, user) else ""


def approval_refusal(proposal: ContractProposal, user: User) -> str:
    """Why a person may not approve proposed contracts; grader tests aside.

    Overtaken ones may still be rejected.
    """
    return decision_refusal(proposal, user) or overtaken_sentence(proposal)


def overtaken_sentence(proposal: ContractProposal) -> str:
    """That another version came into effect than the one that a proposal starts from; else ""."""
    moved = [
        version
        for version in ContractVersion.objects.select_related("task__contract")
        .filter(proposal=proposal)
        .order_by("task__sort_key", "pk")
        if version.task.contract_id not in (version.based_on_id, version.pk)
    ]
    if not moved:
        return ""
    names = _listed(
        [f"version {each.task.contract.number} for task {each.task.task_id}" for each in moved]  # type: ignore[union-attr]
    )
    return (
        f"Another contract came into effect meanwhile: {names}. Preview these contracts again on "
        "what is in effect now."
    )


def withdrawal_refusal(proposal: ContractProposal, user: User) -> str:
    """Why a person may not withdraw proposed contracts."""
    if proposal.created_by_id != user.pk:
        return NOT_THE_PROPOSER
    return decided_sentence(proposal)


def decided_sentence(proposal: ContractProposal) -> str:
    """What became of a proposal; "" while it waits for a decision."""
    decision = ContractDecision.objects.select_related("by").filter(proposal=proposal).first()
    if decision is None:
        return ""
    return f"Proposal {proposal.number} was {decision.outcome} by {decision.by.printed_name}."


@dataclass(frozen=True, slots=True)
class OtherProposal:
    """Another proposal for some of the same tasks, which is not done with."""

    number: int
    is_approved: bool  # its regrade goes on, or stopped; else nobody has decided
    tasks: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """What its being there means for a decision."""
        tasks = _listed([f"task {task}" for task in self.tasks])
        if self.is_approved:
            return (
                f"Proposal {self.number} is approved and not yet in effect for {tasks}. What is "
                "approved later comes into effect after it and takes its place."
            )
        return (
            f"Proposal {self.number}, for {tasks} too, waits for a decision. As soon as one of "
            "the two is in effect, the other is overtaken and must be previewed again."
        )


def other_proposals(proposal: ContractProposal) -> tuple[OtherProposal, ...]:
    """Proposals for the same tasks that are undecided, or approved and unfinished."""
    return open_proposals_for(
        proposal.system_id,
        ContractVersion.objects.filter(proposal=proposal).values_list("task__task_id", flat=True),
        but=proposal.pk,
    )


def open_proposals_for(
    system_id: int, task_ids: Iterable[str], *, but: int | None = None
) -> tuple[OtherProposal, ...]:
    """Proposals for tasks of those ids that are undecided, or approved and unfinished."""
    unfinished = Regrade.objects.exclude(state=WorkState.DONE.value).values("proposal")
    rows = (
        ContractVersion.objects.filter(task__system=system_id, task__task_id__in=list(task_ids))
        .filter(
            Q(proposal__decision=None)
            | Q(
                proposal__decision__outcome=ContractOutcome.APPROVED.value,
                proposal__in=unfinished.exclude(proposal=None),
            )
        )
        .exclude(proposal=but)
        .order_by("proposal__number", "task__sort_key", "pk")
        .values_list("proposal__number", "proposal__decision", "task__task_id")
    )
    tasks: dict[tuple[int, bool], list[str]] = {}
    for number, decision, task_id in rows:
        tasks.setdefault((number, decision is not None), []).append(task_id)
    return tuple(
        OtherProposal(number, is_approved, tuple(names))
        for (number, is_approved), names in tasks.items()
    )


def brought_evidence(system_id: int, user: User) -> bool:
    """Whether a person, or a key of theirs, uploaded evidence of a system or declared a run of it."""
    uploads = Upload.objects.filter(system=system_id).filter(Q(by=user) | Q(api_key__user=user))
    runs = Run.objects.filter(release__system=system_id, declared_by=user)
    return uploads.exists() or runs.exists()


def _listed(names: Sequence[str]) -> str:
    """Names in a sentence: the first few, and how many there are beside them."""
    if len(names) <= _NAMED_TASKS:
        return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)
    return f"{', '.join(names[:_NAMED_TASKS])} and others"
