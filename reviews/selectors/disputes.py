"""Disputes as their list reads them: a page at a time, grouped by cause, and one of them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.db import connection

from reviews.core.disposition import AdjudicationRuling
from reviews.core.disputes import DisputeKind, NoEffect
from reviews.models import DisputeState
from traces.core.records import CriterionClass, GraderKind, VerdictValue

PAGE_DISPUTES = 50
MOST_CAUSES = 40  # criteria with their rubric version in the list of groups
MOST_JUDGES = 20  # of one cause in it
MOST_JUDGE_CHOICES = 500  # in the menu of a filter
MOST_CRITERIA = 500
NO_JUDGE = ""
"""Disputes in which no judge says anything."""
_MICROSECOND = 1_000_000


class Stance(StrEnum):
    """How what one judge version says of a disputed criterion stands to the others."""

    ABOVE_CODE = "above_code"  # it says pass, code says fail or unknown
    BELOW_CODE = "below_code"  # code says pass, it says fail or unknown
    OTHER_JUDGES = "other_judges"  # another judge says otherwise
    PEOPLE = "people"  # a person says otherwise
    BOTH = "both"  # it says both itself


@dataclass(frozen=True, slots=True)
class DisputeFilter:
    """Which disputes of a system. What is None or False leaves a choice open."""

    system_id: int
    state: DisputeState | None = DisputeState.OPEN
    deciding: bool = False  # those alone that decide something
    counting: bool = False  # those alone in which graders that count disagree
    criterion_class: CriterionClass | None = None
    criterion: str | None = None
    rubric_version: str | None = None  # "": none is named
    judge: str | None = None  # as `judge_key` names a judge version; `NO_JUDGE`
    stance: Stance | None = None  # of that judge
    kind: DisputeKind | None = None
    judges_agree: bool = False  # all judges say the same, and code says otherwise
    release_pk: int | None = None
    family: str | None = None  # "": tasks without one
    split: str | None = None  # "": tasks without one
    skipped_by: int | None = None  # left to others by that person
    left_to: int | None = None  # by that person neither left to others nor given a verdict on
    trial_pk: int | None = None
    without: tuple[tuple[int, str], ...] = ()  # trials and criteria that are left out


@dataclass(frozen=True, slots=True)
class DisputePlace:
    """Where a dispute stands in the list: deciding ones first, then by class, then by age."""

    decides: bool
    class_rank: int
    opened_us: int  # microseconds since 1970
    pk: int

    def __str__(self) -> str:
        return f"{int(self.decides)}.{self.class_rank}.{self.opened_us}.{self.pk}"

    @classmethod
    def of(cls, text: str) -> DisputePlace | None:
        """The place that a text spells; None when it is none."""
        parts = text.split(".")
        if len(parts) != 4 or not all(p.isascii() and p.isdigit() and len(p) < 17 for p in parts):
            return None
        decides, rank, opened, pk = map(int, parts)
        return cls(decides == 1, rank, opened, pk) if decides < 2 and rank < 100 else None

    @property
    def opened_at(self) -> datetime:
        seconds, rest = divmod(self.opened_us, _MICROSECOND)
        return datetime.fromtimestamp(min(seconds, 10**11), tz=UTC).replace(microsecond=rest)


@dataclass(frozen=True, slots=True)
class ListedSide:
    """What one grader version says in a dispute."""

    kind: GraderKind
    grader: str  # of a person the name of the account
    version: str
    values: tuple[VerdictValue, ...]
    counts: bool
    is_imported: bool
    n: int  # verdicts that say so


@dataclass(frozen=True, slots=True)
class ListedDispute:
    """A dispute with what its list tells of it."""

    pk: int
    uuid: UUID
    state: DisputeState
    criterion: str
    criterion_class: CriterionClass
    class_rank: int
    criterion_digest: UUID | None
    rubric_version: str
    kinds: tuple[DisputeKind, ...]
    judges: tuple[str, ...]
    sides: tuple[ListedSide, ...]
    n_more_sides: int
    no_effect: NoEffect | None  # why an adjudication changes nothing; None: it decides
    ruling: AdjudicationRuling | None  # of the adjudication in force
    is_counting: bool
    decides: bool
    stands: bool
    opened_at: datetime
    closed_at: datetime | None
    trial_pk: int
    trial_uuid: UUID
    label: str
    attempt: int
    task_pk: int
    task_uuid: UUID
    task_id: str
    task_title: str
    family: str
    split: str
    release_pk: int
    release_uuid: UUID
    release_name: str
    run_name: str

    @property
    def place(self) -> DisputePlace:
        """Where it stands in the list."""
        whole = int(self.opened_at.replace(microsecond=0).timestamp())
        opened = whole * _MICROSECOND + self.opened_at.microsecond
        return DisputePlace(self.decides, self.class_rank, opened, self.pk)


@dataclass(frozen=True, slots=True)
class DisputePage:
    """One page of disputes, with the places of its neighbours."""

    rows: tuple[ListedDispute, ...]
    next_after: DisputePlace | None
    previous_before: DisputePlace | None


_COLUMNS = """
SELECT d.id, d.uuid, d.state, d.criterion, d.criterion_class, d.class_rank, d.criterion_digest,
       d.rubric_version, d.kinds, d.judges, d.says, d.is_counting, d.decides, d.stands,
       d.opened_at, d.closed_at, t.id, t.uuid, t.label, t.attempt, k.id, k.uuid, k.task_id,
       k.title, k.family, coalesce(k.split, ''), r.id, r.uuid, r.name, u.name
