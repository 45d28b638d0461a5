"""Rules on their way: drafted, proposed, approved, in force."""

from __future__ import annotations

from datetime import UTC, datetime

from evalsite.rules_work import recompute
from tests.support.cast import Cast
from traces.core.rule_changes import RuleChange
from traces.models import RulesOutcome, RulesPreview, RulesVersion, WorkState
from traces.services.rules import decide_rules, propose_rules, start_preview

NOW = datetime(2026, 12, 1, 9, tzinfo=UTC)


def drafted(cast: Cast, change: RuleChange) -> RulesPreview:
    """A preview of the engineer's whose effect a worker has worked out."""
    preview = start_preview(cast.system, change, by=cast.engineer, now=NOW)
    RulesPreview.objects.filter(pk=preview.pk).update(state=WorkState.DONE.value, result={})
    return preview


def proposed(cast: Cast, change: RuleChange) -> RulesVersion:
    """A version that the engineer proposed."""
    return propose_rules(drafted(cast, change), reason="a sum", by=cast.engineer, now=NOW)


def approved(cast: Cast, change: RuleChange) -> RulesVersion:
    """A version that the reviewer approved; its work waits."""
    version = proposed(cast, change)
    decide_rules(version, outcome=RulesOutcome.APPROVED, reason="agreed", by=cast.reviewer, now=NOW)
    return version


def in_force(cast: Cast, change: RuleChange) -> RulesVersion:
    """A version that is worked out and shown."""
    version = approved(cast, change)
    recompute(version.pk)
    cast.system.refresh_from_db()
    return version
