from __future__ import annotations

from datetime import UTC, datetime

import pytest

from reviews.models import CalibrationItem, CalibrationSet
from reviews.services.calibration_sets import (
    SetWish,
    make_set,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
WISH = SetWish("First set", "The judge is new.", "outcome", None, n=3)


def test_a_random_set_holds_trials_in_a_drawn_order(cast: Cast) -> None:
    ingest(cast.system, [record("t1", n) for n in range(8)], by=cast.engineer)

    made = make_set(cast.system, WISH, by=cast.reviewer, now=NOW, seed=4)

    stored = CalibrationSet.objects.get(pk=made.pk)
    assert (stored.number, stored.name, stored.criterion.name, stored.criterion_digest) == (
        1,
        "First set",
        "outcome",
        None,
    )
    assert (stored.sampling, stored.seed, stored.strata, stored.is_imported) == (
        "random",
        4,
        None,
        False,
    )
    items = list(CalibrationItem.objects.filter(set=stored).order_by("position"))
    assert [(item.position, item.stratum, item.n_needed) for item in items] == [
        (1, "", 2),
        (2, "", 2),
        (3, "", 2),
    ]
