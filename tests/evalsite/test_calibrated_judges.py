"""A judge is held against people's labels, and its verdicts count by what comes of it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from evalsite.after_calibration import calibrations_and_decide
from evalsite.after_review import verdict_and_decide
from reviews.core.probes import ProbeKind
from reviews.models import Calibration, CalibrationSet
from tests.support.calibrated import (
    CONTRACT,
    RUBRIC,
    asked,
    judged_trials,
    labelled_set,
    read_of,
    said,
    twice,
    verdicts_alone,
)
from tests.support.cast import Cast
from tests.support.contracts import brought_into_effect
from tests.support.evidence import ingest, record
from tests.support.probes import batch_of, judged, probe_of
from tests.support.rules import in_force
from traces.core.records import VerdictValue
from traces.core.rule_changes import RuleChange
from traces.core.trajectory import ToolKind
from traces.models import System, TaskFigures, Trial, TrialDisposition

PEOPLE_SAY = ["pass"] * 30 + ["fail"] * 30


def dispositions(system: System) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What each trial comes to, by task and label."""
    rows = TrialDisposition.objects.filter(trial__system=system)
    return {
        f"{row.trial.task.task_id} {row.trial.label}": (row.value, tuple(row.next_actions))
        for row in rows.select_related("trial__task")
    }


def values(system: System) -> list[str]:
    return sorted(value for value, _ in dispositions(system).values())


def rows() -> list[tuple[str, str]]:
    found = Calibration.objects.order_by("pk")
    return list(found.values_list("grader_version__version", "status"))


def calibrated(cast: Cast, words: list[str] | None = None, **more: object) -> CalibrationSet:
    """Sixty trials that the judge and, blind, two people looked at; the calibration is read."""
    trials = judged_trials(cast, words or PEOPLE_SAY)
    digest = asked(cast)
    made = labelled_set(
        cast.system,
        trials,
        twice(PEOPLE_SAY),
        people=[cast.reviewer, cast.second_reviewer],
        digest=digest,
        by=cast.reviewer,
        now=timezone.now(),
        **more,
    )
    read_of(made, now=timezone.now())
    return made


@pytest.mark.django_db
def test_labels_calibrate_a_judge_and_its_verdicts_begin_to_count(cast: Cast) -> None:
    trials = judged_trials(cast, PEOPLE_SAY)
    digest = asked(cast)
    before = dispositions(cast.system)
    made = labelled_set(
        cast.system,
        trials,
        twice(PEOPLE_SAY),
        people=[cast.reviewer, cast.second_reviewer],
        digest=digest,
        by=cast.reviewer,
        now=timezone.now(),
    )

    (row,) = read_of(made, now=timezone.now())

    assert set(before.values()) == {("unresolved", ("calibrate_judge",))} == {before["t1 0"]}
    assert (row.status, row.valid_until) == ("calibrated", made.completed_at + timedelta(days=90))
    assert row.why == (
        "False passes are bounded at 9.5 % (limit 10.0 %), false failures at 9.5 % "
        "(limit 20.0 %), over 60 items labelled by 2 people."
    )
    assert values(cast.system) == ["fail"] * 30 + ["pass"] * 30
    assert dispositions(cast.system)["t1 0"] == ("pass", ())
    figures = TaskFigures.objects.get(task=trials[0].task, release=None)
    assert (figures.n_pass, figures.n_fail, figures.n_unresolved) == (30, 30, 0)
    assert read_of(made, now=timezone.now()) == []


@pytest.mark.django_db
def test_a_judge_that_passes_what_people_fail_stays_out(cast: Cast) -> None:
    made = calibrated(cast, ["pass"] * 36 + ["fail"] * 24)

    assert rows() == [("m1/p1", "failed")]
    assert set(values(cast.system)) == {"unresolved"}
    wrong = Calibration.objects.get().figures["held"]["false_pass"]
    items = made.items.order_by("position")[30:36]
    assert sorted(wrong["items"]) == sorted(str(item.uuid) for item in items)


