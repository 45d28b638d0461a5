from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from fractions import Fraction

import pytest
from django.db import DatabaseError, IntegrityError, transaction
from django.utils import timezone

from reviews.core.gate.model import CheckKind, Threshold, Thresholds
from reviews.core.gate.thresholds import template_of, thresholds_digest, thresholds_document
from reviews.models import ReleaseGate, RiskTier, ThresholdSet
from reviews.permissions.thresholds import NOT_AN_OWNER
from reviews.selectors.thresholds import TierRow, tier_row, tiers_of, version_of, versions_of
from reviews.services.thresholds import ThresholdConflictError, make_threshold_set
from reviews.services.tiers import TierDeniedError, TierError, make_tier, retire_tier
from tests.support.cases import LATER, NOW
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Role, User

pytestmark = pytest.mark.django_db

HOUR = timedelta(hours=1)


def levels(key: str = "payments") -> Thresholds:
    template = template_of(key)
    assert template is not None
    return template.thresholds


def tier_of(cast: Cast, name: str = "Payments") -> RiskTier:
    return make_tier(cast.system, name, "Money moves.", "payments", by=cast.owner, now=NOW)


def made(
    tier: RiskTier,
    thresholds: Thresholds,
    *,
    by: User,
    seen: int = 0,
    now: datetime = NOW,
    since: datetime | None = None,
    reason: str = "As the finance team asked.",
) -> ThresholdSet:
    return make_threshold_set(
        tier, thresholds, reason=reason, in_force_from=since, by=by, now=now, seen_number=seen
    )


def test_an_owner_sets_thresholds_that_are_in_force_from_now_on(cast: Cast) -> None:
    tier = tier_of(cast)
    row = made(tier, levels(), by=cast.owner)
    assert (row.number, row.by, row.reason, row.made_at, row.in_force_from) == (
        1,
        cast.owner,
        "As the finance team asked.",
        NOW,
        NOW,
    )
    assert (row.document, row.digest) == (
        thresholds_document(levels()),
        thresholds_digest(levels()),
    )
    found = tier_row(cast.system.pk, tier.uuid, now=NOW)
    assert found is not None
    assert found.in_force is not None
    assert (found.in_force.number, found.in_force.thresholds) == (1, levels())
    assert (found.to_come, found.newest, found.n_tasks) == ((), 1, 0)


def test_nobody_but_an_owner_sets_thresholds(cast: Cast) -> None:
    tier = tier_of(cast)
    for role, user in cast.members().items():
        if role is not Role.OWNER:
            with pytest.raises(TierDeniedError) as refused:
                made(tier, levels(), by=user)
            assert str(refused.value) == NOT_AN_OWNER
    with pytest.raises(TierDeniedError):
        made(tier, levels(), by=cast.outsider)
    assert ThresholdSet.objects.count() == 0


def test_thresholds_are_never_in_force_from_before_they_were_set(cast: Cast) -> None:
    tier = tier_of(cast)
    with pytest.raises(TierError, match="never from one that has passed: 2026-12-01 09:59:59 UTC"):
        made(tier, levels(), by=cast.owner, since=NOW - timedelta(seconds=1))
    made(tier, levels(), by=cast.owner, since=NOW)
    assert ThresholdSet.objects.get().in_force_from == NOW


def test_a_reason_is_required_and_thresholds_must_be_whole(cast: Cast) -> None:
    tier = tier_of(cast)
    with pytest.raises(TierError, match=r"A reason is missing\."):
        made(tier, levels(), by=cast.owner, reason=" \u200b")
    without = replace(
        levels(), checks=tuple(c for c in levels().checks if c.kind is not CheckKind.DECLARED)
    )
    with pytest.raises(TierError, match="cannot be switched off"):
        made(tier, without, by=cast.owner)
    above = replace(
        levels(),
        checks=(Threshold(CheckKind.OUTCOME_RATE, Fraction(3, 2)), *levels().checks[1:]),
    )
    with pytest.raises(TierError, match="from 0 to 1"):
        made(tier, above, by=cast.owner)
    assert ThresholdSet.objects.count() == 0


def test_what_changes_nothing_is_refused(cast: Cast) -> None:
    tier = tier_of(cast)
    made(tier, levels(), by=cast.owner)
    with pytest.raises(TierError, match="These are the thresholds of version 1 already"):
        made(tier, levels(), by=cast.owner, seen=1, now=LATER)
    assert ThresholdSet.objects.count() == 1


def test_the_same_thresholds_sooner_are_another_version(cast: Cast) -> None:
    tier = tier_of(cast)
    made(tier, levels(), by=cast.owner, since=LATER)
    row = made(tier, levels(), by=cast.owner, seen=1, now=NOW + HOUR)
    assert (row.number, row.in_force_from) == (2, NOW + HOUR)


