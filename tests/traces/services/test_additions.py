from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest

from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.core.additions import AddedResult, Addition
from traces.core.limits import DEFAULT_LIMITS
from traces.models import EvidenceAddition, Role, Trial
from traces.permissions.additions import NOT_AN_ENGINEER, addition_refusal
from traces.selectors.trial_evidence import trial_evidence
from traces.services import additions
from traces.services.additions import (
    MOST_BYTES,
    AdditionDeniedError,
    AdditionError,
    add_evidence,
    addition_of,
)

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
STATE = Addition(final_state={"orders": {"A-1": 1.5}})


def stored_trial(cast: Cast, **more: Any) -> Trial:
    ingest(cast.system, [record("t1", 0, **more)])
    return Trial.objects.get(system=cast.system)


def add(trial: Trial, cast: Cast, addition: Addition = STATE, **more: Any) -> EvidenceAddition:
    asked = {"source": " inspection api ", "reason": " It was lost. ", "by": cast.engineer, **more}
    return add_evidence(trial, addition, now=NOW, **asked)


def findings(error: pytest.ExceptionInfo[AdditionError]) -> list[tuple[str, str]]:
    return [(finding.code, finding.place) for finding in error.value.findings]


@pytest.mark.parametrize("role", [*Role, None], ids=str)
def test_only_engineers_add_evidence(role: Role | None) -> None:
    assert addition_refusal(role) == ("" if role is Role.ENGINEER else NOT_AN_ENGINEER)


def test_an_addition_is_kept_with_its_source(cast: Cast) -> None:
    trial = stored_trial(cast)

    row = add(trial, cast)
    second = add(trial, cast, Addition(cost_usd=Decimal("0.10"), seconds=Decimal(3)))

    assert (row.trial, row.order, row.parts, row.source, row.reason, row.by, row.added_at) == (
        trial,
        1,
        ["final_state"],
        "inspection api",
        "It was lost.",
        cast.engineer,
        NOW,
    )
    assert (second.order, second.parts) == (2, ["cost_usd", "seconds"])
    (rows,) = trial_evidence([trial.pk])
    whole = rows.evidence(2)
    assert (whole.final_state, whole.cost_usd, whole.seconds) == (
        {"orders": {"A-1": 1.5}},
        Decimal("0.10"),
        Decimal(3),
    )
    assert rows.recorded.final_state is None


@pytest.mark.parametrize("name", ["viewer", "reviewer", "owner", "outsider"])
def test_nobody_else_adds_any(name: str, cast: Cast) -> None:
    trial = stored_trial(cast)

    with pytest.raises(AdditionDeniedError) as refused:
        add(trial, cast, by=getattr(cast, name))

    assert str(refused.value) == NOT_AN_ENGINEER
    assert not EvidenceAddition.objects.exists()


def test_the_same_again_is_the_first_one(cast: Cast) -> None:
    trial = stored_trial(cast)

    assert add(trial, cast) == add(trial, cast, source="elsewhere")
    assert EvidenceAddition.objects.count() == 1


def test_what_is_there_already_is_refused_by_name(cast: Cast) -> None:
    trial = stored_trial(cast, final_state={"orders": {}}, facts={"customer": "C-1"})
    add(trial, cast, Addition(facts={"order": "A-1"}))

    with pytest.raises(AdditionError) as refused:
        add(trial, cast, STATE)
    assert str(refused.value) == "The trial has final_state already; evidence never changes."
    with pytest.raises(AdditionError) as refused:
        add(trial, cast, Addition(facts={"customer": "C-2", "order": "A-2", "new": 1}))
    assert findings(refused) == [("recorded", "facts.customer"), ("recorded", "facts.order")]
    with pytest.raises(AdditionError) as refused:
        add(trial, cast, Addition(results=(AddedResult(2, 0, "ok"), AddedResult(9, 0, "ok"))))
    assert findings(refused) == [("recorded", "results[0]"), ("no-such-call", "results[1]")]
    assert EvidenceAddition.objects.count() == 1


@pytest.mark.parametrize("place", ["source", "reason"])
@pytest.mark.parametrize(
    ("text", "code"),
    [
        pytest.param("", "missing-field", id="empty"),
        pytest.param("\u200b ", "missing-field", id="unseen"),
        pytest.param("x" * 2_001, "too-long", id="long"),
    ],
)
def test_source_and_reason_are_required(place: str, text: str, code: str, cast: Cast) -> None:
    trial = stored_trial(cast)

    with pytest.raises(AdditionError) as refused:
        add(trial, cast, STATE, **{place: text})

    assert findings(refused) == [(code, place)]


def test_a_trial_takes_so_many_additions(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(additions, "MOST_ADDITIONS", 1)
    trial = stored_trial(cast)
    add(trial, cast)

    with pytest.raises(AdditionError) as refused:
        add(trial, cast, Addition(tokens=3))

    assert str(refused.value) == "A trial takes at most 1 additions."


@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        pytest.param(b"", "empty", "", id="nothing"),
        pytest.param(b"[1]", "wrong-type", "", id="a list"),
        pytest.param(b"{}", "empty", "", id="no part"),
        pytest.param(
            b'{"final_state": {"a": 1, "a": 2}}', "duplicate-key", "final_state.a", id="twice"
        ),
        pytest.param(b'{"cost_usd": NaN}', "not-finite", "cost_usd", id="nan"),
        pytest.param(b'{"messages": []}', "unknown-part", "messages", id="unknown"),
        pytest.param(b'{"tokens": -1}', "bad-number", "tokens", id="negative"),
        pytest.param(b'{"results": [{"step": 1}]}', "missing-field", "results[0]", id="no content"),
        pytest.param(
            b'{"final_state": ' + b"[" * 100 + b"]" * 100 + b"}", "too-deep", None, id="deep"
        ),
        pytest.param(b"\xff\xfe{", "utf-16", "", id="utf-16"),
        pytest.param(b'"' + b"x" * MOST_BYTES, "too-large", "", id="large"),
    ],
)
def test_text_that_is_no_addition_names_its_place(
    text: bytes, code: str, place: str | None
) -> None:
    with pytest.raises(AdditionError) as refused:
        addition_of(text, DEFAULT_LIMITS)

    ((found, where),) = findings(refused)[:1]
    assert found == code == refused.value.code
    assert place is None or where == place


def test_every_digit_is_kept(cast: Cast) -> None:
    trial = stored_trial(cast)
    add(trial, cast, addition_of(b'{"final_state": {"n": 0.10000000000000000001}}'))

    (rows,) = trial_evidence([trial.pk])
    state = rows.evidence(1).final_state
    assert state == {"n": Decimal("0.10000000000000000001")}
