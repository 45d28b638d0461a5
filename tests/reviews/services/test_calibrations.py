"""Calibrations are read from labels and kept where status or figures changed."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.utils import ProgrammingError
from django.test.utils import CaptureQueriesContext

from evalsite.after_calibration import (
    all_evidence_locked,
    calibrations_and_decide,
    judged_trials,
    releases_of_judges,
)
from reviews.core.calibration import Needs, parse_figures, parse_needs
from reviews.models import Calibration, CalibrationSet, CalibrationStatus, Criterion
from reviews.selectors.calibration_items import CriterionKey
from reviews.services.calibrations import read_calibrations, readings_of
from tests.support.calibrated import (
    NOW,
    RUBRIC,
    asked,
    labelled_set,
    said,
    twice,
    verdicts_alone,
)
from tests.support.calibrated import judged_trials as trials_judged
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Trial

pytestmark = pytest.mark.django_db

PEOPLE_SAY = ["pass"] * 30 + ["fail"] * 30


@pytest.fixture
def made(cast: Cast) -> CalibrationSet:
    """Sixty items on which a judge agrees with two people, in a system without contracts."""
    trials = trials_judged(cast, PEOPLE_SAY)
    return labelled_set(
        cast.system,
        trials,
        twice(PEOPLE_SAY),
        people=[cast.reviewer, cast.second_reviewer],
        by=cast.reviewer,
    )


def read(made: CalibrationSet, **more: object) -> list[Calibration]:
    return read_calibrations(
        made.system,
        made.criterion,
        made.criterion_digest,
        **{"now": NOW, **more},  # type: ignore[arg-type]
    )


def test_a_row_holds_what_it_was_read_from(cast: Cast, made: CalibrationSet) -> None:
    (row,) = read(made, by=cast.reviewer)

    stored = Calibration.objects.get()
    figures = parse_figures(stored.figures)
    assert stored == row
    assert (stored.system, stored.criterion, stored.criterion_digest) == (
        cast.system,
        made.criterion,
        None,
    )
    assert (stored.grader_version.grader.name, stored.grader_version.version) == ("judge", "m1/p1")
    assert (stored.status, stored.read_at, stored.by) == ("calibrated", NOW, cast.reviewer)
    assert stored.valid_until == NOW + timedelta(days=90)
    assert (figures.n_items, figures.n_labels, figures.n_people) == (60, 120, 2)
    assert figures.held.table.counts == ((30, 0), (0, 30))
    assert (figures.oldest_label, figures.newest_label) == (NOW, NOW)
    assert parse_needs(stored.figures) == Needs()


def test_the_same_again_adds_nothing(made: CalibrationSet) -> None:
    read(made)

    assert read(made, now=NOW + timedelta(days=30)) == []
    assert Calibration.objects.count() == 1


def test_other_figures_add_a_row_though_the_status_is_the_same(
    cast: Cast, made: CalibrationSet
) -> None:
    read(made)
    more = trials_judged(cast, ["pass"] * 2, task="t2")
    labelled_set(
        cast.system,
        more,
        twice(["pass"] * 2),
        people=[cast.reviewer, cast.second_reviewer],
        by=cast.reviewer,
        now=NOW + timedelta(days=5),
    )

    (reading,) = readings_of(
        cast.system, CriterionKey(made.criterion, None), now=NOW + timedelta(days=5)
    )

    assert reading.earlier is not None
    assert (reading.earlier.status, reading.row.status) == ("calibrated", "calibrated")
    assert reading.row.valid_until == NOW + timedelta(days=95)
    assert reading.is_other_vote


def test_a_change_between_states_that_do_not_count_decides_nothing(cast: Cast) -> None:
    trials = trials_judged(cast, ["pass"])
    made = labelled_set(
        cast.system, trials, [("pass", "pass")], people=["anna", "ben"], by=cast.reviewer
    )
    ingest(cast.system, verdicts_alone(["pass"], version="m1/p2"))
    key = CriterionKey(made.criterion, None)

    found = readings_of(cast.system, key, now=NOW)

    assert [one.row.status for one in found] == []  # the upload has read them
    rows = Calibration.objects.order_by("pk").values_list("grader_version__version", "status")
    assert list(rows) == [("m1/p1", "stale"), ("m1/p2", "exploratory")]


def test_only_changes_of_what_counts_name_trials(cast: Cast, made: CalibrationSet) -> None:
    found = readings_of(cast.system, CriterionKey(made.criterion, None), now=NOW)

    assert judged_trials(found) == list(Trial.objects.order_by("pk").values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as seen:
        assert judged_trials([]) == []
    assert len(seen.captured_queries) == 0


def test_without_labels_nothing_is_said_of_a_judge(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[said("pass")])])
    criterion = Criterion.objects.get(name=RUBRIC)

    assert read_calibrations(cast.system, criterion, None, now=NOW) == []
    assert list(releases_of_judges(cast.system)) == []


def test_a_judge_whose_labels_are_gone_is_read_all_the_same(
    cast: Cast, made: CalibrationSet
) -> None:
    read(made)
    made.items.update(withdrawn_at=NOW)

    (row,) = read(made)

    assert (row.status, row.why, row.valid_until) == (
        "exploratory",
        "Too few to tell: no set of labels that counts is complete.",
        None,
    )
    assert list(releases_of_judges(cast.system)) == list(cast.system.releases.all())


@pytest.mark.parametrize("n", [1, 3])
def test_as_many_queries_however_many_judges(cast: Cast, made: CalibrationSet, n: int) -> None:
    for number in range(n):
        given = {**said("pass"), "grader": f"judge {number}"}
        ingest(
            cast.system,
            [{"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [given]}],
        )
    key = CriterionKey(made.criterion, None)
    with CaptureQueriesContext(connection) as seen:
        readings_of(cast.system, key, now=NOW)
    of_probes = [q for q in seen.captured_queries if "reviews_probebatch b" in q["sql"]]

    # Items, labels, words, rows, probed, later versions, asked; rows are added in one.
    assert len(of_probes) == n + 1  # one a judge
    assert len(seen.captured_queries) - len(of_probes) == 7


def test_a_reading_is_never_changed(made: CalibrationSet) -> None:
    read(made)

    for act in (
        lambda: Calibration.objects.update(status="failed"),
        lambda: Calibration.objects.all().delete(),
    ):
        with pytest.raises(ProgrammingError, match="calibration"), transaction.atomic():
            act()


def test_a_calibrated_judge_has_a_date(made: CalibrationSet) -> None:
    (row,) = read(made)
    row.pk, row.valid_until = None, None

    with pytest.raises(IntegrityError, match="calibration_has_date"), transaction.atomic():
        row.save(force_insert=True)


def test_the_lock_is_that_of_all_releases(cast: Cast, made: CalibrationSet) -> None:
    ingest(cast.system, [record("t9", 0)], release="2.0")
    with CaptureQueriesContext(connection) as seen, all_evidence_locked(cast.system):
        pass
    locked = [q["sql"] for q in seen.captured_queries if "FOR NO KEY UPDATE" in q["sql"]]

    assert len(locked) == 1
    assert all(str(release.pk) in locked[0] for release in cast.system.releases.all())


def test_a_digest_names_its_own_calibration(cast: Cast, made: CalibrationSet) -> None:
    calibrations_and_decide(cast.system, made.criterion, None, now=NOW)
    digest = asked(cast)

    assert calibrations_and_decide(cast.system, made.criterion, digest, now=NOW) == []
    (row,) = calibrations_and_decide(cast.system, made.criterion, None, now=NOW)
    assert row.status == CalibrationStatus.STALE
