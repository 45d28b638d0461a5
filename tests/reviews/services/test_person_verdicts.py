from __future__ import annotations

import uuid
from datetime import UTC, datetime
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.models import CaseEvent, Verdict
from reviews.permissions.verdicts import (
    ADDED_EVIDENCE,
    BROUGHT_EVIDENCE,
    CORRECTED,
    NOT_A_REVIEWER,
    NOT_ONES_OWN,
    OWN_CONTRACT,
    verdict_refusal,
)
from reviews.selectors.gradable import gradable_criteria
from reviews.services.case_rows import follow_dispositions
from reviews.services.person_verdicts import (
    GIVEN_ALREADY,
    LONGEST_REASON,
    MOST_STEPS,
    OF_ANOTHER_CONTRACT,
    VerdictDeniedError,
    VerdictError,
    give_verdict,
)
from tests.support.cases import decided
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.core.records import VerdictValue
from traces.models import EvidenceAddition, Role, Trial, User
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
PASS, FAIL, UNKNOWN = VerdictValue.PASS, VerdictValue.FAIL, VerdictValue.UNKNOWN
CONTRACT = """\
task: t1
prohibited:
  - {id: no-refund, harm: money, call: issue_refund}
semantic:
  - {rubric: truthful, question: Is what the agent says true?}
  - {rubric: tone, mandatory: false}
"""


def stored_trial(cast: Cast, **more: Any) -> Trial:
    ingest(cast.system, [record("t1", 0)], **more)
    return Trial.objects.get(system=cast.system)


def add_evidence(trial: Trial, by: User, order: int = 1) -> None:
    EvidenceAddition.objects.create(
        trial=trial,
        order=order,
        parts=["final_state"],
        content=b"",
        source="inspection api",
        reason="It was lost.",
        digest=uuid.uuid4(),
        by=by,
        added_at=NOW,
    )


def give(trial: Trial, by: User, **changed: Any) -> Verdict:
    asked: dict[str, Any] = {
        "criterion": "truthful",
        "value": PASS,
        "reason": "Step 2 says it.",
        "steps": [2],
    }
    return give_verdict(trial, **(asked | changed), by=by, now=NOW)


def test_a_verdict_is_kept_with_what_it_was_given_on(cast: Cast) -> None:
    trial = stored_trial(cast)
    version = contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    add_evidence(trial, cast.engineer)
    digest = gradable_criteria(trial)["truthful"].stored_digest

    given = give(trial, cast.reviewer, reason=" So. ", steps=[4, 2, 2])

    stored = Verdict.objects.select_related("grader_version__grader", "criterion").get(pk=given.pk)
    grader = stored.grader_version.grader
    assert (grader.kind, grader.name, stored.grader_version.version) == ("human", "reviewer", "")
    assert (stored.criterion.name, stored.criterion_class, stored.is_mandatory) == (
        "truthful",
        "semantic",
        True,
    )
    assert (stored.value, stored.rationale, stored.cited_steps) == ("pass", "So.", [2, 4])
    assert (stored.by, stored.contract, stored.criterion_digest, stored.evidence_order) == (
        cast.reviewer,
        version,
        digest,
        1,
    )
    assert (stored.upload, stored.corrects, stored.evidence_digest) == (None, None, trial.digest)


def test_criteria_are_those_of_the_contract_else_the_imported_ones(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, verdicts=[verdict(), verdict(criterion="tone", mandatory=False)])],
    )
    trial = Trial.objects.get(system=cast.system)
    assert [(c.criterion, c.mandatory) for c in gradable_criteria(trial).values()] == [
        ("outcome", True),
        ("tone", False),
    ]

    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    assert [
        (c.criterion, c.criterion_class.value, c.mandatory, c.question)
        for c in gradable_criteria(trial).values()
    ] == [
        ("no-refund", "constraint", True, ""),
        ("truthful", "semantic", True, "Is what the agent says true?"),
        ("tone", "semantic", False, ""),
    ]


