"""Judges held against people's blind labels: figures of a judge version, and what they allow.

This is docs/design.md sections 6 and 7 as pure functions: false passes and false failures apart,
each with a one-sided bound, decide whether a judge's verdicts count. Agreement and kappa are for
reading only.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from fractions import Fraction

from reviews.core.agreement import (
    AGREEMENT_VERSION,
    Kappa,
    Table,
    cohen_kappa,
    observed_agreement,
    prevalence,
    table_of,
)
from reviews.core.consensus import Consensus
from reviews.core.estimators import ESTIMATORS_VERSION, percent, upper_bound
from traces.core.records import VerdictValue
from traces.core.values import Json, JsonObject, list_in, object_in, text_in

CALIBRATION_VERSION = 1
"""Stored in every document. It goes up whenever the same labels may give other figures."""


class CalibrationStatus(StrEnum):
    """Whether a judge version's verdicts on a criterion count."""

    EXPLORATORY = "exploratory"  # too few labels to tell
    CALIBRATED = "calibrated"  # its verdicts count
    STALE = "stale"  # judge, prompt, rubric or labels changed since, or its date passed
    FAILED = "failed"  # a bound is above the limit, or a probe failed


@dataclass(frozen=True, slots=True)
class Limits:
    """What a judge must keep to for its verdicts to count."""

    false_pass: Fraction = Fraction(1, 10)  # the bound of false passes is at most that
    false_fail: Fraction = Fraction(1, 5)
    min_items: int = 50  # that people and judge decided, two people each
    min_people: int = 2
    days: int = 90  # from the newest labels until it is to be calibrated again


DEFAULT_LIMITS = Limits()
"""Those of every site; risk tiers may only tighten them."""


class JudgeWord(StrEnum):
    """What a judge version comes to on one item, all its verdicts on it together."""

    PASS = "pass"
    FAIL = "fail"
    FLIP = "flip"  # both: wrong, whatever people say
    UNKNOWN = "unknown"
    ERROR = "error"
    NONE = "none"  # it has not looked at it


def word_of(values: frozenset[VerdictValue]) -> JudgeWord:
    """The word of a judge version whose vote on an item holds these values.

    As votes decide: pass and fail are a flip, a pass beside an unknown decides nothing, and a fail
    beside one decides.
    """
    if VerdictValue.FAIL in values:
        return JudgeWord.FLIP if VerdictValue.PASS in values else JudgeWord.FAIL
    if VerdictValue.UNKNOWN in values:
        return JudgeWord.UNKNOWN
    if VerdictValue.PASS in values:
        return JudgeWord.PASS
    return JudgeWord.ERROR if values else JudgeWord.NONE


@dataclass(frozen=True, slots=True)
class GivenLabel:
    """What one person said of an item, blind."""

    by: str  # who; the same for the same person everywhere
    round: int  # 1, 2, or 3 where the first two differ
    value: VerdictValue
    given_at: datetime


@dataclass(frozen=True, slots=True)
class LabelledItem:
    """One trial that people labelled, and what a judge version says of it."""

    key: str  # unique; what links to it
    consensus: Consensus  # of the people
    labels: tuple[GivenLabel, ...]  # in the order of their rounds
    is_random: bool  # drawn at random: agreement and kappa are read on these
    family: str = ""
    word: JudgeWord = JudgeWord.NONE

    @property
    def is_checked(self) -> bool:
        """Whether two people or more labelled it."""
        return len({label.by for label in self.labels}) > 1


@dataclass(frozen=True, slots=True)
class ErrorRate:
    """How often a judge was wrong, among items of which people said one thing.

    Items on which the judge decided nothing are not among them.
    """

    n_errors: int
    n: int
    errors: tuple[str, ...] = ()  # keys of the items it was wrong on, in order

    @property
    def rate(self) -> Fraction | None:
        """The share that it was wrong on. None for n = 0; 0 or 1 for n = 1."""
        return Fraction(self.n_errors, self.n) if self.n else None

    @property
    def bound(self) -> float | None:
        """One-sided 95 % Clopper-Pearson upper bound. None for n = 0; 1 when it was always wrong."""
        return upper_bound(self.n_errors, self.n)


