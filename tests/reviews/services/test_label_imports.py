from __future__ import annotations

import json
import uuid
from dataclasses import replace
from typing import Any

import pytest

from reviews.core.label_files import ReadLabels, RefusedLine, read_labels
from reviews.models import CalibrationItem, CalibrationSet, Label, Sampling, Verdict
from reviews.permissions.calibration_sets import NOT_AN_IMPORTER
from reviews.selectors.calibration_exports import label_csv_rows, label_lines
from reviews.selectors.calibration_sets import set_numbered
from reviews.services.calibration_sets import (
    NO_CRITERION,
    CalibrationSetDeniedError,
    CalibrationSetError,
)
from reviews.services.label_imports import (
    NO_VERDICTS,
    Imported,
    ImportWish,
    import_from_verdicts,
    import_labels,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from tests.support.sets import NOW, a_set, items, judged, labelled, nowhere, stored
from traces.core.contracts.reading import read_contract
from traces.models import System, Task, Trial, TrialDisposition, User

pytestmark = pytest.mark.django_db

WISH = ImportWish(
    name="Two raters",
    criterion="outcome",
    criterion_digest=None,
    sampling=Sampling.RANDOM,
    source="A paper.",
    licence="MIT",
    reason="A second opinion.",
)
OTHER = "task: t1\nsemantic:\n  - {rubric: truthful, question: Is it true?}\n"


def lines(*labels: dict[str, Any]) -> ReadLabels:
    return read_labels("\n".join(json.dumps(each) for each in labels).encode())


def line(trial: object = 0, labeller: str = "rater_1", value: str = "pass", **more: Any) -> Any:
    return {"task_id": "t1", "trial": trial, "labeller": labeller, "value": value} | more


def bring(cast: Cast, *labels: dict[str, Any], by: User | None = None, **changed: Any) -> Imported:
    wish = replace(WISH, **changed)
    return import_labels(cast.system, wish, lines(*labels), by=by or cast.engineer, now=NOW)


def test_labels_become_a_complete_set_that_votes_nowhere(cast: Cast) -> None:
    stored(cast, 2)
    before = list(TrialDisposition.objects.order_by("pk").values())
    n_verdicts = Verdict.objects.count()

    found = bring(
        cast,
        line(0, "rater_1", "pass", reason="So.", steps=[2]),
        line(0, "rater_2", "fail"),
        line(1, "rater_2", "satisfied"),
        line(1, "rater_1", "Correct"),
    )

    made = CalibrationSet.objects.get()
    assert found == Imported(made, 4, ())
    assert (made.number, made.is_imported, made.completed_at, made.sampling, made.seed) == (
        1,
        True,
        NOW,
        "random",
        None,
    )
    assert (made.source, made.by, made.reason) == (
        "A paper.\nLicence: MIT",
        cast.engineer,
        "A second opinion.",
    )
    assert [(i.position, i.trial.label, i.consensus, i.n_needed) for i in items(made)] == [
        (1, "0", "split", 2),
        (2, "1", "pass", 2),
    ]
    rows = Label.objects.order_by("item", "round").values_list(
        "item__position", "round", "labeller", "value", "by", "verdict", "reason", "cited_steps"
    )
    assert list(rows) == [
        (1, 1, "rater_1", "pass", None, None, "So.", [2]),
        (1, 2, "rater_2", "fail", None, None, "", []),
        (2, 1, "rater_1", "pass", None, None, "", []),
        (2, 2, "rater_2", "pass", None, None, "", []),
    ]
    assert list(TrialDisposition.objects.order_by("pk").values()) == before
    assert Verdict.objects.count() == n_verdicts


def test_one_label_an_item_comes_to_what_it_says(cast: Cast) -> None:
    stored(cast, 1)

    found = bring(cast, line(value="unknown"))

    assert found.calibration_set is not None
    item = items(found.calibration_set)[0]
    assert (item.consensus, item.n_needed) == ("unknown", 1)


def test_the_same_labels_again_add_nothing(cast: Cast) -> None:
    stored(cast, 2)
    first = bring(cast, line(0), line(1, "rater_2"), line(7))

    again = bring(
        cast, line(1, "rater_2"), line(7), line(0), by=cast.reviewer, name="Other", source="Mine."
    )

    assert (again.calibration_set, again.is_known, again.n_labels) == (
        first.calibration_set,
        True,
        2,
    )
    assert again.refused == (RefusedLine(2, "There is no trial “t1 · 7” in this system."),)
    assert CalibrationSet.objects.count() == 1
    assert bring(cast, line(0), line(1, "rater_2"), sampling=Sampling.CHOSEN).calibration_set != (
        first.calibration_set
    )
    assert not bring(cast, line(0, value="fail"), line(1, "rater_2")).is_known


def test_good_lines_land_and_others_are_told_with_their_numbers(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0),
            record("t1", 1, error="It broke."),
            record("t1", 2),
            record("t2", 0),
            record("t3", 0),
        ],
        by=cast.engineer,
    )
    ingest(cast.system, [record("t1", 2)], release="2.0", by=cast.engineer)
    ingest(cast.other_system, [record("t1", 9)], by=cast.outsider)
    foreign = Trial.objects.get(system=cast.other_system)
    Task.objects.filter(task_id="t2").update(split="tuning")
    contract_in_effect(cast.system, OTHER.replace("t1", "t3"), by=cast.engineer)

    found = bring(
        cast,
        line(0),
        line(0, value="perhaps"),
        line(0),
        line(1),
        line(2),
        line(9),
        {"trial_id": str(foreign.uuid), "labeller": "rater_1", "value": "pass"},
        {"external_id": "x", "labeller": "rater_1", "value": "pass"},
        {"task_id": "t2", "trial": 0, "labeller": "rater_1", "value": "pass"},
        {"task_id": "t3", "trial": 0, "labeller": "rater_1", "value": "pass"},
        line(0, "rater_2", run="elsewhere"),
        line(2, release="2.0"),
    )

    assert found.n_labels == 2
    assert [(each.line, each.sentence) for each in found.refused] == [
        (2, "The word “perhaps” stands for no pass, fail or unknown."),
        (3, "“rater_1” said the same of this trial in line 1 already."),
        (4, "The harness broke in trial “t1 · 1”: there is nothing to label."),
        (5, "“t1 · 2” names 2 trials: give run, release or attempt as well."),
        (6, "There is no trial “t1 · 9” in this system."),
        (7, f"There is no trial {foreign.uuid} in this system."),
        (8, "There is no trial “x” in this system."),
        (9, "The task of trial “t2 · 0” is of split tuning: labels never count."),
        (10, "Trial “t3 · 0” is not decided by this criterion as it stands now."),
        (11, "There is no trial “t1 · 0” in this system."),
    ]


