from __future__ import annotations

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from reviews.core.gate.thresholds import template_of, thresholds_document
from reviews.models import RiskTier, ThresholdSet
from reviews.services.thresholds import make_threshold_set
from reviews.services.tiers import make_tier
from tests.support.cast import Cast
from tests.support.keys import header

pytestmark = pytest.mark.django_db


@pytest.fixture
def tier(cast: Cast) -> RiskTier:
    """A tier with one version of thresholds in force."""
    now = timezone.now()
    made = make_tier(cast.system, "payments", "Money\nmoves.", "", by=cast.owner, now=now)
    template = template_of("payments")
    assert template is not None
    make_threshold_set(
        made,
        template.thresholds,
        reason="As\npromised.",
        in_force_from=None,
        by=cast.owner,
        now=now,
        seen_number=0,
    )
    return made


def printed(*args: str) -> str:
    out = StringIO()
    call_command("thresholds", *args, stdout=out)
    return out.getvalue()


def expected(tier: RiskTier) -> dict[str, Any]:
    row = ThresholdSet.objects.get()
    template = template_of("payments")
    assert template is not None
    return {
        "id": str(row.uuid),
        "version": 1,
        "in_force_from": row.in_force_from.isoformat(),
        "set_at": row.made_at.isoformat(),
        "set_by": "owner",
        "reason": "As\npromised.",
        "digest": row.digest,
        "thresholds": thresholds_document(template.thresholds),
    }


def test_a_key_reads_the_tiers_of_its_system(client: Client, cast: Cast, tier: RiskTier) -> None:
    at = f"/api/v1/systems/{cast.system.slug}/tiers"
    answer = client.get(at, **header(cast.system, cast.engineer))
    (found,) = answer.json()["tiers"]
    assert len(found["in_force"].pop("sentences")) == 15
    assert found == {
        "id": str(tier.uuid),
        "name": "payments",
        "description": "Money\nmoves.",
        "n_tasks": 0,
        "made_at": tier.made_at.isoformat(),
        "made_by": "owner",
        "retired_at": None,
        "in_force": expected(tier),
        "to_come": [],
    }
    assert client.get(at).status_code == 401
    other = f"/api/v1/systems/{cast.other_system.slug}/tiers"
    assert client.get(other, **header(cast.system, cast.engineer)).status_code == 404
    assert client.post(at, **header(cast.system, cast.engineer)).status_code == 405


def test_the_command_prints_what_is_in_force_and_the_history(cast: Cast, tier: RiskTier) -> None:
    text = printed("--system", cast.system.slug)
    lines = text.splitlines()
    assert (lines[0], len(lines)) == ("payments (0 tasks)", 17)
    assert lines[-1].startswith("* version 1, in force from ")
    assert lines[-1].endswith(": As promised.")
    (found,) = json.loads(printed("--system", cast.system.slug, "--tier", "Payments", "--json"))[
        "tiers"
    ]
    assert [version["version"] for version in found["history"]] == [1]


def test_the_command_says_what_is_not_there(cast: Cast) -> None:
    assert printed("--system", cast.system.slug).startswith("No risk tier yet.")
    with pytest.raises(CommandError, match="There is no risk tier 'x' in this system"):
        printed("--system", cast.system.slug, "--tier", "x")