def test_a_version_that_came_meanwhile_is_a_conflict(cast: Cast) -> None:
    tier = tier_of(cast)
    made(tier, levels(), by=cast.owner)
    with pytest.raises(ThresholdConflictError) as refused:
        made(tier, levels("drafting"), by=cast.owner, seen=0, now=LATER)
    assert str(refused.value) == (
        "owner set version 1 at 2026-12-01 10:00:00 UTC, after you opened this page. Look at it, "
        "then decide again."
    )
    with pytest.raises(ThresholdConflictError, match="does not exist"):
        made(tier_of(cast, "Other"), levels(), by=cast.owner, seen=4)


def test_what_is_in_force_what_comes_and_what_never_was(cast: Cast) -> None:
    tier = tier_of(cast)
    one, two = levels("drafting"), levels("customer_data")
    made(tier, one, by=cast.owner)
    made(tier, two, by=cast.owner, seen=1, since=NOW + 2 * HOUR)
    made(tier, levels(), by=cast.owner, seen=2, since=NOW + 3 * HOUR)
    third = [version.number for version in _row(cast, tier, NOW).to_come]
    assert (third, _in_force(cast, tier, NOW)) == ([2, 3], 1)
    assert _in_force(cast, tier, NOW + 2 * HOUR) == 2
    assert _in_force(cast, tier, NOW + 4 * HOUR) == 3
    # Sooner than both: they never come.
    made(tier, replace(two, n_owners=2), by=cast.owner, seen=3, since=NOW + HOUR, now=NOW)
    assert [version.number for version in _row(cast, tier, NOW).to_come] == [4]
    assert _in_force(cast, tier, NOW + 4 * HOUR) == 4
    assert [version.number for version in versions_of(tier.pk).rows] == [4, 3, 2, 1]
    first = versions_of(tier.pk, n=2)
    assert ([v.number for v in first.rows], first.next_after) == ([4, 3], 3)
    rest = versions_of(tier.pk, after=3, n=2)
    assert ([v.number for v in rest.rows], rest.next_after) == ([2, 1], None)
    assert version_of(tier.pk, 5) is None


def _row(cast: Cast, tier: RiskTier, now: datetime) -> TierRow:
    found = tier_row(cast.system.pk, tier.uuid, now=now)
    assert found is not None
    return found


def _in_force(cast: Cast, tier: RiskTier, now: datetime) -> int | None:
    version = _row(cast, tier, now).in_force
    return version.number if version else None


def test_a_retired_tier_gets_no_further_version(cast: Cast) -> None:
    tier = tier_of(cast)
    retire_tier(tier, reason="Not needed.", by=cast.owner, now=NOW)
    with pytest.raises(TierError, match="Tier Payments was retired at"):
        made(tier, levels(), by=cast.owner)
    other = tier_of(cast, "Other")
    assert [(row.name, row.retired is None) for row in tiers_of(cast.system.pk, now=NOW)] == [
        (other.name, True),
        (tier.name, False),
    ]


def test_each_version_touches_the_gates_of_the_system(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.other_system, [record("t1", 0)], by=cast.outsider)
    before = {gate.pk: gate.revision for gate in ReleaseGate.objects.all()}
    mine = ReleaseGate.objects.get(release__system=cast.system).pk
    made(tier_of(cast), levels(), by=cast.owner, now=timezone.now())
    after = {gate.pk: gate.revision for gate in ReleaseGate.objects.all()}
    assert after == before | {mine: before[mine] + 1}


def test_a_stored_document_that_cannot_be_read_is_shown_as_such(cast: Cast) -> None:
    tier = tier_of(cast)
    ThresholdSet.objects.create(
        tier=tier,
        number=1,
        document={"checks": []},
        digest="0" * 64,
        reason="Written by hand.",
        made_at=NOW,
        in_force_from=NOW,
    )
    version = _row(cast, tier, NOW).in_force
    assert version is not None
    assert (version.number, version.thresholds, version.by_name) == (1, None, "")


def test_the_database_keeps_versions_of_thresholds(cast: Cast) -> None:
    tier = tier_of(cast)
    made(tier, levels(), by=cast.owner)
    wrong: tuple[tuple[dict[str, object], str], ...] = (
        ({"number": 1}, "threshold_set_number"),
        ({"in_force_from": NOW - HOUR}, "threshold_set_not_retroactive"),
        ({"reason": ""}, "threshold_set_has_reason"),
    )
    for values, constraint in wrong:
        row = {
            "tier": tier,
            "number": 2,
            "document": {},
            "digest": "0" * 64,
            "reason": "x",
            "made_at": NOW,
            "in_force_from": NOW,
        }
        with pytest.raises(IntegrityError, match=constraint), transaction.atomic():
            ThresholdSet.objects.create(**row | values)
    with pytest.raises(DatabaseError, match="a threshold set is append-only"), transaction.atomic():
        ThresholdSet.objects.update(digest="1" * 64)
    with pytest.raises(DatabaseError, match="a threshold set is append-only"), transaction.atomic():
        ThresholdSet.objects.all().delete()