FROM {source} d
JOIN traces_trial t ON t.id = d.trial_id
JOIN traces_task k ON k.id = d.task_id
JOIN traces_release r ON r.id = d.release_id
JOIN traces_run u ON u.id = t.run_id
"""


def listed_disputes(
    chosen: DisputeFilter,
    *,
    after: DisputePlace | None = None,
    before: DisputePlace | None = None,
    n: int = PAGE_DISPUTES,
) -> DisputePage:
    """One page of disputes in one query, those that decide something first.

    `after` (or `before`) is the place that the page follows (or precedes).
    """
    backward = before is not None
    place = before or after
    source, values = _nearest(chosen, place, backward=backward)
    query = f"{_COLUMNS.format(source=f'({source})')} {_order(backward=backward)}"
    with connection.cursor() as cursor:
        cursor.execute(query, {**values, "n": n + 1})
        found = [_listed(row) for row in cursor.fetchall()]
    rows = tuple(reversed(found[:n])) if backward else tuple(found[:n])
    has_more = len(found) > n
    has_next, has_previous = (True, has_more) if backward else (has_more, place is not None)
    return DisputePage(
        rows=rows,
        next_after=rows[-1].place if rows and has_next else None,
        previous_before=rows[0].place if rows and has_previous else None,
    )


def dispute_of(system_pk: int, identity: UUID) -> ListedDispute | None:
    """The dispute of that address in the system, in one query; None when there is none."""
    with connection.cursor() as cursor:
        cursor.execute(
            f"{_COLUMNS.format(source='reviews_dispute')}"
            " WHERE d.system_id = %(system)s AND d.uuid = %(uuid)s",
            {"system": system_pk, "uuid": identity},
        )
        row = cursor.fetchone()
    return None if row is None else _listed(row)


def next_dispute_after(chosen: DisputeFilter, place: DisputePlace) -> UUID | None:
    """The dispute that follows a place in the list as filtered, in one query."""
    return _neighbour(chosen, place, backward=False)


def previous_dispute_before(chosen: DisputeFilter, place: DisputePlace) -> UUID | None:
    """The dispute that precedes a place in the list as filtered, in one query."""
    return _neighbour(chosen, place, backward=True)


def _neighbour(chosen: DisputeFilter, place: DisputePlace, *, backward: bool) -> UUID | None:
    source, values = _nearest(chosen, place, backward=backward)
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT d.uuid FROM ({source}) d {_order(backward=backward)}",  # noqa: S608
            {**values, "n": 1},
        )
        row = cursor.fetchone()
    return None if row is None else row[0]


def standing_in_list(chosen: DisputeFilter, place: DisputePlace) -> tuple[int, int]:
    """How many disputes of the list as filtered stand up to a place, and how many there are.

    In one query. The place itself counts where the list holds it.
    """
    where, values = _where(chosen)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FILTER (WHERE d.decides > %(decides)s OR (d.decides = %(decides)s"  # noqa: S608
            " AND (d.class_rank, d.opened_at, d.id) <= (%(rank)s, %(at)s, %(place)s))), count(*)"
            f" FROM reviews_dispute d {_joins(chosen)} WHERE {' AND '.join(where)}",
            {
                **values,
                "decides": place.decides,
                "rank": place.class_rank,
                "at": place.opened_at,
                "place": place.pk,
            },
        )
        before, n = cursor.fetchone()
    return before, n


def _order(*, backward: bool) -> str:
    if backward:
        return "ORDER BY d.decides, d.class_rank DESC, d.opened_at DESC, d.id DESC LIMIT %(n)s"
    return "ORDER BY d.decides DESC, d.class_rank, d.opened_at, d.id LIMIT %(n)s"


def _nearest(
    chosen: DisputeFilter, place: DisputePlace | None, *, backward: bool
) -> tuple[str, dict[str, Any]]:
    """A query for the `n` disputes next to a place, or for the first ones.

    Those that decide and those that do not are looked up apart, and so is each state where all
    are asked for: each along the index.
    """
    where, values = _where(chosen)
    states = [""] if chosen.state else [f"d.state = '{state.value}'" for state in DisputeState]
    sign, order = ("<", "DESC") if backward else (">", "ASC")
    parts = []
    for decides in (True, False):
        more = [f"d.decides = {decides}"]
        if place is not None and decides == place.decides:
            more.append(f"(d.class_rank, d.opened_at, d.id) {sign} (%(rank)s, %(at)s, %(place)s)")
        elif place is not None and decides != backward:
            continue  # deciding ones stand before all others
        parts += [
            f"(SELECT d.* FROM reviews_dispute d {_joins(chosen)}"  # noqa: S608
            f" WHERE {' AND '.join(filter(None, [*where, state, *more]))}"
            f" ORDER BY d.class_rank {order}, d.opened_at {order}, d.id {order} LIMIT %(n)s)"
            for state in states
        ]
    if place is not None:
        values |= {"rank": place.class_rank, "at": place.opened_at, "place": place.pk}
    return " UNION ALL ".join(parts), values


@dataclass(frozen=True, slots=True)
class DisputeTotals:
    """How many disputes are like that, and why those that decide nothing do not."""

    n_deciding: int
    n_idle: int
    reasons: tuple[tuple[NoEffect, int], ...]  # of the idle ones, the most frequent first
    idle_criterion: str  # on which all idle ones are; "" when they are on several

    @property
    def n(self) -> int:
        """All that are like that."""
        return self.n_deciding + self.n_idle


def dispute_totals(chosen: DisputeFilter) -> DisputeTotals:
    """Counts for the heading and the tabs, whether or not they decide, in one query."""
    where, values = _where(chosen, but_deciding=True)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT d.decides, d.says->>'why', count(*), min(d.criterion), max(d.criterion)"  # noqa: S608
            f" FROM reviews_dispute d {_joins(chosen)} WHERE {' AND '.join(where)}"
            " GROUP BY 1, 2 ORDER BY 3 DESC, 2",
            values,
        )
        rows = cursor.fetchall()
    idle = [row for row in rows if not row[0]]
    named = {name for *_, first, last in idle for name in (first, last)}
    return DisputeTotals(
        n_deciding=sum(row[2] for row in rows if row[0]),
        n_idle=sum(row[2] for row in idle),
        reasons=tuple((NoEffect(why), n) for _, why, n, *_ in idle if why),
        idle_criterion=named.pop() if len(named) == 1 else "",
    )


@dataclass(frozen=True, slots=True)
class JudgeGroup:
    """The disputes of one cause in which one judge version, or no judge, says something."""

    judge: str  # `judge_key`, or `NO_JUDGE`
    n: int
    n_deciding: int
    opened_at: datetime  # of the oldest
    n_by_stance: tuple[tuple[Stance, int], ...]  # in the order of `Stance`; none is 0

    @property
    def names(self) -> tuple[str, str]:
        """Name and version of the judge; empty without one."""
        return names_of_judge(self.judge)


@dataclass(frozen=True, slots=True)
class DisputeCause:
    """The disputes on one criterion under one version of its rubric."""

    criterion: str
    rubric_version: str
    criterion_class: CriterionClass
    n: int
    n_deciding: int
    reasons: tuple[NoEffect, ...]  # why those that decide nothing do not
    n_between: tuple[tuple[DisputeKind, int], ...]
    n_judges_agree: int  # all judges say the same, and code says otherwise
    opened_at: datetime  # of the oldest
    judges: tuple[JudgeGroup, ...]  # those in most disputes first
    n_more_judges: int


@dataclass(frozen=True, slots=True)
class DisputeGroups:
    """Disputes by what may have caused them; those that decide something first."""

    causes: tuple[DisputeCause, ...]
    n_more: int


# `letter` is what the judge at hand says, `letters` what all judges say, `code` and `people` the
# same of these: p pass, f fail, u unknown, b more than one of them.
_STANCES = {
    Stance.ABOVE_CODE: "{letter} IN ('p', 'b') AND {code} ~ '[fu]'",
    Stance.BELOW_CODE: "{letter} <> 'p' AND strpos({code}, 'p') > 0",
    Stance.OTHER_JUDGES: "CASE {letter} WHEN 'p' THEN {letters} ~ '[fub]'"
    " WHEN 'b' THEN length({letters}) > 1 ELSE {letters} ~ '[pb]' END",
    Stance.PEOPLE: "CASE {letter} WHEN 'p' THEN {people} ~ '[fu]'"
    " WHEN 'b' THEN {people} <> '' ELSE strpos({people}, 'p') > 0 END",
    Stance.BOTH: "{letter} = 'b'",
}


def _n_where(condition: str) -> str:
    """How many disputes of the patterns `w` are like that."""
    return f"coalesce(sum(w.n) FILTER (WHERE {condition}), 0)"


_STANCE_COUNTS = ", ".join(
    _n_where(
        condition.format(letter="j.letter", letters="w.letters", code="w.code", people="w.people")
    )
    + f" AS n_{stance.value}"
    for stance, condition in _STANCES.items()
)
_JUDGES_AGREE = (
    f"'{DisputeKind.CODE_JUDGE}' = ANY({{kinds}}) AND"
    f" NOT {{kinds}} && ARRAY['{DisputeKind.JUDGE_JUDGE}', '{DisputeKind.FLIP}']::varchar[]"
)
_KIND_COUNTS = ", ".join(_n_where(f"'{kind.value}' = ANY(w.kinds)") for kind in DisputeKind)
# Disputes are first folded into patterns that are alike in all that is counted, which are few. One
# key behind OFFSET 0 makes the database fold them as it reads, where it would else sort them all.
# Kinds are words and judges begin with a bracket, so that no two patterns have one key.
_GROUPS = f"""
WITH patterns AS MATERIALIZED (
    SELECT count(*)::int AS n, min(opened_at) AS opened_at, min(id) AS one
    FROM (SELECT d.id, d.opened_at,
                 ARRAY[d.criterion, d.rubric_version, d.criterion_class, d.decides::text,
                       d.says->>'why', d.says->>'judges', d.says->>'code',
                       d.says->>'people']::text[] || d.kinds::text[] || d.judges AS alike
          FROM reviews_dispute d {{joins}} WHERE {{where}} OFFSET 0) every
    GROUP BY alike
), w AS MATERIALIZED (
    SELECT d.criterion, d.rubric_version, d.criterion_class, d.class_rank, d.decides, d.kinds,
           d.judges, d.says->>'why' AS why, d.says->>'judges' AS letters,
           d.says->>'code' AS code, d.says->>'people' AS people, p.n, p.opened_at
    FROM patterns p JOIN reviews_dispute d ON d.id = p.one
), causes AS (
    SELECT criterion, rubric_version, criterion_class, min(class_rank) AS class_rank,
           sum(w.n) AS n, {_n_where("decides")} AS n_deciding,
           array_remove(array_agg(DISTINCT why), '') AS whys, ARRAY[{_KIND_COUNTS}] AS between,
           {_n_where(_JUDGES_AGREE.format(kinds="kinds"))} AS n_agreeing,
           min(opened_at) AS opened_at, count(*) OVER () AS n_causes
    FROM w GROUP BY 1, 2, 3
    ORDER BY bool_or(decides) DESC, 4, 5 DESC, 1, 2 LIMIT %(most_causes)s
), groups AS (
    SELECT w.criterion, w.rubric_version, w.criterion_class, coalesce(j.judge, '') AS judge,
           sum(w.n) AS n, {_n_where("w.decides")} AS n_deciding,
           {_STANCE_COUNTS}, min(w.opened_at) AS opened_at
    FROM w LEFT JOIN LATERAL unnest(w.judges, string_to_array(w.letters, NULL))
        AS j(judge, letter) ON true
    GROUP BY 1, 2, 3, 4
), ranked AS (
    SELECT g.*, row_number() OVER (PARTITION BY criterion, rubric_version, criterion_class
                                   ORDER BY n DESC, judge) AS nr,
           count(*) OVER (PARTITION BY criterion, rubric_version, criterion_class) AS n_groups
    FROM groups g
)
SELECT c.criterion, c.rubric_version, c.criterion_class, c.n, c.n_deciding, c.whys, c.between,
       c.n_agreeing, c.opened_at, c.n_causes, g.n_groups, g.judge, g.n, g.n_deciding, g.opened_at,
       {", ".join(f"g.n_{stance.value}" for stance in Stance)}
