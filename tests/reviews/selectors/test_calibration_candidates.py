from __future__ import annotations

import uuid
from collections import Counter
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evalsite.projections import decide_trials
from reviews.core.sampling import Stratum
from reviews.selectors.calibration_candidates import (
    CandidateFilter,
    LabelCriterion,
    Qualifying,
    criteria_to_label,
    qualifying_trials,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import NOW, contract_in_effect
from tests.support.sets import a_set, judged, stored
from traces.models import Release, Task, Trial, TrialDisposition

pytestmark = pytest.mark.django_db

CONTRACT = """\
task: t1
family: refunds
prohibited:
  - {id: no-refund, harm: money, call: issue_refund}
semantic:
  - {rubric: truthful, question: Is what the agent says true?}
external:
  - {id: db, class: outcome, graders: [state check]}
"""
OUTCOME = LabelCriterion("outcome", None, "", "", (), 0)


def found(cast: Cast, criterion: LabelCriterion = OUTCOME, **more: Any) -> Qualifying:
    return qualifying_trials(CandidateFilter(cast.system, criterion, **more))


def strata(cast: Cast, criterion: LabelCriterion = OUTCOME) -> dict[str, Stratum]:
    labels = dict(Trial.objects.values_list("pk", "label"))
    return {labels[each.pk]: each.stratum for each in found(cast, criterion).candidates}


def named(cast: Cast, name: str) -> LabelCriterion:
    return next(each for each in criteria_to_label(cast.system.pk) if each.name == name)


def under_contract(cast: Cast) -> None:
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    decide_trials(Trial.objects.values_list("pk", flat=True), now=NOW)


def test_rubrics_external_criteria_and_imported_ones_are_labelled(cast: Cast) -> None:
    small = verdict(criterion="action:1", **{"class": "constraint"})
    ingest(cast.system, [record("t1", 0), record("t2", 0, verdicts=[verdict(), small])])
    under_contract(cast)

    criteria = criteria_to_label(cast.system.pk)

    assert [(c.name, c.is_rubric, c.n_tasks, c.digest is None) for c in criteria] == [
        ("truthful", True, 1, False),
        ("db", False, 1, False),
        ("outcome", False, 0, True),
    ]
    assert criteria[0].question == "Is what the agent says true?"
    assert criteria[0].key == f"{criteria[0].digest.hex}:truthful"  # type: ignore[union-attr]
    assert criteria[2].key == ":outcome"


def test_a_check_is_labelled_where_a_judge_speaks_on_it(cast: Cast) -> None:
    spoken = judged("pass", criterion="no-refund")
    ingest(cast.system, [record("t1", 0, verdicts=[spoken])])
    under_contract(cast)

    assert [c.name for c in criteria_to_label(cast.system.pk)] == ["truthful", "db", "no-refund"]


def test_split_tuning_is_never_labelled(cast: Cast) -> None:
    stored(cast)
    assert len(found(cast).candidates) == 3

    Task.objects.update(split="tuning")

    assert criteria_to_label(cast.system.pk) == ()
    assert found(cast) == Qualifying((), frozenset())


def test_only_completed_trials_that_stand_and_are_asked_for_it_qualify(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, error="It broke."),
            record("t1", 0, attempt=2),
            record("t1", 1, error="It broke."),
            record("t1", 2, verdicts=[judged(criterion="tone")]),
            record("t2", 0),
        ],
    )
    ingest(cast.other_system, [record("t1", 0)])

    assert {(t.task.task_id, t.label, t.attempt) for t in _trials(found(cast))} == {
        ("t1", "0", 2),
        ("t2", "0", 1),
    }
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    assert [t.task.task_id for t in _trials(found(cast))] == ["t2"]


def _trials(qualifying: Qualifying) -> list[Trial]:
    pks = [each.pk for each in qualifying.candidates]
    return list(Trial.objects.select_related("task").filter(pk__in=pks).order_by("pk"))


