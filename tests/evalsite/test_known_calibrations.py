"""Figures of real judges against real labels, as scikit-learn and their authors give them.

The data is public: its source and licence stand beside it under tests/data.
"""

from __future__ import annotations

import csv
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

import pytest
from django.utils import timezone
from scipy.stats import binomtest
from sklearn.metrics import accuracy_score, cohen_kappa_score, confusion_matrix

from evalsite.after_calibration import calibrations_and_decide
from reviews.core.agreement import Kappa
from reviews.core.calibration import (
    CalibrationFigures,
    ErrorRate,
    HeldAgainst,
    figures_of,
    parse_figures,
)
from reviews.core.label_files import read_labels
from reviews.models import Calibration, CalibrationSet, Sampling, Verdict
from reviews.selectors.calibration_items import (
    CriterionKey,
    exploratory_items,
    judge_words,
    labelled_items,
)
from reviews.services.calibration_sets import vouch_for_set
from reviews.services.label_imports import ImportWish, import_labels
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from traces.models import Task

pytestmark = pytest.mark.django_db

DATA = Path(__file__).parents[1] / "data"
CRITERION = "task success"
WORDS = {"success": "pass", "failure": "fail"}  # what the benchmark's judges were asked for


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that judges and people looked at."""

    name: str
    judges: Mapping[str, str]  # the word of each, as the product is given it
    labels: Mapping[str, str]
    family: str = ""


def live_mcp_bench() -> list[Item]:
    lines = (DATA / "17_livemcpbench/human_and_judges.jsonl").read_text().splitlines()
    return [
        Item(
            row["task_id"],
            # Some put their whole answer in place of a word: it stays what it is, an error.
            {name: WORDS.get(word, word) for name, word in row["judges"].items()},
            {"annotator": WORDS[row["human"]]},
            row["category"],
        )
        for row in map(json.loads, lines)
    ]


def two_raters() -> list[Item]:
    """Findings of a judge, each its own item: it said that there is one, and people looked."""
    words = {"confirmed": "pass", "rejected": "fail"}
    with (DATA / "05_tau2_human_review/judge_findings_two_raters.csv").open() as file:
        return [
            Item(
                row["finding_id"],
                {"finder": "pass"},
                {name: words[row[name]] for name in ("rater_1", "rater_2")},
                row["category"],
            )
            for row in csv.DictReader(file)
        ]


def ragas() -> list[Item]:
    """Verdicts that a person accepted or rejected, which says the other word of the two."""
    rows = json.loads((DATA / "26_ragas_judge_review/annotated_data.json").read_text())
    words = ("fail", "pass")
    return [
        Item(
            f"item {number:02}",
            {"critic": words[row["metric_output"]]},
            {"annotator": words[row["metric_output"] ^ (not row["is_accepted"])]},
        )
        for number, row in enumerate(rows["helpfulness"])
    ]


def load(cast: Cast, items: Iterable[Item]) -> CalibrationSet:
    """Trials with the judges' verdicts by upload, and the people's labels by import."""
    listed = list(items)
    records = [
        record(
            item.name,
            0,
            verdicts=[
                verdict(word, criterion=CRITERION, grader=name, kind="model", grader_version="1")
                for name, word in item.judges.items()
            ],
        )
        for item in listed
    ]
    job = ingest(cast.system, records)
    assert (job.n_stored, job.n_refused) == (len(listed), 0)
    for item in listed:
        Task.objects.filter(system=cast.system, task_id=item.name).update(family=item.family)
    lines = [
        {"task_id": item.name, "trial": "0", "labeller": who, "value": word}
        for item in listed
        for who, word in item.labels.items()
    ]
    wish = ImportWish(
        name="Published labels",
        criterion=CRITERION,
        criterion_digest=None,
        sampling=Sampling.RANDOM,
        source="tests/data",
        licence="see there",
        reason="To compare.",
    )
    body = "".join(json.dumps(line) + "\n" for line in lines).encode()
    done = import_labels(cast.system, wish, read_labels(body), by=cast.reviewer, now=timezone.now())
    assert (done.n_labels, done.refused) == (len(lines), ())
    assert done.calibration_set is not None
    return done.calibration_set


def calibrations(cast: Cast, made: CalibrationSet) -> dict[str, Calibration]:
    """The rows by judge that are read once another reviewer vouches for the labels."""
    key = (made.criterion, made.criterion_digest)
    assert calibrations_and_decide(made.system, *key, now=timezone.now()) == []
    vouch_for_set(
        made, reason="Compared with the source.", by=cast.second_reviewer, now=timezone.now()
    )
    rows = calibrations_and_decide(made.system, *key, now=timezone.now())
    return {row.grader_version.grader.name: row for row in rows}


def check(held: HeldAgainst, people: list[str], judge: list[str]) -> None:
    """That the product's figures are those of scikit-learn and scipy on the same words."""
    (true_pass, false_fail), (false_pass, true_fail) = confusion_matrix(
        people, judge, labels=["pass", "fail"]
    ).tolist()
    assert held.table.counts == ((true_pass, false_fail), (false_pass, true_fail))
    assert held.random == held.table
    assert _rate(held.false_pass) == (false_pass, false_pass + true_fail)
    assert _rate(held.false_fail) == (false_fail, false_fail + true_pass)
    for rate in (held.false_pass, held.false_fail):
        if rate.n:
            wanted = binomtest(rate.n_errors, rate.n, alternative="less").proportion_ci(0.95)
            assert rate.bound == pytest.approx(wanted.high)
    assert held.agreement is not None
    assert float(held.agreement) == pytest.approx(accuracy_score(people, judge))
    if len(set(people)) > 1:
        assert held.kappa is not None
        assert float(held.kappa.value) == pytest.approx(cohen_kappa_score(people, judge))
    assert held.prevalence == Fraction(people.count("pass"), len(people))


