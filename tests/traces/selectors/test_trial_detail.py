"""One page of a long transcript."""

from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Trial
from traces.selectors.trial_detail import page_places, transcript_page

pytestmark = pytest.mark.django_db


def n_queries_of_pages(trial: Trial) -> list[int]:
    counts = []
    for at in range(len(page_places(trial.pk))):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            transcript_page(trial.pk, at)
        counts.append(len(queries))
    return counts


@pytest.mark.parametrize("n_before", [0, 1])
def test_a_page_that_begins_with_a_result_reads_no_more_than_its_neighbours(
    n_before: int, cast: Cast
) -> None:
    calls = [("get_order", {"order": f"A-{number}"}) for number in range(600)]
    trial_record = record("t1", 0, calls=calls)
    trial_record["messages"][:0] = [{"role": "system", "content": "rules"}] * n_before
    ingest(cast.system, [trial_record])
    trial = Trial.objects.get()

    counts = n_queries_of_pages(trial)

    assert len(counts) > 3
    assert set(counts) == {1}


def test_a_result_far_from_its_call_is_found(cast: Cast) -> None:
    calls = [("get_order", {"order": f"A-{number}"}) for number in range(600)]
    trial_record: dict[str, Any] = record("t1", 0, calls=calls)
    messages = trial_record["messages"]
    messages.append(messages.pop(2))
    ingest(cast.system, [trial_record])
    trial = Trial.objects.get()

    page = transcript_page(trial.pk, 0)

    far = page.steps[1].calls[0].result_step
    assert far == len(messages)
    assert far in page.nearby