@dataclass(frozen=True, slots=True)
class HeldAgainst:
    """A judge version held against people, over the items that both decided.

    In the tables a flip stands as the wrong word. Rows are people, columns the judge.
    """

    false_pass: ErrorRate  # among items that people failed
    false_fail: ErrorRate  # among items that people passed
    table: Table
    random: Table  # of random samples only

    @property
    def n(self) -> int:
        """Items that both decided."""
        return self.table.n

    @property
    def agreement(self) -> Fraction | None:
        """The share of random items on which both say the same. None without any."""
        return observed_agreement(self.random)

    @property
    def kappa(self) -> Kappa | None:
        """Cohen's kappa over random items. None without any, and where people gave one answer only."""
        return cohen_kappa(self.random) if all(self.random.rows) else None

    @property
    def prevalence(self) -> Fraction | None:
        """The share of random items that people passed. None without any."""
        return prevalence(self.random, _PASS)


@dataclass(frozen=True, slots=True)
class FamilyFigures:
    """A judge version held against people on the tasks of one family."""

    family: str  # "" for tasks of none
    held: HeldAgainst


@dataclass(frozen=True, slots=True)
class CalibrationFigures:
    """What is known of a judge version on a criterion, from blind labels."""

    n_items: int  # labelled and settled
    n_checked: int  # that people and judge decided, labelled by two people or more
    n_labels: int
    n_people: int
    n_unknown: int  # items that people could not tell
    n_split: int  # three people, three answers
    n_flips: int  # of the judge, on items that people decided; they count as wrong
    n_judge_unknown: int  # and these decide nothing
    n_judge_error: int
    n_judge_none: int
    held: HeldAgainst
    people: Table  # rounds 1 and 2, over all items: first label by second
    oldest_label: datetime | None
    newest_label: datetime | None
    families: tuple[FamilyFigures, ...] = ()  # in order of their names

    @property
    def people_agreement(self) -> Fraction | None:
        """The share of items whose first two labels are alike. None without any."""
        return observed_agreement(self.people)

    @property
    def people_kappa(self) -> Kappa | None:
        """Cohen's kappa between first and second label. None where both gave one answer only."""
        return cohen_kappa(self.people)


_PASS, _FAIL = VerdictValue.PASS.value, VerdictValue.FAIL.value
DECIDED = (_PASS, _FAIL)
"""The labels of tables of judge and people."""

PEOPLE_SAY = (_PASS, _FAIL, VerdictValue.UNKNOWN.value)
"""The labels of the table between people."""

_DECIDED_BY_PEOPLE = {Consensus.PASS: _PASS, Consensus.FAIL: _FAIL}
_JUDGED = {
    (_PASS, JudgeWord.PASS): _PASS,
    (_PASS, JudgeWord.FAIL): _FAIL,
    (_PASS, JudgeWord.FLIP): _FAIL,
    (_FAIL, JudgeWord.PASS): _PASS,
    (_FAIL, JudgeWord.FAIL): _FAIL,
    (_FAIL, JudgeWord.FLIP): _PASS,
}
"""The judge's column by what people say and its word: a flip is wrong on either side."""


def figures_of(items: Iterable[LabelledItem]) -> CalibrationFigures:
    """The figures of a judge version over labelled items, in any order. Each trial stands once."""
    listed = sorted(items, key=lambda item: item.key)
    decided = [item for item in listed if item.consensus in _DECIDED_BY_PEOPLE]
    words = Counter(item.word for item in decided)
    labels = [label for item in listed for label in item.labels]
    times = [label.given_at for label in labels]
    families = sorted({item.family for item in listed})
    return CalibrationFigures(
        n_items=len(listed),
        n_checked=sum(item.is_checked and _pair(item) is not None for item in listed),
        n_labels=len(labels),
        n_people=len({label.by for label in labels}),
        n_unknown=sum(item.consensus is Consensus.UNKNOWN for item in listed),
        n_split=sum(item.consensus is Consensus.SPLIT for item in listed),
        n_flips=words[JudgeWord.FLIP],
        n_judge_unknown=words[JudgeWord.UNKNOWN],
        n_judge_error=words[JudgeWord.ERROR],
        n_judge_none=words[JudgeWord.NONE],
        held=held_against(listed),
        people=people_table(listed),
        oldest_label=min(times, default=None),
        newest_label=max(times, default=None),
        families=tuple(
            FamilyFigures(name, held_against(item for item in listed if item.family == name))
            for name in families
        ),
    )


