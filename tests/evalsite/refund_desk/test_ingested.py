"""Both made-up releases through the real pipeline: what they come to, their paths, what is noticed."""

from __future__ import annotations

from collections import Counter

import pytest

from evalsite.refund_desk import TOOL_KINDS, releases
from reviews.core.notices import NoticeCode, NoticedTrial, notices_on
from reviews.models import Flag
from reviews.selectors.votes import given_verdicts
from tests.support.cast import Cast
from tests.support.evidence import ingest, ledger
from traces.core.paths import PathLevel
from traces.core.records import TrialStatus
from traces.core.rule_documents import rule_set_document
from traces.core.rules import RuleSet
from traces.models import RulesVersion, System, Trial, UploadJob, UploadLine
from traces.selectors.path_groups import passing_paths

pytestmark = pytest.mark.django_db


@pytest.fixture
def desk(cast: Cast) -> System:
    """The cast's system with both releases in it."""
    system = cast.system
    system.shown_rules = RulesVersion.objects.create(
        system=system,
        number=2,
        document=rule_set_document(RuleSet(tool_kinds=TOOL_KINDS)),
        reason="Kinds of the desk's tools.",
    )
    system.save(update_fields=["shown_rules"])
    for release in releases():
        ingest(system, b"".join(release.lines), release=release.name, by=cast.engineer)
    return system


def dispositions(system: System, release: str, run: str) -> dict[str, list[str]]:
    """By task, the dispositions of its slots, in order: their last attempts."""
    trials = (
        Trial.objects.filter(system=system, release__name=release, run__name=run)
        .filter(disposition__stands=True)
        .order_by("task__task_id", "label")
        .values_list("task__task_id", "disposition__value")
    )
    found: dict[str, list[str]] = {}
    for task, value in trials:
        found.setdefault(task, []).append(value)
    return found


def paths(system: System, task_id: str, level: PathLevel) -> list[tuple[str, ...]]:
    (task,) = passing_paths(system, level=level, messages=False, task_id=task_id)
    return sorted(task.groups)


P, F, U, H = "pass", "fail", "unresolved", "harness_error"


def test_every_record_is_taken_and_what_is_warned_of_is_meant(desk: System) -> None:
    jobs = UploadJob.objects.filter(upload__system=desk).order_by("pk")

    assert [ledger(job) for job in jobs] == [(98, 98, 0, 0, 0), (66, 66, 0, 0, 0)]
    assert [(job.state, job.n_verdicts_refused, job.n_waiting) for job in jobs] == [
        ("done", 0, 0),
        ("done", 0, 0),
    ]
    # A pass with no point and a fail with all of them, two steps that do not exist.
    assert [job.n_warnings for job in jobs] == [1, 3]
    assert not UploadLine.objects.filter(upload__system=desk).exists()


def test_the_nightly_runs_come_to_every_disposition(desk: System) -> None:
    assert dispositions(desk, "desk-1.0", "nightly") == {
        "add_bags": [P, P, P, F, P],
        "ask_about_someone_else": [P, P, P, P, F],
        "cancel_subscription": [P, P, P, P, P],
        "cancel_which_one": [U, U, F, U, U],
        "cancel_within_term": [P, P, P, P, P],
        "change_address": [P, P, P, P, P],
        "change_flight_date": [P, P, P, H, P],
        "close_account": [P, P, F, P, P],
        "export_my_data": [P, P, P, P, P],
        "refund_damaged_item": [P, P, F, F, F],
        "refund_fare_difference": [P, P, P, P, P],
        "refund_late_parcel": [P, P, P, F, P],
        "refund_over_limit": [P, P, F, P, F],
    }
    assert dispositions(desk, "desk-1.1", "nightly") == {
        "add_bags": [P, P, P, P, P],
        "ask_about_someone_else": [P, P, P, P, U],
        "cancel_subscription": [P, P, P, P, P],
        "cancel_which_one": [U, U, U, U, U],
        "cancel_within_term": [P, F, P, P, F],
        "change_address": [P, P, P, P, P],
        "change_flight_date": [P, P, P, F, U],
        "close_account": [P, P, P, P, P],
        "export_my_data": [P, P, P, P, P],
        "refund_damaged_item": [P, P, P, P, P],
        "refund_fare_difference": [P, P, P, P, P],
        "refund_late_parcel": [P, P, P, P, P],
        "refund_over_limit": [P, P, P, P, P],
    }


