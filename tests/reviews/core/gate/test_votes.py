"""Which verdicts and adjudications decide a trial."""

from __future__ import annotations

from dataclasses import replace

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    GivenVerdict,
    Requirement,
    RequirementSource,
    TrialFacts,
    disposition_of,
)
from reviews.core.gate.votes import deciding_of, voting_on
from traces.core.records import CriterionClass, GraderKind, VerdictValue

PASS, FAIL, ERROR = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.ERROR
TONE = Requirement("tone", CriterionClass.SEMANTIC, RequirementSource.IMPORTED)


def given(pk: str, value: VerdictValue = PASS, *, grader: str = "check") -> GivenVerdict:
    """A code verdict on the tone."""
    return GivenVerdict(
        id=pk,
        grader=grader,
        grader_version="1",
        kind=GraderKind.CODE,
        criterion="tone",
        value=value,
    )


def person(pk: str, value: VerdictValue, *, by: str, corrects: str | None = None) -> GivenVerdict:
    """A signed-in person's verdict on the tone."""
    return GivenVerdict(
        id=pk,
        grader=by,
        grader_version="",
        kind=GraderKind.HUMAN,
        criterion="tone",
        value=value,
        is_imported=False,
        corrects=corrects,
    )


def test_the_same_verdict_again_is_one_vote() -> None:
    assert [v.id for v in voting_on(TONE, [given("1"), given("2"), given("3")])] == ["1"]


def test_an_error_gives_way_and_a_flip_counts_as_both() -> None:
    assert [v.id for v in voting_on(TONE, [given("1", ERROR), given("2")])] == ["2"]
    assert [v.id for v in voting_on(TONE, [given("1", FAIL), given("2")])] == ["1", "2"]


def test_what_was_corrected_or_does_not_count_has_no_vote() -> None:
    first, later = person("1", PASS, by="ann"), person("2", FAIL, by="ann", corrects="1")
    assert [v.id for v in voting_on(TONE, [first, later])] == ["2"]
    judge = replace(given("3"), kind=GraderKind.MODEL)
    other = replace(given("4"), criterion="truth")
    assert voting_on(TONE, [judge, other]) == ()
    assert [v.id for v in voting_on(TONE, [given("5"), judge])] == ["5"]


def test_an_adjudication_decides_where_the_votes_alone_would_not() -> None:
    split = [person("1", PASS, by="ann"), person("2", FAIL, by="bob")]
    ruling = Adjudication("7", "tone", AdjudicationRuling.FAIL)
    decision = disposition_of(TrialFacts(), [TONE], split, [ruling])
    (deciding,) = deciding_of(decision, split, [ruling])
    assert (deciding.adjudication, [v.id for v in deciding.votes]) == (ruling, ["1", "2"])
    agreed = [given("1")]
    decision = disposition_of(TrialFacts(), [TONE], agreed, [ruling])
    (deciding,) = deciding_of(decision, agreed, [ruling])
    assert deciding.adjudication is None
    (deciding,) = deciding_of(decision, agreed)
    assert [v.id for v in deciding.votes] == ["1"]


def test_what_is_not_mandatory_decides_nothing() -> None:
    wish = replace(TONE, mandatory=False)
    decision = disposition_of(TrialFacts(), [wish], [given("1")])
    assert deciding_of(decision, [given("1")]) == ()