def held_against(items: Iterable[LabelledItem]) -> HeldAgainst:
    """A judge version held against people, over the items that both decided."""
    pairs = [(item, pair) for item in items if (pair := _pair(item)) is not None]
    table = table_of((pair for _, pair in pairs), DECIDED)
    wrong: dict[str, list[str]] = {_PASS: [], _FAIL: []}
    for item, (people, judge) in pairs:
        if people != judge:
            wrong[people].append(item.key)
    passed, failed = table.rows
    return HeldAgainst(
        false_pass=ErrorRate(len(wrong[_FAIL]), failed, tuple(wrong[_FAIL])),
        false_fail=ErrorRate(len(wrong[_PASS]), passed, tuple(wrong[_PASS])),
        table=table,
        random=table_of((pair for item, pair in pairs if item.is_random), DECIDED),
    )


def people_table(items: Iterable[LabelledItem]) -> Table:
    """First label by second label, over the items that have both."""
    pairs: list[tuple[str, str]] = []
    for item in items:
        by_round = {label.round: label.value.value for label in item.labels}
        if 1 in by_round and 2 in by_round:
            pairs.append((by_round[1], by_round[2]))
    return table_of(pairs, PEOPLE_SAY)


def _pair(item: LabelledItem) -> tuple[str, str] | None:
    """What people and the judge say of an item; None where one of them decided nothing."""
    people = _DECIDED_BY_PEOPLE.get(item.consensus)
    judge = None if people is None else _JUDGED.get((people, item.word))
    return None if people is None or judge is None else (people, judge)


@dataclass(frozen=True, slots=True)
class JudgeFacts:
    """What else is known of a judge version on a criterion."""

    has_newer: bool = False  # a later version of the same judge gave verdicts on the criterion
    is_asked: bool = True  # a contract in effect asks it so, or it came in files without a contract
    n_failed_probes: int = 0


@dataclass(frozen=True, slots=True)
class Needs:
    """The fewest further items that could settle it, should the judge be right on all of them."""

    items: int = 0  # of whatever side
    failed: int = 0  # that people fail
    passed: int = 0  # that people pass
    people: int = 0


@dataclass(frozen=True, slots=True)
class Assessment:
    """A status with the sentence that says why, as one object."""

    status: CalibrationStatus
    why: str
    needs: Needs = Needs()


def status_of(
    figures: CalibrationFigures,
    limits: Limits = DEFAULT_LIMITS,
    facts: JudgeFacts = JudgeFacts(),
) -> Assessment:
    """Whether a judge version's verdicts on a criterion count. The first that applies:

    a probe failed: failed; a bound above its limit with enough labels: failed; a newer version, or
    a criterion that is asked otherwise now: stale; too few labels, or an error-free side with too
    few items for its bound: exploratory; else calibrated.
    """
    if facts.n_failed_probes:
        return Assessment(CalibrationStatus.FAILED, _probes_sentence(facts.n_failed_probes))
    too_few = _too_few(figures, limits)
    sides = _sides(figures, limits)
    wrong = [side for side in sides if side.is_above and side.errors.n_errors]
    if wrong and too_few is None:
        needs = _needs_of([side for side in wrong if side.may_settle])
        return Assessment(CalibrationStatus.FAILED, " ".join(map(_above, wrong)), needs)
    if facts.has_newer:
        return Assessment(CalibrationStatus.STALE, NEWER_VERSION)
    if not facts.is_asked:
        return Assessment(CalibrationStatus.STALE, NOT_ASKED)
    if too_few is not None:
        return too_few
    unsure = [side for side in sides if side.is_above]
    if unsure:
        why = " ".join(["Too few to tell:", *map(_unsure, unsure)])
        return Assessment(CalibrationStatus.EXPLORATORY, why, _needs_of(unsure))
    return Assessment(CalibrationStatus.CALIBRATED, _within(figures, limits))


