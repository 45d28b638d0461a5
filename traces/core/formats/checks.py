"""What the tau readers share: verdicts of checks as native records, and short titles."""

from __future__ import annotations

from collections.abc import Collection
from decimal import Decimal
from typing import Final

from traces.core.canonical import digest_of
from traces.core.formats.native import KNOWN_FIELDS
from traces.core.values import Json, JsonObject

REWARD_TOLERANCE: Final = Decimal("0.000001")
"""Both benchmarks count a trial as passed when its reward is within 1e-6 of 1."""

RESERVED_FIELDS: Final = KNOWN_FIELDS | {"messages", "verdicts", "extra"}
MOST_CRITERION_CHARS: Final = 300
MOST_TITLE_CHARS: Final = 80


def number_of(value: Json) -> Decimal | None:
    """A number as a decimal, None for anything else."""
    if isinstance(value, float):
        return Decimal(repr(value))
    if isinstance(value, int | Decimal) and not isinstance(value, bool):
        return Decimal(value)
    return None


def word_of_reward(reward: Decimal) -> str:
    """Pass for a reward of 1; every other reward, fractions too, is a fail."""
    return "pass" if abs(reward - 1) <= REWARD_TOLERANCE else "fail"


def word_of(passed: Json) -> Json:
    """The word for a check's true or false; anything else stays as given, to be an error."""
    if isinstance(passed, bool):
        return "pass" if passed else "fail"
    number = number_of(passed)
    return passed if number is None else word_of_reward(number)


def short(text: str, most: int) -> str:
    """The text on one line, cut with an ellipsis."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"


class Checks:
    """The verdicts that one trial's checks come to, each with a criterion of its own."""

    def __init__(self, grader: str, version: str) -> None:
        self._grader = grader
        self._version = version
        self._times: dict[str, int] = {}
        self.records: list[Json] = []

    def outcome(self, reward: Decimal, rationale: str) -> None:
        """The reward: the one mandatory criterion."""
        self._add("outcome", word_of_reward(reward), mandatory=True, score=reward)
        record = self.records[-1]
        if rationale and isinstance(record, dict):
            record["rationale"] = rationale

    def check(
        self,
        kind: str,
        subject: str,
        passed: Json,
        *,
        score: Json = None,
        rationale: Json = None,
        in_basis: bool | None = None,
        is_judged: bool = False,
    ) -> None:
        """One check, criterion `kind` or `kind:subject`, never deciding by itself.

        `in_basis` says whether the reward depends on it. A check that was not carried out
        (`passed` None) has no verdict.
        """
        if passed is None:
            return
        self._add(
            self._criterion(kind, subject),
            word_of(passed),
            mandatory=False,
            score=number_of(score),
            rationale=rationale,
            in_basis=in_basis,
            kind="model" if is_judged else "code",
        )

    def _criterion(self, kind: str, subject: str) -> str:
        name = f"{kind}:{subject}" if subject else kind
        name = name.replace("\x00", "␀").encode(errors="replace").decode()
        if len(name) > MOST_CRITERION_CHARS:
            name = f"{name[:MOST_CRITERION_CHARS]}…{digest_of(name).hex()[:8]}"
        times = self._times[name] = self._times.get(name, 0) + 1
        return name if times == 1 else f"{name} ({times})"

    def _add(
        self,
        criterion: str,
        word: Json,
        *,
        mandatory: bool,
        score: Decimal | None,
        rationale: Json = None,
        in_basis: bool | None = None,
        kind: str = "code",
    ) -> None:
        record: JsonObject = {
            "grader": self._grader,
            "grader_version": self._version,
            "kind": kind,
            "criterion": criterion,
            "class": "semantic" if kind == "model" else "outcome",
            "mandatory": mandatory,
            "verdict": word,
        }
        if score is not None:
            record["score"] = score
        if rationale is not None:
            record["rationale"] = rationale
        if in_basis is not None:
            record["in_basis"] = in_basis
        self.records.append(record)


def carried(record: JsonObject, translated: Collection[str]) -> JsonObject:
    """The fields that a translation leaves as they are, apart from those that the native record
    gives another meaning: they get `source.` in front.
    """
    return {
        f"source.{name}" if name in RESERVED_FIELDS else name: value
        for name, value in record.items()
        if name not in translated
    }


def objects_in(value: Json) -> list[JsonObject]:
    """The objects of a list; nothing for anything else."""
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def object_or_empty(value: Json) -> JsonObject:
    """An object as it is; an empty one for anything else."""
    return value if isinstance(value, dict) else {}


def text_or_empty(value: Json) -> str:
    """Text as it is; the empty text for anything else."""
    return value if isinstance(value, str) else ""