FROM causes c JOIN ranked g ON g.criterion = c.criterion AND g.rubric_version = c.rubric_version
    AND g.criterion_class = c.criterion_class AND g.nr <= %(most_judges)s
ORDER BY c.n_deciding > 0 DESC, c.class_rank, c.n DESC, c.criterion, c.rubric_version, g.nr
"""  # noqa: S608


def dispute_groups(chosen: DisputeFilter) -> DisputeGroups:
    """The disputes that are like that by criterion, rubric version and judge, in one query.

    A dispute in which several judges say something stands in the group of each.
    """
    where, values = _where(chosen)
    query = _GROUPS.format(joins=_joins(chosen), where=" AND ".join(where))
    with connection.cursor() as cursor:
        cursor.execute(query, {**values, "most_causes": MOST_CAUSES, "most_judges": MOST_JUDGES})
        rows = cursor.fetchall()
    by_cause: dict[tuple[str, str, str], list[tuple[Any, ...]]] = {}
    for row in rows:
        by_cause.setdefault(row[:3], []).append(row)
    causes = tuple(_cause(each) for each in by_cause.values())
    return DisputeGroups(causes, n_more=rows[0][9] - len(causes) if rows else 0)


def _cause(rows: Sequence[tuple[Any, ...]]) -> DisputeCause:
    (criterion, rubric, class_name, n, n_deciding, whys, between, n_agreeing, opened_at) = rows[0][
        :9
    ]
    return DisputeCause(
        criterion,
        rubric,
        CriterionClass(class_name),
        n,
        n_deciding,
        tuple(why for why in NoEffect if why.value in whys),
        tuple((kind, k) for kind, k in zip(DisputeKind, between, strict=True) if k),
        n_agreeing,
        opened_at,
        tuple(_group(*row[11:]) for row in rows),
        n_more_judges=rows[0][10] - len(rows),
    )


def _group(judge: str, n: int, n_deciding: int, opened_at: datetime, *counts: int) -> JudgeGroup:
    by_stance = tuple((stance, k) for stance, k in zip(Stance, counts, strict=True) if k)
    return JudgeGroup(judge, n, n_deciding, opened_at, by_stance)


@dataclass(frozen=True, slots=True)
class JudgeChoice:
    """A judge version that a list can be filtered by."""

    pk: int  # of its `GraderVersion`
    key: str  # as the rows of disputes name it
    name: str
    version: str


def judge_choices(system_pk: int) -> tuple[JudgeChoice, ...]:
    """The judge versions of a system by name, in one query."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT v.id, g.name, v.version FROM reviews_grader g"
            " JOIN reviews_graderversion v ON v.grader_id = g.id"
            " WHERE g.system_id = %s AND g.kind = 'model' ORDER BY g.name, v.id LIMIT %s",
            [system_pk, MOST_JUDGE_CHOICES],
        )
        return tuple(
            JudgeChoice(pk, json.dumps([name, version]), name, version)
            for pk, name, version in cursor.fetchall()
        )