def _rate(rate: ErrorRate) -> tuple[int, int]:
    return rate.n_errors, rate.n


def decided(items: Iterable[Item], judge: str, who: str) -> tuple[list[str], list[str]]:
    """The words of a person and a judge where both say pass or fail."""
    pairs = [
        (item.labels[who], item.judges[judge])
        for item in items
        if item.judges[judge] in WORDS.values()
    ]
    people, judged = zip(*pairs, strict=True)
    return list(people), list(judged)


def test_five_judges_against_one_person(cast: Cast) -> None:
    items = live_mcp_bench()
    made = load(cast, items)

    rows = calibrations(cast, made)

    names = sorted({name for item in items for name in item.judges})
    assert sorted(rows) == names
    assert len(names) == 5
    for name in names:
        row = rows[name]
        figures = parse_figures(row.figures)
        check(figures.held, *decided(items, name, "annotator"))
        for family in figures.families:
            of_family = [item for item in items if item.family == family.family]
            check(family.held, *decided(of_family, name, "annotator"))
        n_errors = sum(item.judges[name] not in WORDS.values() for item in items)
        assert (figures.n_items, figures.n_labels, figures.n_people) == (95, 95, 1)
        assert (figures.n_judge_error, figures.held.n) == (n_errors, 95 - n_errors)
        assert (row.status, row.why) == (
            "exploratory",
            "Too few to tell: 1 person labelled the items, and 2 are needed.",
        )
    assert Counter(len(parse_figures(row.figures).families) for row in rows.values()) == {6: 5}


def test_what_is_no_word_is_an_error_with_the_whole_answer_kept(cast: Cast) -> None:
    items = live_mcp_bench()
    load(cast, items)

    wanted = sorted(
        word for item in items for word in item.judges.values() if word not in WORDS.values()
    )
    errors = Verdict.objects.filter(value="error").values_list("raw_word", flat=True)

    assert len(wanted) == 28
    assert sorted(errors) == wanted
    assert Verdict.objects.filter(value__in=["pass", "fail"]).count() == 5 * 95 - 28


def test_the_published_agreement_of_two_people_comes_out(cast: Cast) -> None:
    items = two_raters()
    made = load(cast, items)

    row = calibrations(cast, made)["finder"]

    figures = parse_figures(row.figures)
    first = [item.labels["rater_1"] for item in items]
    second = [item.labels["rater_2"] for item in items]
    agreement, kappa = figures.people_agreement, figures.people_kappa
    assert isinstance(kappa, Kappa)
    assert float(agreement or 0) == pytest.approx(accuracy_score(first, second))
    assert float(kappa.value) == pytest.approx(cohen_kappa_score(first, second))
    assert (round(float(agreement or 0), 2), round(float(kappa.value), 2)) == (0.88, 0.63)
    assert kappa.low is not None
    assert kappa.high is not None
    assert (round(kappa.low, 2), round(kappa.high, 2)) == (0.34, 0.92)
    # Five items stay undecided; of the others the judge, who finds everything, is held to.
    assert (figures.n_items, figures.n_split, figures.n_people) == (41, 5, 2)
    alike = [pair for pair in zip(first, second, strict=True) if pair[0] == pair[1]]
    check(figures.held, [one for one, _ in alike], ["pass"] * len(alike))
    # Published: 0.73 of the findings are confirmed by both people, 0.85 by one of them or both.
    both, either = first.count("pass") - 4, first.count("pass") + 1
    assert (figures.held.table.count("pass", "pass"), both) == (both, 30)
    assert (round(both / 41, 2), round(either / 41, 2)) == (0.73, 0.85)
    assert row.status == "exploratory"


def test_a_judge_against_a_person_who_accepts_or_rejects(cast: Cast) -> None:
    items = ragas()
    made = load(cast, items)

    row = calibrations(cast, made)["critic"]

    figures = parse_figures(row.figures)
    check(figures.held, *decided(items, "critic", "annotator"))
    # Two accepted as helpful that a person rejects, three rejected that a person accepts.
    assert (_rate(figures.held.false_pass), _rate(figures.held.false_fail)) == ((2, 11), (3, 10))
    assert figures.held.kappa is not None
    assert round(float(figures.held.kappa.value), 4) == 0.5205


def test_labels_that_nobody_vouched_for_are_read_apart(cast: Cast) -> None:
    items = ragas()
    made = load(cast, items)
    key = CriterionKey(made.criterion, made.criterion_digest)

    assert labelled_items(key).items == ()
    (held,) = judge_words(key, exploratory_items(key)).values()
    figures: CalibrationFigures = figures_of(held)

    check(figures.held, *decided(items, "critic", "annotator"))
    vouch_for_set(made, reason="Compared.", by=cast.second_reviewer, now=timezone.now())
    assert exploratory_items(key).items == ()
    assert len(labelled_items(key).items) == 21
