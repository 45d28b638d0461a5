from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.traces.core.formats.reading import read, record, trial, warned
from traces.core.canonical import canonical_text, equal
from traces.core.formats import verdicts
from traces.core.formats.verdicts import verdict_record
from traces.core.records import CriterionClass, GraderKind, ParsedVerdict, VerdictValue

SMALL = {"grader": "g", "kind": "code", "criterion": "c", "verdict": "pass"}


def parsed(**fields: Any) -> ParsedVerdict:
    (verdict,) = trial(record(verdicts=[SMALL | fields])).verdicts
    return verdict


def refused(verdict: Any) -> list[tuple[str, str]]:
    item = read(record(verdicts=[verdict, SMALL]))
    assert item.content is not None
    assert len(item.content.verdicts) == 1  # type: ignore[union-attr]
    return [(finding.code, finding.place) for finding in item.refusals]


def test_verdict_with_all_fields_is_read() -> None:
    given_fields = {
        "id": "v1", "grader": "outcome", "grader_version": 1, "kind": "code", "criterion": "outcome",
        "class": "constraint", "mandatory": False, "verdict": "Pass ", "score": 0.5,
        "rationale": "because", "evidence": [{"step": 9}, {"step": 2.0}], "overrides": "v0",
        "cost": 0.1,
    }  # fmt: skip
    verdict = parsed(**given_fields)
    assert verdict == ParsedVerdict(
        grader="outcome", grader_version="1", kind=GraderKind.CODE, criterion="outcome",
        criterion_class=CriterionClass.CONSTRAINT, mandatory=False, value=VerdictValue.PASS,
        raw_word="Pass ", key="v1", score=Decimal("0.5"), rationale="because", cited_steps=(9, 2),
        overrides="v0", extra={"cost": 0.1}, digest=verdict.digest,
    )  # fmt: skip


@pytest.mark.parametrize(
    ("kind", "read_as", "criterion_class"),
    [
        ("code", GraderKind.CODE, CriterionClass.OUTCOME),
        ("model", GraderKind.MODEL, CriterionClass.SEMANTIC),
        ("judge", GraderKind.MODEL, CriterionClass.SEMANTIC),
        ("human", GraderKind.HUMAN, CriterionClass.SEMANTIC),
    ],
)
def test_verdict_defaults_follow_the_kind(
    kind: str, read_as: GraderKind, criterion_class: CriterionClass
) -> None:
    verdict = parsed(kind=kind)
    assert (verdict.kind, verdict.criterion_class, verdict.mandatory) == (
        read_as, criterion_class, True,
    )  # fmt: skip
    assert (verdict.grader_version, verdict.rationale, verdict.cited_steps) == ("", "", ())
    assert verdict.key == verdict.digest.hex()


@pytest.mark.parametrize(
    ("word", "raw"),
    [(True, "true"), (1, "1"), (None, ""), ({"a": 1}, '{"a":1}'), ("GRADE: C", "GRADE: C")],
)
def test_verdict_word_that_is_not_known_is_an_error_with_its_raw_form(word: Any, raw: str) -> None:
    verdict = parsed(verdict=word)
    assert (verdict.value, verdict.raw_word) == (VerdictValue.ERROR, raw)


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"criterion": None}, ("missing-field", "verdicts[0].criterion")),
        ({"criterion": "x" * 600}, ("identifier-too-long", "verdicts[0].criterion")),
        ({"grader": ""}, ("missing-field", "verdicts[0].grader")),
        ({"kind": "robot"}, ("bad-kind", "verdicts[0].kind")),
        ({"kind": None}, ("bad-kind", "verdicts[0].kind")),
        ({"id": "\x00"}, ("bad-identifier", "verdicts[0].id")),
        ({"overrides": {}}, ("wrong-type", "verdicts[0].overrides")),
    ],
)
def test_verdict_that_cannot_be_taken_is_refused_alone(
    fields: dict[str, Any], place: tuple[str, str]
) -> None:
    assert refused(SMALL | fields) == [place]


def test_verdict_that_is_no_object_is_refused_alone() -> None:
    assert refused(7) == [("wrong-type", "verdicts[0]")]