NEWER_VERSION = "A newer version of this judge has given verdicts on the criterion."
NOT_ASKED = "No contract in effect asks the criterion as these labels answer it."
DATE_PASSED = (
    "Its date has passed: what it said until then counts on, what it says since does not. Label a "
    "new set."
)


def shown_status(
    status: CalibrationStatus, valid_until: datetime | None, *, now: datetime
) -> CalibrationStatus:
    """A stored status as pages show it: a calibrated judge whose date passed is stale."""
    is_past = valid_until is not None and valid_until < now
    is_calibrated = status is CalibrationStatus.CALIBRATED
    return CalibrationStatus.STALE if is_calibrated and is_past else status


def valid_until_of(labelled_at: datetime, limits: Limits = DEFAULT_LIMITS) -> datetime:
    """Until when a calibration on labels that were complete at an instant lets verdicts count."""
    return labelled_at + timedelta(days=limits.days)


def more_needed(n_errors: int, n: int, limit: Fraction) -> int:
    """The fewest further items without an error that bring the bound of n_errors of n to a limit.

    0 where it is there already. `limit` lies between 0 and 1.
    """
    if not 0 < limit < 1:
        raise ValueError(f"a limit lies between 0 and 1: {limit}")
    if _is_within(n_errors, n, limit):
        return 0
    high = 1
    while not _is_within(n_errors, n + high, limit):
        high *= 2
    low = high // 2  # not within
    while high - low > 1:
        middle = (low + high) // 2
        if _is_within(n_errors, n + middle, limit):
            high = middle
        else:
            low = middle
    return high


def _is_within(n_errors: int, n: int, limit: Fraction) -> bool:
    bound = upper_bound(n_errors, n)
    return bound is not None and bound <= limit


@dataclass(frozen=True, slots=True)
class _Side:
    """One of the two error rates with its limit, and the words for it."""

    errors: ErrorRate
    limit: Fraction
    gave: str  # what the judge gave where it was wrong
    people: str  # what people did to the items
    name: str
    is_failed: bool  # items that people failed

    @property
    def is_above(self) -> bool:
        return not _is_within(self.errors.n_errors, self.errors.n, self.limit)

    @property
    def may_settle(self) -> bool:
        """Whether the estimate itself is within the limit."""
        rate = self.errors.rate
        return rate is not None and rate <= self.limit

    @property
    def needed(self) -> int:
        return more_needed(self.errors.n_errors, self.errors.n, self.limit)


def _sides(figures: CalibrationFigures, limits: Limits) -> tuple[_Side, _Side]:
    held = figures.held
    return (
        _Side(held.false_pass, limits.false_pass, "passed", "failed", "False passes", True),
        _Side(held.false_fail, limits.false_fail, "failed", "passed", "False failures", False),
    )


def _too_few(figures: CalibrationFigures, limits: Limits) -> Assessment | None:
    lacks_people = figures.n_people < limits.min_people
    lacking = limits.min_items - figures.n_checked
    if not lacks_people and lacking <= 0:
        return None
    needs = Needs(items=max(lacking, 0), people=max(limits.min_people - figures.n_people, 0))
    return Assessment(
        CalibrationStatus.EXPLORATORY, _too_few_sentence(figures, limits, needs), needs
    )


def _too_few_sentence(figures: CalibrationFigures, limits: Limits, needs: Needs) -> str:
    if not figures.n_items:
        return "Too few to tell: no set of labels that counts is complete."
    if needs.people:
        return (
            f"Too few to tell: {_people(figures.n_people)} labelled the items, and "
            f"{limits.min_people} are needed."
        )
    n_one = figures.held.n - figures.n_checked
    beside = f" (and {n_one:,} with the label of one person only)" if n_one else ""
    return (
        f"Too few to tell: people and judge decided {_items(figures.n_checked)}{beside}, and "
        f"{limits.min_items} are needed."
    )


