"""Dispositions and figures of 2,000 random suites against an independent oracle.

The oracle reads docs/design.md sections 6 and 7 for tasks without a contract in the plainest way: no
shared code, floats from counting all combinations, one pass over plain tuples.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from random import Random

from reviews.core.disposition import (
    GivenVerdict,
    TrialFacts,
    disposition_of,
    requirements_without_contract,
)
from reviews.core.estimators import mean_pass_at_k, mean_pass_hat_k
from reviews.core.slots import Attempt, Declaration, counts_of, slots_of, task_counts_of
from traces.core.records import CriterionClass, GraderKind, TrialStatus, VerdictValue

N_SUITES = 2_000


@dataclass
class Said:
    """A verdict of a plain suite."""

    grader: str
    kind: str
    criterion: str
    value: str
    mandatory: bool
    counts: bool


@dataclass
class Try:
    """A trial of a plain suite."""

    task: str
    trial: int
    attempt: int
    broke: bool
    said: list[Said]


def oracle_disposition(trial: Try) -> str:
    if trial.broke:
        return "harness_error"
    results = set()
    for criterion in {s.criterion for s in trial.said if s.mandatory}:
        counting = [s for s in trial.said if s.criterion == criterion and s.counts]
        says: dict[str, set[str]] = {"code": set(), "other": set()}
        for grader in {(s.grader, s.kind) for s in counting}:
            own = {s.value for s in counting if (s.grader, s.kind) == grader}
            if own != {"error"}:
                own -= {"error"}
            says["code" if grader[1] == "code" else "other"] |= own
        code, other = says["code"], says["other"]
        if code:
            if "fail" in code:
                results.add("fail")
            elif code == {"pass"} and other <= {"pass"}:
                results.add("pass")
            else:
                results.add("open")
        elif "fail" in other and "pass" not in other:
            results.add("fail")
        else:
            results.add("pass" if other == {"pass"} else "open")
    if "fail" in results:
        return "fail"
    return "pass" if results == {"pass"} else "unresolved"


def oracle_figures(
    trials: list[Try], tasks: list[str], n_declared: int, k: int
) -> tuple[object, ...]:
    passed = graded = run = 0
    hat, at = [], []
    for task in tasks:
        last: dict[int, Try] = {}
        for trial in sorted((t for t in trials if t.task == task), key=lambda t: t.attempt):
            last[trial.trial] = trial
        came = [oracle_disposition(t) for t in last.values()]
        results = [d == "pass" for d in came if d in ("pass", "fail")]
        passed, graded = passed + sum(results), graded + len(results)
        run += max(len(came), n_declared)
        draws = list(combinations(results, k))
        if draws:
            hat.append(sum(all(draw) for draw in draws) / len(draws))
            at.append(sum(any(draw) for draw in draws) / len(draws))
    means = [round(sum(values) / len(values), 9) if values else None for values in (hat, at)]
    return passed, graded, run, *means, len(tasks) - len(hat)


def random_trial(random: Random, task: str, trial: int, attempt: int) -> Try:
    said = []
    for _ in range(random.choice((0, 1, 1, 2, 3, 6))):
        kind = random.choice(("code", "code", "model", "human"))
        said.append(
            Said(
                grader=random.choice("ab"),
                kind=kind,
                criterion=random.choice(("outcome", "outcome", "tone")),
                value=random.choice(("pass", "pass", "pass", "fail", "unknown", "error")),
                mandatory=random.random() < 0.8,
                counts=kind == "code" or random.random() < 0.5,
            )
        )
    for s in said:  # one grader version counts on a criterion, or it does not
        twin = next(
            o for o in said if (o.grader, o.kind, o.criterion) == (s.grader, s.kind, s.criterion)
        )
        s.counts = twin.counts
    return Try(task, trial, attempt, random.random() < 0.15, said)


def our_disposition(trial: Try) -> str:
    verdicts = [
        GivenVerdict(
            id=str(n),
            grader=s.grader,
            grader_version="",
            kind=GraderKind(s.kind),
            criterion=s.criterion,
            value=VerdictValue(s.value),
            criterion_class=CriterionClass.OUTCOME,
            mandatory=s.mandatory,
            is_calibrated=s.counts,
            is_vouched=s.counts,
        )
        for n, s in enumerate(trial.said)
    ]
    facts = TrialFacts(TrialStatus.ERROR if trial.broke else TrialStatus.COMPLETED)
    return disposition_of(facts, requirements_without_contract(verdicts), verdicts).disposition


def our_figures(trials: list[Try], tasks: list[str], n_declared: int, k: int) -> tuple[object, ...]:
    attempts = [
        Attempt(str(n), "run", t.task, str(t.trial), t.attempt, our_disposition(t))  # type: ignore[arg-type]
        for n, t in enumerate(trials)
    ]
    slots = slots_of(attempts, [Declaration("run", tuple(tasks), n_declared)])
    counts, per_task = counts_of(slots), task_counts_of(slots)
    hat, at = mean_pass_hat_k(per_task, k), mean_pass_at_k(per_task, k)
    assert hat.left_out == at.left_out
    plain = [None if m.value is None else round(float(m.value), 9) for m in (hat, at)]
    return counts.passed, counts.graded, counts.run, *plain, len(hat.left_out)


def test_random_suites_agree_with_the_oracle() -> None:
    random = Random(20261130)
    seen: set[str] = set()
    for _ in range(N_SUITES):
        tasks = [f"t{n}" for n in range(random.randint(1, 4))]
        trials = [
            random_trial(random, task, trial, attempt)
            for task in tasks
            for trial in range(random.randint(0, 5))
            for attempt in range(1, random.choice((2, 2, 2, 3)))
        ]
        for trial in trials:
            expected = oracle_disposition(trial)
            seen.add(expected)
            assert our_disposition(trial) == expected, trial
        n_declared, k = random.randint(1, 6), random.randint(1, 4)
        assert our_figures(trials, tasks, n_declared, k) == oracle_figures(
            trials, tasks, n_declared, k
        )
    assert seen == {"pass", "fail", "unresolved", "harness_error"}