def test_a_trial_is_named_in_several_ways(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, error="It broke."), record("t1", 0, attempt=2)],
        by=cast.engineer,
    )
    last = Trial.objects.get(attempt=2)

    found = bring(
        cast,
        line(0, "a"),
        line(0, "b", attempt=2),
        {"trial_id": str(last.uuid), "labeller": "c", "value": "pass"},
        line(0, "d", attempt=1),
        {"trial_id": str(nowhere()), **line(0, "c", "fail")},
    )

    assert found.n_labels == 3
    assert [each.line for each in found.refused] == [4, 5]
    assert CalibrationItem.objects.get().trial == last


def test_labels_of_a_rubric_are_of_trials_that_are_asked_for_it(cast: Cast) -> None:
    stored(cast, 1)
    version = contract_in_effect(cast.system, OTHER, by=cast.engineer)
    contract = read_contract(version.text).contract
    assert contract is not None
    digest = uuid.UUID(bytes=contract.semantic[0].digest)

    found = bring(cast, line(0), criterion="truthful", criterion_digest=digest)

    assert found.calibration_set is not None
    assert (found.calibration_set.criterion_digest, found.calibration_set.question) == (
        digest,
        "Is it true?",
    )
    with pytest.raises(CalibrationSetError, match=NO_CRITERION):
        bring(cast, line(0), criterion="truthful", criterion_digest=nowhere())