def test_trials_are_told_by_their_outcome_and_path(cast: Cast) -> None:
    other = (("list_orders", {}), ("get_order", {"order": "A-1"}))
    ingest(
        cast.system,
        [
            record("t1", "usual 1"),
            record("t1", "usual 2"),
            record("t1", "other", calls=other),
            record("t1", "failing", verdicts=[verdict("fail")]),
            record("t1", "open", verdicts=[verdict("unknown")]),
        ],
    )

    assert strata(cast) == {
        "usual 1": Stratum.CLEAR_PASS,
        "usual 2": Stratum.CLEAR_PASS,
        "other": Stratum.ALTERNATE_PATH,
        "failing": Stratum.CLEAR_FAILURE,
        "open": Stratum.UNDECIDED,
    }


def test_a_judge_tells_nothing_of_a_trial(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", "passes", verdicts=[judged("fail", criterion="truthful"), db("pass")]),
            record("t1", "fails", verdicts=[judged("pass", criterion="truthful"), db("fail")]),
            record("t1", "open", verdicts=[judged("pass", criterion="truthful")]),
        ],
    )
    under_contract(cast)
    truthful = named(cast, "truthful")
    assert set(TrialDisposition.objects.values_list("value", flat=True)) == {"unresolved", "fail"}

    told = strata(cast, truthful)

    assert told == {
        "passes": Stratum.CLEAR_PASS,
        "fails": Stratum.CLEAR_FAILURE,
        "open": Stratum.UNDECIDED,
    }
    # Were the judge calibrated, its word on the criterion would decide the trials, and tell nothing.
    TrialDisposition.objects.filter(trial__label="passes").update(
        value="fail", failed=["truthful"], open=[], passed=["no-refund", "db"]
    )
    TrialDisposition.objects.filter(trial__label="open").update(
        value="pass", failed=[], open=[], passed=["truthful"]
    )
    assert strata(cast, truthful) == told


def db(word: str) -> dict[str, Any]:
    return verdict(word, criterion="db")


def test_the_word_of_a_person_tells_of_a_trial(cast: Cast) -> None:
    said = verdict("fail", grader="somebody", kind="human")
    ingest(cast.system, [record("t1", 0, verdicts=[said])])
    TrialDisposition.objects.update(value="fail", failed=["outcome"], open=[])

    assert strata(cast) == {"0": Stratum.CLEAR_FAILURE}


def test_filters_narrow_what_qualifies(cast: Cast) -> None:
    stored(cast, 2)
    ingest(cast.system, [record("t2", 0)], release="2.0")
    Task.objects.filter(task_id="t2").update(family="refunds")
    second = Release.objects.get(name="2.0")
    chosen = Trial.objects.filter(task__task_id="t1").order_by("pk")[0]

    assert len(found(cast).candidates) == 3
    assert [t.task.task_id for t in _trials(found(cast, release_pk=second.pk))] == ["t2"]
    assert [t.task.task_id for t in _trials(found(cast, family="refunds"))] == ["t2"]
    assert _trials(found(cast, trials=(chosen.uuid, uuid.UUID(int=1)))) == [chosen]
    assert found(cast, trials=()).candidates == ()
    assert found(cast).n_by_family == Counter({"": 2, "refunds": 1})


def test_trials_of_a_blind_set_do_not_qualify_again(cast: Cast) -> None:
    stored(cast)
    a_set(cast, n=2)

    assert len(found(cast).candidates) == 1


@pytest.mark.parametrize("n", [1, 3])
def test_the_candidates_take_three_queries(cast: Cast, n: int) -> None:
    stored(cast, n)
    under_contract(cast)
    truthful = named(cast, "truthful")

    with CaptureQueriesContext(connection) as captured:
        assert len(found(cast, truthful).candidates) == n
    assert len(captured) == 3
    with CaptureQueriesContext(connection) as captured:
        criteria_to_label(cast.system.pk)
    assert len(captured) == 4
