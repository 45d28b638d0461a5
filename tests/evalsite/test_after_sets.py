from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from evalsite.after_sets import vouch_and_decide, withdraw_and_complete
from reviews.core.label_files import FileLabel, ReadLabels, TrialName
from reviews.models import Calibration, CalibrationSet, Sampling
from reviews.services.calibration_sets import CalibrationSetError
from reviews.services.label_imports import ImportWish, import_labels
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.sets import NOW, a_set, items, judged, labelled, stored
from traces.core.records import VerdictValue
from traces.models import TrialDisposition

pytestmark = pytest.mark.django_db

PASS, FAIL = VerdictValue.PASS, VerdictValue.FAIL
N_FAILING, N_PASSING = 30, 30
WISH = ImportWish(
    name="Two raters",
    criterion="outcome",
    criterion_digest=None,
    sampling=Sampling.RANDOM,
    source="A paper.",
    licence="MIT",
    reason="A second opinion.",
)


def word_of(trial: int) -> VerdictValue:
    return FAIL if trial < N_FAILING else PASS


def judged_trials(cast: Cast) -> None:
    """Trials on whose outcome a judge alone has spoken."""
    rows = [
        record("t1", n, calls=(), verdicts=[judged(word_of(n).value)])
        for n in range(N_FAILING + N_PASSING)
    ]
    ingest(cast.system, rows, by=cast.engineer)


def brought(cast: Cast, *people: str) -> CalibrationSet:
    labels = tuple(
        FileLabel(n + 1, TrialName(task_id="t1", trial=str(n)), who, word_of(n))
        for n in range(N_FAILING + N_PASSING)
        for who in people
    )
    found = import_labels(cast.system, WISH, ReadLabels(labels), by=cast.engineer, now=NOW)
    assert found.calibration_set is not None
    return found.calibration_set


def dispositions() -> dict[str, int]:
    values = list(TrialDisposition.objects.values_list("value", flat=True))
    return {value: values.count(value) for value in sorted(set(values))}


def statuses() -> list[Any]:
    return list(Calibration.objects.order_by("pk").values_list("status", flat=True))


def test_a_judge_counts_once_somebody_vouches_for_the_labels(cast: Cast) -> None:
    judged_trials(cast)
    made = brought(cast, "rater_1", "rater_2")
    assert (statuses(), dispositions()) == ([], {"unresolved": 60})

    vouch_and_decide(made, reason="I read the paper.", by=cast.reviewer, now=NOW)

    row = Calibration.objects.get()
    assert (row.status, row.by, row.valid_until) == (
        "calibrated",
        cast.reviewer,
        NOW + timedelta(days=90),
    )
    assert dispositions() == {"fail": 30, "pass": 30}


def test_labels_of_one_person_calibrate_nothing(cast: Cast) -> None:
    judged_trials(cast)

    vouch_and_decide(brought(cast, "rater_1"), reason="I read it.", by=cast.reviewer, now=NOW)

    assert (statuses(), dispositions()) == (["exploratory"], {"unresolved": 60})


def test_a_vouch_that_is_refused_changes_nothing(cast: Cast) -> None:
    judged_trials(cast)
    made = brought(cast, "rater_1", "rater_2")

    with pytest.raises(CalibrationSetError):
        vouch_and_decide(made, reason="So.", by=cast.engineer, now=NOW)

    assert (statuses(), dispositions()) == ([], {"unresolved": 60})


def test_the_last_item_that_is_withdrawn_completes_the_set(cast: Cast) -> None:
    stored(cast, 2)
    made = a_set(cast)
    one, other = items(made)
    labelled(one, (cast.reviewer, "pass"), (cast.second_reviewer, "pass"))

    assert withdraw_and_complete(other, reason="Cut.", by=cast.reviewer, now=NOW)

    made.refresh_from_db()
    assert (made.completed_at, statuses()) == (NOW, ["exploratory"])


def test_an_item_that_is_withdrawn_before_the_end_reads_nothing(cast: Cast) -> None:
    stored(cast, 2)
    one, _ = items(a_set(cast))

    assert not withdraw_and_complete(one, reason="Cut.", by=cast.reviewer, now=NOW)

    assert statuses() == []