def disputed_criteria_names(system_pk: int) -> tuple[str, ...]:
    """The criteria of a system on which there is or was a dispute, by name, in one query.

    Each is looked up along the index from the one before it, however many disputes there are.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH RECURSIVE names(name) AS (
                (SELECT criterion FROM reviews_dispute WHERE system_id = %(system)s
                 ORDER BY criterion LIMIT 1)
                UNION ALL
                SELECT (SELECT d.criterion FROM reviews_dispute d
                        WHERE d.system_id = %(system)s AND d.criterion > n.name
                        ORDER BY d.criterion LIMIT 1)
                FROM names n WHERE n.name IS NOT NULL
            )
            SELECT name FROM names WHERE name IS NOT NULL LIMIT %(most)s
            """,
            {"system": system_pk, "most": MOST_CRITERIA},
        )
        return tuple(name for (name,) in cursor.fetchall())


def names_of_judge(key: str) -> tuple[str, str]:
    """Name and version of a judge as `judge_key` has them; empty for `NO_JUDGE`."""
    if not key:
        return "", ""
    name, version = json.loads(key)
    return name, version


def printed_names(usernames: Iterable[str]) -> dict[str, str]:
    """The printed names of people by the names of their accounts, in one query; none for none."""
    wanted = sorted(set(usernames))
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT username, coalesce(nullif(trim(first_name || ' ' || last_name), ''), username)"
            " FROM traces_user WHERE username = ANY(%s)",
            [wanted],
        )
        return dict(cursor.fetchall())


