"""What pages of tiers and thresholds say alike."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from evalsite.access import Access, Act
from evalsite.common.formatting import time_text
from evalsite.common.shell import Crumb
from reviews.permissions.thresholds import NOT_AN_OWNER
from reviews.selectors.thresholds import TierRow, VersionOfThresholds
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.thresholds import VersionNote

SECTION = "Thresholds"
NO_TIER = "There is no such risk tier in this system."
OPERATOR = "the operator"


def why_not(access: Access) -> str:
    """Why the person may not set tiers and thresholds; "" when they may."""
    return "" if access.may(Act.OWN) else NOT_AN_OWNER


def crumbs_of(access: Access, *rest: Crumb) -> tuple[Crumb, ...]:
    """The way to a page of thresholds."""
    at = Addresses.of(access.system.slug)
    here = Crumb("Thresholds", at.thresholds if rest else "")
    return (Crumb(access.system.name, at.tasks), here, *rest)


def version_note(
    tier: TierRow, version: VersionOfThresholds, at: Addresses, *, now: datetime
) -> VersionNote:
    """A version in one line, with what it is at an instant."""
    return VersionNote(
        name=pages.Link(
            f"Version {version.number}", at.threshold_version(tier.uuid, version.number)
        ),
        since=version.in_force_from,
        by=version.by_name or OPERATOR,
        reason=version.reason,
        made_at=version.made_at,
        badge=version_badge(tier, version, now=now),
    )


def version_badge(tier: TierRow, version: VersionOfThresholds, *, now: datetime) -> pages.Badge:
    """Whether a version is in force, to come, replaced, or never was."""
    if tier.in_force and tier.in_force.number == version.number:
        if tier.retired:
            return pages.Badge("in force until the tier was retired")
        return pages.Badge("in force", "pass")
    if version.in_force_from > now:
        if any(each.number == version.number for each in tier.to_come):
            return pages.Badge(f"from {time_text(version.in_force_from)}", "waiting")
        return pages.Badge("replaced before its time")
    return pages.Badge("replaced")


def owners_words(n: int) -> str:
    """How many owners have to sign."""
    return "one owner signs" if n == 1 else "two different owners sign"


def new_url(at: Addresses) -> str:
    """The form that makes a tier; takes ?template=."""
    return f"{at.thresholds}new/"


def move_url(at: Addresses) -> str:
    """Takes a POST: tasks are put into a tier."""
    return f"{at.tier_tasks}move"


def retire_url(at: Addresses, tier: UUID) -> str:
    """Takes a POST: a tier is retired."""
    return f"{at.tier(tier)}retire"
