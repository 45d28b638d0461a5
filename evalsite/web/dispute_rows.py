"""Disputes as rows of their list: one by one, and by cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from evalsite.common.formatting import counted
from evalsite.web.case_filters import SPLITS
from evalsite.web.case_words import age_text
from evalsite.web.dispute_filters import AGREEING, NONE, DisputeFilters
from evalsite.web.dispute_words import (
    CLASSES,
    GRADERS,
    JUDGES_AGREE,
    KINDS,
    RULING_STATES,
    RULINGS,
    STANCES,
    VALUE_STATES,
    counting_sentence,
    effect_sentence,
    idle_words,
    why_not_counting,
)
from reviews.core.disputes import DisputeKind
from reviews.models import DisputeState
from reviews.selectors.disputes import (
    DisputeCause,
    JudgeChoice,
    JudgeGroup,
    ListedDispute,
    ListedSide,
)
from traces.core.records import GraderKind, VerdictValue
from traces.selectors.releases import NO_RELEASE
from traces.web.addresses import Addresses, Value
from traces.web.pages.disputes import (
    CauseRow,
    DisputeCount,
    DisputeRow,
    DisputeSaying,
    DisputeVoice,
    JudgeRow,
)
from traces.web.pages.parts import Badge, Link
from traces.web.rows import trial_label

Hidden = dict[int, frozenset[str]]
"""Criteria of trials on which a person must not see what others say, by trial."""

MOST_VOICES = 5  # graders of one value in a row of the list


@dataclass(frozen=True, slots=True)
class ListContext:
    """What all rows of one list share."""

    filters: DisputeFilters
    at: Addresses
    now: datetime
    people: Mapping[str, str]  # printed names by the names of accounts


def is_hidden(dispute: ListedDispute, hidden: Hidden) -> bool:
    """Whether the person must not see what others say in a dispute."""
    return dispute.criterion in hidden.get(dispute.trial_pk, frozenset())


def dispute_row(
    dispute: ListedDispute, context: ListContext, *, hidden: str, skipped: str
) -> DisputeRow:
    """A dispute of the list. With `hidden` it tells nothing of what graders say."""
    at, now = context.at, context.now
    is_open = dispute.state is DisputeState.OPEN
    about = [CLASSES[dispute.criterion_class]]
    if dispute.rubric_version:
        about.append(f"rubric version {dispute.rubric_version}")
    seen_at = dispute.closed_at or dispute.opened_at
    return DisputeRow(
        id=f"dispute-{dispute.uuid}",
        trial=Link(
            f"{dispute.task_id} · trial {trial_label(dispute.label, dispute.attempt)}",
            f"{at.dispute(dispute.uuid)}{context.filters.query()}",
        ),
        title=dispute.task_title,
        below=tuple(
            each
            for each in (
                dispute.release_name or NO_RELEASE,
                dispute.family,
                SPLITS.get(dispute.split, dispute.split),
            )
            if each
        ),
        criterion=dispute.criterion,
        about=tuple(about),
        kinds=() if hidden else tuple(KINDS[kind] for kind in dispute.kinds),
        says=() if hidden else sayings(dispute.sides, context.people),
        n_more=0 if hidden else dispute.n_more_sides,
        effect=Badge("hidden") if hidden else effect_badge(dispute),
        effect_sentence="" if hidden else effect_sentence(dispute),
        not_counting="" if hidden else counting_sentence(dispute),
        age=age_text(seen_at, now),
        opened_at=seen_at,
        state=None if is_open else state_badge(dispute, is_hidden=bool(hidden)),
        hidden=hidden,
        skipped=skipped,
    )


def effect_badge(dispute: ListedDispute) -> Badge:
    """Whether it decides something, and if not, why."""
    if dispute.no_effect is None:
        return Badge("decides", "unresolved")
    return Badge(idle_words(dispute.no_effect))


def state_badge(dispute: ListedDispute, *, is_hidden: bool = False) -> Badge:
    """What became of a dispute that is not open."""
    if dispute.state is DisputeState.OVER:
        return Badge("over")
    if dispute.ruling is None or is_hidden:
        return Badge("adjudicated")
    return Badge(f"adjudicated: {RULINGS[dispute.ruling]}", RULING_STATES[dispute.ruling])


def sayings(sides: tuple[ListedSide, ...], people: Mapping[str, str]) -> tuple[DisputeSaying, ...]:
    """Who says what, a line for each value; who says several stands in each."""
    found = []
    for value in VerdictValue:
        voices = [_voice(side, people) for side in sides if value in side.values]
        if voices:
            badge = Badge(value.value, VALUE_STATES[value])
            shown = tuple(voices[:MOST_VOICES])
            found.append(DisputeSaying(badge, shown, len(voices) - len(shown)))
    return tuple(found)


def _voice(side: ListedSide, people: Mapping[str, str]) -> DisputeVoice:
    is_person = side.kind is GraderKind.HUMAN and not side.is_imported
    return DisputeVoice(
        kind=GRADERS[side.kind],
        name=people.get(side.grader, side.grader) if is_person else side.grader,
        version=side.version,
        note=why_not_counting(side),
    )


def account_names(disputes: tuple[ListedDispute, ...]) -> set[str]:
    """The accounts of the signed-in people who say something in some disputes."""
    return {
        side.grader
        for dispute in disputes
        for side in dispute.sides
        if side.kind is GraderKind.HUMAN and not side.is_imported
    }


def cause_row(
    cause: DisputeCause,
    context: ListContext,
    *,
    number: int,
    judges: Mapping[str, JudgeChoice],
    criterion_pk: int | None,
) -> CauseRow:
    """The disputes on one criterion under one version of its rubric, with a row for each judge."""
    filters, at = context.filters, context.at
    here: dict[str, Value] = {
        "criterion": cause.criterion,
        "rubric": cause.rubric_version or NONE,
        "class": cause.criterion_class.value,
    }
    between = [
        (KINDS[kind], DisputeCount(n, filters.list_url(at, **here, kind=kind.value)))
        for kind, n in cause.n_between
    ]
    if cause.n_judges_agree and any(k is DisputeKind.JUDGE_JUDGE for k, _ in cause.n_between):
        href = filters.list_url(at, **here, kind=AGREEING)
        between.append((JUDGES_AGREE, DisputeCount(cause.n_judges_agree, href)))
    about = [CLASSES[cause.criterion_class]]
    if cause.rubric_version:
        about.append(f"rubric version {cause.rubric_version}")
    return CauseRow(
        id=f"cause-{number}",
        criterion=Link(cause.criterion, filters.list_url(at, **here)),
        about=tuple(about),
        words=_cause_words(cause),
        why=tuple(idle_words(each) for each in cause.reasons),
        is_deciding=cause.n_deciding > 0,
        between=tuple(between),
        judges=tuple(
            _judge_row(group, context, here, judges.get(group.judge), criterion_pk)
            for group in cause.judges
        )
        if any(group.judge for group in cause.judges)
        else (),
        n_more_judges=cause.n_more_judges,
        age=age_text(cause.opened_at, context.now),
        opened_at=cause.opened_at,
    )


def _cause_words(cause: DisputeCause) -> str:
    n = counted(cause.n, "dispute")
    if not cause.n_deciding:
        return f"{n}, {'it decides nothing' if cause.n == 1 else 'none decides anything'}"
    if cause.n_deciding == cause.n:
        return f"{n}, {'it decides something' if cause.n == 1 else 'all decide something'}"
    return f"{n}, {cause.n_deciding:,} {'decides' if cause.n_deciding == 1 else 'decide'} something"


def _judge_row(
    group: JudgeGroup,
    context: ListContext,
    here: Mapping[str, Value],
    judge: JudgeChoice | None,
    criterion_pk: int | None,
) -> JudgeRow:
    filters, at = context.filters, context.at
    name, version = group.names
    own: dict[str, Value] = {**here, "judge": judge.pk if judge else NONE}
    by_stance = dict(group.n_by_stance)
    return JudgeRow(
        name=name,
        version=version,
        card=at.judge(judge.pk, criterion_pk) if judge and criterion_pk else "",
        all=DisputeCount(group.n, filters.list_url(at, **own)),
        deciding=_count(group.n_deciding, filters.list_url(at, **own, deciding="1")),
        by_stance=tuple(
            (words, _count(by_stance.get(stance, 0), filters.list_url(at, **own, stance=stance)))
            for stance, words in STANCES.items()
        ),
        age=age_text(group.opened_at, context.now),
        opened_at=group.opened_at,
    )


def _count(n: int, href: str) -> DisputeCount | None:
    return DisputeCount(n, href) if n else None