def skipped_disputes(user_pk: int, dispute_pks: Iterable[int]) -> dict[int, str]:
    """The disputes that a person left to others with their reason, in one query; none for none."""
    wanted = list(dispute_pks)
    if not wanted:
        return {}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT dispute_id, reason FROM reviews_disputeskip"
            " WHERE by_id = %s AND dispute_id = ANY(%s) ORDER BY id",
            [user_pk, wanted],
        )
        return dict(cursor.fetchall())


def _listed(row: tuple[Any, ...]) -> ListedDispute:
    pk, identity, state, criterion, class_name, rank, digest, rubric, kinds, judges, *rest = row
    says, is_counting, decides, stands, *others = rest
    said = json.loads(says) if isinstance(says, str) else says
    return ListedDispute(
        pk,
        identity,
        DisputeState(state),
        criterion,
        CriterionClass(class_name),
        rank,
        digest,
        rubric,
        tuple(DisputeKind(kind) for kind in kinds),
        tuple(judges),
        tuple(_side(each) for each in said["sides"]),
        said["n_more"],
        NoEffect(said["why"]) if said["why"] else None,
        AdjudicationRuling(said["ruling"]) if said["ruling"] else None,
        is_counting,
        decides,
        stands,
        *others,
    )


def _side(said: dict[str, Any]) -> ListedSide:
    return ListedSide(
        kind=GraderKind(said["kind"]),
        grader=said["grader"],
        version=said["version"],
        values=tuple(VerdictValue(value) for value in said["values"]),
        counts=said["counts"],
        is_imported=said["imported"],
        n=said["n"],
    )