def test_verdicts_that_are_no_list_are_refused_and_the_trial_stays() -> None:
    item = read(record(verdicts={"a": 1}))
    assert item.content is not None
    assert [finding.sentence for finding in item.refusals] == [
        "verdicts must be a list, this is an object."
    ]


def test_verdicts_too_many_refuse_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verdicts, "MOST_VERDICTS", 1)
    item = read(record(verdicts=[SMALL, SMALL]))
    assert item.content is None
    assert item.refusals[0].code == "too-many-verdicts"


@pytest.mark.parametrize(
    ("fields", "warning", "kept"),
    [
        ({"class": "safety"}, ("bad-class", "verdicts[0].class"), {"class": "safety"}),
        ({"class": 1}, ("bad-class", "verdicts[0].class"), {"class": 1}),
        ({"mandatory": "no"}, ("wrong-type", "verdicts[0].mandatory"), {"mandatory": "no"}),
        ({"score": "high"}, ("not-a-number", "verdicts[0].score"), {"score": "high"}),
        ({"evidence": "step 3"}, ("bad-evidence", "verdicts[0].evidence"), {"evidence": "step 3"}),
        ({"evidence": [{"step": True}]}, ("bad-evidence", "verdicts[0].evidence"), {"evidence": [{"step": True}]}),
    ],
)  # fmt: skip
def test_verdict_odd_field_is_warned_of_and_kept(
    fields: dict[str, Any], warning: tuple[str, str], kept: dict[str, Any]
) -> None:
    assert warned(record(verdicts=[SMALL | fields])) == [warning]
    assert parsed(**fields).extra == kept
    assert parsed(**fields).mandatory


def test_verdict_evidence_with_more_than_steps_is_kept_whole() -> None:
    evidence = [{"step": 1, "quote": "x"}, 1]
    verdict = parsed(evidence=evidence)
    assert (verdict.cited_steps, verdict.extra) == ((1, 1), {"evidence": evidence})


def test_verdict_cited_step_that_does_not_exist_is_warned_of() -> None:
    fields = {"verdicts": [SMALL | {"evidence": [{"step": 1}, {"step": 99}]}]}
    assert warned(record(**fields)) == [("cited-step-missing", "verdicts")]


@pytest.mark.parametrize(
    ("word", "score", "is_odd"),
    [
        ("pass", 0, True),
        ("fail", 1, True),
        ("pass", 1, False),
        ("fail", 0.5, False),
        ("unknown", 0, False),
    ],
)
def test_verdict_against_its_own_score_is_kept_and_warned_of(
    word: str,
    score: float,
    is_odd: bool,  # noqa: FBT001
) -> None:
    fields = {"verdicts": [SMALL | {"verdict": word, "score": score}]}
    assert warned(record(**fields)) == ([("verdict-against-score", "verdicts")] if is_odd else [])


VERDICTS = st.fixed_dictionaries(
    {
        "grader": st.sampled_from(["g", 7]),
        "kind": st.sampled_from(["code", "judge", "model", "human"]),
        "criterion": st.sampled_from(["c", "d"]),
    },
    optional={
        "id": st.sampled_from(["v1", "", None]),
        "grader_version": st.sampled_from(["1", 2, None]),
        "class": st.sampled_from(["outcome", "semantic", "odd", None]),
        "mandatory": st.sampled_from([True, False, None, "x"]),
        "verdict": st.sampled_from(["pass", " FAIL", "odd", True, None, 0]),
        "score": st.sampled_from([1, 0.5, None, "x", 1e300]),
        "rationale": st.sampled_from(["r", None, {"a": 1}]),
        "evidence": st.sampled_from([[], [{"step": 1}], [1], "x", None]),
        "overrides": st.sampled_from(["v0", None]),
        "cost": st.sampled_from([0.1, None]),
    },
)


@given(VERDICTS)
def test_verdict_record_read_again_is_the_same_verdict(given_verdict: dict[str, Any]) -> None:
    (verdict,) = trial(record(verdicts=[given_verdict])).verdicts
    written: Any = verdict_record(verdict)
    (again,) = trial(canonical_text(record(verdicts=[written])).encode()).verdicts
    assert replace(again, extra={}) == replace(verdict, extra={})
    assert equal(again.extra, verdict.extra)