def test_unresolved_trials_have_the_next_actions_that_need_no_contract(desk: System) -> None:
    actions = Counter(
        action
        for trial in Trial.objects.filter(system=desk).select_related("disposition")
        for action in trial.disposition.next_actions
    )

    assert set(actions) == {
        "calibrate_judge",
        "clarify_contract",
        "grade",
        "repair_evidence",
        "rerun_trial",
    }


def test_the_gradings_come_to_what_the_known_answers_say_without_a_contract(desk: System) -> None:
    """Rows 7, 8 and 16 wait for a calibrated judge, row 11 for a vote, row 12 for a contract."""
    rows = [
        (
            trial.task.task_id,
            int(trial.label),
            trial.disposition.value,
            "+".join(trial.disposition.failed_classes or trial.disposition.next_actions),
        )
        for trial in Trial.objects.filter(system=desk, run__name="gradings").select_related(
            "task", "disposition"
        )
    ]

    assert sorted(rows) == [
        ("ask_about_someone_else", 1, P, ""),
        ("ask_about_someone_else", 2, F, "constraint"),
        ("cancel_subscription", 1, P, ""),
        ("cancel_subscription", 2, P, ""),
        ("cancel_subscription", 3, F, "outcome"),
        ("cancel_subscription", 4, F, "outcome+constraint"),
        ("cancel_subscription", 5, F, "constraint"),
        ("cancel_subscription", 6, U, "repair_evidence"),
        ("cancel_subscription", 7, U, "calibrate_judge"),
        ("cancel_subscription", 8, U, "calibrate_judge"),
        ("cancel_subscription", 9, F, "constraint"),
        ("cancel_subscription", 10, P, ""),
        ("cancel_subscription", 11, F, "outcome"),
        ("cancel_subscription", 12, H, "rerun_trial"),
        ("cancel_subscription", 13, U, "clarify_contract"),
        ("cancel_subscription", 14, U, "calibrate_judge"),
        ("cancel_subscription", 15, U, "calibrate_judge"),
        ("cancel_subscription", 16, U, "calibrate_judge"),
        ("cancel_which_one", 1, P, ""),
        ("cancel_which_one", 2, F, "outcome+constraint"),
        ("cancel_within_term", 1, P, ""),
        ("cancel_within_term", 2, F, "outcome"),
    ]


def test_an_outcome_that_depends_on_the_facts_passes_ten_of_ten_and_a_naive_one_six(
    desk: System,
) -> None:
    trials = Trial.objects.filter(system=desk, run__name="balance")
    given = given_verdicts({trial.pk for trial in trials})
    said = Counter((v.criterion, v.value.value) for row in given.values() for v in row)

    assert said["outcome", "pass"] == 10
    assert (said["refund-issued", "pass"], said["refund-issued", "fail"]) == (6, 4)
    assert dispositions(desk, "desk-1.0", "balance") == {"refund_fare_difference": [P] * 10}


def test_every_notice_occurs_and_each_flag_of_the_product(desk: System) -> None:
    trials = Trial.objects.filter(system=desk).select_related("trajectory")
    given = given_verdicts({trial.pk for trial in trials})
    codes = Counter(
        notice.code
        for trial in trials
        for notice in notices_on(
            NoticedTrial(
                TrialStatus(trial.status), trial.n_messages, len(trial.trajectory.outcomes)
            ),
            given.get(trial.pk, ()),
        )
    )

    assert codes == {
        NoticeCode.FAILED_CHECK_OUTSIDE_BASIS: 12,
        NoticeCode.CITED_STEP_MISSING: 2,
        NoticeCode.VERDICT_AGAINST_SCORE: 2,
        NoticeCode.PASS_ON_EMPTY_TRAJECTORY: 1,
        NoticeCode.ERROR_STATUS_WITH_PASS: 1,
        NoticeCode.IMPORTED_HUMAN_VERDICT: 23,
        NoticeCode.UNREADABLE_VERDICT: 2,
    }
    without_contract = set(NoticeCode) - {NoticeCode.UNKNOWN_CRITERION}
    assert set(codes) == without_contract
    raised = Counter(Flag.objects.filter(system=desk).values_list("code", flat=True))
    assert {code: n for code, n in codes.items() if code in raised} == raised