def _unsure(side: _Side) -> str:
    if side.errors.bound is None:
        return f"people {side.people} no item that it decided; {_more(side)} could settle it."
    return (
        f"it {side.gave} none of the {_items(side.errors.n)} that people {side.people}, which "
        f"bounds {side.name.lower()} at {_bound_text(side)} with a limit of {percent(side.limit)}; "
        f"{_more(side)} could settle it."
    )


def _above(side: _Side) -> str:
    sentence = (
        f"It {side.gave} {side.errors.n_errors} of {_items(side.errors.n)} that people "
        f"{side.people}: {side.name.lower()} are bounded at {_bound_text(side)}, above the limit "
        f"of {percent(side.limit)}."
    )
    if not side.may_settle:
        return sentence
    return f"{sentence} {_more(side)}, all told right, would bring it within."


def _more(side: _Side) -> str:
    needed = side.needed
    noun = "item" if needed == 1 else "items"
    return f"{needed:,} more {noun} that people {'fail' if side.is_failed else 'pass'}"


def _within(figures: CalibrationFigures, limits: Limits) -> str:
    of_pass, of_fail = _sides(figures, limits)
    return (
        f"False passes are bounded at {_bound_text(of_pass)} (limit {percent(of_pass.limit)}), "
        f"false failures at {_bound_text(of_fail)} (limit {percent(of_fail.limit)}), over "
        f"{_items(figures.held.n)} labelled by {_people(figures.n_people)}."
    )


def _probes_sentence(n: int) -> str:
    return f"{n} probe{'' if n == 1 else 's'} came out as {'it' if n == 1 else 'they'} must not."


def _bound_text(side: _Side) -> str:
    bound = side.errors.bound
    return percent(None if bound is None else Fraction(bound), [side.limit])


def _needs_of(sides: Sequence[_Side]) -> Needs:
    needed = {side.is_failed: side.needed for side in sides}
    return Needs(failed=needed.get(True, 0), passed=needed.get(False, 0))


def _items(n: int) -> str:
    return f"{n:,} item{'' if n == 1 else 's'}"


def _people(n: int) -> str:
    return f"{n:,} {'person' if n == 1 else 'people'}"


# The form in which figures are stored. Counts are whole and exact; what is worked out from them
# stands beside them for readers, rounded, and is not read back.


def figures_document(figures: CalibrationFigures) -> JsonObject:
    """Figures as they are stored."""
    return {
        "version": CALIBRATION_VERSION,
        "agreement_version": AGREEMENT_VERSION,
        "estimators_version": ESTIMATORS_VERSION,
        "items": figures.n_items,
        "checked": figures.n_checked,
        "labels": figures.n_labels,
        "people": figures.n_people,
        "people_undecided": {"unknown": figures.n_unknown, "split": figures.n_split},
        "judge_undecided": {
            "unknown": figures.n_judge_unknown,
            "error": figures.n_judge_error,
            "none": figures.n_judge_none,
        },
        "flips": figures.n_flips,
        "held": _held_document(figures.held),
        "between_people": _agreement_document(figures.people, figures.people_kappa),
        "oldest_label": _time_document(figures.oldest_label),
        "newest_label": _time_document(figures.newest_label),
        "families": [
            {"family": one.family, "held": _held_document(one.held)} for one in figures.families
        ],
    }


def calibration_document(
    figures: CalibrationFigures, assessment: Assessment, limits: Limits = DEFAULT_LIMITS
) -> JsonObject:
    """Figures with the limits that they were held to and what is lacking, as a row stores them."""
    needs = assessment.needs
    return {
        **figures_document(figures),
        "limits": {
            "false_pass": str(limits.false_pass),
            "false_fail": str(limits.false_fail),
            "min_items": limits.min_items,
            "min_people": limits.min_people,
            "days": limits.days,
        },
        "needs": {
            "items": needs.items,
            "failed": needs.failed,
            "passed": needs.passed,
            "people": needs.people,
        },
    }