def test_where_nothing_lands_no_set_is_made(cast: Cast) -> None:
    stored(cast, 1)

    found = bring(cast, line(5))

    assert (found.calibration_set, found.n_labels, len(found.refused)) == (None, 0, 1)
    assert not CalibrationSet.objects.exists()


@pytest.mark.parametrize("who", ["owner", "viewer", "outsider"])
def test_who_may_bring_labels_in(cast: Cast, who: str) -> None:
    stored(cast, 1)

    with pytest.raises(CalibrationSetDeniedError, match=NOT_AN_IMPORTER):
        bring(cast, line(0), by=getattr(cast, who))
    assert bring(cast, line(0), by=cast.reviewer).n_labels == 1


@pytest.mark.parametrize("field", ["name", "source", "licence", "reason"])
def test_an_import_says_where_it_is_from(cast: Cast, field: str) -> None:
    stored(cast, 1)

    with pytest.raises(CalibrationSetError):
        bring(cast, line(0), **{field: " \u200b"})
    assert not CalibrationSet.objects.exists()


# --- from verdicts


def said(word: str, who: str = "rater_1", **more: Any) -> dict[str, Any]:
    return verdict(word, grader=who, kind="human", **more)


def test_verdicts_that_came_with_the_traces_become_a_set(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=[said("pass", rationale="So."), said("fail", "rater_2")]),
            record("t1", 1, verdicts=[said("shrug"), said("pass", "rater_2")]),
            record("t1", 2, verdicts=[judged()]),
        ],
        by=cast.engineer,
    )

    found = import_from_verdicts(cast.system, WISH, by=cast.engineer, now=NOW)

    shrugged = Trial.objects.get(label="1")
    assert found.n_labels == 3
    assert found.refused == (RefusedLine(0, f"“rater_1” said “shrug” of trial {shrugged.uuid}."),)
    rows = Label.objects.order_by("item", "round").values_list(
        "item__trial__label", "labeller", "value", "reason"
    )
    assert list(rows) == [
        ("0", "rater_1", "pass", "So."),
        ("0", "rater_2", "fail", ""),
        ("1", "rater_2", "pass", ""),
    ]
    again = import_from_verdicts(cast.system, WISH, by=cast.reviewer, now=NOW)
    assert (again.calibration_set, again.is_known) == (found.calibration_set, True)


def test_without_verdicts_of_people_there_is_no_set(cast: Cast) -> None:
    stored(cast, 1)
    ingest(cast.other_system, [record("t1", 0, verdicts=[said("pass")])], by=cast.outsider)

    with pytest.raises(CalibrationSetError, match=NO_VERDICTS):
        import_from_verdicts(cast.system, WISH, by=cast.engineer, now=NOW)


# --- there and back


def exported(system: System, number: int, form: Any) -> bytes:
    found = set_numbered(system.pk, number)
    assert found is not None
    return "".join(form(found)).encode()


@pytest.mark.parametrize("form", [label_lines, label_csv_rows])
def test_what_the_export_writes_can_be_brought_in(cast: Cast, form: Any) -> None:
    ingest(cast.system, [record("=t1", n) for n in range(2)], by=cast.engineer)
    made = a_set(cast)
    for item in items(made):
        labelled(item, (cast.reviewer, "pass"), (cast.second_reviewer, "fail"))
    data = exported(cast.system, 1, form)

    found = import_labels(cast.system, WISH, read_labels(data), by=cast.engineer, now=NOW)

    assert (found.n_labels, found.refused) == (4, ())
    brought = Label.objects.filter(item__set=found.calibration_set).order_by("item", "round")
    assert list(brought.values_list("labeller", "value", "reason", "cited_steps"))[:2] == [
        ("reviewer", "pass", "pass, they say.", [2]),
        ("second_reviewer", "fail", "fail, they say.", [2]),
    ]
