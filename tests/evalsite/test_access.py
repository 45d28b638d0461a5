"""Who may reach what, on every route of the site."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest
from django.http import HttpResponse
from django.test import Client
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
from tests.support.cast import Cast, cast_anew
from tests.support.evidence import ingest, record
from traces.core.paths import PathLevel
from traces.core.rule_changes import RuleChange, change_document
from traces.models import (
    ContractPreview,
    ContractProposal,
    ContractVersion,
    LineOutcome,
    Member,
    Release,
    Role,
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
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

PUBLIC = {
    "sign-in",
    "sign-out",
    "demo-sign-in",
    "health",
    "csp-report",
    "api-schema",
    "api-docs",
    "contract-schema",
}
RULE = re.compile(
    r"public|signed-in|system:(read|flag|contribute|approve|recompute|work|review|own"
    r"|write_rubric|ask_judges)"
    r"|api-key:(ingest|read)"
)


def patterns(resolver: URLResolver | None = None) -> Iterator[URLPattern]:
    for each in (resolver or get_resolver()).url_patterns:
        if isinstance(each, URLResolver):
            yield from patterns(each)
        else:
            yield each


def rule_of(pattern: URLPattern) -> str:
    return getattr(pattern.callback, "access_rule", "none")


ROUTES = {str(pattern.name): pattern for pattern in patterns()}
IN_SYSTEM = sorted(name for name, p in ROUTES.items() if rule_of(p).startswith("system:"))
FOR_ENGINEERS = sorted(n for n, p in ROUTES.items() if rule_of(p) == "system:contribute")
FOR_REVIEWERS = sorted(n for n, p in ROUTES.items() if rule_of(p) == "system:review")
FOR_WORKERS = sorted(
    n for n, p in ROUTES.items() if rule_of(p) in ("system:recompute", "system:work")
)
FOR_WRITERS = sorted(
    n for n, p in ROUTES.items() if rule_of(p) in ("system:write_rubric", "system:ask_judges")
)
SIGNED_IN = sorted(name for name, p in ROUTES.items() if rule_of(p) == "signed-in")
POST_ONLY = {
    *("rules-propose", "rules-decide", "rules-withdraw", "rules-work", "rules-suggest"),
    *("contract-propose", "contract-decide", "contract-withdraw", "regrade-new", "regrade-work"),
    *("case-assign", "cases-assign", "case-due", "case-comment", "case-set-aside"),
    *("case-take-up", "case-rerun", "mark-withdraw", "change-split", "note-exposure"),
    *("dispute-decide", "dispute-draft", "dispute-undo", "dispute-skip"),
    *("calibration-set-vouch", "calibration-item-withdraw", "calibration-set-close"),
    *("label-draft", "label-undo", "label-skip", "label-extend", "label-reveal"),
    *("judge-read", "probe-new", "judge-run-new", "judge-run-work"),
    *("rubric-new", "rubric-version", "rubric-request-close", "vouch-for"),
}
IDENTITIES = (
    *("task", "trial", "run", "release", "upload", "path", "flag", "preview"),
    *("version", "case", "mark", "dispute"),
)
NUMBERS = ("number", "judge", "criterion", "rubric", "asked")
OBJECTS = {*IDENTITIES, *NUMBERS, "line", "step"}


@dataclass(frozen=True, slots=True)
class World:
    """Addresses of things in one system."""

    values: dict[str, object]

    def path(self, name: str, **other: object) -> str:
        wanted = ROUTES[name].pattern.converters
        values = {key: {**self.values, **other}[key] for key in wanted}
        return reverse(name, kwargs=values)


def ask(client: Client, name: str, path: str) -> HttpResponse:
    """The answer to the method that the route takes."""
    return client.post(path, {}) if name in POST_ONLY else client.get(path)


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


@pytest.fixture(scope="module")
def cast(module_db: None) -> Cast:
    return cast_anew()


@pytest.fixture(scope="module")
def world(cast: Cast) -> World:
    return world_of(cast.system, cast.engineer)


@pytest.fixture(scope="module")
def elsewhere(cast: Cast) -> World:
    return world_of(cast.other_system, cast.outsider)


def test_every_route_states_who_may_reach_it() -> None:
    rules = {pattern.name or str(pattern.pattern): rule_of(pattern) for pattern in patterns()}

    assert {name: rule for name, rule in rules.items() if not RULE.fullmatch(rule)} == {}
    assert {name for name, rule in rules.items() if rule == "public"} == PUBLIC


def test_a_route_names_its_system_exactly_where_its_rule_asks_for_one() -> None:
    with_slug = {name for name, p in ROUTES.items() if "slug" in p.pattern.converters}
    assert with_slug == set(IN_SYSTEM)


@pytest.mark.parametrize("name", [*IN_SYSTEM, *SIGNED_IN])
def test_a_stranger_is_asked_to_sign_in(name: str, client: Client, world: World) -> None:
    path = world.path(name)
    answer = ask(client, name, path)
    assert (answer.status_code, answer["Location"]) == (302, f"/sign-in/?next={path}")


@pytest.mark.parametrize("name", IN_SYSTEM)
def test_an_outsider_sees_nothing_and_cannot_tell_it_from_nothing(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.outsider)
    foreign = ask(client, name, world.path(name))
    absent = ask(client, name, world.path(name, slug="no-such-system"))

    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


@pytest.mark.parametrize("name", IN_SYSTEM)
def test_an_outsider_cannot_post_either(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.outsider)
    assert client.post(world.path(name), {}).status_code in (404, 405)


@pytest.mark.parametrize(
    "name", [n for n in IN_SYSTEM if OBJECTS & set(ROUTES[n].pattern.converters)]
)
def test_another_systems_things_are_absent_under_ones_own_address(
    name: str, client: Client, cast: Cast, world: World, elsewhere: World
) -> None:
    is_reviewers = rule_of(ROUTES[name]) in ("system:approve", "system:review")
    person = cast.reviewer if is_reviewers else cast.engineer
    client.force_login(person)
    foreign = ask(client, name, elsewhere.path(name, slug=cast.system.slug))
    nothing = {key: uuid.uuid4() for key in IDENTITIES} | dict.fromkeys(NUMBERS, 999_999_999)
    absent = ask(client, name, world.path(name, **nothing))

    assert (foreign.status_code, absent.status_code) == (404, 404)
    assert foreign.content == absent.content


@pytest.mark.parametrize("role", list(Role))
def test_every_member_reads(role: Role, client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.members()[role])
    rules = ("system:read", "system:flag")
    readable = [n for n in IN_SYSTEM if rule_of(ROUTES[n]) in rules and n not in POST_ONLY]
    answers = {name: client.get(world.path(name)).status_code for name in readable}

    assert answers == {name: 302 if name == "system-start" else 200 for name in readable}


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.OWNER])
@pytest.mark.parametrize("name", FOR_ENGINEERS)
def test_only_an_engineer_contributes(
    name: str, role: Role, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.members()[role])
    answer = ask(client, name, world.path(name))

    assert answer.status_code == 403
    assert "Only an engineer of this system uploads evidence" in answer.content.decode()


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER])
@pytest.mark.parametrize("name", ["rules-decide", "contract-decide"])
def test_neither_engineer_nor_viewer_decides_on_proposals(
    name: str, role: Role, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.members()[role])
    answer = client.post(world.path(name), {"outcome": "approved", "reason": "yes"})

    assert answer.status_code == 403
    assert "Only a reviewer or an owner of this system decides" in answer.content.decode()


@pytest.mark.parametrize("name", FOR_REVIEWERS)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER, Role.OWNER])
def test_only_a_reviewer_gives_verdicts_and_marks_checks(
    name: str, role: Role, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.members()[role])
    answer = ask(client, name, world.path(name))

    assert answer.status_code == 403
    assert "Only a reviewer of this system" in answer.content.decode()


@pytest.mark.parametrize("name", FOR_WRITERS)
@pytest.mark.parametrize("role", [Role.VIEWER, Role.OWNER])
def test_only_engineers_and_reviewers_write_rubrics_and_ask_judges(
    name: str, role: Role, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.members()[role])
    answer = ask(client, name, world.path(name))

    assert answer.status_code == 403
    assert "Only an engineer or a reviewer of this system" in answer.content.decode()


@pytest.mark.parametrize("name", FOR_WORKERS)
def test_a_viewer_does_not_move_background_work(
    name: str, client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.viewer)
    assert client.post(world.path(name), {}).status_code == 403


def test_a_change_of_role_holds_at_once(client: Client, cast: Cast, world: World) -> None:
    client.force_login(cast.engineer)
    path = world.path("upload-new")
    before = client.get(path).status_code
    set_member(cast.system, cast.engineer, Role.VIEWER)
    demoted = client.get(path).status_code
    Member.objects.filter(system=cast.system, user=cast.engineer).delete()
    removed = client.get(path).status_code

    assert (before, demoted, removed) == (200, 403, 404)


def test_a_person_who_is_no_longer_active_reaches_nothing(
    client: Client, cast: Cast, world: World
) -> None:
    client.force_login(cast.engineer)
    User.objects.filter(pk=cast.engineer.pk).update(is_active=False)
    assert client.get(world.path("task-list")).status_code == 302
