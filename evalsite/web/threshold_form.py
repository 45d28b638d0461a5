"""The fields of the threshold editor: what a person types, in the units that people use.

Rates are typed in percent, costs in US dollars, counts as whole numbers. What is wrong stands at
its field; the thresholds themselves are read by `reviews.core.gate.thresholds`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from django.http import QueryDict

from reviews.core.calibration import DEFAULT_LIMITS
from reviews.core.gate.model import (
    ALWAYS_ON,
    HAVE_BOUNDS,
    CheckKind,
    DecidedBy,
    Threshold,
    Thresholds,
)
from reviews.core.gate.threshold_words import exact_text
from reviews.core.gate.thresholds import (
    COUNTS,
    FEWEST,
    LONGEST_HARM,
    MOST_HARMS,
    RATES,
    TEMPLATES,
    parse_thresholds,
)
from traces.core.text_marks import clean_text
from traces.core.values import Json, JsonObject

_PERCENT = re.compile(r"([0-9]{1,3}(?:\.[0-9]{1,13})?)(?: ?%| points?)?", re.ASCII)
_DOLLARS = re.compile(r"\$? ?([0-9]{1,7}(?:\.[0-9]{1,15})?)", re.ASCII)
_COUNT = re.compile(r"[0-9]{1,10}|[0-9]{1,3}(?:,[0-9]{3}){1,3}", re.ASCII)

PERCENT_WRONG = "Write percent from 0 to 100, such as 95 or 99.5."
DOLLARS_WRONG = "Write US dollars, such as 0.40."
COUNT_WRONG = "Write a whole number, such as 3."

LIMITS = ("false_pass", "false_fail", "min_items", "min_people")
_LONGEST = 40  # characters of a field


def percent_in(text: str) -> Fraction | None:
    """The share that a text in percent spells, exactly: "95", "99.5 %"; None where it is none."""
    found = _PERCENT.fullmatch(text)
    share = Fraction(found[1]) / 100 if found else None
    return None if share is None or share > 1 else share


def count_in(text: str) -> int | None:
    """The whole number that a text spells: "3", "1,200"; None where it is none."""
    return int(text.replace(",", "")) if _COUNT.fullmatch(text) else None


@dataclass(frozen=True, slots=True)
class HarmLimit:
    """The most trials of one harm, as typed; "" leaves the harm to the limit of all."""

    harm: str
    most: str


@dataclass(frozen=True, slots=True)
class Typed:
    """What stands in the fields of the editor."""

    on: frozenset[CheckKind]
    texts: Mapping[str, str]  # by name of the field
    harms: tuple[HarmLimit, ...]

    def text(self, name: str) -> str:
        """What stands in a field."""
        return self.texts.get(name, "")


@dataclass(frozen=True, slots=True)
class Reading:
    """What was typed, read: the thresholds, or what is wrong by the name of the field."""

    typed: Typed
    thresholds: Thresholds | None
    errors: Mapping[str, str] = field(default_factory=dict)


def bare_thresholds() -> Thresholds:
    """What a tier begins with that was made without a template: what cannot be switched off."""
    return Thresholds(
        (
            Threshold(CheckKind.PROHIBITED, Fraction(0)),
            Threshold(CheckKind.UNRESOLVED, Fraction(0)),
            Threshold(CheckKind.FEWEST_TRIALS, Fraction(1)),
            Threshold(CheckKind.DECLARED),
        )
    )


def typed_of(thresholds: Thresholds) -> Typed:
    """The fields as they stand for some thresholds. Checks that are off offer a usual level."""
    asked = {threshold.kind: threshold for threshold in thresholds.checks}
    texts = {
        "n_owners": str(thresholds.n_owners),
        "requests_per_day": str(thresholds.requests_per_day or ""),
    }
    harms: tuple[HarmLimit, ...] = ()
    for kind, usual in _USUAL.items():
        threshold = asked.get(kind, usual)
        texts |= _texts(threshold)
        if kind in asked and threshold.by_harm:
            harms = tuple(HarmLimit(harm, str(most)) for harm, most in threshold.by_harm)
    return Typed(frozenset(asked), texts, harms)


# The strictest template names all kinds: its levels are offered where a check is off.
_USUAL = {threshold.kind: threshold for threshold in TEMPLATES[-1].thresholds.checks}


def _texts(threshold: Threshold) -> dict[str, str]:
    kind, limit = threshold.kind, threshold.limit
    texts: dict[str, str] = {}
    if limit is not None:
        texts[f"{kind}.limit"] = exact_text(limit * 100 if kind in RATES else limit)
        if kind is CheckKind.COST_P95:
            whole, _, cents = exact_text(limit).partition(".")
            texts[f"{kind}.limit"] = f"{whole}.{cents.ljust(2, '0')}"
    if kind in HAVE_BOUNDS:
        texts[f"{kind}.by"] = threshold.decided_by.value
    if kind is CheckKind.PASS_HAT_K:
        texts |= {f"{kind}.k": str(threshold.k or 1), f"{kind}.of": threshold.of}
    if kind is CheckKind.JUDGE_CALIBRATION:
        limits = threshold.calibration or DEFAULT_LIMITS
        texts |= {
            f"{kind}.false_pass": exact_text(limits.false_pass * 100),
            f"{kind}.false_fail": exact_text(limits.false_fail * 100),
            f"{kind}.min_items": str(limits.min_items),
            f"{kind}.min_people": str(limits.min_people),
        }
    return texts


def read_typed(sent: QueryDict) -> Typed:
    """The fields as a person sent them. What cannot be switched off is on."""
    chosen = frozenset(kind for kind in CheckKind if kind.value in sent.getlist("on"))
    names = [*_field_names(), "n_owners", "requests_per_day"]
    harms = zip(sent.getlist("harm"), sent.getlist("harm_most"), strict=False)
    return Typed(
        on=chosen | ALWAYS_ON,
        texts={name: clean_text(sent.get(name, ""))[:_LONGEST].strip() for name in names},
        harms=tuple(
            HarmLimit(clean_text(harm), clean_text(most)[:_LONGEST].strip())
            for harm, most in list(harms)[:MOST_HARMS]
            if 0 < len(harm) <= LONGEST_HARM
        ),
    )


def _field_names() -> Iterator[str]:
    for threshold in _USUAL.values():
        yield from _texts(threshold)


def read_thresholds(typed: Typed) -> Reading:
    """The thresholds that the fields say, or what is wrong with each."""
    reader = _Reader(typed)
    document = reader.document()
    found = parse_thresholds(document)
    if not isinstance(found, Thresholds):
        for problem in found:
            reader.errors.setdefault(_field_of(problem.place), problem.sentence)
        return Reading(typed, None, reader.errors)
    return Reading(typed, None if reader.errors else found, reader.errors)


def _field_of(place: str) -> str:
    """The name of the field that a place of the document was typed in."""
    name = place.removeprefix("checks.")
    if name.startswith("prohibited.by_harm"):
        return f"harm.{name.removeprefix('prohibited.by_harm').removeprefix('.')}"
    return name.removesuffix(".decided_by") + (".by" if name.endswith(".decided_by") else "")


class _Reader:
    """Reads fields into a document, with a stand-in where a field cannot be read."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed
        self.errors: dict[str, str] = {}

    def document(self) -> JsonObject:
        checks: list[Json] = [self.check(kind) for kind in CheckKind if kind in self.typed.on]
        document: JsonObject = {"checks": checks, "n_owners": self.count("n_owners")}
        if self.typed.text("requests_per_day"):
            document["requests_per_day"] = self.count("requests_per_day")
        return document

    def check(self, kind: CheckKind) -> JsonObject:
        check: JsonObject = {"kind": kind.value}
        name = f"{kind}.limit"
        if kind in RATES:
            check["limit"] = self.percent(name)
        elif kind in COUNTS or kind in FEWEST:
            check["limit"] = self.count(name)
        elif kind is CheckKind.COST_P95:
            check["limit"] = self.dollars(name)
        if kind in HAVE_BOUNDS:
            check["decided_by"] = self.typed.text(f"{kind}.by") or DecidedBy.ESTIMATE.value
        match kind:
            case CheckKind.PASS_HAT_K:
                check |= {"k": self.count(f"{kind}.k"), "of": self.typed.text(f"{kind}.of")}
            case CheckKind.PROHIBITED:
                check |= self.by_harm()
            case CheckKind.JUDGE_CALIBRATION:
                check |= {
                    "false_pass": self.percent(f"{kind}.false_pass"),
                    "false_fail": self.percent(f"{kind}.false_fail"),
                    "min_items": self.count(f"{kind}.min_items"),
                    "min_people": self.count(f"{kind}.min_people"),
                }
            case _:
                pass
        return check

    def by_harm(self) -> JsonObject:
        limits: JsonObject = {
            each.harm: self.count_of(f"harm.{each.harm}", each.most)
            for each in self.typed.harms
            if each.most
        }
        return {"by_harm": limits} if limits else {}

    def percent(self, name: str) -> str:
        found = percent_in(self.typed.text(name))
        if found is None:
            self.errors[name] = PERCENT_WRONG
            return "0.05"
        return exact_text(found)

    def dollars(self, name: str) -> str:
        found = _DOLLARS.fullmatch(self.typed.text(name))
        if found is None:
            self.errors[name] = DOLLARS_WRONG
            return "1"
        return exact_text(Fraction(found[1]))

    def count(self, name: str) -> int:
        return self.count_of(name, self.typed.text(name))

    def count_of(self, name: str, text: str) -> int:
        found = count_in(text)
        if found is None:
            self.errors[name] = COUNT_WRONG
        return 1 if found is None else found


def readable_checks(typed: Typed) -> dict[CheckKind, Threshold]:
    """Each check that is on and can be read, whatever is wrong elsewhere."""
    bare = [_Reader(typed_of(bare_thresholds())).check(kind) for kind in ALWAYS_ON]
    found: dict[CheckKind, Threshold] = {}
    for kind in typed.on:
        reader = _Reader(typed)
        checks: list[Json] = [reader.check(kind)]
        checks += [check for check in bare if check["kind"] != kind.value]
        read = parse_thresholds({"checks": checks})
        if not reader.errors and isinstance(read, Thresholds):
            found |= {each.kind: each for each in read.checks if each.kind is kind}
    return found


def harms_to_ask(named: Sequence[str], typed: Typed) -> tuple[HarmLimit, ...]:
    """The harms that contracts name and those that have a limit, each with what was typed."""
    limits = {each.harm: each.most for each in typed.harms}
    names = sorted({*named, *limits})[:MOST_HARMS]
    return tuple(HarmLimit(harm, limits.get(harm, "")) for harm in names)