def _joins(chosen: DisputeFilter) -> str:
    """What the conditions of `_where` need beside the dispute itself."""
    of_task = chosen.family is not None or chosen.split is not None
    return "JOIN traces_task f ON f.id = d.task_id" if of_task else ""


_SKIPPED = """EXISTS (SELECT FROM reviews_disputeskip s
    WHERE s.dispute_id = d.id AND s.by_id = %(person)s)"""
_HAS_VERDICT = """EXISTS (SELECT FROM reviews_verdict v
    JOIN reviews_criterion c ON c.id = v.criterion_id
    WHERE v.trial_id = d.trial_id AND v.by_id = %(person)s AND c.name = d.criterion)"""


_LEFT_OUT = """NOT EXISTS (
    SELECT FROM unnest(%(out_trials)s::int8[], %(out_criteria)s::text[]) AS o(trial_id, criterion)
    WHERE o.trial_id = d.trial_id AND o.criterion = d.criterion)"""
_STORED_WORDS = {
    "letter": "substr(d.says->>'judges', array_position(d.judges, %(judge)s::text), 1)",
    "letters": "(d.says->>'judges')",
    "code": "(d.says->>'code')",
    "people": "(d.says->>'people')",
}


def _where(
    chosen: DisputeFilter, *, but_deciding: bool = False
) -> tuple[list[str], dict[str, Any]]:
    """Conditions that are asked for, so that the database can choose the index that fits."""
    where = ["d.system_id = %(system)s"]
    values: dict[str, Any] = {"system": chosen.system_id}
    for condition, name, value in (
        ("d.state = %(state)s", "state", chosen.state and chosen.state.value),
        (
            "d.class_rank = %(class_rank)s",
            "class_rank",
            list(CriterionClass).index(chosen.criterion_class) if chosen.criterion_class else None,
        ),
        ("d.criterion = %(criterion)s", "criterion", chosen.criterion),
        ("d.rubric_version = %(rubric)s", "rubric", chosen.rubric_version),
        ("%(kind)s = ANY(d.kinds)", "kind", chosen.kind and chosen.kind.value),
        ("%(judge)s = ANY(d.judges)", "judge", chosen.judge or None),
        ("d.release_id = %(release)s", "release", chosen.release_pk),
        ("f.family = %(family)s", "family", chosen.family),
        ("coalesce(f.split, '') = %(split)s", "split", chosen.split),
        ("d.trial_id = %(trial)s", "trial", chosen.trial_pk),
        (_SKIPPED, "person", chosen.skipped_by),
    ):
        if value is not None:
            where.append(condition)
            values[name] = value
    if chosen.left_to is not None:
        where += [f"NOT {_SKIPPED}", f"NOT {_HAS_VERDICT}"]
        values["person"] = chosen.left_to
    if chosen.judge and chosen.stance:
        where.append(f"({_STANCES[chosen.stance].format(**_STORED_WORDS)})")
    if chosen.judges_agree:
        where.append(_JUDGES_AGREE.format(kinds="d.kinds"))
    if chosen.judge == NO_JUDGE:
        where.append("cardinality(d.judges) = 0")
    if chosen.without:
        where.append(_LEFT_OUT)
        values["out_trials"] = [trial for trial, _ in chosen.without]
        values["out_criteria"] = [name for _, name in chosen.without]
    if chosen.counting:
        where.append("d.is_counting")
    if chosen.deciding and not but_deciding:
        where.append("d.decides")
    return where, values