def test_a_criterion_of_code_takes_a_person_too(cast: Cast) -> None:
    trial = stored_trial(cast)
    given = give(trial, cast.reviewer, criterion="outcome", value=FAIL)
    assert (given.criterion.name, given.contract, given.criterion_digest) == ("outcome", None, None)


def test_a_second_click_gives_the_same_verdict(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)

    first, again = (give(trial, cast.reviewer) for _ in range(2))
    corrected, corrected_again = (
        give(trial, cast.reviewer, value=FAIL, reason="Not so.", corrects=first) for _ in range(2)
    )

    assert (first, corrected) == (again, corrected_again)
    assert Verdict.objects.filter(by=cast.reviewer).count() == 2


def test_a_correction_names_the_earlier_verdict(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    first = give(trial, cast.reviewer)

    with pytest.raises(VerdictError, match=f"^{GIVEN_ALREADY}$"):
        give(trial, cast.reviewer, value=FAIL)
    second = give(trial, cast.reviewer, value=FAIL, reason="I misread it.", corrects=first)
    with pytest.raises(VerdictError, match=f"^{CORRECTED}$"):
        give(trial, cast.reviewer, value=UNKNOWN, corrects=first)
    third = give(trial, cast.reviewer, value=UNKNOWN, corrects=second)

    assert list(
        Verdict.objects.filter(by=cast.reviewer).order_by("pk").values_list("value", "corrects")
    ) == [("pass", None), ("fail", first.pk), ("unknown", second.pk)]
    assert third.corrects == second


def test_only_ones_own_verdict_is_corrected(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    first = give(trial, cast.reviewer)

    with pytest.raises(VerdictDeniedError, match=f"^{NOT_ONES_OWN}$"):
        give(trial, cast.second_reviewer, value=FAIL, corrects=first)
    with pytest.raises(VerdictError) as refused:
        give(trial, cast.reviewer, criterion="tone", corrects=first)

    assert str(refused.value) == ("A verdict is corrected on the same criterion of the same trial.")
    give(trial, cast.second_reviewer, value=FAIL)
    assert Verdict.objects.exclude(by=None).count() == 2


def test_more_evidence_or_another_criterion_version_asks_for_a_verdict_anew(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    give(trial, cast.reviewer, value=UNKNOWN)
    add_evidence(trial, cast.engineer)
    give(trial, cast.reviewer)
    contract_in_effect(cast.system, CONTRACT.replace("true?", "so?"), by=cast.engineer)
    give(trial, cast.reviewer)

    assert Verdict.objects.filter(by=cast.reviewer).count() == 3


@pytest.mark.parametrize("value", [FAIL, UNKNOWN])
def test_a_pass_on_less_evidence_is_corrected_and_not_contradicted(
    value: VerdictValue, cast: Cast
) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    first = give(trial, cast.reviewer)
    add_evidence(trial, cast.engineer)

    with pytest.raises(VerdictError, match=f"^{GIVEN_ALREADY}$"):
        give(trial, cast.reviewer, value=value)
    give(trial, cast.reviewer, value=value, corrects=first)
    add_evidence(trial, cast.engineer, order=2)
    last = Verdict.objects.filter(by=cast.reviewer).latest("pk")
    assert give(trial, cast.reviewer, value=value).pk > last.pk  # the same again is no flip


def test_what_an_earlier_contract_asked_is_not_corrected(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    first = give(trial, cast.reviewer)
    contract_in_effect(cast.system, CONTRACT.replace("true?", "so?"), by=cast.engineer)

    with pytest.raises(VerdictError, match=f"^{OF_ANOTHER_CONTRACT}$"):
        give(trial, cast.reviewer, value=FAIL, corrects=first)


def test_an_unchanged_criterion_keeps_its_verdict_under_a_new_version(cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    give(trial, cast.reviewer)
    other = CONTRACT.replace("issue_refund", "pay_out")
    contract_in_effect(cast.system, other, by=cast.engineer)

    with pytest.raises(VerdictError, match=f"^{GIVEN_ALREADY}$"):
        give(trial, cast.reviewer, value=FAIL)


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        pytest.param(
            {"criterion": "none such\x00"},
            "This trial is not decided by a criterion 'none such\u2400'.",
            id="criterion",
        ),
        pytest.param(
            {"value": VerdictValue.ERROR}, "A person says pass, fail or unknown.", id="error"
        ),
        pytest.param(
            {"reason": "\u200b "}, "Say why: the reason is what the next person reads.", id="silent"
        ),
        pytest.param(
            {"reason": "x" * (LONGEST_REASON + 1)},
            "A reason has at most 4,000 characters.",
            id="long",
        ),
        pytest.param(
            {"steps": [2, 5]}, "There is no step 5; the transcript has 4 steps.", id="beyond"
        ),
        pytest.param({"steps": [0]}, "There is no step 0; the transcript has 4 steps.", id="zero"),
    ],
)
def test_what_is_wrong_is_refused(changed: dict[str, Any], sentence: str, cast: Cast) -> None:
    trial = stored_trial(cast)
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)

    with pytest.raises(VerdictError) as refused:
        give(trial, cast.reviewer, **changed)

    assert str(refused.value) == sentence
    assert not Verdict.objects.exclude(by=None).exists()


def test_a_verdict_cites_a_bounded_number_of_steps(cast: Cast) -> None:
    one = record("t1", 0, calls=[("get_order", {"n": n}) for n in range(40)])
    ingest(cast.system, [one])
    trial = Trial.objects.get(system=cast.system)

    with pytest.raises(VerdictError, match=f"^A verdict cites at most {MOST_STEPS} steps\\.$"):
        give(trial, cast.reviewer, criterion="outcome", steps=range(1, MOST_STEPS + 2))


@pytest.mark.parametrize("role", [role for role in Role if role is not Role.REVIEWER])
def test_only_a_reviewer_gives_verdicts(role: Role, cast: Cast) -> None:
    trial = stored_trial(cast)
    with pytest.raises(VerdictDeniedError, match=f"^{NOT_A_REVIEWER}$"):
        give(trial, cast.members()[role], criterion="outcome")
    assert verdict_refusal(trial, cast.outsider) == NOT_A_REVIEWER


def test_nobody_gives_verdicts_on_evidence_or_contracts_of_their_own(cast: Cast) -> None:
    set_member(cast.system, cast.engineer, Role.REVIEWER)
    trial = stored_trial(cast)
    assert verdict_refusal(trial, cast.engineer) == ""

    add_evidence(trial, cast.engineer)
    assert verdict_refusal(trial, cast.engineer) == ADDED_EVIDENCE
    contract_in_effect(cast.system, CONTRACT, by=cast.engineer)
    trial.refresh_from_db()
    assert verdict_refusal(trial, cast.engineer) == OWN_CONTRACT
    ingest(cast.system, [record("t2", 0)], by=cast.engineer)
    assert verdict_refusal(trial, cast.engineer) == BROUGHT_EVIDENCE
    with pytest.raises(VerdictDeniedError, match=f"^{BROUGHT_EVIDENCE}$"):
        give(trial, cast.engineer)
    assert verdict_refusal(trial, cast.reviewer) == ""


def test_the_case_tells_of_a_verdict(cast: Cast) -> None:
    trial = stored_trial(cast)
    follow_dispositions([decided(trial)], now=NOW)

    first = give(trial, cast.reviewer, criterion="outcome", value=UNKNOWN)
    give(trial, cast.reviewer, criterion="outcome", reason="Seen.", corrects=first)

    assert list(
        CaseEvent.objects.filter(kind="verdict").order_by("pk").values_list("text", "by")
    ) == [
        ("gave unknown on outcome: Step 2 says it.", cast.reviewer.pk),
        ("corrected pass on outcome: Seen.", cast.reviewer.pk),
    ]


def test_permission_takes_few_queries(cast: Cast) -> None:
    trial = Trial.objects.select_related("task").get(pk=stored_trial(cast).pk)
    with CaptureQueriesContext(connection) as captured:
        verdict_refusal(trial, cast.reviewer)
    assert len(captured) == 3