@pytest.mark.django_db
def test_a_new_version_makes_the_old_one_stale_and_its_trials_unresolved(cast: Cast) -> None:
    calibrated(cast)
    # On a trial of another release, while all that the earlier version decided is of the first.
    ingest(cast.system, [record("t1", 90, verdicts=[said("pass", "m1/p2")])], release="2.0")

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "stale")]
    stale = Calibration.objects.latest("pk")
    assert stale.why == "A newer version of this judge has given verdicts on the criterion."
    assert set(dispositions(cast.system).values()) == {("unresolved", ("calibrate_judge",))}
    figures = TaskFigures.objects.get(task__task_id="t1", release=None)
    assert (figures.n_pass, figures.n_unresolved) == (0, 61)


@pytest.mark.django_db
def test_the_new_version_is_calibrated_once_it_has_looked_at_the_labelled_trials(
    cast: Cast,
) -> None:
    calibrated(cast)

    ingest(cast.system, verdicts_alone(PEOPLE_SAY, version="m1/p2"))

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "stale"), ("m1/p2", "calibrated")]
    assert values(cast.system) == ["fail"] * 30 + ["pass"] * 30


@pytest.mark.django_db
def test_a_verdict_of_the_old_version_does_not_make_the_new_one_stale(cast: Cast) -> None:
    calibrated(cast)
    ingest(cast.system, verdicts_alone(PEOPLE_SAY, version="m1/p2"))
    ingest(cast.system, [record("t1", 95, verdicts=[said("pass", "m1/p1")])])

    assert rows()[-1] == ("m1/p2", "calibrated")
    assert dispositions(cast.system)["t1 95"] == ("unresolved", ("calibrate_judge",))


@pytest.mark.django_db
def test_labels_may_come_before_the_judge(cast: Cast) -> None:
    ingest(cast.system, [record("t1", number, verdicts=[]) for number in range(60)])
    digest = asked(cast)
    trials = sorted(Trial.objects.filter(system=cast.system), key=lambda one: int(one.label))
    made = labelled_set(
        cast.system,
        trials,
        twice(PEOPLE_SAY),
        people=[cast.reviewer, cast.second_reviewer],
        digest=digest,
        by=cast.reviewer,
        now=timezone.now(),
    )
    assert read_of(made) == []

    ingest(cast.system, verdicts_alone(PEOPLE_SAY))

    assert rows() == [("m1/p1", "calibrated")]
    assert values(cast.system) == ["fail"] * 30 + ["pass"] * 30


@pytest.mark.django_db
def test_a_judge_that_errs_on_later_labelled_words_is_failed_by_them(cast: Cast) -> None:
    calibrated(cast)
    turned = dict.fromkeys(range(30, 40), "pass")  # a flip is wrong, whatever people say
    ingest(cast.system, verdicts_alone(turned))

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "failed")]
    assert Calibration.objects.latest("pk").figures["flips"] == 10


@pytest.mark.django_db
def test_a_date_that_passes_changes_no_earlier_decision(cast: Cast) -> None:
    made = calibrated(cast, completed_at=timezone.now() - timedelta(days=90, seconds=-20))
    before = dispositions(cast.system)
    row = Calibration.objects.get()
    passed = row.valid_until - timedelta(days=1)
    # The same calibration, its date already behind us.
    Calibration.objects.create(
        system=row.system,
        grader_version=row.grader_version,
        criterion=row.criterion,
        criterion_digest=row.criterion_digest,
        rubric_version=row.rubric_version,
        status=row.status,
        why=row.why,
        figures=row.figures,
        read_at=row.read_at,
        valid_until=timezone.now(),
    )
    assert passed < timezone.now()

    call_command("rebuild", "--system", cast.system.slug)
    assert dispositions(cast.system) == before

    ingest(cast.system, [record("t1", 95, verdicts=[said("pass")])])

    assert dispositions(cast.system) == {**before, "t1 95": ("unresolved", ("calibrate_judge",))}
    assert made.completed_at is not None


