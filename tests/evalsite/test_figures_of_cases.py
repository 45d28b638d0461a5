"""Odd evidence, from ingest to the figures of the overview. Files: tests/data/cases."""

from __future__ import annotations

import io
import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from django.core.management import call_command
from django.utils import timezone

from evalsite.projections import decide_trials
from evalsite.refund_desk import releases
from evalsite.refund_desk.contract_texts import contract_texts
from reviews.core.estimators import Counts, Range, percent
from reviews.selectors.overview import OverviewFilter, SystemOverview, system_overview
from tests.support.cast import Cast
from tests.support.evidence import ingest
from tests.support.in_effect import contract_in_effect
from traces.models import Trial
from traces.selectors.systems import system_named

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).resolve().parents[1] / "data" / "cases"


def figures_of(file: str, k: int | None = None) -> SystemOverview:
    call_command("ingest", str(FOLDER / file), "--system", "Case", "--json", stdout=io.StringIO())
    system = system_named("case")
    assert system is not None
    return system_overview(system, OverviewFilter(k=k))


def test_errored_trials_stay_in_the_denominator() -> None:
    outcome = figures_of("errored-trials-denominator--2pass-1fail-2error.jsonl").figures.outcome
    assert outcome == Counts(2, 3, 5)
    assert outcome.range == Range(Fraction(2, 5), Fraction(4, 5))


def test_one_survivor_of_eight_never_reads_as_all() -> None:
    found = figures_of("errored-trials-denominator--one-survivor.json")
    assert found.figures.outcome == Counts(1, 1, 8)
    assert found.figures.outcome.range == Range(Fraction(1, 8), Fraction(1))
    assert (found.n_tasks, found.figures.n_error) == (2, 7)
    assert found.figures.outcome_hat.mean.left_out == ("t2",)


def test_an_average_of_averages_is_never_taken_for_the_average() -> None:
    found = figures_of("average-of-averages--uneven-groups.jsonl", k=1)
    assert found.measures.cost.mean == Decimal("0.19")
    assert found.figures.outcome.rate == Fraction(1, 10)
    assert found.figures.outcome_hat.value == Fraction(1, 2)


def test_ten_dimes_are_one_dollar() -> None:
    assert figures_of("decimal-cost--ten-dimes.jsonl").measures.cost.total == Decimal(1)


def test_tasks_with_too_few_trials_have_no_pass_hat_k_and_are_named() -> None:
    hat = figures_of("pass-k-small-n--uneven.jsonl", k=4).figures.outcome_hat
    assert (hat.value, hat.mean.n_tasks) == (Fraction(1), 1)
    assert hat.mean.left_out == ("loan-k1z", "loan-k2")
    assert hat.range is None


def test_two_halves_are_no_pass() -> None:
    outcome = figures_of("fractional-reward--halves.json").figures.outcome
    assert (outcome.passed, outcome.run) == (2, 4)


@pytest.mark.parametrize(
    ("file", "rate", "text"),
    [
        pytest.param(
            "threshold-rounding--exactly-at.jsonl", Fraction(19, 20), "95.0 %", id="exactly-at"
        ),
        pytest.param(
            "threshold-rounding--rounds-up.jsonl", Fraction(17, 18), "94.4 %", id="rounds-up"
        ),
    ],
)
def test_a_rate_is_a_fraction_and_reads_as_no_more(file: str, rate: Fraction, text: str) -> None:
    found = figures_of(file).figures.outcome.rate
    assert found == rate
    assert percent(found) == text


def test_five_refunds_decided_by_their_contract(cast: Cast) -> None:
    desk = next(each for each in releases() if each.name == "desk-1.0")
    records = [json.loads(line) for line in desk.lines]
    ours = [each for each in records if each["task_id"] == "refund_damaged_item"]
    ingest(cast.system, [each for each in ours if not each.get("fault")], release="desk-1.0")
    contract_in_effect(cast.system, contract_texts()["refund_damaged_item"], by=cast.engineer)
    decide_trials(Trial.objects.values_list("pk", flat=True), now=timezone.now())
    found = system_overview(cast.system, OverviewFilter())
    figures = found.figures
    assert figures.outcome == Counts(5, 5, 5)
    assert figures.clean == Counts(2, 5, 5)
    assert (figures.outcome_hat.k, figures.outcome_hat.value, figures.clean_hat.value) == (
        5,
        Fraction(1),
        Fraction(0),
    )
    assert figures.n_only_outcome == figures.failed_constraint == 3
    failed = {each.criterion: each.counts.failed for each in found.requirements}
    assert failed["identity"] == 2
    assert failed["outcome"] == 0
    harms = {each.harm: each for each in found.harms}
    assert (harms["data"].n_attempted, harms["data"].n_known) == (1, 5)
    assert found.has_rules
    assert found.n_contract_tasks == 1
