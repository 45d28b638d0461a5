"""The evidence manifest of a gate: what a signature is bound to, and how two of them differ.

Canonical JSON of identities, digests and results (docs/design.md section 8). No clock, no sentence and
no interval stands in it: the same evidence gives the same bytes at any time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction

from reviews.core.estimators import Counts
from reviews.core.gate.model import Check, Gate
from traces.core.canonical import canonical_text
from traces.core.values import Json, JsonObject

MANIFEST_VERSION = 1
"""Stands in every manifest. It goes up whenever the same evidence may give other bytes."""

MOST_NAMED = 5
"""Things of one kind that a difference names; the others are counted."""

MOST_DIFFERENCES = 60

_LONGEST_NAME = 120


@dataclass(frozen=True, slots=True)
class ManifestParts:
    """What a manifest lists beside the results of the checks, as its documents hold it."""

    release: JsonObject
    reevaluation: str | None  # UUID of the owner's act whose instant counts
    runs: tuple[JsonObject, ...]
    tasks: tuple[JsonObject, ...]  # task, family, split and tier
    trials: tuple[JsonObject, ...]
    verdicts: tuple[JsonObject, ...]  # that vote on a mandatory requirement
    adjudications: tuple[JsonObject, ...]  # that decide
    marks: tuple[JsonObject, ...]
    calibrations: tuple[JsonObject, ...]
    contracts: tuple[JsonObject, ...]
    thresholds: tuple[JsonObject, ...]
    baseline: JsonObject | None


_KEYS: Mapping[str, tuple[str, ...]] = {
    "runs": ("uuid",),
    "tasks": ("task",),
    "trials": ("uuid",),
    "verdicts": ("verdict",),
    "adjudications": ("uuid",),
    "marks": ("uuid",),
    "calibrations": ("judge", "version", "criterion", "criterion_digest"),
    "contracts": ("task", "number"),
    "thresholds": ("tier",),
    "checks": ("tier", "kind", "k"),
}
"""What tells the members of each list apart: lists are sorted by it."""


def manifest_of(parts: ManifestParts, gate: Gate) -> JsonObject:
    """The manifest of a gate, its lists in a stable order."""
    lists: dict[str, Iterable[JsonObject]] = {
        "runs": parts.runs,
        "tasks": parts.tasks,
        "trials": parts.trials,
        "verdicts": parts.verdicts,
        "adjudications": parts.adjudications,
        "marks": parts.marks,
        "calibrations": parts.calibrations,
        "contracts": parts.contracts,
        "thresholds": parts.thresholds,
        "checks": [
            _check(section.tier_uuid, section.tier, check)
            for section in gate.sections
            for check in section.checks
        ],
    }
    return {
        "manifest": MANIFEST_VERSION,
        "release": parts.release,
        "reevaluation": parts.reevaluation,
        "baseline": parts.baseline,
        "state": gate.state.value,
        **{name: _sorted(name, found) for name, found in lists.items()},
    }


def manifest_digest(manifest: JsonObject) -> str:
    """SHA-256 of the canonical JSON, in hex."""
    return hashlib.sha256(canonical_text(manifest).encode("ascii")).hexdigest()


def exact(value: Fraction | None) -> str | None:
    """A fraction as "numerator/denominator"."""
    return None if value is None else f"{value.numerator}/{value.denominator}"


def _check(tier: str, name: str, check: Check) -> JsonObject:
    threshold, counts = check.threshold, check.counts
    return {
        "tier": tier,
        "tier_name": name,
        "kind": threshold.kind.value,
        "k": threshold.k or 0,
        "limit": exact(threshold.limit),
        "by_harm": [[harm, most] for harm, most in threshold.by_harm],
        "decided_by": threshold.decided_by.value,
        "counts": None if counts is None else _counts(counts),
        "value": exact(check.measured),
        "result": check.result.value,
    }


def _counts(counts: Counts) -> JsonObject:
    return {
        "passed": counts.passed,
        "graded": counts.graded,
        "run": counts.run,
        "missing": counts.missing,
    }


def _sorted(name: str, found: Iterable[JsonObject]) -> list[Json]:
    keys = _KEYS[name]
    members = sorted(found, key=lambda each: tuple(_order(each.get(key)) for key in keys))
    return [*members]


def _order(value: Json) -> tuple[int, str]:
    text = "" if value is None else str(value)
    # Numbers by value, whether they stand as numbers or as text.
    return (int(text), "") if text.isascii() and text.isdecimal() and len(text) < 20 else (-1, text)


# --- how two manifests differ


@dataclass(frozen=True, slots=True)
class Difference:
    """One way in which two manifests differ, as a sentence for people."""

    kind: str  # the part of the manifest
    sentence: str


def difference_of(old: JsonObject, new: JsonObject) -> tuple[Difference, ...]:
    """How the new manifest differs from the old one: at most `MOST_DIFFERENCES` sentences.

    () exactly where both are equal. Check results come first, then what changed them.
    """
    if canonical_text(old) == canonical_text(new):
        return ()
    found: list[Difference] = []
    for part, compare in _PARTS:
        found += [Difference(part, sentence) for sentence in compare(old, new)]
    if not found:
        found.append(Difference("manifest", "The manifests differ in how they are written."))
    if len(found) > MOST_DIFFERENCES:
        rest = len(found) - MOST_DIFFERENCES + 1
        found = [
            *found[: MOST_DIFFERENCES - 1],
            Difference("manifest", f"There are {rest:,} more differences."),
        ]
    return tuple(found)


_Compare = Callable[[JsonObject, JsonObject], list[str]]


@dataclass(frozen=True, slots=True)
class _Changed:
    """The members of a list in two manifests, by what became of them."""

    added: list[JsonObject]
    gone: list[JsonObject]
    changed: list[tuple[JsonObject, JsonObject]]


def _changed(part: str, old: JsonObject, new: JsonObject) -> _Changed:
    before, after = _by_key(part, old), _by_key(part, new)
    return _Changed(
        added=[each for key, each in after.items() if key not in before],
        gone=[each for key, each in before.items() if key not in after],
        changed=[
            (each, after[key])
            for key, each in before.items()
            if key in after and each != after[key]
        ],
    )


def _by_key(part: str, manifest: JsonObject) -> dict[tuple[str, ...], JsonObject]:
    members = manifest.get(part)
    if not isinstance(members, list):
        return {}
    return {
        tuple(str(each.get(key)) for key in _KEYS[part]): each
        for each in members
        if isinstance(each, dict)
    }


def _state(old: JsonObject, new: JsonObject) -> list[str]:
    was, now = old.get("state"), new.get("state")
    return [] if was == now else [f"The gate was {_words(was)} and is {_words(now)} now."]


def _checks(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("checks", old, new)
    sentences = [
        f"{_capital(_check_name(was))}: {_words(was.get('result'))} before, {_words(now.get('result'))} now."
        for was, now in found.changed
        if was.get("result") != now.get("result")
    ]
    same = [now for was, now in found.changed if was.get("result") == now.get("result")]
    sentences += _grouped(same, "figures differ, the result is the same", _check_name, "checks")
    sentences += _grouped(found.added, "asked for now", _check_name, "checks")
    sentences += _grouped(found.gone, "not asked for any more", _check_name, "checks")
    return sentences


def _check_name(check: JsonObject) -> str:
    kind = _words(check.get("kind"))
    if check.get("k"):
        kind = f"pass^{check['k']}"
    tier = check.get("tier_name")
    return f"{kind} of tier {_name(tier)}" if tier else kind


def _runs(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("runs", old, new)
    sentences = _grouped(found.added, "new", _named("run", "name"), "runs")
    sentences += _grouped(found.gone, "gone", _named("run", "name"), "runs")
    for was, now in found.changed:
        name = f"Run {_name(now.get('name'))}"
        left, leaves = was.get("left_out"), now.get("left_out")
        if left is None and leaves is not None:
            sentences.append(f"{name} was left out.")
        elif left is not None and leaves is None:
            sentences.append(f"{name} counts again.")
        elif left != leaves:
            sentences.append(f"What is noted of leaving out run {_name(now.get('name'))} changed.")
        if {**was, "left_out": None} != {**now, "left_out": None}:
            sentences.append(f"{name} is declared or begun otherwise than before.")
    return sentences


def _trials(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("trials", old, new)
    sentences = _grouped(found.added, "new", _trial_name, "trials")
    sentences += _grouped(found.gone, "gone", _trial_name, "trials")
    decided = [
        (was, now) for was, now in found.changed if was.get("disposition") != now.get("disposition")
    ]
    by_move: dict[tuple[str, str], list[JsonObject]] = {}
    for was, now in decided:
        move = (_words(was.get("disposition")), _words(now.get("disposition")))
        by_move.setdefault(move, []).append(now)
    for (before, after), moved in by_move.items():
        sentences += _grouped(moved, f"{before} before, {after} now", _trial_name, "trials")
    for field, words in _TRIAL_FIELDS:
        other = [now for was, now in found.changed if was.get(field) != now.get(field)]
        sentences += _grouped(other, words, _trial_name, "trials")
    return sentences


_TRIAL_FIELDS = (
    ("contract", "decided by another contract version"),
    ("additions", "evidence was added"),
    ("record", "the digest of its record is another"),
    ("rows", "its stored rows were altered"),
    ("task_version", "of another task version"),
)


def _verdicts(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("verdicts", old, new)
    labels = {**_trial_labels(old), **_trial_labels(new)}

    def name(verdict: JsonObject) -> str:
        trial = labels.get(str(verdict.get("trial")), "a trial")
        return (
            f"{_words(verdict.get('value'))} of {_name(verdict.get('grader'))} on "
            f"{_name(verdict.get('criterion'))} of {trial}"
        )

    sentences = _grouped(found.added, "new", name, "verdicts")
    sentences += _grouped(found.gone, "decides no more", name, "verdicts")
    other = [
        f"{name(was)} reads {_words(now.get('value'))} now"
        for was, now in found.changed
        if was.get("value") != now.get("value")
    ]
    sentences += _listed(other, "verdicts", "")
    same = [now for was, now in found.changed if was.get("value") == now.get("value")]
    return sentences + _grouped(same, "its stored row was altered", name, "verdicts")


def _trial_labels(manifest: JsonObject) -> dict[str, str]:
    return {key[0]: _trial_name(each) for key, each in _by_key("trials", manifest).items()}


def _trial_name(trial: JsonObject) -> str:
    return f"trial {_name(trial.get('label'))} of task {_name(trial.get('task'))}"


def _adjudications(old: JsonObject, new: JsonObject) -> list[str]:
    labels = {**_trial_labels(old), **_trial_labels(new)}

    def name(one: JsonObject) -> str:
        trial = labels.get(str(one.get("trial")), "a trial")
        return f"{_words(one.get('ruling'))} on {_name(one.get('criterion'))} of {trial}"

    return _whole("adjudications", name, old, new)


def _whole(
    part: str, name: Callable[[JsonObject], str], old: JsonObject, new: JsonObject
) -> list[str]:
    found = _changed(part, old, new)
    return [
        *_grouped(found.added, "new", name, part),
        *_grouped(found.gone, "decides no more", name, part),
        *_grouped([now for _, now in found.changed], "another than before", name, part),
    ]


def _plain(part: str, name: Callable[[JsonObject], str]) -> _Compare:
    return lambda old, new: _whole(part, name, old, new)


def _mark_name(mark: JsonObject) -> str:
    on = mark.get("criterion")
    what = _name(on) if on else "the fixture"
    return f"{_words(mark.get('mark'))} on {what} of task {_name(mark.get('task'))}"


def _calibration_name(one: JsonObject) -> str:
    judge = f"judge {_name(one.get('judge'))} {_name(one.get('version'))}".rstrip()
    return f"{judge} on {_name(one.get('criterion'))}"


def _contract_name(one: JsonObject) -> str:
    return f"contract {one.get('number')} of task {_name(one.get('task'))}"


def _tasks(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("tasks", old, new)
    name = _named("task", "task")
    sentences = _grouped(found.added, "new", name, "tasks")
    sentences += _grouped(found.gone, "gone", name, "tasks")
    for field, words in (("tier", "tier"), ("split", "split"), ("family", "family")):
        moved = [now for was, now in found.changed if was.get(field) != now.get(field)]
        sentences += _grouped(moved, f"in another {words}", name, "tasks")
    return sentences


def _thresholds(old: JsonObject, new: JsonObject) -> list[str]:
    found = _changed("thresholds", old, new)
    name = _named("tier", "name")
    sentences = [
        f"Thresholds of tier {_name(now.get('name'))}: version {was.get('number')} before, "
        f"version {now.get('number')} now."
        if was.get("number") != now.get("number")
        else f"Thresholds version {now.get('number')} of tier {_name(now.get('name'))} were altered."
        for was, now in found.changed
    ]
    sentences += _grouped(found.added, "with thresholds in force now", name, "tiers")
    return sentences + _grouped(found.gone, "without thresholds in force now", name, "tiers")


def _release(old: JsonObject, new: JsonObject) -> list[str]:
    return (
        []
        if old.get("release") == new.get("release")
        else ["The release's name or version record is another."]
    )


def _reevaluation(old: JsonObject, new: JsonObject) -> list[str]:
    return (
        []
        if old.get("reevaluation") == new.get("reevaluation")
        else ["An owner re-evaluated the gate."]
    )


def _baseline(old: JsonObject, new: JsonObject) -> list[str]:
    was, now = old.get("baseline"), new.get("baseline")
    if was == now:
        return []
    return [f"It was compared with {_signed(was)} and is compared with {_signed(now)} now."]


def _signed(baseline: Json) -> str:
    if not isinstance(baseline, dict):
        return "no signed release"
    digest = str(baseline.get("digest"))[:12]
    return f"release {_name(baseline.get('release'))} as signed over {digest}"


_PARTS: tuple[tuple[str, _Compare], ...] = (
    ("state", _state),
    ("checks", _checks),
    ("trials", _trials),
    ("verdicts", _verdicts),
    ("adjudications", _adjudications),
    ("runs", _runs),
    ("thresholds", _thresholds),
    ("tasks", _tasks),
    ("contracts", _plain("contracts", _contract_name)),
    ("marks", _plain("marks", _mark_name)),
    ("calibrations", _plain("calibrations", _calibration_name)),
    ("baseline", _baseline),
    ("reevaluation", _reevaluation),
    ("release", _release),
)


def _named(word: str, key: str) -> Callable[[JsonObject], str]:
    return lambda each: f"{word} {_name(each.get(key))}"


def _grouped(
    members: Sequence[JsonObject], words: str, name: Callable[[JsonObject], str], plural: str
) -> list[str]:
    return _listed([name(each) for each in members[:MOST_NAMED]], plural, words, len(members))


def _listed(names: Sequence[str], plural: str, words: str, n: int | None = None) -> list[str]:
    total = len(names) if n is None else n
    if not total:
        return []
    tail = f": {words}." if words else "."
    if total == 1:
        return [f"{_capital(names[0])}{tail}"]
    more = f" and {total - MOST_NAMED:,} more" if total > MOST_NAMED else ""
    head = f"{total:,} {plural}{': ' + words if words else ''}"
    return [f"{head} ({'; '.join(names[:MOST_NAMED])}{more})."]


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _words(value: Json) -> str:
    return "undecided" if value in (None, "") else str(value).replace("_", " ")


def _name(value: Json) -> str:
    text = "" if value is None else str(value)
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
