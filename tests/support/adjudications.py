"""A trial with a dispute: two judges that disagree, and one that is calibrated or none."""

from __future__ import annotations

from typing import Any

from django.utils import timezone

from evalsite.after_review import decided_again
from reviews.selectors.adjudicating import dispute_basis
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.models import Trial, User

CONTRACT = """\
task: t1
semantic:
  - {rubric: truthful, version: r1, question: Is what the agent says true?}
"""
SIDES = (
    verdict("fail", criterion="truthful", grader="Judge 1", kind="model", rationale="It is not."),
    verdict("pass", criterion="truthful", grader="Judge 2", kind="model", rationale="It is."),
)


def disputed_trial(
    cast: Cast,
    trial: int = 0,
    *,
    uploader: User | None = None,
    proposer: User | None = None,
    contract: str = CONTRACT,
    sides: tuple[dict[str, Any], ...] = SIDES,
    **more: Any,
) -> Trial:
    """A trial of task t1 whose judges disagree on whether it is truthful."""
    ingest(cast.system, [record("t1", trial, verdicts=list(sides), **more)], by=uploader)
    stored = Trial.objects.select_related("task").get(system=cast.system, label=str(trial))
    if contract and stored.task.contract_id is None:
        contract_in_effect(cast.system, contract, by=proposer or cast.engineer)
    decided_again([stored.pk], cast.system, now=timezone.now())
    return Trial.objects.select_related("task").get(pk=stored.pk)


def seen_of(trial: Trial, criterion: str = "truthful") -> str:
    """What somebody who opens the dispute now has before them."""
    return str(dispute_basis(trial, criterion).seen)
