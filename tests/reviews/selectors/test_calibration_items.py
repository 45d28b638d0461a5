"""Which labelled items count, and what judge versions say of them."""

from __future__ import annotations

import uuid
from datetime import timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.core.calibration import JudgeWord, LabelledItem, figures_of
from reviews.core.consensus import Consensus
from reviews.models import Adjudication, CalibrationItem, CalibrationSet, Criterion, SetVouch
from reviews.selectors.calibration_items import (
    CriterionKey,
    adjudicated_items,
    exploratory_items,
    has_calibrations,
    is_asked,
    judge_words,
    keys_known,
    keys_touched,
    labelled_items,
    newest_versions,
)
from tests.support.calibrated import (
    NOW,
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
from tests.support.evidence import ingest, record
from traces.models import Task, Trial

pytestmark = pytest.mark.django_db


def key_of(made: CalibrationSet) -> CriterionKey:
    return CriterionKey(made.criterion, made.criterion_digest)


def plain_set(cast: Cast, trials: list[Trial], words: list[str], **more: object) -> CalibrationSet:
    values: dict[str, object] = {"people": [cast.reviewer, cast.second_reviewer], **more}
    return labelled_set(cast.system, trials, twice(words), by=cast.reviewer, **values)  # type: ignore[arg-type]


def words_of(items: tuple[LabelledItem, ...]) -> list[tuple[str, str]]:
    return sorted((item.consensus.value, item.word.value) for item in items)


class TestLabelledItems:
    def test_items_of_complete_sets_count(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "fail"])
        Task.objects.update(family="refunds")
        made = plain_set(cast, trials, ["pass", "fail"])
        found = labelled_items(key_of(made))

        first = found.items[0]
        item = made.items.get(trial=trials[0])
        assert (first.key, first.consensus, first.is_random, first.family) == (
            str(item.uuid),
            Consensus.PASS,
            True,
            "refunds",
        )
        assert [(label.by, label.round, label.value.value) for label in first.labels] == [
            (f"person {cast.reviewer.pk}", 1, "pass"),
            (f"person {cast.second_reviewer.pk}", 2, "pass"),
        ]
        assert found.labelled_at == made.completed_at
        assert list(found.trials.values()) == [trial.pk for trial in trials]

    def test_what_is_not_complete_or_not_vouched_for_does_not(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "pass", "fail"])
        made = plain_set(cast, trials[:1], ["pass"], completed_at=None)
        imported = plain_set(
            cast, trials[1:], ["pass", "fail"], is_imported=True, people=["anna", "ben"]
        )
        key = key_of(made)

        assert labelled_items(key).items == ()
        assert labelled_items(key).labelled_at is None
        assert words_of(exploratory_items(key).items) == [("fail", "none"), ("pass", "none")]

        SetVouch.objects.create(
            set=imported, reason="Checked.", by=cast.owner, vouched_at=NOW + timedelta(days=2)
        )

        assert len(labelled_items(key).items) == 2
        assert labelled_items(key).labelled_at == NOW + timedelta(days=2)
        assert exploratory_items(key).items == ()
        assert {label.by for label in labelled_items(key).items[0].labels} == {
            "name anna",
            "name ben",
        }

    def test_withdrawn_items_and_tuning_tasks_are_left_out(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "pass"])
        tuned = judged_trials(cast, ["pass"], task="t2")
        made = plain_set(cast, [*trials, *tuned], ["pass"] * 3)
        CalibrationItem.objects.filter(trial=trials[0]).update(withdrawn_at=NOW)
        Task.objects.filter(task_id="t2").update(split="tuning")

        assert list(labelled_items(key_of(made)).trials.values()) == [trials[1].pk]

    def test_a_trial_stands_once_as_it_was_labelled_last(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass"])
        made = plain_set(cast, trials, ["pass"])
        plain_set(cast, trials, ["fail"], now=NOW + timedelta(days=1), sampling="stratified")
        (item,) = labelled_items(key_of(made)).items

        assert (item.consensus, item.is_random) == (Consensus.FAIL, False)
        assert labelled_items(key_of(made)).labelled_at == NOW + timedelta(days=1)

    def test_criteria_are_told_apart_by_their_digest(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass"])
        one = plain_set(cast, trials, ["pass"], digest=uuid.UUID(int=1))
        other = plain_set(cast, trials, ["fail"], digest=uuid.UUID(int=2))

        assert words_of(labelled_items(key_of(one)).items) == [("pass", "none")]
        assert words_of(labelled_items(key_of(other)).items) == [("fail", "none")]
        assert labelled_items(CriterionKey(one.criterion, None)).items == ()

    def test_imported_labels_that_nobody_settled_are_a_split(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass"])
        made = labelled_set(
            cast.system,
            trials,
            [("pass", "fail")],
            people=["anna", "ben"],
            by=cast.reviewer,
            is_imported=True,
        )
        assert [one.consensus for one in exploratory_items(key_of(made)).items] == [Consensus.SPLIT]


class TestJudgeWords:
    def test_a_version_has_one_word_an_item(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "fail", "unknown", "nonsense", "pass"])
        ingest(cast.system, verdicts_alone({0: "fail", 3: "fail", 4: "unknown"}))
        ingest(cast.system, verdicts_alone({1: "pass"}, version="m1/p2"))
        made = plain_set(cast, trials, ["pass"] * 5)
        labelled = labelled_items(key_of(made))

        found = judge_words(key_of(made), labelled)

        by_version = {
            judge.version: {labelled.trials[one.key]: one.word for one in items}
            for judge, items in found.items()
        }
        assert by_version == {
            "m1/p1": dict(
                zip(
                    [trial.pk for trial in trials],
                    [
                        JudgeWord.FLIP,
                        JudgeWord.FAIL,
                        JudgeWord.UNKNOWN,
                        JudgeWord.FAIL,  # an error gives way
                        JudgeWord.UNKNOWN,
                    ],
                    strict=True,
                )
            ),
            "m1/p2": {
                trial.pk: JudgeWord.PASS if n == 1 else JudgeWord.NONE
                for n, trial in enumerate(trials)
            },
        }
        assert [judge.judge for judge in found] == ["judge", "judge"]

    def test_code_and_people_are_no_judges(self, cast: Cast) -> None:
        given = [{**said("pass"), "kind": "code"}, {**said("fail"), "kind": "human"}]
        ingest(cast.system, [record("t1", 0, verdicts=given)])
        made = plain_set(cast, list(Trial.objects.all()), ["pass"])

        assert judge_words(key_of(made), labelled_items(key_of(made))) == {}

    def test_words_on_another_version_of_the_rubric_are_none(self, cast: Cast) -> None:
        given = [said("pass", "a", rubric_version="1"), said("pass", "b", rubric_version=2)]
        ingest(cast.system, [record("t1", 0, verdicts=given)])
        digest = asked(cast)
        made = plain_set(cast, list(Trial.objects.all()), ["pass"], digest=digest)

        found = judge_words(key_of(made), labelled_items(key_of(made)))

        assert [judge.version for judge in found] == ["a"]

    @pytest.mark.parametrize("n", [1, 3])
    def test_three_queries_however_many_items(self, cast: Cast, n: int) -> None:
        made = plain_set(cast, judged_trials(cast, ["pass"] * n), ["pass"] * n)
        key = key_of(made)
        with CaptureQueriesContext(connection) as seen:
            judge_words(key, labelled_items(key))
        assert len(seen.captured_queries) == 3

    def test_no_items_no_question(self, cast: Cast) -> None:
        criterion = Criterion.objects.create(system=cast.system, name=RUBRIC)
        key = CriterionKey(criterion, None)
        with CaptureQueriesContext(connection) as seen:
            assert judge_words(key, labelled_items(key)) == {}
        assert len(seen.captured_queries) == 1


class TestAdjudicatedItems:
    def adjudicated(
        self, trial: Trial, criterion: Criterion, ruling: str, **more: object
    ) -> Adjudication:
        values: dict[str, object] = {
            "system": trial.system,
            "trial": trial,
            "criterion": criterion,
            "ruling": ruling,
            "reason": "A test.",
            "cited_steps": [],
            "seen": [],
            "evidence_order": 0,
            "evidence_digest": uuid.UUID(int=0),
            "is_by_party": False,
            "decided_at": NOW,
            **more,
        }
        return Adjudication.objects.create(**values)

    def test_judges_are_held_against_what_reviewers_decided_last(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "fail", "pass", "pass"])
        criterion = Criterion.objects.get(name=RUBRIC)
        first = self.adjudicated(trials[0], criterion, "pass", by=cast.reviewer)
        corrected = self.adjudicated(trials[0], criterion, "fail", by=cast.reviewer, replaces=first)
        agreed = self.adjudicated(trials[1], criterion, "fail", by=cast.reviewer)
        self.adjudicated(trials[2], criterion, "insufficient_evidence", by=cast.reviewer)
        key = CriterionKey(criterion, None)

        labelled = adjudicated_items(key)
        ((_, items),) = judge_words(key, labelled).items()

        held = figures_of(items).held
        assert (held.false_pass.n_errors, held.false_pass.n) == (1, 2)
        assert held.false_pass.errors == (str(corrected.uuid),)
        assert sorted(labelled.trials) == sorted([str(corrected.uuid), str(agreed.uuid)])
        assert (held.agreement, held.kappa) == (None, None)

    def test_a_third_blind_label_is_among_the_labels_alone(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass"])
        criterion = Criterion.objects.get(name=RUBRIC)
        made = labelled_set(
            cast.system, trials, [("pass", "fail")], people=["a", "b"], by=cast.reviewer
        )
        row = self.adjudicated(trials[0], criterion, "pass", by=cast.owner)
        made.items.get().labels.create(
            by=cast.owner, round=3, value="pass", adjudication=row, given_at=NOW
        )

        assert adjudicated_items(CriterionKey(criterion, None)).items == ()


class TestNewestVersions:
    def test_only_later_versions_with_words_on_the_criterion(self, cast: Cast) -> None:
        judged_trials(cast, ["pass"], version="m1/p1")
        criterion = Criterion.objects.get(name=RUBRIC)
        key = CriterionKey(criterion, None)
        first = _version(key, cast, "m1/p1")
        other = {**said("pass", "m1/p2"), "criterion": "tone"}
        ingest(cast.system, [record("t1", 1, verdicts=[other])])

        assert newest_versions(key, "", [first]) == {}

        ingest(cast.system, verdicts_alone(["fail"], version="m1/p2"))
        second = _version(key, cast, "m1/p2")
        judge = criterion.system.graders.get(name="judge").pk

        assert newest_versions(key, "", [first]) == {judge: second}
        assert newest_versions(key, "", [second]) == {}


def _version(key: CriterionKey, cast: Cast, version: str) -> int:
    grader = cast.system.graders.get(name="judge")
    return grader.versions.get(version=version).pk


class TestIsAsked:
    def test_by_the_digest_of_a_contract_in_effect(self, cast: Cast) -> None:
        judged_trials(cast, ["pass"])
        criterion = Criterion.objects.get(name=RUBRIC)
        assert is_asked(CriterionKey(criterion, None))

        digest = asked(cast)

        assert is_asked(CriterionKey(criterion, digest))
        assert not is_asked(CriterionKey(criterion, uuid.UUID(int=1)))
        assert not is_asked(CriterionKey(criterion, None))


class TestKeys:
    def test_a_system_without_labels_has_none(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass"])
        assert not has_calibrations(cast.system.pk)
        assert keys_known(cast.system.pk) == []

        made = plain_set(cast, trials, ["pass"], completed_at=None)
        assert not has_calibrations(cast.system.pk)

        CalibrationSet.objects.update(completed_at=NOW)
        assert has_calibrations(cast.system.pk)
        assert not has_calibrations(cast.other_system.pk)
        assert keys_known(cast.system.pk) == []
        made.refresh_from_db()
        read_of(made)
        assert keys_known(cast.system.pk) == [key_of(made)]

    def test_words_on_labelled_trials_and_of_later_versions_touch_them(self, cast: Cast) -> None:
        trials = judged_trials(cast, ["pass", "pass"])
        made = plain_set(cast, trials[:1], ["pass"])
        pks = [trial.pk for trial in trials]

        assert keys_touched(cast.system.pk, pks) == [key_of(made)]
        assert keys_touched(cast.system.pk, pks[1:]) == []

        read_of(made)
        ingest(cast.system, [record("t1", 9, verdicts=[said("pass", "m1/p2")])])
        later = Trial.objects.get(label="9").pk

        # The upload has read them: the earlier version is stale, and is not read for that again.
        assert keys_touched(cast.system.pk, [later]) == []