def parse_needs(document: Json) -> Needs:
    """What a stored row lacked."""
    found = object_in(object_in(document).get("needs"))
    return Needs(
        items=_number(found.get("items")),
        failed=_number(found.get("failed")),
        passed=_number(found.get("passed")),
        people=_number(found.get("people")),
    )


def parse_figures(document: Json) -> CalibrationFigures:
    """Stored figures; what is missing reads as nothing."""
    found = object_in(document)
    undecided, judge = (
        object_in(found.get("people_undecided")),
        object_in(found.get("judge_undecided")),
    )
    return CalibrationFigures(
        n_items=_number(found.get("items")),
        n_checked=_number(found.get("checked")),
        n_labels=_number(found.get("labels")),
        n_people=_number(found.get("people")),
        n_unknown=_number(undecided.get("unknown")),
        n_split=_number(undecided.get("split")),
        n_flips=_number(found.get("flips")),
        n_judge_unknown=_number(judge.get("unknown")),
        n_judge_error=_number(judge.get("error")),
        n_judge_none=_number(judge.get("none")),
        held=_parse_held(found.get("held")),
        people=_parse_table(found.get("between_people"), PEOPLE_SAY),
        oldest_label=_parse_time(found.get("oldest_label")),
        newest_label=_parse_time(found.get("newest_label")),
        families=tuple(
            FamilyFigures(
                text_in(object_in(one).get("family")), _parse_held(object_in(one).get("held"))
            )
            for one in list_in(found.get("families"))
        ),
    )


def _held_document(held: HeldAgainst) -> JsonObject:
    return {
        "false_pass": _rate_document(held.false_pass),
        "false_fail": _rate_document(held.false_fail),
        "table": _table_document(held.table),
        "random": {
            **_agreement_document(held.random, held.kappa),
            "prevalence": _share(held.prevalence),
        },
    }


def _rate_document(rate: ErrorRate) -> JsonObject:
    return {
        "errors": rate.n_errors,
        "n": rate.n,
        "rate": _share(rate.rate),
        "bound": _rounded(rate.bound),
        "items": list(rate.errors),
    }


def _agreement_document(table: Table, kappa: Kappa | None) -> JsonObject:
    return {
        "table": _table_document(table),
        "agreement": _share(observed_agreement(table)),
        "kappa": _share(kappa.value) if kappa else None,
        "kappa_low": _rounded(kappa.low) if kappa else None,
        "kappa_high": _rounded(kappa.high) if kappa else None,
    }


def _table_document(table: Table) -> JsonObject:
    return {"labels": list(table.labels), "counts": [list(row) for row in table.counts]}


def _share(value: Fraction | None) -> float | None:
    return None if value is None else _rounded(float(value))


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 9)


def _time_document(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


def _parse_held(document: Json) -> HeldAgainst:
    found = object_in(document)
    return HeldAgainst(
        false_pass=_parse_rate(found.get("false_pass")),
        false_fail=_parse_rate(found.get("false_fail")),
        table=_parse_table(found, DECIDED),
        random=_parse_table(found.get("random"), DECIDED),
    )


def _parse_rate(document: Json) -> ErrorRate:
    found = object_in(document)
    keys = tuple(map(text_in, list_in(found.get("items"))))
    return ErrorRate(_number(found.get("errors")), _number(found.get("n")), keys)


def _parse_table(document: Json, labels: Sequence[str]) -> Table:
    """The table of a document that holds one; an empty one where it does not have these labels."""
    table = object_in(object_in(document).get("table"))
    if list_in(table.get("labels")) != list(labels):
        return table_of((), labels)
    rows = tuple(tuple(map(_number, list_in(row))) for row in list_in(table.get("counts")))
    return Table(tuple(labels), rows)


def _parse_time(value: Json) -> datetime | None:
    return datetime.fromisoformat(value) if isinstance(value, str) else None


def _number(value: Json) -> int:
    return value if isinstance(value, int) else 0
