"""The contracts of the made-up system, brought into effect the ordinary way, and what people said.

The demo's engineer proposes them and its reviewer approves them. One that was too narrow is mended
by a second version, so that a regrade with real changes is there; one more version waits for
somebody's decision. Each stage is told by what is stored: a killed load goes on where it stopped,
and what people decided since is left alone.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from django.db import transaction
from django.utils import timezone

from evalsite.after_review import decided_again
from evalsite.contract_previews import work_out_contract_preview
from evalsite.refund_desk import contract_texts, drafted_texts, earlier_texts, people_said
from evalsite.regrading import work_out_regrade
from reviews.models import Regrade, Verdict
from reviews.services.contracts import (
    ContractsError,
    decide_contracts,
    draft_contracts,
    propose_contracts,
)
from reviews.services.person_verdicts import VerdictError, give_verdict
from traces.models import (
    ContractOutcome,
    ContractPreview,
    ContractProposal,
    System,
    Trial,
    User,
)


@dataclass(frozen=True, slots=True)
class _Stage:
    """One proposal, and whether it is approved."""

    title: str
    texts: Mapping[str, str]
    reason: str  # tells the proposal from all others
    approval: str  # why it was approved; "" leaves it to whoever looks at the demo


_FIRST: Final = _Stage(
    title="contracts of all tasks",
    texts={**contract_texts(), **earlier_texts()},
    reason="First contracts of all tasks: what must come out, what must stand before, what is "
    "prohibited.",
    approval="Read against the desk's handbook; every grader test is as expected.",
)
_MENDED: Final = _Stage(
    title="a mended contract",
    texts={task: contract_texts()[task] for task in earlier_texts()},
    reason="A refund is not the only right end: with too little balance the case is escalated. Six "
    "of ten right trials passed under the first version.",
    approval="The escalation is what the handbook asks for where the balance is too small.",
)
_WAITING: Final = _Stage(
    title="a proposed contract",
    texts=drafted_texts(),
    reason="Two passing trials looked at another customer's record, and an amount told in words "
    "is told, too.",
    approval="",
)


def load_contracts(
    system: System, *, engineer: User, reviewer: User, progress: Callable[[str], None]
) -> None:
    """Bring the contracts in as far as they are not. `progress` gets a line for each stage that is.

    Where the people of the demo have other roles by now, the rest is left out, and a line says so.
    """
    try:
        _bring(_FIRST, system, engineer, reviewer, progress)
        _give_verdicts(system, reviewer, progress)
        _bring(_MENDED, system, engineer, reviewer, progress)
        _bring(_WAITING, system, engineer, reviewer, progress)
    except (ContractsError, VerdictError) as refusal:
        progress(f"{system.name}: the rest of the contracts is left out. {refusal}")


def _bring(
    stage: _Stage,
    system: System,
    engineer: User,
    reviewer: User,
    progress: Callable[[str], None],
) -> None:
    rows = ContractProposal.objects.select_related("decision", "regrade")
    proposal = rows.filter(system=system, created_by=engineer, reason=stage.reason).first()
    if proposal is not None and _is_settled(proposal, stage):
        return
    progress(f"{system.name}: {stage.title}")
    if proposal is None:
        preview = _previewed(stage, system, engineer)
        proposal = propose_contracts(preview, reason=stage.reason, by=engineer, now=timezone.now())
    if not stage.approval:
        return
    work = Regrade.objects.filter(proposal=proposal).first()
    if work is None:
        decide_contracts(
            proposal,
            outcome=ContractOutcome.APPROVED,
            reason=stage.approval,
            by=reviewer,
            now=timezone.now(),
        )
        work = Regrade.objects.get(proposal=proposal)
    work_out_regrade(work.pk)


def _is_settled(proposal: ContractProposal, stage: _Stage) -> bool:
    """Whether nothing is left to do: somebody decides, has decided otherwise, or stopped the work."""
    if not stage.approval:
        return True
    if not hasattr(proposal, "decision"):
        return False
    return not hasattr(proposal, "regrade") or not proposal.regrade.is_open


def _previewed(stage: _Stage, system: System, engineer: User) -> ContractPreview:
    """The finished preview of a stage; one that a killed load left behind is taken up."""
    left = ContractPreview.objects.filter(system=system, by=engineer, proposed_as=None)
    preview = next((one for one in left if one.texts == dict(stage.texts)), None)
    if preview is None:
        texts = list(stage.texts.values())
        preview = draft_contracts(system, texts, by=engineer, now=timezone.now())
    work_out_contract_preview(preview.pk)
    preview.refresh_from_db()
    return preview


@transaction.atomic
def _give_verdicts(system: System, reviewer: User, progress: Callable[[str], None]) -> None:
    """What the reviewer says of single criteria, all of it or none."""
    if Verdict.objects.filter(trial__system=system, by=reviewer).exists():
        return
    now = timezone.now()
    progress(f"{system.name}: a reviewer's verdicts")
    trials = {
        (trial.release.name, trial.run.name, trial.task.task_id, trial.label): trial
        for trial in Trial.objects.filter(system=system, disposition__stands=True).select_related(
            "release", "run", "task"
        )
    }
    graded = []
    for said in people_said():
        trial = trials[said.release, said.run, said.task_id, said.label]
        give_verdict(
            trial,
            criterion=said.criterion,
            value=said.value,
            reason=said.reason,
            steps=said.steps,
            by=reviewer,
            now=now,
        )
        graded.append(trial)
    decided_again((trial.pk for trial in graded), system, now=now)
