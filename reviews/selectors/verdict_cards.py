"""The verdicts on a trial as its page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import connection

from evalsite.common import blobs
from reviews.core.disposition import GivenVerdict
from reviews.core.requirements import CHECKS_GRADER, EVIDENCE_KEY
from reviews.selectors.votes import GIVEN_COLUMNS, N_GIVEN, SeenEvidence, given_of
from traces.core.records import GraderKind


@dataclass(frozen=True, slots=True)
class StateFinding:
    """One place where the final state is not as the contract wants it."""

    pointer: str
    wanted: str
    found: str


@dataclass(frozen=True, slots=True)
class CheckDetail:
    """What a check of a contract found beside its value."""

    differences: tuple[StateFinding, ...] = ()  # of the outcome: the first ones
    n_differences: int = 0
    reached: tuple[int, ...] = ()  # required: steps that satisfy it, anchors left aside
    attempted: tuple[int, ...] = ()  # prohibited: steps of attempts
    committed: tuple[int, ...] = ()  # prohibited: of those, the committed ones


@dataclass(frozen=True, slots=True)
class VerdictCard:
    """One stored verdict: what the disposition reads of it, and what people read."""

    given: GivenVerdict
    rationale: str
    overrides: str
    extra: str  # ASCII JSON; "" when it came with nothing else
    created_at: datetime
    by_name: str  # the signed-in person, "" when it came in a file
    by_pk: int | None
    upload_uuid: UUID | None
    line: int | None
    contract_uuid: UUID | None  # the version that it was given under
    contract_number: int | None
    vouched_by: str = ""  # the reviewer who vouched for it, of an imported human verdict
    vouched_at: datetime | None = None
    vouch_reason: str = ""

    @property
    def is_check(self) -> bool:
        """Whether a check of a contract gave it."""
        given = self.given
        return (
            given.kind is GraderKind.CODE
            and given.contract is not None
            and given.grader == CHECKS_GRADER
        )

    @property
    def check(self) -> CheckDetail:
        """What the check found; empty for any other verdict."""
        return _detail(self.extra) if self.is_check else CheckDetail()


@dataclass(frozen=True, slots=True)
class TrialCards:
    """All verdicts on a trial, and what its gradings noted of the evidence."""

    cards: tuple[VerdictCard, ...]  # in the order in which they came
    seen: Mapping[int, SeenEvidence]  # by contract version


def verdict_cards(trial_pk: int) -> tuple[VerdictCard, ...]:
    """All verdicts on a trial in the order in which they came, in one query."""
    return trial_cards(trial_pk).cards


_CARDS = f"""
SELECT {GIVEN_COLUMNS}, v.key, v.rationale, v.overrides, v.extra, v.created_at,
       coalesce(nullif(trim(p.first_name || ' ' || p.last_name), ''), p.username, ''), v.by_id,
       u.uuid, v.line, n.uuid, n.number,
       coalesce(nullif(trim(q.first_name || ' ' || q.last_name), ''), q.username, ''),
       w.vouched_at, coalesce(w.reason, '')
FROM reviews_verdict v
JOIN reviews_graderversion gv ON gv.id = v.grader_version_id
JOIN reviews_grader g ON g.id = gv.grader_id
JOIN reviews_criterion c ON c.id = v.criterion_id
LEFT JOIN traces_user p ON p.id = v.by_id
LEFT JOIN traces_upload u ON u.id = v.upload_id
LEFT JOIN traces_contractversion n ON n.id = v.contract_id
LEFT JOIN reviews_vouch w ON w.verdict_id = v.id
LEFT JOIN traces_user q ON q.id = w.by_id
WHERE v.trial_id = %s ORDER BY v.id
"""  # noqa: S608 - columns from here


def trial_cards(trial_pk: int) -> TrialCards:
    """All verdicts on a trial and what its gradings noted, in one query."""
    cards: list[VerdictCard] = []
    seen: dict[int, SeenEvidence] = {}
    with connection.cursor() as cursor:
        cursor.execute(_CARDS, [trial_pk])
        for row in cursor.fetchall():
            given, key = given_of(*row[:N_GIVEN]), row[N_GIVEN]
            card = VerdictCard(given, *row[N_GIVEN + 1 :])
            if card.is_check and key.endswith(EVIDENCE_KEY):
                _note_seen(seen, card)
            else:
                cards.append(card)
    return TrialCards(tuple(cards), seen)


def _note_seen(seen: dict[int, SeenEvidence], card: VerdictCard) -> None:
    given = card.given
    if given.is_outdated or given.contract is None:
        return
    before = seen.get(int(given.contract))
    if before is None or before.evidence_order <= given.evidence_order:
        said = blobs.loads(card.extra)["evidence"]
        seen[int(given.contract)] = SeenEvidence(
            given.evidence_order, tuple(said["missing"]), tuple(said["faults"])
        )


def _detail(extra: str) -> CheckDetail:
    said: Any = blobs.loads(extra) if extra else None
    check = said.get("check") if isinstance(said, dict) else None
    if not isinstance(check, dict):
        return CheckDetail()
    return CheckDetail(
        differences=tuple(StateFinding(*each) for each in check["differences"]),
        n_differences=check["n_differences"],
        reached=tuple(check["reached"]),
        attempted=tuple(check["attempted"]),
        committed=tuple(check["committed"]),
    )
