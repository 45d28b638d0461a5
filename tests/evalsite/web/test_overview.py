from __future__ import annotations

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.figures import decide
from tests.support.visits import root, visit

pytestmark = pytest.mark.django_db


def test_the_outcome_stands_beside_the_way_to_it(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", n) for n in range(5)])
    for n in range(5):
        decide(cast.system, "t1", n, clean="pass" if n < 2 else "fail")
    page = visit(client, cast.viewer, f"{root(cast.system)}overview/")
    assert page.title == "Airline, release 1.0"
    assert page.gap.sentence == (
        "5 of 5 trials reached the outcome. Whether by the rules, nobody can tell: no rule is "
        "checked."
    )
