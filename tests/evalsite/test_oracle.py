"""2,000 random suites: dispositions and figures against an independent telling of the rules.

Each suite is drawn from its own number, so that one that differs can be looked at alone:
`FIRST = 1234; SUITES = 1`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from random import Random
from typing import Any

from reviews.core.disposition import (
    Adjudication,
    AdjudicationRuling,
    Decision,
    GivenVerdict,
    Mark,
    NextAction,
    RequiredGrader,
    Requirement,
    RequirementSource,
    TrialFacts,
    disposition_of,
    requirements_without_contract,
)
from reviews.core.estimators import mean_pass_hat_k, pass_hat_k_range
from reviews.core.requirements import figures_of
from reviews.core.slots import (
    Attempt,
    Declaration,
    counts_of,
    has_passed,
    slots_of,
    task_counts_of,
)
from tests.evalsite import oracle
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue

FIRST = 0
SUITES = 2_000

Row = dict[str, Any]

_RULINGS = {
    "pass": AdjudicationRuling.PASS,
    "fail": AdjudicationRuling.FAIL,
    "repair_evidence": AdjudicationRuling.INSUFFICIENT_EVIDENCE,
    "clarify_contract": AdjudicationRuling.RUBRIC_UNCLEAR,
}
_KINDS = ("code", "code", "model", "human")


def random_suite(number: int) -> Row:
    random = Random(f"suite {number}")  # noqa: S311 - chance that must repeat itself
    tasks = [f"t{at}" for at in range(random.randint(1, 4))]
    trials = []
    for task in tasks:
        needs = [_need(random, at) for at in range(random.randint(0, 4))]
        for run in ("night", "day")[: random.randint(1, 2)]:
            for label in range(random.randint(0, 4)):
                for attempt in range(1, random.choice((1, 1, 1, 2, 3)) + 1):
                    at = {"task": task, "run": run, "label": str(label), "attempt": attempt}
                    trials.append({**at, **_trial(random, needs)})
        if random.random() < 0.2:
            _take_contract(trial for trial in trials if trial["task"] == task)
    random.shuffle(trials)
    declared = [(run, task, random.randint(1, 5)) for run in ("night", "day") for task in tasks]
    return {
        "trials": trials,
        "declared": [one for one in declared if random.random() < 0.4],
        "tuning": [task for task in tasks if random.random() < 0.15],
    }


def _take_contract(trials: Iterable[Row]) -> None:
    for trial in trials:
        trial["needs"] = None
        trial["adjudications"] = [{**a, "digest": ""} for a in trial["adjudications"]]
        for verdict in trial["verdicts"]:
            verdict["contract"] = verdict["digest"] = ""


def _need(random: Random, at: int) -> Row:
    source = random.choice(("check", "check", "check", "rubric", "external"))
    kinds = ("model", "human") if source == "rubric" else ("code", "code", "model")
    named = [(f"g{random.randint(1, 3)}", random.choice(kinds)) for _ in range(2)]
    return {
        "name": f"c{at}",
        "source": source,
        "class": random.choice(("outcome", "constraint", "semantic")),
        "mandatory": random.random() < 0.85,
        "is_prohibition": source == "check" and random.random() < 0.4,
        "graders": sorted(set(named)) if source != "check" and random.random() < 0.3 else [],
        "marks": random.choice(
            ([],) * 12 + (["defective"], ["ambiguous"], ["ambiguous", "defective"])
        ),
        "has_faulty_fixture": random.random() < 0.03,
        "contract": "now",
        "digest": f"digest {at}",
        "rubric": random.choice(("", "1")) if source == "rubric" else "",
    }


def _trial(random: Random, needs: list[Row]) -> Row:
    lean = random.choice((0.97, 0.85, 0.5))  # how much the trial is one that passes
    verdicts = [
        _verdict(random, need, number, lean)
        for need in needs
        for number in range(random.choice((0, 1, 1, 1, 2, 4)))
    ]
    for at, verdict in enumerate(verdicts):
        verdict["id"] = f"v{at}"
        if at and verdict["kind"] == "human" and random.random() < 0.5:
            verdict["corrects"] = random.choice(verdicts[:at])["id"]  # often not their own
    random.shuffle(verdicts)
    adjudications = [
        _adjudication(random, need, number, of)
        for need in needs
        for of in [random.choice((0, 0, 0, 0, 1, 2, 3))]
        for number in range(of)
    ]
    return {
        "needs": needs,
        "verdicts": verdicts,
        "adjudications": adjudications,
        "is_broken": random.random() < 0.12,
        "lacks": random.random() < 0.05,
        "evidence": random.randint(0, 2),
        "environment": random.choice(("test",) * 8 + ("production",)),
        "fault": random.random() < 0.1,
    }


def _verdict(random: Random, need: Row, number: int, lean: float) -> Row:
    kind = random.choice(_KINDS if need["source"] != "check" else ("code", "code", "code", "human"))
    imported = random.random() < 0.3
    is_now = not imported and random.random() < 0.9
    value = (
        "pass" if random.random() < lean else random.choice(("fail", "unknown", "error", "error"))
    )
    return {
        "of": need["name"],
        "grader": f"g{random.randint(1, 3)}",
        "version": random.choice(("1", "1", "2")),
        "kind": kind,
        "value": value,
        "class": random.choice(tuple(CriterionClass)).value,
        "mandatory": random.random() < 0.8,
        "imported": imported,
        "calibrated": kind == "model" and random.random() < 0.6,
        "signed_in": kind == "human" and (not imported or random.random() < 0.3),  # or vouched for
        "is_outdated": need["source"] == "check" and random.random() < 0.05,
        "contract": "" if imported else "now" if is_now else "earlier",
        "digest": "" if imported else random.choice((need["digest"], "another")),
        "rubric": random.choice(("", "1", "2")) if imported else "",
        "evidence": random.randint(0, 2),
        "corrects": None,
        "is_blind": kind == "human" and random.random() < 0.2,
    }


def _adjudication(random: Random, need: Row, number: int, of: int) -> Row:
    return {
        "id": f"{need['name']} a{number}",
        "of": need["name"],
        "says": random.choice(tuple(_RULINGS)),
        "digest": random.choice((need["digest"],) * 5 + ("another",)),
        "rubric": random.choice(("", need["rubric"])),
        "evidence": random.randint(0, 2),
        "replaces": f"{need['name']} a{number - 1}" if number and random.random() < 0.8 else None,
    }


# The same in the product's words


def _requirement(need: Row) -> Requirement:
    return Requirement(
        need["name"],
        CriterionClass(need["class"]),
        RequirementSource(need["source"]),
        mandatory=need["mandatory"],
        is_prohibition=need["is_prohibition"],
        graders=tuple(RequiredGrader(name, GraderKind(kind)) for name, kind in need["graders"]),
        marks=tuple(Mark(mark) for mark in need["marks"]),
        contract=need["contract"],
        criterion_digest=need["digest"].encode(),
        rubric_version=need["rubric"] or None,
        has_faulty_fixture=need["has_faulty_fixture"],
    )


def _given(verdict: Row) -> GivenVerdict:
    return GivenVerdict(
        id=verdict["id"],
        grader=verdict["grader"],
        grader_version=verdict["version"],
        kind=GraderKind(verdict["kind"]),
        criterion=verdict["of"],
        value=VerdictValue(verdict["value"]),
        criterion_class=CriterionClass(verdict["class"]),
        mandatory=verdict["mandatory"],
        is_imported=verdict["imported"],
        is_calibrated=verdict["calibrated"],
        is_vouched=verdict["signed_in"] and verdict["imported"],
        is_outdated=verdict["is_outdated"],
        contract=verdict["contract"] or None,
        criterion_digest=verdict["digest"].encode() or None,
        rubric_version=verdict["rubric"] or None,
        evidence_order=verdict["evidence"],
        corrects=verdict["corrects"],
        is_blind_label=verdict["is_blind"],
    )


def _decided(trial: Row) -> Decision:
    given = [_given(verdict) for verdict in trial["verdicts"]]
    needs = trial["needs"]
    return disposition_of(
        TrialFacts(
            TrialStatus.ERROR if trial["is_broken"] else TrialStatus.COMPLETED,
            missing_evidence=("the final state",) if trial["lacks"] else (),
            evidence_order=trial["evidence"],
        ),
        requirements_without_contract(given)
        if needs is None
        else [_requirement(need) for need in needs],
        given,
        [
            Adjudication(
                id=one["id"],
                criterion=one["of"],
                ruling=_RULINGS[one["says"]],
                rubric_version=one["rubric"] or None,
                criterion_digest=one["digest"].encode() or None,
                evidence_order=one["evidence"],
                replaces=one["replaces"],
            )
            for one in trial["adjudications"]
        ],
    )


def _figures(suite: Row, decided: list[Decision], k: int, figure: str) -> Row:
    """Slots, counts and means of one figure, as the product works them out."""
    trials = {str(at): trial for at, trial in enumerate(suite["trials"])}
    slots = slots_of(
        [
            Attempt(
                key, t["run"], t["task"], t["label"], t["attempt"], decided[int(key)].disposition
            )
            for key, t in trials.items()
        ],
        [Declaration(run, (task,), declared) for run, task, declared in suite["declared"]],
    )

    def is_headline(trial: Row) -> bool:
        return trial["environment"] == "test" and not trial["fault"]

    def says(attempt: Attempt) -> bool | None:
        if figure == "passing":
            return has_passed(attempt)
        broken = trials[attempt.id]["is_broken"]
        status = TrialStatus.ERROR if broken else TrialStatus.COMPLETED
        found = figures_of(decided[int(attempt.id)], status)
        word = found.outcome if figure == "outcome" else found.rule_clean
        return {"pass": True, "fail": False}.get(word)

    counted = [
        slot
        for slot in slots
        if slot.task not in suite["tuning"]
        and (slot.standing is None or is_headline(trials[slot.standing.id]))
    ]
    tasks = task_counts_of(counted, says)
    total, mean = counts_of(counted, says), mean_pass_hat_k(tasks, k)
    ends = pass_hat_k_range(tasks, k)
    return {
        "passed": total.passed,
        "graded": total.graded,
        "run": total.run,
        "pass_hat_k": mean.value,
        "left_out": list(mean.left_out),
        "ends": None if ends is None else (ends.low, ends.high),
    }


def _difference(number: int, seen: Counter[str]) -> str:
    """Where product and oracle differ on a suite; "" where they agree."""
    suite = random_suite(number)
    decided = [_decided(trial) for trial in suite["trials"]]
    for trial, decision in zip(suite["trials"], decided, strict=True):
        words = decision.failed_classes or decision.actions
        ours = decision.disposition.value, [word.value for word in words]
        theirs = oracle.disposition(trial)
        seen.update([theirs[0], *(f"{theirs[0]}: {word}" for word in theirs[1])])
        if ours != theirs:
            return f"suite {number}: {ours}, but {theirs} by the oracle, of {trial}"
    for k in (1, 2, 3):
        for figure in ("passing", "outcome", "clean"):
            mine = _figures(suite, decided, k, figure)
            other = oracle.figures(suite, k, figure)
            seen["n < k"] += bool(other["left_out"])
            seen["some graded"] += other["pass_hat_k"] is not None
            if mine != other:
                return f"suite {number}, k = {k}, {figure}: {mine}, but {other} by the oracle"
    return ""


def test_two_thousand_random_suites_come_out_without_a_difference() -> None:
    seen = Counter[str]()

    differences = [_difference(number, seen) for number in range(FIRST, FIRST + SUITES)]

    assert "\n".join(filter(None, differences)) == ""
    # The suites are worth something: everything that can come out comes out.
    wanted = {f"unresolved: {action.value}" for action in NextAction} - {"unresolved: rerun_trial"}
    wanted |= {f"fail: {name.value}" for name in CriterionClass}
    wanted |= {"harness_error: rerun_trial", "pass", "n < k", "some graded"}
    assert not [(name, seen[name]) for name in sorted(wanted) if seen[name] < 50]


def test_a_suite_is_the_same_each_time_it_is_drawn() -> None:
    assert random_suite(7) == random_suite(7)
    assert random_suite(7) != random_suite(8)


def test_a_wrong_vote_would_be_seen() -> None:
    """The oracle is no echo: with one word of a verdict changed, some dispositions differ."""
    n_other = 0
    for number in range(200):
        suite = random_suite(number)
        for trial in suite["trials"]:
            ours = _decided(trial).disposition.value
            for verdict in trial["verdicts"][:1]:
                verdict["value"] = "fail" if verdict["value"] == "pass" else "pass"
            n_other += ours != oracle.disposition(trial)[0]

    assert n_other > 100
