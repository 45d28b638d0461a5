"""Judges, rubrics, labels and decisions whose every text attacks its reader."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.utils import timezone

from evalsite.after_adjudication import adjudicate_and_decide
from evalsite.after_label import label_and_decide
from evalsite.after_sets import withdraw_and_complete
from evalsite.after_vouching import vouch_and_decide
from reviews.core.disposition import AdjudicationRuling
from reviews.core.label_files import read_labels
from reviews.core.probes import ProbeKind
from reviews.models import CalibrationItem, CalibrationSet, Dispute, Sampling, Seat
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.selectors.vouching import vouch_groups
from reviews.services.adjudications import skip_dispute
from reviews.services.calibration_sets import SetWish, make_set
from reviews.services.judge_runs import AskedJudge, JudgeRunWish, start_judge_run
from reviews.services.label_imports import ImportWish, import_labels
from reviews.services.probes import BatchWish, make_batch
from reviews.services.rubrics import write_version
from reviews.services.seats import skip_item, take_seat
from tests.support.endpoint import answers, endpoint
from tests.support.evidence import ingest, record, verdict
from tests.support.judge_runs import worked
from traces.core.records import VerdictValue
from traces.models import Role, System, Trial, User
from traces.services.people import set_member

ATTACKER = "mallory"
"""A reviewer whose printed name attacks, too."""


@dataclass(frozen=True, slots=True)
class Scene:
    """Where it happens, who acts, and with which words."""

    system: System
    words: str
    criterion: LabelCriterion
    attacker: User
    reviewer: User
    engineer: User
    now: datetime


def review_in(system: System, words: str) -> None:
    """One of each thing that people and judges do where trials are reviewed, with these words."""
    attacker = User.objects.create_user(username=ATTACKER, first_name=words)
    set_member(system, attacker, Role.REVIEWER)
    ingest(system, [_judged(words, n) for n in range(9)], release="10", file_name=f"{words}.jsonl")
    scene = Scene(
        system=system,
        words=words,
        criterion=next(each for each in criteria_to_label(system.pk) if each.name == words),
        attacker=attacker,
        reviewer=User.objects.get(username="reviewer"),
        engineer=User.objects.get(username="engineer"),
        now=timezone.now(),
    )
    _write_rubric(scene)
    _decide_disputes(scene)
    _label(scene)
    _bring_labels_in(scene)
    _leave_a_set_open(scene)
    _probe(scene)
    _ask_a_judge(scene)
    group = vouch_groups(system.pk)[0]
    vouch_and_decide(
        system,
        (group.grader_version, group.criterion, group.upload),
        reason=words,
        by=scene.reviewer,
        now=scene.now,
        trial=_trial(scene, 2),
    )


def _judged(words: str, number: int) -> dict[str, Any]:
    """A trial of which judges say this and that, one of them nothing that is a verdict."""
    said: dict[str, Any] = {
        "criterion": words,
        "grader_version": words,
        "rationale": words,
        "evidence": [{"step": 2}, {"step": 99}],
    }
    return record(
        f"judged {words}",
        f"judged {number}",
        verdicts=[
            verdict("pass", grader=words, kind="model", **said),
            verdict("fail", grader=f"{words} 2", kind="model", **said),
            verdict(words[:60], grader=f"{words} 3", kind="model", **said),
            verdict("pass", grader=words, kind="human", **said),
        ],
        result=words,
        initial_state={"note": "a"},
        final_state={"note": words},
    )


def _trial(scene: Scene, number: int) -> Trial:
    return Trial.objects.select_related("task").get(system=scene.system, label=f"judged {number}")


def _write_rubric(scene: Scene) -> None:
    for version in (scene.words, "2"):
        write_version(
            scene.system,
            name=scene.words,
            version=version,
            text=f"{scene.words}\n{version}",
            reason=scene.words,
            by=scene.engineer,
            now=scene.now,
        )


def _decide_disputes(scene: Scene) -> None:
    """One passes, one asks for a clearer rubric, one is left to others."""
    rulings = (
        (0, AdjudicationRuling.PASS),
        (1, AdjudicationRuling.RUBRIC_UNCLEAR),
    )
    for number, ruling in rulings:
        adjudicate_and_decide(
            _trial(scene, number),
            criterion=scene.words,
            ruling=ruling,
            reason=scene.words,
            steps=(2,),
            by=scene.attacker,
            now=scene.now,
        )
    for by in (scene.reviewer, scene.attacker):
        dispute = Dispute.objects.get(trial=_trial(scene, 8), criterion=scene.words)
        skip_dispute(dispute, reason=scene.words, by=by, now=scene.now)


def _set_of(scene: Scene, *numbers: int) -> CalibrationSet:
    wish = SetWish(
        name=scene.words,
        reason=scene.words,
        criterion=scene.words,
        criterion_digest=scene.criterion.digest,
        sampling=Sampling.CHOSEN,
        trials=tuple(_trial(scene, number).uuid for number in numbers),
    )
    return make_set(scene.system, wish, by=scene.attacker, now=scene.now, seed=1)


def _label(scene: Scene) -> None:
    """A set that is complete: one item is labelled by two, one is withdrawn."""
    made = _set_of(scene, 2, 3)
    withdrawn = CalibrationItem.objects.get(set=made, trial=_trial(scene, 3))
    withdraw_and_complete(withdrawn, reason=scene.words, by=scene.attacker, now=scene.now)
    for by in (scene.attacker, scene.reviewer):
        seat = take_seat(made, by=by, now=scene.now)
        assert isinstance(seat, Seat)
        label_and_decide(
            seat.item,
            value=VerdictValue.FAIL,
            reason=scene.words,
            steps=(2,),
            by=by,
            now=scene.now,
        )


def _bring_labels_in(scene: Scene) -> None:
    wish = ImportWish(
        name=scene.words,
        criterion=scene.words,
        criterion_digest=scene.criterion.digest,
        sampling=Sampling.CHOSEN,
        source=scene.words,
        licence=scene.words,
        reason=scene.words,
    )
    label = {
        "trial_id": str(_trial(scene, 4).uuid),
        "labeller": scene.words,
        "value": "pass",
        "reason": scene.words,
    }
    lines = json.dumps(label).encode() + b"\n"
    found = import_labels(scene.system, wish, read_labels(lines), by=scene.engineer, now=scene.now)
    assert found.n_labels == 1


def _leave_a_set_open(scene: Scene) -> None:
    """One of its items is left to others by the attacker."""
    made = _set_of(scene, 5, 6)
    seat = take_seat(made, by=scene.attacker, now=scene.now)
    assert isinstance(seat, Seat)
    skip_item(seat.item, reason=scene.words, by=scene.attacker, now=scene.now)


def _probe(scene: Scene) -> None:
    """Copies of the trial that was decided to pass, and what a judge says of each."""
    wish = BatchWish(
        criterion=scene.words,
        criterion_digest=scene.criterion.digest,
        kinds=frozenset(ProbeKind),
        reason=scene.words,
        trials=(_trial(scene, 0).uuid,),
    )
    batch = make_batch(scene.system, wish, by=scene.engineer, now=scene.now, seed=1)
    said: dict[str, Any] = {
        "criterion": scene.words,
        "grader_version": scene.words,
        "rationale": scene.words,
    }
    ingest(
        scene.system,
        [
            {
                "record": "verdicts",
                "external_id": str(probe.uuid),
                "verdicts": [verdict("pass", grader=scene.words, kind="model", **said)],
            }
            for probe in batch.probes.order_by("position")
        ],
        release=None,
        file_name="probes.jsonl",
    )


def _ask_a_judge(scene: Scene) -> None:
    wish = JudgeRunWish(
        criterion=scene.words,
        criterion_digest=scene.criterion.digest,
        rubric_version=scene.words,
        question=scene.words,
        trial_ids=[_trial(scene, 7).pk],
    )
    judge = AskedJudge(f"{scene.words} 4", scene.words, scene.words)
    run = start_judge_run(
        scene.system, wish, judge, reason=scene.words, by=scene.engineer, now=scene.now
    )
    with endpoint(answers(why=scene.words)) as server:
        worked(run, server)
