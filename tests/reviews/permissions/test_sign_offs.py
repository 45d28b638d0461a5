"""Who may sign a release: each rule keeps a person from it, alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import pytest
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries

from reviews.core.disposition import AdjudicationRuling, Mark
from reviews.models import (
    Adjudication,
    Calibration,
    CalibrationItem,
    CalibrationSet,
    CheckMark,
    CheckMarkWithdrawal,
    Criterion,
    GraderVersion,
    JudgeRun,
    JudgeRunItem,
    Label,
    Rubric,
    RubricVersion,
    RunExclusion,
    SetVouch,
    Verdict,
    Vouch,
)
from reviews.permissions.sign_offs import (
    ADDED,
    ADJUDICATED,
    APPROVED_CONTRACT,
    ASKED_JUDGE,
    DECLARED,
    GAVE_VERDICTS,
    LABELLED,
    MARKED,
    MOVED,
    NOT_AN_OWNER,
    OWNER_TOO_LATE,
    UPLOADED,
    VOUCHED,
    WROTE_CONTRACT,
    WROTE_RUBRIC,
    SignedRelease,
    rubrics_of,
    why_not_second,
    why_not_sign,
)
from reviews.selectors.sign_offs import signed_release
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.keys import new_key
from tests.support.signing import SignedWorld, a_ready_release, trials
from traces.models import (
    ContractDecision,
    ContractProposal,
    ContractVersion,
    EvidenceAddition,
    Member,
    MemberChange,
    Role,
    Run,
    SplitChange,
    Task,
    TaskOrigin,
    Trial,
    Upload,
    User,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def world(cast: Cast) -> SignedWorld:
    return a_ready_release(cast)


def refusal(world: SignedWorld, user: User) -> str:
    found, _ = signed_release(world.release.pk)
    return why_not_sign(found, user, now=timezone.now())


def owner_now(world: SignedWorld, user: User) -> User:
    """The person as an owner, whatever they were."""
    Member.objects.filter(system=world.cast.system, user=user).update(role=Role.OWNER.value)
    return user


def append(model: type, pk: object, **values: object) -> None:
    """Rows of append-only tables are altered past their triggers, in tests only."""
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL session_replication_role = replica")
        model.objects.filter(pk=pk).update(**values)  # type: ignore[attr-defined]
        cursor.execute("SET LOCAL session_replication_role = origin")


def test_an_owner_who_did_nothing_else_may_sign(
    world: SignedWorld, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    found, _ = signed_release(world.release.pk)
    assert found.contracts == (world.contract.pk,)
    with django_assert_num_queries(1):
        assert why_not_sign(found, world.cast.owner, now=timezone.now()) == ""


def test_thresholds_tiers_and_runs_left_out_are_the_owners_own_task(world: SignedWorld) -> None:
    # The owner made the tier, its thresholds and where tasks belong.
    assert world.tier.made_by == world.cast.owner
    assert refusal(world, world.cast.owner) == ""


def test_who_is_no_owner(world: SignedWorld) -> None:
    for user in (world.cast.viewer, world.cast.reviewer, world.cast.engineer, world.cast.outsider):
        assert refusal(world, user) == NOT_AN_OWNER


def test_a_superuser_is_no_owner_by_that_right(world: SignedWorld) -> None:
    operator = User.objects.create_superuser("operator")
    assert refusal(world, operator) == NOT_AN_OWNER


def test_an_owner_who_was_locked_out_of_the_site(world: SignedWorld) -> None:
    User.objects.filter(pk=world.cast.owner.pk).update(is_active=False)
    assert refusal(world, world.cast.owner) == NOT_AN_OWNER


def test_who_uploaded_evidence(world: SignedWorld) -> None:
    assert refusal(world, owner_now(world, world.cast.engineer)) == UPLOADED


def test_who_uploaded_evidence_through_a_key(world: SignedWorld) -> None:
    key, _ = new_key(world.cast.system, world.cast.engineer)
    (upload,) = Upload.objects.values_list("pk", flat=True)
    append(Upload, upload, by=None, api_key=key.pk)
    assert refusal(world, owner_now(world, key.user)) == UPLOADED


def test_who_uploaded_verdicts_alone(world: SignedWorld) -> None:
    late = {
        "record": "verdicts",
        "task_id": "t1",
        "trial": 0,
        "run": "nightly",
        "verdicts": [verdict(criterion="tone", grader="jan", kind="human")],
    }
    ingest(world.cast.system, [late], release=None, by=world.cast.viewer)
    upload = Upload.objects.order_by("-pk")[0]
    if not Verdict.objects.filter(upload=upload).exists():
        append(Verdict, Verdict.objects.order_by("pk")[0].pk, upload=upload.pk)
    assert refusal(world, owner_now(world, world.cast.viewer)) == UPLOADED


def test_who_uploaded_evidence_of_another_release_may_sign_this_one(world: SignedWorld) -> None:
    ingest(world.cast.system, trials([1]), release="9.0", by=world.cast.viewer)
    assert refusal(world, owner_now(world, world.cast.viewer)) == ""


def test_who_declared_a_run(world: SignedWorld) -> None:
    Run.objects.update(declared_by=world.cast.viewer, declared_at=timezone.now(), declared_trials=5)
    assert refusal(world, owner_now(world, world.cast.viewer)) == DECLARED


def test_who_proposed_a_contract(world: SignedWorld) -> None:
    assert refusal(world, owner_now(world, world.cast.second_reviewer)) == WROTE_CONTRACT


def test_who_approved_a_contract(world: SignedWorld) -> None:
    assert refusal(world, owner_now(world, world.cast.reviewer)) == APPROVED_CONTRACT


def test_who_decided_on_a_contract_that_this_gate_does_not_apply_may_sign(
    world: SignedWorld,
) -> None:
    later = ContractProposal.objects.create(
        system=world.cast.system,
        number=9,
        reason="x",
        created_at=timezone.now(),
        created_by=world.cast.engineer,
    )
    ContractVersion.objects.create(
        proposal=later,
        task=Task.objects.get(system=world.cast.system),
        number=9,
        text=world.contract.text,
        digest=world.contract.digest,
    )
    ContractDecision.objects.create(
        proposal=later,
        outcome="approved",
        reason="x",
        by=world.cast.owner,
        decided_at=timezone.now(),
    )
    assert refusal(world, world.cast.owner) == ""


@pytest.mark.parametrize(
    ("name", "spelled", "sentence"),
    [
        ("tone", "tone", WROTE_RUBRIC),
        ("tone", '"to\\u006Ee"', WROTE_RUBRIC),
        ("tone", "tone-of-voice", ""),
        ("other (1)", "tone", ""),
    ],
)
def test_who_wrote_a_rubric(name: str, spelled: str, sentence: str, world: SignedWorld) -> None:
    text = f"{world.contract.text}semantic:\n  - {{rubric: {spelled}, mandatory: false}}\n"
    assert rubrics_of(text)
    append(ContractVersion, world.contract.pk, text=text)
    RubricVersion.objects.create(
        rubric=Rubric.objects.create(system=world.cast.system, name=name),
        version="1",
        text="x",
        reason="x",
        by=world.cast.owner,
        created_at=timezone.now(),
    )
    assert refusal(world, world.cast.owner) == sentence


def adjudicated(world: SignedWorld, trial: Trial, now: datetime) -> None:
    Adjudication.objects.create(
        system=world.cast.system,
        trial=trial,
        criterion=Criterion.objects.filter(system=world.cast.system).order_by("pk")[0],
        ruling=AdjudicationRuling.FAIL.value,
        reason="x",
        cited_steps=[],
        seen=[],
        evidence_order=0,
        evidence_digest=trial.digest,
        is_by_party=False,
        by=world.cast.owner,
        decided_at=now,
    )


def gave_verdict(world: SignedWorld, trial: Trial, now: datetime) -> None:
    append(Verdict, Verdict.objects.filter(trial=trial).order_by("pk")[0].pk, by=world.cast.owner)
    assert now


def vouched(world: SignedWorld, trial: Trial, now: datetime) -> None:
    Vouch.objects.create(
        verdict=Verdict.objects.filter(trial=trial).order_by("pk")[0],
        reason="x",
        by=world.cast.owner,
        vouched_at=now,
    )


def marked(world: SignedWorld, trial: Trial, now: datetime, by: User | None = None) -> CheckMark:
    return CheckMark.objects.create(
        system=world.cast.system,
        task=trial.task,
        criterion="outcome",
        mark=Mark.DEFECTIVE.value,
        reason="x",
        by=by or world.cast.owner,
        marked_at=now,
    )


def withdrew(world: SignedWorld, trial: Trial, now: datetime) -> None:
    mark = marked(world, trial, now, by=world.cast.reviewer)
    CheckMarkWithdrawal.objects.create(mark=mark, reason="x", by=world.cast.owner, withdrawn_at=now)


def added(world: SignedWorld, trial: Trial, now: datetime) -> None:
    EvidenceAddition.objects.create(
        trial=trial,
        order=1,
        parts=[],
        content=b"",
        source="x",
        reason="x",
        digest=trial.digest,
        by=world.cast.owner,
        added_at=now,
    )


def moved(world: SignedWorld, trial: Trial, now: datetime) -> None:
    SplitChange.objects.create(
        system=world.cast.system, task=trial.task, reason="x", by=world.cast.owner, changed_at=now
    )


def moved_family(world: SignedWorld, trial: Trial, now: datetime) -> None:
    Task.objects.filter(pk=trial.task_id).update(family="refunds")
    SplitChange.objects.create(
        system=world.cast.system, family="refunds", reason="x", by=world.cast.owner, changed_at=now
    )


def made_task(world: SignedWorld, trial: Trial, now: datetime) -> None:
    TaskOrigin.objects.create(
        task=trial.task, trial=trial, reason="x", by=world.cast.owner, made_at=now
    )


def asked_judge(world: SignedWorld, trial: Trial, now: datetime) -> None:
    verdict = Verdict.objects.filter(trial=trial).order_by("pk")[0]
    run = JudgeRun.objects.create(
        system=world.cast.system,
        number=1,
        criterion=Criterion.objects.order_by("pk")[0],
        grader_version=verdict.grader_version,
        model="x",
        endpoint="x",
        reason="x",
        by=world.cast.owner,
        asked_at=now,
        touched_at=now,
    )
    JudgeRunItem.objects.create(run=run, position=1, trial=trial, verdict=verdict)


ACTS: list[tuple[Callable[[SignedWorld, Trial, datetime], object], str]] = [
    (adjudicated, ADJUDICATED),
    (gave_verdict, GAVE_VERDICTS),
    (vouched, VOUCHED),
    (marked, MARKED),
    (withdrew, MARKED),
    (moved, MOVED),
    (moved_family, MOVED),
    (made_task, MOVED),
    (asked_judge, ASKED_JUDGE),
    (added, ADDED),
]


@pytest.mark.parametrize(("act", "sentence"), ACTS)
def test_who_decided_something_of_it(
    act: Callable[[SignedWorld, Trial, datetime], object], sentence: str, world: SignedWorld
) -> None:
    trial = Trial.objects.filter(release=world.release).order_by("pk")[0]
    act(world, trial, timezone.now())
    assert refusal(world, world.cast.owner) == sentence
    assert refusal(world, world.second) == ""


def a_calibration(world: SignedWorld, status: str) -> CalibrationSet:
    """A judge of a trial with a status, and a set of labels on its criterion."""
    now, system = timezone.now(), world.cast.system
    judged = record(
        "t1",
        20,
        verdicts=[verdict(criterion="tone", grader="judge", kind="model", grader_version="1")],
    )
    ingest(system, [judged], release=world.release.name, run="judged", by=world.cast.engineer)
    criterion = Criterion.objects.get(system=system, name="tone")
    Calibration.objects.create(
        system=system,
        grader_version=GraderVersion.objects.get(grader__name="judge"),
        criterion=criterion,
        status=status,
        why="x",
        figures={},
        read_at=now,
        valid_until=now + timedelta(days=9),
    )
    return CalibrationSet.objects.create(
        system=system,
        number=1,
        name="x",
        criterion=criterion,
        sampling="chosen",
        reason="x",
        is_imported=True,
        by=world.cast.reviewer,
        created_at=now,
    )


@pytest.mark.parametrize(("status", "sentence"), [("calibrated", LABELLED), ("exploratory", "")])
def test_who_labelled_for_a_judge_that_counts(
    status: str, sentence: str, world: SignedWorld
) -> None:
    found = a_calibration(world, status)
    item = CalibrationItem.objects.create(
        set=found, trial=Trial.objects.order_by("pk")[0], position=1
    )
    Label.objects.create(
        item=item, by=world.cast.owner, round=1, value="pass", given_at=timezone.now()
    )
    assert refusal(world, world.cast.owner) == sentence


def test_who_vouched_for_labels_of_a_judge_that_counts(world: SignedWorld) -> None:
    SetVouch.objects.create(
        set=a_calibration(world, "calibrated"),
        reason="x",
        by=world.cast.owner,
        vouched_at=timezone.now(),
    )
    assert refusal(world, world.cast.owner) == VOUCHED


@pytest.mark.parametrize(("status", "sentence"), [("calibrated", LABELLED), ("exploratory", "")])
def test_who_brought_labels_in_for_a_judge_that_counts(
    status: str, sentence: str, world: SignedWorld
) -> None:
    CalibrationSet.objects.filter(pk=a_calibration(world, status).pk).update(by=world.cast.owner)
    assert refusal(world, world.cast.owner) == sentence


def test_who_moved_a_task_of_another_release_may_sign_this_one(world: SignedWorld) -> None:
    ingest(world.cast.system, trials([1], task="t2"), release="9.0", by=world.cast.engineer)
    moved(world, Trial.objects.get(task__task_id="t2"), timezone.now())
    assert refusal(world, world.cast.owner) == ""


def second(world: SignedWorld, user: User) -> str:
    found, subject = signed_release(world.release.pk)
    return why_not_second(found, user, begun_at=subject.first_begun_at)


def test_a_run_left_out_makes_nobody_second_who_came_after_it_began(world: SignedWorld) -> None:
    Member.objects.filter(user=world.second).update(since=timezone.now())
    first = Run.objects.get(release=world.release)
    ingest(world.cast.system, trials([9]), release=world.release.name, run="again")
    RunExclusion.objects.create(
        run=first, reason="x", by=world.cast.owner, left_out_at=timezone.now()
    )
    assert second(world, world.second) == OWNER_TOO_LATE


def test_the_second_owner_was_one_before_the_first_run_began(world: SignedWorld) -> None:
    assert second(world, world.second) == ""
    assert second(world, world.cast.viewer) == NOT_AN_OWNER
    now = timezone.now()
    Member.objects.filter(user=world.second).update(since=now)
    assert second(world, world.second) == OWNER_TOO_LATE


def test_a_change_of_role_says_since_when_somebody_is_an_owner(world: SignedWorld) -> None:
    # Made an owner again after the run began: not an owner all the while.
    MemberChange.objects.create(
        system=world.cast.system,
        user=world.second,
        old=Role.REVIEWER.value,
        new=Role.OWNER.value,
        changed_at=timezone.now(),
    )
    assert second(world, world.second) == OWNER_TOO_LATE


def test_without_a_run_nobody_is_second(world: SignedWorld) -> None:
    found = SignedRelease(world.release.pk, world.cast.system.pk, ())
    assert why_not_second(found, world.second, begun_at=None) == OWNER_TOO_LATE
