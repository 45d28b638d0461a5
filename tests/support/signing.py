"""A release whose gate is ready, and the people who sign it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from django.utils import timezone

from evalsite.signing import sign_release, signing_page
from reviews.core.gate.model import CheckKind, Threshold, Thresholds
from reviews.core.gate.signing import Terms
from reviews.core.gate.states import Meaning
from reviews.core.gate.thresholds import thresholds_digest, thresholds_document
from reviews.models import RiskTier, SignOff, ThresholdSet, TierAssignment
from tests.support.cast import PASSWORD, Cast, person
from tests.support.evidence import ingest, record
from tests.support.in_effect import contract_in_effect
from traces.models import (
    ContractDecision,
    ContractOutcome,
    ContractVersion,
    Member,
    Release,
    Role,
    Task,
    User,
)
from traces.services.work import tasks_named

CONTRACT = """
task: {task}
outcome: recorded_expectation
prohibited:
  - {{id: big-refund, harm: money, call: issue_refund, where: 'args.amount > 100'}}
"""
CHECKS = (
    Threshold(CheckKind.PROHIBITED, limit=0),  # type: ignore[arg-type]
    Threshold(CheckKind.UNRESOLVED, limit=0),  # type: ignore[arg-type]
    Threshold(CheckKind.FEWEST_TRIALS, limit=3),  # type: ignore[arg-type]
    Threshold(CheckKind.DECLARED),
)
APPROVED = Terms(
    Meaning.APPROVED,
    intended_use="Refunds up to 100 dollars",
    scope="Customers in the pilot",
    expires_on=date(2099, 1, 1),
)
REJECTED = Terms(Meaning.REJECTED, reason="It refunds twice.", next_action="Mend the tool.")


@dataclass(frozen=True, slots=True)
class SignedWorld:
    """A release, its tier and the people."""

    cast: Cast
    release: Release
    tier: RiskTier
    second: User  # another owner, for long
    contract: ContractVersion


def trials(
    labels: Sequence[int], *, task: str = "t1", amount: int = 10, state: str = "done"
) -> list[dict[str, Any]]:
    """Trials that refund an amount; above 100 is prohibited."""
    return [
        record(
            task,
            label,
            calls=[("issue_refund", {"amount": amount})],
            verdicts=[],
            final_state={"refund": state},
            expected_state={"refund": "done"},
        )
        for label in labels
    ]


def a_ready_release(cast: Cast, *, n_owners: int = 1, name: str = "1.4.0") -> SignedWorld:
    """Five passing trials under thresholds and a contract that were in force before."""
    before = timezone.now() - timedelta(days=3)
    system = cast.system
    tasks_named(system, ["t1"])
    version = contract_in_effect(system, CONTRACT.format(task="t1"), by=cast.second_reviewer)
    ContractDecision.objects.create(
        proposal=version.proposal,
        outcome=ContractOutcome.APPROVED.value,
        reason="A test.",
        by=cast.reviewer,
        decided_at=before,
    )
    tier = RiskTier.objects.create(
        system=system, name="payments", made_by=cast.owner, made_at=before
    )
    thresholds = Thresholds(CHECKS, n_owners=n_owners)
    ThresholdSet.objects.create(
        tier=tier,
        number=1,
        document=thresholds_document(thresholds),
        digest=thresholds_digest(thresholds),
        reason="A test.",
        by=cast.owner,
        made_at=before,
        in_force_from=before,
    )
    TierAssignment.objects.create(
        system=system, tier=tier, reason="A test.", by=cast.owner, assigned_at=before
    )
    second = an_owner(cast, "ana", since=before)
    Member.objects.filter(system=system, user=cast.owner).update(since=before)
    ingest(system, trials(range(5)), release=name, run="nightly", by=cast.engineer)
    release = Release.objects.get(system=system, name=name)
    assert Task.objects.filter(system=system).count() == 1
    return SignedWorld(cast, release, tier, second, version)


def an_owner(cast: Cast, username: str, *, since: datetime) -> User:
    """A further owner of the cast's system."""
    user = person(username)
    member = Member.objects.create(system=cast.system, user=user, role=Role.OWNER.value)
    Member.objects.filter(pk=member.pk).update(since=since)
    return user


def signed(
    world: SignedWorld,
    *,
    by: User | None = None,
    terms: Terms = APPROVED,
    seen: str | None = None,
    password: str = PASSWORD,
) -> SignOff:
    """The release signed by the owner, on what is there now unless something else was seen."""
    user, now = by or world.cast.owner, timezone.now()
    digest = seen or signing_page(world.release, user, now=now).digest
    return sign_release(
        world.release, by=user, password=password, terms=terms, seen_digest=digest, now=now
    )