@pytest.mark.django_db
def test_reading_after_the_date_keeps_what_was_decided_until_then(cast: Cast) -> None:
    made = calibrated(cast, completed_at=timezone.now() - timedelta(days=100))

    assert rows() == [("m1/p1", "calibrated")]
    assert Calibration.objects.get().valid_until < timezone.now()
    assert set(values(cast.system)) == {"unresolved"}
    assert read_of(made, now=timezone.now()) == []


@pytest.mark.django_db
def test_a_criterion_that_is_asked_otherwise_makes_it_stale(cast: Cast) -> None:
    made = calibrated(cast)
    asked(cast, version="2")

    (row,) = read_of(made)

    assert (row.status, row.why) == (
        "stale",
        "No contract in effect asks the criterion as these labels answer it.",
    )
    assert set(values(cast.system)) == {"unresolved"}


@pytest.mark.django_db
def test_another_version_of_the_rubric_is_another_calibration(cast: Cast) -> None:
    made = calibrated(cast)
    ingest(cast.system, [record("t2", 0, verdicts=[])])
    asked(cast, task="t2", version="2")

    # A newer judge that answers the second version says nothing of the first.
    later = said("pass", "m1/p2", rubric_version="2")
    ingest(
        cast.system,
        [{"record": "verdicts", "task_id": "t2", "trial": 0, "verdicts": [later]}],
    )

    assert read_of(made) == []
    assert rows() == [("m1/p1", "calibrated")]
    assert dispositions(cast.system)["t2 0"] == ("unresolved", ("calibrate_judge",))


@pytest.mark.django_db
def test_rebuilding_gives_the_same_dispositions(cast: Cast) -> None:
    calibrated(cast)
    before = dispositions(cast.system)

    call_command("rebuild", "--system", cast.system.slug)

    assert dispositions(cast.system) == before
    assert values(cast.system) == ["fail"] * 30 + ["pass"] * 30


@pytest.mark.django_db
def test_calibrations_of_one_system_say_nothing_of_another(cast: Cast) -> None:
    calibrated(cast)
    ingest(cast.other_system, [record("t1", 0, verdicts=[said("pass")])])

    assert dispositions(cast.other_system) == {"t1 0": ("unresolved", ("calibrate_judge",))}
    assert rows() == [("m1/p1", "calibrated")]


@pytest.mark.django_db
@pytest.mark.parametrize("n", [1, 40])
def test_an_upload_asks_as_often_however_many_verdicts_it_brings(cast: Cast, n: int) -> None:
    ingest(cast.system, [record("t0", 0, verdicts=[said("pass")])])
    records = [record("t1", number, verdicts=[said("pass")]) for number in range(n)]
    with CaptureQueriesContext(connection) as plain:
        ingest(cast.system, records)
    of_calibrations = [q for q in plain.captured_queries if "reviews_calibrationset" in q["sql"]]

    assert len(of_calibrations) == 2  # whether there are any: before the locks, and under them


@pytest.mark.django_db(transaction=True)
def test_two_who_read_at_once_add_one_row(cast: Cast) -> None:
    made = calibrated(cast)
    ingest(cast.system, [record("t1", number, verdicts=[said("pass")]) for number in range(70, 75)])
    more = labelled_set(
        cast.system,
        list(Trial.objects.filter(label__in=[str(n) for n in range(70, 75)])),
        twice(["pass"] * 5),
        people=[cast.reviewer, cast.second_reviewer],
        digest=made.criterion_digest,
        by=cast.reviewer,
        now=timezone.now(),
    )
    added: list[int] = []

    def read() -> None:
        try:
            found = calibrations_and_decide(
                cast.system, more.criterion, more.criterion_digest, now=timezone.now()
            )
            added.append(len(found))
        finally:
            connection.close()

    threads = [threading.Thread(target=read) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert sorted(added) == [0, 0, 0, 1]
    assert rows() == [("m1/p1", "calibrated")] * 2


@pytest.mark.django_db
def test_a_contract_that_takes_effect_makes_it_stale_and_the_earlier_one_restores_it(
    cast: Cast, client: Client
) -> None:
    calibrated(cast)
    before = dispositions(cast.system)

    brought_into_effect(client, cast, [CONTRACT.format(task="t1", version="2")])

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "stale")]
    assert set(values(cast.system)) == {"unresolved"}

    brought_into_effect(client, cast, [CONTRACT.format(task="t1", version="1")])

    assert rows()[2:] == [("m1/p1", "calibrated")]
    assert dispositions(cast.system) == before


