"""Verdicts as they arrive in a record, each read or refused on its own."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Final

from traces.core.canonical import digest_of
from traces.core.formats.fields import (
    MOST_SCORE,
    RefusedError,
    Warn,
    amount,
    identifier,
    kind_of,
    optional_identifier,
    text_or_json,
)
from traces.core.limits import Limits
from traces.core.records import (
    CriterionClass,
    Finding,
    GraderKind,
    ParsedVerdict,
)
from traces.core.values import Json, JsonObject
from traces.core.verdict_words import verdict_of

Refuse = Callable[[Finding], None]

MOST_VERDICTS: Final = 10_000

_KINDS: Final = {
    "code": GraderKind.CODE,
    "model": GraderKind.MODEL,
    "judge": GraderKind.MODEL,
    "human": GraderKind.HUMAN,
}
_CLASSES: Final = {kind.value: kind for kind in CriterionClass}
_READ: Final = frozenset(
    [
        "id",
        "grader",
        "grader_version",
        "kind",
        "criterion",
        "class",
        "mandatory",
        "verdict",
        "score",
        "rationale",
        "evidence",
        "overrides",
    ]
)


def verdicts_of(raw: Json, limits: Limits, warn: Warn, refuse: Refuse) -> tuple[ParsedVerdict, ...]:
    """The verdicts of a record's `verdicts`. A bad one is refused; it takes no other with it."""
    if raw is None:
        return ()
    if not isinstance(raw, list):
        sentence = f"verdicts must be a list, this is {kind_of(raw)}."
        refuse(Finding("wrong-type", "verdicts", sentence))
        return ()
    if len(raw) > MOST_VERDICTS:
        sentence = f"Too many verdicts: {len(raw)} (max {MOST_VERDICTS})."
        raise RefusedError("too-many-verdicts", "verdicts", sentence)
    found: list[ParsedVerdict] = []
    for index, item in enumerate(raw):
        try:
            found.append(_verdict(item, f"verdicts[{index}]", limits, warn))
        except RefusedError as error:
            refuse(error.finding)
    return tuple(found)


def verdict_record(verdict: ParsedVerdict) -> JsonObject:
    """The verdict as a native record holds it; read again, it has the same digest and key."""
    record: JsonObject = {
        "id": verdict.key,
        "grader": verdict.grader,
        "grader_version": verdict.grader_version,
        "kind": verdict.kind.value,
        "criterion": verdict.criterion,
        "class": verdict.criterion_class.value,
        "mandatory": verdict.mandatory,
        "verdict": verdict.raw_word,
        "score": verdict.score,
        "rationale": verdict.rationale,
        "evidence": [{"step": step} for step in verdict.cited_steps],
        "overrides": verdict.overrides,
    }
    return record | verdict.extra


def _verdict(raw: Json, place: str, limits: Limits, warn: Warn) -> ParsedVerdict:
    if not isinstance(raw, dict):
        sentence = f"{place} must be an object, this is {kind_of(raw)}."
        raise RefusedError("wrong-type", place, sentence)
    criterion = identifier(raw.get("criterion"), f"{place}.criterion", limits)
    grader = identifier(raw.get("grader"), f"{place}.grader", limits)
    version = optional_identifier(raw.get("grader_version"), f"{place}.grader_version", limits)
    kind = _kind(raw, place)
    extra = {name: value for name, value in raw.items() if name not in _READ}
    score = _score(raw, place, extra, warn)
    word = raw.get("verdict")
    criterion_class = _class(raw, kind, place, extra, warn)
    mandatory = _mandatory(raw, place, extra, warn)
    rationale = text_or_json(raw.get("rationale"))
    cited = _cited_steps(raw, place, extra, warn)
    overrides = optional_identifier(raw.get("overrides"), f"{place}.overrides", limits)
    value = verdict_of(word)
    raw_word = text_or_json(word)
    digest = digest_of(
        [
            grader,
            version or "",
            kind.value,
            criterion,
            criterion_class.value,
            mandatory,
            value.value,
            raw_word,
            score,
            rationale,
            list(cited),
            overrides,
            extra,
        ]
    )
    key = optional_identifier(raw.get("id"), f"{place}.id", limits) or digest.hex()
    return ParsedVerdict(
        grader=grader,
        grader_version=version or "",
        kind=kind,
        criterion=criterion,
        criterion_class=criterion_class,
        mandatory=mandatory,
        value=value,
        raw_word=raw_word,
        key=key,
        score=score,
        rationale=rationale,
        cited_steps=cited,
        overrides=overrides,
        extra=extra,
        digest=digest,
    )


def _kind(raw: JsonObject, place: str) -> GraderKind:
    given = raw.get("kind")
    kind = _KINDS.get(given) if isinstance(given, str) else None
    if kind is None:
        # A kind decides whether a verdict may count, so none is guessed.
        place = f"{place}.kind"
        raise RefusedError("bad-kind", place, f"{place} must be code, model or human.")
    return kind


def _class(
    raw: JsonObject, kind: GraderKind, place: str, extra: JsonObject, warn: Warn
) -> CriterionClass:
    given = raw.get("class")
    default = CriterionClass.OUTCOME if kind is GraderKind.CODE else CriterionClass.SEMANTIC
    if given is None:
        return default
    known = _CLASSES.get(given) if isinstance(given, str) else None
    if known is None:
        extra["class"] = given
        sentence = f"{place}.class is not a known class: read as {default.value}."
        warn("bad-class", f"{place}.class", sentence)
    return known or default


def _mandatory(raw: JsonObject, place: str, extra: JsonObject, warn: Warn) -> bool:
    given = raw.get("mandatory")
    if given is None or isinstance(given, bool):
        return given is not False
    extra["mandatory"] = given
    warn(
        "wrong-type", f"{place}.mandatory", f"{place}.mandatory is not true or false: read as true."
    )
    return True


def _score(raw: JsonObject, place: str, extra: JsonObject, warn: Warn) -> Decimal | None:
    given = raw.get("score")
    score = amount(given, f"{place}.score", warn, most=MOST_SCORE, least=-MOST_SCORE)
    if score is None and given is not None:
        extra["score"] = given
    return score


def _cited_steps(raw: JsonObject, place: str, extra: JsonObject, warn: Warn) -> tuple[int, ...]:
    evidence = raw.get("evidence")
    if evidence is None or evidence == []:
        return ()
    items = evidence if isinstance(evidence, list) else [evidence]
    steps = [_step(item) for item in items]
    if None in steps:
        place = f"{place}.evidence"
        warn("bad-evidence", place, f"{place} holds something that names no step.")
    if None in steps or any(not isinstance(item, dict) or set(item) != {"step"} for item in items):
        extra["evidence"] = evidence
    return tuple(step for step in steps if step is not None)


def _step(item: Json) -> int | None:
    step = item.get("step") if isinstance(item, dict) else item
    if isinstance(step, float) and step.is_integer():
        step = int(step)
    is_step = isinstance(step, int) and not isinstance(step, bool) and abs(step) < 2**31
    return step if is_step and isinstance(step, int) else None