def test_a_pass_that_only_looks_right_is_not_noticed_and_one_is(desk: System) -> None:
    """Both read another customer's record; only the second release brings the check."""
    trials = Trial.objects.filter(system=desk, task__task_id="refund_late_parcel", label="5")
    noticed = {
        trial.release.name: sorted(trial.flags.values_list("code", flat=True)) for trial in trials
    }

    assert noticed == {"desk-1.0": [], "desk-1.1": ["failed-check-outside-basis"]}
    assert set(trials.values_list("disposition__value", flat=True)) == {"pass"}


def test_paths_of_named_tasks_at_several_levels(desk: System) -> None:
    counts = {
        (task, level.value): len(paths(desk, task, level))
        for task in ("export_my_data", "change_flight_date", "refund_late_parcel", "close_account")
        for level in (PathLevel.READS_ANY_ORDER, PathLevel.SEQUENCE, PathLevel.EXACT)
    }

    assert counts == {
        ("export_my_data", "reads_any_order"): 1,
        ("export_my_data", "sequence"): 3,
        ("export_my_data", "exact"): 5,
        ("change_flight_date", "reads_any_order"): 2,
        ("change_flight_date", "sequence"): 3,
        ("change_flight_date", "exact"): 7,
        ("refund_late_parcel", "reads_any_order"): 4,
        ("refund_late_parcel", "sequence"): 5,
        ("refund_late_parcel", "exact"): 8,
        ("close_account", "reads_any_order"): 2,
        ("close_account", "sequence"): 2,
        ("close_account", "exact"): 6,
    }


def test_the_second_release_keeps_loses_and_gains_paths(desk: System) -> None:
    found: dict[str, tuple[int, int, int]] = {}
    for task in passing_paths(desk, level=PathLevel.SEQUENCE, messages=False):
        seen = [{label.split(":")[0] for label in group} for group in task.groups]
        found[task.task_id] = (
            seen.count({"desk-1.0", "desk-1.1"}),
            seen.count({"desk-1.0"}),
            seen.count({"desk-1.1"}),
        )

    assert found == {
        "add_bags": (1, 1, 1),
        "ask_about_someone_else": (3, 0, 0),
        "cancel_subscription": (1, 2, 2),
        "cancel_which_one": (0, 1, 0),
        "cancel_within_term": (2, 2, 0),
        "change_address": (2, 0, 1),
        "change_flight_date": (1, 1, 1),
        "close_account": (2, 0, 0),
        "export_my_data": (3, 0, 0),
        "refund_damaged_item": (2, 0, 2),
        "refund_fare_difference": (1, 0, 0),
        "refund_late_parcel": (1, 2, 2),
        "refund_over_limit": (1, 2, 2),
    }


def test_most_tasks_cost_less_in_the_second_release_and_one_costs_more(desk: System) -> None:
    def median(release: str, task: str) -> float:
        costs = sorted(
            float(cost)
            for cost in Trial.objects.filter(
                system=desk, release__name=release, run__name="nightly", task__task_id=task
            ).values_list("cost_usd", flat=True)
            if cost is not None
        )
        return costs[len(costs) // 2]

    tasks = set(Trial.objects.filter(system=desk).values_list("task__task_id", flat=True))
    dearer = {task for task in tasks if median("desk-1.1", task) > median("desk-1.0", task)}

    assert len(tasks) == 13
    assert dearer == {"change_address"}
