from __future__ import annotations

from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from reviews.models import CalibrationItem, CalibrationSet, Criterion
from reviews.selectors.blinding import hidden_criteria, is_hidden
from reviews.services.labels import give_label
from reviews.services.person_verdicts import give_verdict
from reviews.services.seats import reveal, skip_item
from tests.support.cast import Cast
from tests.support.labels import NOW, blind_set, seated, stored_set
from traces.core.records import VerdictValue
from traces.models import Role, Trial, User

pytestmark = pytest.mark.django_db

PASS = VerdictValue.PASS


def hidden(cast: Cast, by: User | None = None, role: Role | None = Role.REVIEWER) -> Any:
    user = by or cast.reviewer
    return hidden_criteria(user.pk, role, Trial.objects.values_list("pk", flat=True))


def test_open_sets_hide_their_criterion_from_reviewers(cast: Cast) -> None:
    blind_set(cast, 2)
    first, second = Trial.objects.order_by("pk")
    kind, _ = Criterion.objects.get_or_create(system=cast.system, name="kind")
    stored_set(cast.system, [second], by=cast.owner, criterion=kind)

    with CaptureQueriesContext(connection) as captured:
        found = hidden_criteria(cast.reviewer.pk, Role.REVIEWER, [first.pk, second.pk])

    assert found == {first.pk: frozenset({"tone"}), second.pk: frozenset({"tone", "kind"})}
    assert len(captured) == 1
    assert is_hidden(cast.reviewer.pk, Role.REVIEWER, first.pk, "tone")
    assert not is_hidden(cast.reviewer.pk, Role.REVIEWER, first.pk, "outcome")


@pytest.mark.parametrize("role", [Role.VIEWER, Role.ENGINEER, Role.OWNER, None])
def test_nothing_is_hidden_from_others(role: Role | None, cast: Cast) -> None:
    blind_set(cast, 1)
    trials = list(Trial.objects.values_list("pk", flat=True))
    with CaptureQueriesContext(connection) as captured:
        assert hidden_criteria(cast.reviewer.pk, role, trials) == {}
        assert hidden_criteria(cast.reviewer.pk, Role.REVIEWER, []) == {}
    assert len(captured) == 0


@pytest.mark.parametrize(
    ("model", "change"),
    [
        (CalibrationSet, {"completed_at": NOW}),
        (CalibrationSet, {"closed_at": NOW}),
        (CalibrationSet, {"is_imported": True}),
        (CalibrationItem, {"settled_at": NOW}),
        (CalibrationItem, {"withdrawn_at": NOW}),
    ],
)
def test_what_nobody_labels_any_more_is_open(
    model: Any, change: dict[str, Any], cast: Cast
) -> None:
    blind_set(cast, 1)
    assert hidden(cast) != {}
    model.objects.update(**change)
    assert hidden(cast) == {}


def test_a_label_or_a_look_or_an_own_verdict_opens_it_to_the_person(cast: Cast) -> None:
    of = blind_set(cast, 3)
    me = cast.reviewer
    first, second, third = Trial.objects.order_by("pk")
    item = seated(of, me).item
    give_label(item, value=PASS, reason="Kind.", steps=(), by=me, now=NOW)
    assert set(hidden(cast)) == {second.pk, third.pk}
    reveal(second, of.criterion_id, where="trial", by=me, now=NOW)
    assert set(hidden(cast)) == {third.pk}
    give_verdict(third, criterion="tone", value=PASS, reason="Kind.", steps=(), by=me, now=NOW)
    assert hidden(cast) == {}
    assert set(hidden(cast, cast.second_reviewer)) == {first.pk, second.pk, third.pk}


def test_a_skipped_item_stays_hidden_until_the_person_asks(cast: Cast) -> None:
    of = blind_set(cast, 1)
    skip_item(seated(of, cast.reviewer).item, reason="Long.", by=cast.reviewer, now=NOW)
    assert set(hidden(cast)) == {Trial.objects.get().pk}
