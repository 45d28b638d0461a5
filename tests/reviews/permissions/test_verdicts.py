from __future__ import annotations

import pytest

from reviews.permissions.verdicts import NOT_A_REVIEWER, UPLOADED_VERDICTS, verdict_refusal
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.in_effect import contract_in_effect
from traces.models import Role, Trial
from traces.services.people import set_member

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("role", "sentence"),
    [
        (Role.VIEWER, NOT_A_REVIEWER),
        (Role.ENGINEER, NOT_A_REVIEWER),
        (Role.REVIEWER, ""),
        (Role.OWNER, NOT_A_REVIEWER),
    ],
)
def test_only_a_reviewer_gives_a_verdict(role: Role, sentence: str, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    assert verdict_refusal(Trial.objects.get(), cast.members()[role]) == sentence


def test_a_contract_that_is_no_longer_in_effect_keeps_nobody_out(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    text = "task: t1\nprohibited: [{id: a, harm: money, call: pay}]\n"
    contract_in_effect(cast.system, text, by=cast.engineer)
    contract_in_effect(cast.system, text.replace("pay", "give"), by=cast.owner)
    set_member(cast.system, cast.engineer, Role.REVIEWER)

    assert verdict_refusal(Trial.objects.get(), cast.engineer) == ""


def test_who_uploaded_verdicts_on_a_trial_gives_none(cast: Cast) -> None:
    ingest(cast.system, [record("t1", trial) for trial in (0, 1)])
    judged = verdict(criterion="tone", grader="judge", kind="model")
    alone = {"record": "verdicts", "task_id": "t1", "trial": 0, "verdicts": [judged]}
    ingest(cast.system, [alone], release=None, by=cast.reviewer)
    first, second = Trial.objects.order_by("pk")

    assert verdict_refusal(first, cast.reviewer) == UPLOADED_VERDICTS
    assert verdict_refusal(second, cast.reviewer) == ""
    assert verdict_refusal(first, cast.second_reviewer) == ""
