"""The evidence of a trial or a probe as a judge is sent it."""

from __future__ import annotations

import uuid
from dataclasses import dataclass

from evalsite.common import blobs
from reviews.core.judge_prompt import JudgeEvidence
from reviews.models import JudgeRun, Probe
from reviews.selectors.gradable import Gradable, gradable_criteria
from traces.core.transcript import transcript_of
from traces.core.values import JsonObject
from traces.models import System, Trial
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import trial_evidence

ASKS_ANOTHER_TEXT = (
    "The trial's contract asks for another text now, so the judge was not asked about it."
)
ASKED_NO_MORE = "The trial is not decided by this criterion any more, so the judge was not asked."


@dataclass(frozen=True, slots=True)
class TrialBasis:
    """What a verdict on a trial is given on."""

    gradable: Gradable
    evidence_order: int
    evidence_digest: uuid.UUID


def basis_refusal(run: JudgeRun, gradable: Gradable | None) -> str:
    """Why a trial is not asked about as it stands now; "" where it is."""
    if gradable is None:
        return ASKED_NO_MORE
    return "" if gradable.stored_digest == run.criterion_digest else ASKS_ANOTHER_TEXT


def gradable_now(run: JudgeRun, trial: Trial) -> Gradable | None:
    """The run's criterion as the trial is decided by it now."""
    return gradable_criteria(trial).get(run.criterion.name)


def evidence_of_trial(
    system: System, trial: Trial, gradable: Gradable
) -> tuple[JudgeEvidence, TrialBasis]:
    """All evidence of a trial, with what was added since."""
    (rows,) = trial_evidence([trial.pk], rules_of(system).rejection)
    order = rows.evidence_order
    found = rows.evidence(order)
    evidence = JudgeEvidence(
        steps=found.steps,
        facts=found.facts,
        initial_state=found.initial_state,
        final_state=found.final_state,
    )
    return evidence, TrialBasis(gradable, order, rows.evidence_digest(order))


def evidence_of_probe(system: System, probe: Probe) -> JudgeEvidence:
    """The evidence of a probe. Its kind, its name and what was changed are no part of it."""
    record: JsonObject = blobs.unpack(probe.record)
    messages = record.get("messages")
    facts = record.get("facts")
    return JudgeEvidence(
        steps=transcript_of(
            [one for one in messages if isinstance(one, dict)]
            if isinstance(messages, list)
            else [],
            rules_of(system).rejection,
        ),
        facts=facts if isinstance(facts, dict) else None,
        initial_state=record.get("initial_state"),
        final_state=record.get("final_state"),
    )