@pytest.mark.django_db
def test_a_probe_that_misleads_it_makes_it_failed(cast: Cast) -> None:
    made = calibrated(cast)
    batch = batch_of(cast, criterion=RUBRIC, digest=made.criterion_digest)
    told = {"judge": "judge", "version": "m1/p1", "criterion": RUBRIC}

    ingest(cast.system, [judged(probe_of(batch, ProbeKind.CONTROL), "pass", **told)], release=None)
    assert values(cast.system) == ["fail"] * 30 + ["pass"] * 30

    ingest(
        cast.system, [judged(probe_of(batch, ProbeKind.INJECTION), "pass", **told)], release=None
    )

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "failed")]
    assert Calibration.objects.latest("pk").why == "1 probe came out as it must not."
    assert set(dispositions(cast.system).values()) == {("unresolved", ("calibrate_judge",))}
    figures = TaskFigures.objects.get(task__task_id="t1", release=None)
    assert (figures.n_run, figures.n_pass, figures.n_unresolved) == (60, 0, 60)


@pytest.mark.django_db
@pytest.mark.parametrize("kind", [ProbeKind.PADDED, ProbeKind.INJECTION_FAIL])
def test_a_padded_copy_that_flips_makes_it_failed(cast: Cast, kind: ProbeKind) -> None:
    made = calibrated(cast)
    in_force(cast, RuleChange(kinds=(("get_order", ToolKind.READ),)))
    batch = batch_of(cast, criterion=RUBRIC, digest=made.criterion_digest)
    told = {"judge": "judge", "version": "m1/p1", "criterion": RUBRIC}

    ingest(cast.system, [judged(probe_of(batch, kind), "fail", **told)], release=None)

    assert rows() == [("m1/p1", "calibrated"), ("m1/p1", "failed")]
    assert set(values(cast.system)) == {"unresolved"}


@pytest.mark.django_db(transaction=True)
def test_uploads_readings_and_verdicts_at_once_end_as_a_rebuild_would(cast: Cast) -> None:
    made = calibrated(cast)
    ingest(
        cast.system,
        [record("t1", number, verdicts=[said("pass")]) for number in range(100, 110)],
        release="2.0",
    )
    theirs = list(Trial.objects.filter(release__name="2.0").order_by("pk"))
    failures: list[BaseException] = []

    def upload() -> None:
        for number in range(4):
            version = f"m1/p{2 + number % 2}"
            ingest(cast.system, verdicts_alone(PEOPLE_SAY[:8], version=version), release="1.0")
            ingest(
                cast.system,
                [record("t1", 200 + number, verdicts=[said("pass", version)])],
                release=f"3.{number}",
            )

    def read() -> None:
        for _ in range(6):
            calibrations_and_decide(
                cast.system, made.criterion, made.criterion_digest, now=timezone.now()
            )

    def judge() -> None:
        for trial in theirs:
            verdict_and_decide(
                trial,
                criterion=RUBRIC,
                value=VerdictValue.PASS,
                reason="It does.",
                steps=(),
                by=cast.reviewer,
                now=timezone.now(),
            )

    def kept(act: Callable[[], None]) -> None:
        try:
            act()
        except BaseException as error:
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=kept, args=(act,)) for act in (upload, read, judge, read)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    assert failures == []
    assert rows()[:2] == [("m1/p1", "calibrated"), ("m1/p1", "stale")]
    before = dispositions(cast.system)
    by_person = [before[f"t1 {number}"][0] for number in range(100, 110)]
    assert by_person == ["pass"] * 10
    call_command("rebuild", "--system", cast.system.slug)
    assert dispositions(cast.system) == before
