"""One of everything that the site has an address for, in one system; and the table of its addresses."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

from django.urls import URLPattern, URLResolver, get_resolver, reverse
from django.utils import timezone

from reviews.models import (
    AcceptedPath,
    Adjudication,
    CalibrationSet,
    Case,
    CheckMark,
    Criterion,
    Dispute,
    Flag,
    FlagCode,
    Grader,
    GraderVersion,
    JudgeRun,
    ProbeBatch,
    Regrade,
    Rubric,
    RubricRequest,
    Verdict,
)
from tests.support.evidence import ingest, record
from tests.support.gate_world import gates_of
from traces.core.paths import PathLevel
from traces.core.rule_changes import RuleChange, change_document
from traces.models import (
    ContractPreview,
    ContractProposal,
    ContractVersion,
    LineOutcome,
    Release,
    RulesPreview,
    RulesVersion,
    Run,
    System,
    Task,
    Trial,
    Upload,
    UploadLine,
    User,
)
from traces.selectors.rules import shown_rules


def patterns(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    for each in (resolver or get_resolver()).url_patterns:
        if isinstance(each, URLResolver):
            yield from patterns(each)
        else:
            yield each


def rule_of(pattern: URLPattern) -> str:
    return getattr(pattern.callback, "access_rule", "none")


ROUTES = {str(pattern.name): pattern for pattern in patterns()}
IDENTITIES = (
    *("task", "trial", "run", "release", "upload", "path", "flag", "preview"),
    *("version", "case", "mark", "dispute", "tier", "sign_off", "alert", "person"),
    *("invitation", "key"),
)
NUMBERS = ("number", "judge", "criterion", "rubric", "asked", "seq")
OBJECTS = {*IDENTITIES, *NUMBERS, "line", "step"}


@dataclass(frozen=True, slots=True)
class World:
    """Addresses of things in one system."""

    values: dict[str, object]

    def path(self, name: str, **other: object) -> str:
        wanted = ROUTES[name].pattern.converters
        values = {key: {**self.values, **other}[key] for key in wanted}
        return reverse(name, kwargs=values)


def world_of(system: System, by: User) -> World:
    ingest(system, [record("t1", 0), record("t1", 1), {"task_id": "broken"}])
    trial = Trial.objects.filter(system=system).order_by("pk")[0]
    version, now = shown_rules(system), timezone.now()
    proposal = RulesVersion.objects.create(
        system=system,
        number=1_000 + system.pk,
        document=version.document,
        reason="x",
        created_by=by,
    )
    task = Task.objects.get(system=system, task_id="t1")
    preview = rules_preview(system, version, by)
    # One number and one identity of a preview serve the routes of rules and of contracts alike.
    contract = contract_of(task, by, number=proposal.number, preview=preview.uuid)
    mark = CheckMark.objects.create(
        system=system,
        task=task,
        criterion="outcome",
        mark="defective",
        reason="x",
        by=by,
        marked_at=now,
    )
    case, _ = Case.objects.get_or_create(
        trial=trial,
        defaults={
            "system": system,
            "task": task,
            "release": trial.release,
            "state": "open",
            "disposition": "unresolved",
            "next_actions": ["grade"],
            "action": "grade",
            "worked_by": "reviewer",
            "why": [],
            "opened_at": now,
        },
    )
    return World(
        {
            "slug": system.slug,
            "version": contract.uuid,
            "mark": mark.uuid,
            "case": case.uuid,
            "task": Task.objects.get(system=system, task_id="t1").uuid,
            "trial": trial.uuid,
            "run": Run.objects.get(release__system=system).uuid,
            "release": Release.objects.get(system=system).uuid,
            "upload": Upload.objects.get(system=system).uuid,
            "line": UploadLine.objects.get(
                upload__system=system, outcome=LineOutcome.REFUSED.value
            ).pk,
            "step": 1,
            "number": proposal.number,
            "path": accepted_path(trial, version, by).uuid,
            "flag": Flag.objects.create(
                system=system,
                trial=trial,
                code=FlagCode.PERSON.value,
                key=uuid.uuid4(),
                reason="look",
                by=by,
                raised_at=now,
            ).uuid,
            "preview": preview.uuid,
            **review_of(trial, by, number=proposal.number),
            **gates_of(trial, by, number=proposal.number),
        }
    )


def review_of(trial: Trial, by: User, *, number: int) -> dict[str, object]:
    """A dispute on a trial, and what else reviewers and judges work with, under one number."""
    system, now = trial.system, timezone.now()
    criterion, _ = Criterion.objects.get_or_create(system=system, name="truthful")
    grader = Grader.objects.create(system=system, kind="model", name="judge")
    version = GraderVersion.objects.create(grader=grader, version="1")
    Verdict.objects.create(
        trial=trial,
        grader_version=version,
        criterion=criterion,
        criterion_class="semantic",
        is_mandatory=False,
        value="pass",
        key="v",
        cited_steps=[],
        digest=uuid.uuid4(),
        evidence_digest=trial.digest,
    )
    dispute = Dispute.objects.create(
        system=system,
        trial=trial,
        task=trial.task,
        release=trial.release,
        criterion="truthful",
        criterion_class="semantic",
        class_rank=2,
        kinds=["judge_judge"],
        judges=[],
        says={
            "sides": [],
            "why": "",
            "ruling": "",
            "judges": "",
            "code": "",
            "people": "",
            "n_more": 0,
        },
        is_counting=False,
        decides=False,
        stands=True,
        state="open",
        opened_at=now,
    )
    adjudication = Adjudication.objects.create(
        system=system,
        trial=trial,
        criterion=criterion,
        ruling="rubric_unclear",
        reason="x",
        cited_steps=[],
        seen=[],
        evidence_order=0,
        evidence_digest=trial.digest,
        is_by_party=False,
        by=by,
        decided_at=now,
    )
    asked = RubricRequest.objects.create(
        system=system,
        criterion="truthful",
        adjudication=adjudication,
        reason="x",
        by=by,
        opened_at=now,
    )
    common = {"system": system, "number": number, "criterion": criterion, "by": by, "reason": "x"}
    CalibrationSet.objects.create(
        name="first", sampling="chosen", is_imported=False, created_at=now, **common
    )
    ProbeBatch.objects.create(may_fall=False, seed=1, made_at=now, **common)
    JudgeRun.objects.create(
        grader_version=version,
        model="m",
        endpoint="judge.example",
        asked_at=now,
        touched_at=now,
        **common,
    )
    return {
        "dispute": dispute.uuid,
        "judge": version.pk,
        "criterion": criterion.pk,
        "rubric": Rubric.objects.create(system=system, name="truthful").pk,
        "asked": asked.pk,
    }


def rules_preview(system: System, version: RulesVersion, by: User) -> RulesPreview:
    return RulesPreview.objects.create(
        system=system,
        base=version,
        change=change_document(RuleChange()),
        document=version.document,
        by=by,
        asked_at=timezone.now(),
        touched_at=timezone.now(),
    )


def contract_of(task: Task, by: User, *, number: int, preview: uuid.UUID) -> ContractVersion:
    """A proposed contract of a task, with a preview and a regrade of the same number."""
    now, system = timezone.now(), task.system
    text = f"task: {task.task_id}\nbudget: {{tool_calls: 10}}\n"
    ContractPreview.objects.create(
        uuid=preview,
        system=system,
        texts={task.task_id: text},
        by=by,
        asked_at=now,
        touched_at=now,
    )
    proposal = ContractProposal.objects.create(
        system=system, number=number, reason="x", created_at=now, created_by=by
    )
    Regrade.objects.create(
        system=system,
        number=number,
        tasks=[task.pk],
        reason="x",
        by=by,
        asked_at=now,
        touched_at=now,
    )
    return ContractVersion.objects.create(
        proposal=proposal, task=task, number=1, text=text, digest=uuid.uuid4()
    )


def accepted_path(trial: Trial, version: RulesVersion, by: User) -> AcceptedPath:
    return AcceptedPath.objects.create(
        task=trial.task,
        number=1,
        level=PathLevel.SEQUENCE.value,
        messages=False,
        trajectory=trial.trajectory,
        trial=trial,
        rules=version,
        key=uuid.uuid4(),
        reason="looked at",
        by=by,
        accepted_at=timezone.now(),
    )
