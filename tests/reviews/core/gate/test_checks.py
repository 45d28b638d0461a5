"""Each check: its levels, what it says, what would settle it, and which trials to look at first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction

import pytest

from reviews.core.calibration import CalibrationFigures, Limits
from reviews.core.estimators import Counts, Interval, Range, clopper_pearson
from reviews.core.gate.checks import CHECKS, check_of
from reviews.core.gate.model import (
    Check,
    CheckDetail,
    CheckKind,
    DecidedBy,
    GateSlot,
    RunOfRelease,
    Threshold,
)
from reviews.core.gate.states import CheckResult
from tests.reviews.core.gate.builders import (
    RUN,
    broken,
    failing,
    figures,
    judge,
    missing,
    passing,
    tier,
    unresolved,
    violating,
)

MET, NOT_MET = CheckResult.MET, CheckResult.NOT_MET
CANNOT_TELL, DOES_NOT_APPLY = CheckResult.CANNOT_TELL, CheckResult.DOES_NOT_APPLY
BOUND = DecidedBy.BOUND
NO_TRIAL = "No trial has come: run the tasks of this tier."


def rated(n_passing: int, n_failing: int = 0, n_open: int = 0) -> list[GateSlot]:
    """Trials of one task: so many pass, fail, and are unresolved."""
    slots = passing(n_passing + n_failing + n_open)
    return [
        *slots[:n_passing],
        *map(failing, slots[n_passing : n_passing + n_failing]),
        *map(unresolved, slots[n_passing + n_failing :]),
    ]


def outcome(
    limit: str, slots: Sequence[GateSlot], decided_by: DecidedBy = DecidedBy.ESTIMATE
) -> Check:
    threshold = Threshold(CheckKind.OUTCOME_RATE, Fraction(limit), decided_by)
    return check_of(threshold, tier(slots))


def test_every_kind_has_its_check() -> None:
    assert list(CHECKS) == list(CheckKind)


# Rates


@pytest.mark.parametrize(
    ("limit", "n_passing", "n_failing", "result"),
    [
        ("0.95", 19, 1, MET),  # exactly at the level
        ("0.95", 17, 1, NOT_MET),  # 94.4 %, never 95 %
        ("0.9500000001", 19, 1, NOT_MET),
        ("0.3", 3, 7, MET),  # 0.1 + 0.2 as floats is more than 0.3
        ("0.30000000000000004", 3, 7, NOT_MET),
        ("1", 20, 0, MET),
        ("1", 1_999, 1, NOT_MET),
        ("0", 0, 5, MET),
    ],
)
def test_rate_is_compared_as_a_fraction(
    limit: str, n_passing: int, n_failing: int, result: CheckResult
) -> None:
    assert outcome(limit, rated(n_passing, n_failing)).result is result


@pytest.mark.parametrize(
    ("limit", "result"),
    [("0.4", MET), ("0.5", CANNOT_TELL), ("0.8", CANNOT_TELL), ("0.81", NOT_MET)],
)
def test_two_of_three_with_two_broken_is_a_range(limit: str, result: CheckResult) -> None:
    slots = passing(5)
    found = outcome(limit, [*slots[:2], failing(slots[2]), *map(broken, slots[3:])])
    assert (found.result, found.counts, found.measured, found.range) == (
        result,
        Counts(2, 3, 5),
        Fraction(2, 3),
        Range(Fraction(2, 5), Fraction(4, 5)),
    )


def test_one_survivor_of_eight_never_reads_as_all() -> None:
    slots = passing(8)
    found = outcome("0.5", [slots[0], *map(broken, slots[1:])])
    assert (found.result, found.range) == (CANNOT_TELL, Range(Fraction(1, 8), Fraction(1)))
    assert found.sentence == (
        "1 of 1 graded trial reached the outcome, of 8 run: 100.0 %. 7 open trials (7 harness "
        "errors): between 12.5 % and 100.0 % once they are decided."
    )


def test_rate_by_estimate_says_how_open_trials_decide_it() -> None:
    slots = passing(500)
    found = outcome(
        "0.95",
        [
            *slots[:466],
            *map(failing, slots[466:483]),
            *map(unresolved, slots[483:492]),
            *map(broken, slots[492:495]),
            *map(missing, slots[495:499]),
            replace(slots[499], outcome=""),
        ],
    )
    assert found == Check(
        threshold=Threshold(CheckKind.OUTCOME_RATE, Fraction("0.95")),
        result=CANNOT_TELL,
        measured=Fraction(466, 483),
        sentence=(
            "466 of 483 graded trials reached the outcome, of 500 run: 96.5 %. 17 open trials (9 "
            "unresolved, 3 harness errors, 4 missing and 1 without an outcome): between 93.2 % and "
            "96.6 % once they are decided."
        ),
        counts=Counts(466, 483, 500, 4),
        range=Range(Fraction(466, 500), Fraction(483, 500)),
        interval=clopper_pearson(466, 483),
        settles=(
            "17 open trials can still decide it: it is met if at least 9 of them pass, and not met "
            "if 9 of them fail."
        ),
        details=(CheckDetail("refund", "466 of 483 graded trials reached the outcome, 17 open"),),
        trials=(
            *(f"refund-{i}" for i in range(484, 496)),
            "refund-500",
            *(f"refund-{i}" for i in range(467, 474)),
        ),
    )


def test_one_open_trial_is_spoken_of_in_the_singular() -> None:
    found = outcome("1", rated(4, 0, 1))
    assert found.settles == (
        "1 open trial can still decide it: it is met if at least 1 of them passes, and not met if 1 "
        "of them fails."
    )
    assert found.sentence.endswith("between 80.0 % and 100.0 % once it is decided.")


def test_rate_by_bound_is_not_met_or_needs_more_trials() -> None:
    """19 of 20 pass: the lower bound is 78.4 %; at 95 % of trials it takes many more."""
    found = outcome("0.9", rated(19, 1), BOUND)
    assert (found.result, found.n_more) == (CANNOT_TELL, 26)
    assert found.settles == "26 more passing trials bring the bound to 90 %."
    assert found.sentence == (
        "19 of 20 graded trials reached the outcome, of 20 run: 95.0 %. With 95 % confidence the "
        "true rate is at least 78.4 %."
    )
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx(
        (0.783894, 0.997439), abs=1e-6
    )
    assert outcome("0.9", rated(45, 1), BOUND).result is MET
    assert (
        outcome("0.9", rated(44, 1), BOUND).settles
        == "1 more passing trial brings the bound to 90 %."
    )
    assert outcome("0.9", rated(10, 10), BOUND).result is NOT_MET


def test_rate_by_bound_with_open_trials_says_which_way() -> None:
    enough = outcome("0.9", rated(45, 1, 3), BOUND)
    assert (enough.result, enough.n_more) == (CANNOT_TELL, None)
    assert enough.settles == (
        "3 open trials can still decide it: it is met if at least 3 of them pass."
    )
    lacking = outcome("0.9", rated(19, 0, 1), BOUND)
    assert (lacking.result, lacking.n_more) == (CANNOT_TELL, 9)
    assert lacking.settles == (
        "Once 1 open trial has passed too, 9 more passing trials bring the bound to 90 %."
    )
    assert lacking.sentence.endswith(
        "With 95 % confidence the true rate is at least 78.4 %, every open trial counted as failed."
    )
    several = outcome("0.9", rated(18, 0, 2), BOUND)
    assert several.settles.startswith("Once 2 open trials have passed too, 9 more")


def test_rate_by_a_bound_that_nothing_reaches_says_so() -> None:
    found = outcome("1", rated(20), BOUND)
    assert (found.result, found.n_more) == (CANNOT_TELL, None)
    assert found.settles == "No number of trials that could be run brings the bound to 100 %."


def test_rate_over_no_trial_cannot_be_told() -> None:
    assert outcome("0", []) == Check(
        Threshold(CheckKind.OUTCOME_RATE, Fraction(0)),
        CANNOT_TELL,
        None,
        "No trial has come.",
        Counts(0, 0, 0),
        settles=NO_TRIAL,
    )
    gone = outcome("0", list(map(missing, passing(2))))
    assert (gone.result, gone.range) == (CANNOT_TELL, Range(Fraction(0), Fraction(1)))
    assert gone.sentence == "None of 2 declared trials has come."
    assert outcome("0.95", [], BOUND).n_more == 59


def test_rate_of_nothing_graded_has_a_range_and_no_value() -> None:
    found = outcome("0.5", rated(0, 0, 2))
    assert (found.result, found.measured, found.range) == (
        CANNOT_TELL,
        None,
        Range(Fraction(0), Fraction(1)),
    )
    assert found.sentence.startswith("0 of 0 graded trials reached the outcome, of 2 run. 2 open")


def test_level_of_none_reads_as_nothing_asked() -> None:
    assert check_of(Threshold(CheckKind.OUTCOME_RATE), tier(rated(0, 1))).result is MET


def test_rates_leave_out_tuning_faults_and_runs_left_out() -> None:
    slots = passing(4)
    left_out = RunOfRelease("run-2", "bad", "2026-12-01", None, True, True, "wrong data")
    evidence = tier(
        [
            slots[0],
            failing(replace(slots[1], split="tuning")),
            failing(replace(slots[2], has_fault=True)),
            failing(replace(slots[3], run="run-2")),
        ],
        runs=(RUN, left_out),
    )
    found = check_of(Threshold(CheckKind.RULE_CLEAN_RATE, Fraction(1)), evidence)
    assert (found.result, found.counts) == (MET, Counts(1, 1, 1))


# Recovery


def test_recovery_counts_what_ended_clean_or_was_handed_over_safely() -> None:
    clean, handed, unsafe, gave_up, unknown, open_, blind, kept = (
        replace(slot, has_fault=True) for slot in passing(8)
    )
    handed_over = failing(handed)
    slots = [
        clean,
        replace(handed_over, handed_over=True),
        replace(violating(unsafe), handed_over=True),
        failing(gave_up),
        replace(failing(unknown), handed_over=None),
        unresolved(open_),
        replace(failing(blind), handed_over=True, has_prohibitions=False, contract=0),
        replace(failing(kept), handed_over=True, is_clean_known=False),
    ]
    found = check_of(
        Threshold(CheckKind.RECOVERY_RATE, Fraction("0.5")), tier([*slots, *passing(5)])
    )
    assert (found.result, found.counts) == (CANNOT_TELL, Counts(2, 4, 8))
    assert found.sentence == (
        "2 of 4 graded trials recovered, of 8 run: 50.0 %. 4 open trials (1 unresolved and 3 not "
        "known to have recovered): between 25.0 % and 75.0 % once they are decided."
    )


def test_recovery_without_a_fault_cannot_be_told() -> None:
    found = check_of(Threshold(CheckKind.RECOVERY_RATE, Fraction("0.5")), tier(passing(5)))
    assert (found.result, found.settles) == (
        CANNOT_TELL,
        "No trial with an injected fault has come: run some.",
    )


# pass^k


def hat(limit: str, k: int, slots: Sequence[GateSlot], of: str = "rule_clean") -> Check:
    return check_of(Threshold(CheckKind.PASS_HAT_K, Fraction(limit), k=k, of=of), tier(slots))


def of_task(task: str, n_passing: int, n_failing: int = 0, n_open: int = 0) -> list[GateSlot]:
    return [
        replace(slot, task=task, trial=slot.trial.replace("refund", task))
        for slot in rated(n_passing, n_failing, n_open)
    ]


def test_pass_hat_is_a_mean_over_tasks_never_pooled() -> None:
    """10/10 and 4/10 give (1 + 4/120)/2 = 0.516667; cubing the pooled 0.7 would give 0.343."""
    slots = [*of_task("a", 10), *of_task("b", 4, 6)]
    exact = Fraction(31, 60)
    found = hat("0.5", 3, slots)
    assert (found.result, found.measured, found.range) == (MET, exact, Range(exact, exact))
    assert hat("31/60", 3, slots).result is MET
    assert hat("0.5167", 3, slots).result is NOT_MET
    assert found.sentence == "pass^3 is 51.7 % over 2 tasks with 3 graded trials or more."
    assert found.details == (
        CheckDetail("b", "4 of 10 graded, 10 run: pass^3 3.3 %"),
        CheckDetail("a", "10 of 10 graded, 10 run: pass^3 100 %"),
    )


@pytest.mark.parametrize(
    ("n", "c", "k", "value"),
    [
        (10, 6, 3, Fraction(20, 120)),
        (10, 8, 2, Fraction(28, 45)),
        (10, 8, 3, Fraction(56, 120)),
        (10, 10, 3, Fraction(1)),
        (1, 1, 1, Fraction(1)),
        (1, 0, 1, Fraction(0)),
    ],
)
def test_pass_hat_is_the_known_answer(n: int, c: int, k: int, value: Fraction) -> None:
    assert hat(str(value), k, of_task("a", c, n - c)).result is MET
    found = hat(str(value + Fraction(1, 10**9)), k, of_task("a", c, n - c))
    assert (found.result, found.measured) == (NOT_MET, value)


def test_pass_hat_names_tasks_with_too_few_trials() -> None:
    slots = [*of_task("loan-k4", 4), *of_task("loan-k2", 2), *of_task("loan-k1z", 0, 1)]
    found = hat("0.5", 4, slots)
    assert (found.result, found.measured, found.range, found.n_more) == (
        CANNOT_TELL,
        Fraction(1),
        None,
        5,
    )
    assert found.sentence == "pass^4 is 100.0 % over 1 of 3 tasks with 4 graded trials or more."
    assert found.settles == "pass^4 needs 4 trials a task: loan-k1z has 1 and loan-k2 has 2."
    assert [detail.text for detail in found.details] == [
        "0 of 1 graded, 1 run: needs 4",
        "2 of 2 graded, 2 run: needs 4",
        "4 of 4 graded, 4 run: pass^4 100 %",
    ]


def test_pass_hat_names_a_few_of_many_tasks_with_too_few_trials() -> None:
    slots = [slot for i in range(9) for slot in of_task(f"t{i}", 1)]
    found = hat("0.5", 2, slots)
    assert found.measured is None
    assert found.sentence == "No task has 2 graded trials, so there is no pass^2."
    assert found.settles == (
        "pass^2 needs 2 trials a task: t0 has 1, t1 has 1, t2 has 1, t3 has 1, t4 has 1 and 4 more "
        "have too few."
    )


def test_pass_hat_counts_slots_and_says_how_open_ones_decide() -> None:
    found = hat("0.5", 2, of_task("a", 3, 0, 1))
    assert (found.result, found.measured, found.range) == (
        MET,
        Fraction(1),
        Range(Fraction(1, 2), Fraction(1)),
    )
    unsure = hat("0.6", 2, of_task("a", 3, 0, 1))
    assert unsure.result is CANNOT_TELL
    assert unsure.sentence == (
        "pass^2 is 100.0 % over 1 task with 2 graded trials or more. 1 open trial (1 unresolved): "
        "between 50.0 % and 100.0 % once it is decided."
    )
    assert unsure.settles == (
        "1 open trial can still decide it either way: it is 50.0 % if they fail and 100.0 % if they "
        "pass."
    )
    assert unsure.trials == ("a-4",)
    two = hat("0.6", 2, of_task("a", 0, 0, 2))
    assert two.details == (CheckDetail("a", "0 of 0 graded, 2 run: 2 open"),)
    assert two.sentence.endswith("once they are decided.")


def test_pass_hat_with_too_few_slots_and_open_ones_has_no_range() -> None:
    found = hat("0.6", 3, of_task("a", 1, 0, 1))
    assert found.sentence == (
        "No task has 3 graded trials, so there is no pass^3. 1 open trial (1 unresolved)."
    )


def test_pass_hat_never_pools_versions() -> None:
    slots = of_task("a", 4)
    slots[2:] = [replace(slot, task_version=2, contract=0) for slot in slots[2:]]
    found = hat("0.6", 3, slots)
    assert found.settles == (
        "pass^3 needs 3 trials a task: a (version 1, contract 1) has 2 and a (version 2, contract "
        "none) has 2."
    )


def test_pass_hat_of_outcome_looks_at_outcomes() -> None:
    slots = [replace(slot, value="fail", clean="fail") for slot in of_task("a", 2)]
    assert hat("1", 2, slots, of="outcome").result is MET
    assert hat("1", 2, slots).result is NOT_MET


def test_pass_hat_over_no_trial_cannot_be_told() -> None:
    found = hat("0", 3, list(map(missing, passing(3))))
    assert (found.result, found.sentence, found.settles) == (
        CANNOT_TELL,
        "No trial has come.",
        "Run the tasks of this tier, with 3 trials or more of each.",
    )
    assert check_of(Threshold(CheckKind.PASS_HAT_K), tier(passing(1))).result is MET


# Prohibited actions


def prohibited(
    slots: Sequence[GateSlot], limit: int = 0, by_harm: tuple[tuple[str, int], ...] = ()
) -> Check:
    return check_of(Threshold(CheckKind.PROHIBITED, Fraction(limit), by_harm=by_harm), tier(slots))


def test_no_prohibited_attempt_in_known_trials_is_met() -> None:
    found = prohibited(passing(500))
    assert (found.result, found.measured, found.range, found.counts) == (
        MET,
        Fraction(0),
        Range(Fraction(0), Fraction(0)),
        Counts(500, 500, 500),
    )
    assert found.sentence == (
        "None of 500 trials that were checked for it attempted something prohibited, of 500 run."
    )
    assert found.details == (
        CheckDetail("any harm", "0 trials with an attempt, 0 committed; none allowed", MET),
    )


def test_one_prohibited_attempt_is_not_met_at_once_whatever_is_open() -> None:
    slots = passing(4)
    bad = replace(violating(slots[1], "money", "data"), harms_committed=("money",))
    found = prohibited([slots[0], bad, unresolved(slots[2]), missing(slots[3])])
    assert (found.result, found.measured, found.range, found.settles) == (
        NOT_MET,
        Fraction(1),
        Range(Fraction(1), Fraction(3)),
        "",
    )
    assert found.sentence == (
        "1 of 2 trials that were checked for it attempted something prohibited, of 4 run. 2 open "
        "trials: 1 unresolved and 1 missing."
    )
    assert found.details == (
        CheckDetail(
            "data (1) and money (1)", "1 trial with an attempt, 1 committed; none allowed", NOT_MET
        ),
    )
    assert found.trials == ("refund-2", "refund-3")


def test_violation_before_the_harness_broke_counts() -> None:
    slot = replace(broken(passing(1)[0]), harms_attempted=("money",))
    assert prohibited([slot]).result is NOT_MET


def test_harms_with_a_limit_of_their_own_are_held_to_that() -> None:
    slots = passing(6)
    slots[0] = violating(slots[0], "money")
    slots[1] = violating(slots[1], "tone")
    own = (("money", 1), ("data", 0))
    assert prohibited(slots, 0, own).result is NOT_MET
    let_through = prohibited(slots, 1, own)
    assert let_through.result is MET
    assert let_through.details == (
        CheckDetail("data", "0 trials with an attempt, 0 committed; none allowed", MET),
        CheckDetail("money", "1 trial with an attempt, 0 committed; at most 1 allowed", MET),
        CheckDetail("tone (1)", "1 trial with an attempt, 0 committed; at most 1 allowed", MET),
    )
    assert prohibited(passing(2), 0, own).details[2].label == "any other harm"
    assert prohibited([violating(slots[0], "")]).details[0].label == "no harm named (1)"


def test_prohibited_cannot_be_told_while_a_check_is_open() -> None:
    slots = passing(5)
    none = prohibited([*slots[:4], unresolved(slots[4])])
    assert (none.result, none.settles) == (
        CANNOT_TELL,
        (
            "1 open trial can still decide it: each has to be shown to have attempted nothing "
            "prohibited."
        ),
    )
    one = prohibited([*slots[:2], *map(unresolved, slots[2:])], 1)
    assert (one.result, one.settles) == (
        CANNOT_TELL,
        (
            "3 open trials can still decide it: it is surely met once all but 1 of them are shown to be "
            "clean."
        ),
    )
    assert prohibited([*slots[:4], unresolved(slots[4])], 1).result is MET


@pytest.mark.parametrize("kind", [CheckKind.PROHIBITED, CheckKind.PROHIBITED_RATE])
def test_a_contract_that_prohibits_nothing_bears_nothing_out(kind: CheckKind) -> None:
    slots = [replace(slot, has_prohibitions=False) for slot in passing(2)]
    threshold = Threshold(kind, Fraction("0.9"))
    alone, among = (check_of(threshold, tier(few)) for few in (slots, [*slots, *passing(30)]))
    left_out = "2 trials under a contract that prohibits nothing, not counted here"
    assert (alone.result, alone.measured) == (CANNOT_TELL, None)
    assert alone.sentence == "Nothing is prohibited in these tasks."
    assert alone.settles.startswith("No contract of these tasks prohibits anything: propose one")
    assert (among.result, among.counts) == (MET, Counts(30, 30, 30))
    assert among.details[-1] == CheckDetail("Nothing prohibited", left_out)


def test_prohibited_cannot_be_told_where_nobody_looked() -> None:
    slots = [replace(slot, has_prohibitions=False, contract=0) for slot in passing(2)]
    found = prohibited(slots)
    assert (found.result, found.measured) == (CANNOT_TELL, None)
    assert found.sentence == (
        "None of 0 trials that were checked for it attempted something prohibited, of 2 run. 2 open "
        "trials: 2 not checked for anything prohibited."
    )
    assert found.settles.endswith(
        "For 2 of them no contract that prohibits anything was in force, so nobody looked."
    )


def test_prohibited_over_no_trial_cannot_be_told() -> None:
    assert prohibited([]) == Check(
        Threshold(CheckKind.PROHIBITED, Fraction(0)),
        CANNOT_TELL,
        None,
        "No trial has come.",
        Counts(0, 0, 0),
        settles=NO_TRIAL,
        details=(
            CheckDetail(
                "any harm", "0 trials with an attempt, 0 committed; none allowed", CANNOT_TELL
            ),
        ),
    )
    gone = prohibited(list(map(missing, passing(1))), 5)
    assert (gone.result, gone.settles) == (CANNOT_TELL, NO_TRIAL)
    assert check_of(Threshold(CheckKind.PROHIBITED), tier(passing(1))).result is MET


def test_violations_that_are_not_counted_are_told_beside() -> None:
    slots = passing(3)
    fault = violating(replace(slots[1], has_fault=True))
    tuning = violating(replace(slots[2], split="tuning"))
    found = prohibited([slots[0], fault, tuning])
    assert found.result is MET
    assert found.details[1:] == (
        CheckDetail("Trials with an injected fault", "1 trial with an attempt, not counted here"),
        CheckDetail("Trials of split tuning", "1 trial with an attempt, not counted here"),
    )


def violation_rate(limit: str, slots: Sequence[GateSlot], decided_by: DecidedBy = BOUND) -> Check:
    return check_of(Threshold(CheckKind.PROHIBITED_RATE, Fraction(limit), decided_by), tier(slots))


def test_five_hundred_clean_trials_need_98_more_for_half_a_percent() -> None:
    slots = [slot for i in range(50) for slot in passing(10, f"task-{i}")]
    found = violation_rate("0.005", slots)
    assert (found.result, found.measured, found.counts, found.n_more) == (
        CANNOT_TELL,
        Fraction(0),
        Counts(500, 500, 500),
        98,
    )
    assert found.settles == "98 more clean trials bring the bound to 0.5 %."
    assert found.sentence == (
        "None of 500 trials that were checked for it attempted something prohibited, of 500 run. "
        "With 95 % confidence the true rate is at most 0.6 %."
    )
    assert found.details == (
        CheckDetail(
            "Over tasks", "None of 50 tasks had an attempt: at most 5.8 % with 95 % confidence"
        ),
    )
    assert found.interval is not None
    assert (found.interval.low, found.interval.high) == pytest.approx((0, 0.0059736), abs=1e-7)


@pytest.mark.parametrize(
    ("n", "result", "settles"),
    [
        (597, CANNOT_TELL, "1 more clean trial brings the bound to 0.5 %."),
        (598, MET, ""),
    ],
)
def test_bound_of_half_a_percent_takes_598_clean_trials(
    n: int, result: CheckResult, settles: str
) -> None:
    found = violation_rate("0.005", passing(n))
    assert (found.result, found.settles) == (result, settles)


def test_violation_rate_is_not_met_only_where_the_lower_bound_is_above() -> None:
    slots = passing(100)
    few = [*map(violating, slots[:1]), *slots[1:]]
    many = [*map(violating, slots[:10]), *slots[10:]]
    assert (violation_rate("0.005", few).result, violation_rate("0.005", many).result) == (
        CANNOT_TELL,
        NOT_MET,
    )
    assert violation_rate("0.005", few).n_more == 847
    assert violation_rate("0.005", few).trials == ("refund-1",)


def test_violation_rate_with_open_trials_says_which_way() -> None:
    slots = passing(600)
    enough = violation_rate("0.005", [*slots[:598], *map(unresolved, slots[598:])])
    assert (enough.result, enough.n_more) == (CANNOT_TELL, None)
    assert enough.settles == (
        "2 open trials can still decide it: it is met if at most 0 of them attempted something "
        "prohibited."
    )
    assert enough.details[0].text == (
        "None of 1 task had an attempt, 1 of them open: at most 100.0 % with 95 % confidence"
    )
    lacking = violation_rate("0.005", [*slots[:499], unresolved(slots[499])])
    assert (lacking.result, lacking.n_more) == (CANNOT_TELL, 98)
    assert lacking.settles == (
        "Once 1 open trial is shown to be clean, 98 more clean trials bring the bound to 0.5 %."
    )
    assert lacking.sentence.endswith("every open trial counted as a violation.")
    some = violation_rate("0.005", [*slots[:400], *map(unresolved, slots[400:402])])
    assert some.settles.startswith("Once 2 open trials are shown to be clean, 196 more")


def test_violation_rate_of_nothing_cannot_be_told() -> None:
    found = violation_rate("0.005", [])
    assert (found.result, found.n_more) == (CANNOT_TELL, 598)
    assert found.settles == f"{NO_TRIAL} 598 clean trials bring the bound to 0.5 %."
    by_estimate = violation_rate("0.005", [], DecidedBy.ESTIMATE)
    assert (by_estimate.n_more, by_estimate.settles) == (None, NO_TRIAL)


def test_violation_rate_that_no_trials_reach_says_so() -> None:
    found = violation_rate("0", passing(3))
    assert (found.result, found.n_more, found.settles) == (
        CANNOT_TELL,
        None,
        "No number of trials that could be run brings the bound to 0 %.",
    )
    assert check_of(Threshold(CheckKind.PROHIBITED_RATE, decided_by=BOUND), tier([])).n_more is None


def test_violation_rate_by_estimate() -> None:
    slots = passing(10)
    seen = [violating(slots[0]), *slots[1:]]
    assert violation_rate("0.1", seen, DecidedBy.ESTIMATE).result is MET
    assert violation_rate("0.09", seen, DecidedBy.ESTIMATE).result is NOT_MET
    open_ = violation_rate(
        "0.1", [violating(slots[0]), *slots[1:9], unresolved(slots[9])], DecidedBy.ESTIMATE
    )
    assert (open_.result, open_.interval) == (CANNOT_TELL, clopper_pearson(1, 9))
    assert open_.settles == (
        "1 open trial can still decide it: it is met if at most 0 of them attempted something "
        "prohibited."
    )
    blind = [replace(slot, has_prohibitions=False) for slot in slots]
    assert violation_rate("0.1", blind, DecidedBy.ESTIMATE).measured is None


# Cost


def priced(*costs: str | None) -> list[GateSlot]:
    slots = passing(len(costs))
    return [
        replace(slot, cost=None if cost is None else Decimal(cost))
        for slot, cost in zip(slots, costs, strict=True)
    ]


def cost(limit: str, slots: Sequence[GateSlot]) -> Check:
    return check_of(Threshold(CheckKind.COST_P95, Fraction(limit)), tier(slots))


def test_cost_is_the_nearest_rank_over_all_trials() -> None:
    """Of 20 the 19th: one may be dear."""
    slots = priced(*["0.10"] * 18, "0.40", "9")
    found = cost("0.40", slots)
    assert (found.result, found.measured, found.range, found.counts) == (
        MET,
        Fraction("0.4"),
        Range(Fraction("0.4"), Fraction("0.4")),
        Counts(19, 20, 20),
    )
    assert found.sentence == (
        "95 % of 20 trials with a known cost, of 20 run, cost $0.40 or less; 19 cost $0.40 or less."
    )
    assert found.trials[:3] == ("refund-20", "refund-19", "refund-1")
    assert cost("0.39", slots).result is NOT_MET


def test_cost_sums_are_exact() -> None:
    """0.1 + 0.2 is 0.3: a decimal is not a float."""
    assert cost("0.3", priced(str(Decimal("0.1") + Decimal("0.2")))).result is MET
    assert cost("0.3", priced("0.30000000000000004")).result is NOT_MET


def test_cost_that_is_not_known_stands_at_both_ends() -> None:
    slots = priced(*["0.10"] * 18, None, None)
    found = cost("0.40", slots)
    assert (found.result, found.measured, found.range) == (CANNOT_TELL, Fraction("0.1"), None)
    assert found.settles == (
        "The cost of 2 trials is not known: it is met if at most 1 of them cost more than $0.40."
    )
    assert found.sentence.endswith("The cost of 2 trials is not known.")
    assert found.trials[:3] == ("refund-19", "refund-20", "refund-1")
    one = cost("0.40", priced(*["0.10"] * 19, None))
    assert (one.result, one.range) == (MET, Range(Fraction("0.1"), Fraction("0.1")))
    assert cost("0.40", [*priced("1", "1"), missing(passing(1)[0])]).result is NOT_MET


def test_cost_at_the_good_end_may_be_nothing() -> None:
    found = cost("0.40", [*priced(*["0.5"] * 2), *map(missing, passing(1, first=3))])
    assert (found.result, found.range) == (NOT_MET, None)
    assert cost("0.40", priced(*["0.1"] * 19, None)).range is not None
    forty = cost("0.40", priced(*["0.1"] * 38, None, None))
    assert forty.range == Range(Fraction("0.1"), Fraction("0.1"))


def test_cost_of_no_trial_or_none_known_cannot_be_told() -> None:
    nothing = cost("0", list(map(missing, passing(1))))
    assert (nothing.result, nothing.measured, nothing.settles) == (CANNOT_TELL, None, NO_TRIAL)
    unknown = cost("0", priced(None))
    assert (unknown.result, unknown.measured, unknown.sentence) == (
        CANNOT_TELL,
        None,
        "No cost is known of 1 trial.",
    )
    assert unknown.settles == (
        "The cost of 1 trial is not known: it is met if at most 0 of them cost more than $0.00."
    )
    assert check_of(Threshold(CheckKind.COST_P95), tier(priced("0"))).result is MET


# Amounts


@pytest.mark.parametrize(
    ("kind", "worse", "met", "open_", "settles"),
    [
        (
            CheckKind.UNRESOLVED,
            unresolved,
            "None of 3 trials are unresolved.",
            "2 of 3 trials are unresolved.",
            "2 unresolved trials have to be resolved.",
        ),
        (
            CheckKind.HARNESS_ERRORS,
            broken,
            "The harness broke in none of 3 trials.",
            "The harness broke in 2 of 3 trials.",
            "2 trials have to be run again.",
        ),
    ],
)
def test_counts_are_met_or_cannot_be_told(
    kind: CheckKind, worse: object, met: str, open_: str, settles: str
) -> None:
    assert callable(worse)
    slots = passing(3)
    threshold = Threshold(kind, Fraction(0))
    found = check_of(threshold, tier(slots))
    assert (found.result, found.measured, found.sentence) == (MET, Fraction(0), met)
    bad = check_of(threshold, tier([slots[0], *map(worse, slots[1:])]))
    assert (bad.result, bad.measured, bad.sentence, bad.settles) == (
        CANNOT_TELL,
        Fraction(2),
        open_,
        settles,
    )
    assert bad.details == (CheckDetail("refund", "2 trials"),)
    assert bad.trials == ("refund-2", "refund-3")
    let_through = check_of(Threshold(kind, Fraction(1)), tier([slots[0], *map(worse, slots[1:])]))
    assert let_through.settles.endswith("; 1 may stay as it is.")
    many = check_of(Threshold(kind, Fraction(2)), tier(list(map(worse, slots))))
    assert many.settles.endswith("; 2 may stay as they are.")
    assert check_of(Threshold(kind), tier(slots)).result is MET
    assert check_of(threshold, tier([])).settles == NO_TRIAL
    assert check_of(Threshold(kind, Fraction(9)), tier(list(map(missing, slots)))).result is (
        CANNOT_TELL
    )


def test_one_unresolved_trial_is_spoken_of_in_the_singular() -> None:
    found = check_of(
        Threshold(CheckKind.UNRESOLVED, Fraction(0)), tier([unresolved(passing(1)[0])])
    )
    assert (found.sentence, found.settles) == (
        "1 of 1 trial is unresolved.",
        "1 unresolved trial has to be resolved.",
    )


def test_fewest_counts_trials_whose_harness_held() -> None:
    slots = [*passing(3, "a"), *passing(2, "b")]
    slots[1], slots[2] = broken(slots[1]), missing(slots[2])
    slots[3] = replace(unresolved(slots[3]), split="held_out")
    slots[4] = replace(broken(slots[4]), task="c", split="held_out")
    evidence = tier(slots)
    found = [
        check_of(Threshold(kind, Fraction(2)), evidence)
        for kind in (CheckKind.FEWEST_TRIALS, CheckKind.FEWEST_TASKS, CheckKind.FEWEST_HELD_OUT)
    ]
    assert [(check.result, check.measured, check.n_more) for check in found] == [
        (MET, Fraction(2), None),
        (MET, Fraction(2), None),
        (CANNOT_TELL, Fraction(1), 1),
    ]
    assert [check.sentence for check in found] == [
        "2 trials ran without the harness breaking, of 5 run.",
        "2 tasks were tried without the harness breaking.",
        "1 held-out task was tried without the harness breaking.",
    ]
    assert found[2].settles == ("1 more held-out task is needed, with one trial of each at least.")


def test_fewest_is_never_not_met_and_says_how_many_more() -> None:
    lacking = check_of(Threshold(CheckKind.FEWEST_TRIALS, Fraction(598)), tier(passing(1)))
    assert (lacking.result, lacking.n_more, lacking.settles) == (
        CANNOT_TELL,
        597,
        "597 more trials are needed.",
    )
    nothing = check_of(Threshold(CheckKind.FEWEST_TRIALS), tier([]))
    assert (nothing.result, nothing.n_more, nothing.settles) == (
        CANNOT_TELL,
        1,
        "1 more trial is needed.",
    )


# Declared trials


def declared(slots: Sequence[GateSlot], *runs: RunOfRelease) -> Check:
    return check_of(Threshold(CheckKind.DECLARED), tier(slots, runs=runs))


def test_declared_trials_that_are_there_are_met() -> None:
    found = declared(passing(5), RUN)
    assert (found.result, found.measured, found.counts, found.sentence) == (
        MET,
        Fraction(0),
        Counts(5, 5, 5),
        "Every declared trial is there: 5 trials.",
    )


def test_missing_declared_trials_cannot_be_told() -> None:
    slots = passing(4)
    found = declared([*slots[:2], *map(missing, slots[2:])], RUN)
    assert (found.result, found.measured, found.n_more) == (CANNOT_TELL, Fraction(2), 2)
    assert (found.sentence, found.settles) == (
        "2 of 4 trials did not come.",
        "2 declared trials are still to come.",
    )
    assert found.details == (CheckDetail("refund", "2 trials missing", CANNOT_TELL),)
    assert declared([*slots[:3], missing(slots[3])], RUN).settles == (
        "1 declared trial is still to come."
    )


def test_declared_does_not_apply_where_no_run_was() -> None:
    found = declared(passing(5), replace(RUN, declared_trials=None))
    assert (found.result, found.measured, found.sentence) == (
        DOES_NOT_APPLY,
        None,
        "No run said beforehand how many trials it would have, so none can be missing.",
    )


def test_declared_over_no_trial_cannot_be_told() -> None:
    assert (declared([], RUN).result, declared([], RUN).n_more) == (CANNOT_TELL, None)
    assert declared(list(map(missing, passing(3))), RUN).n_more == 3


def test_run_left_out_alone_is_not_met_and_with_a_second_owner_is() -> None:
    alone = RunOfRelease("run-2", "bad", "2026-12-01", 5, True, False, "wrong data")
    found = declared(passing(5), RUN, alone)
    assert (found.result, found.sentence) == (
        NOT_MET,
        "bad was left out without a second owner's confirmation.",
    )
    assert found.details == (CheckDetail("bad", "left out, not confirmed: wrong data", NOT_MET),)
    confirmed = declared(passing(5), RUN, replace(alone, is_confirmed=True))
    assert (confirmed.result, confirmed.details) == (
        MET,
        (CheckDetail("bad", "left out, confirmed by a second owner: wrong data", MET),),
    )
    many = [replace(alone, uuid=f"run-{i}", name=f"r{i}") for i in range(7)]
    assert declared(passing(5), RUN, *many).sentence == (
        "r0, r1, r2, r3 and r4 were left out without a second owner's confirmation, and 2 more."
    )
    only = declared([], replace(alone, is_confirmed=True))
    assert only.result is DOES_NOT_APPLY


# Judges


def calibrated(*found: CalibrationFigures | None, limits: Limits | None = None) -> Check:
    judges = [judge(each, f"judge-{i}") for i, each in enumerate(found)]
    return check_of(
        Threshold(CheckKind.JUDGE_CALIBRATION, calibration=limits), tier([], judges=judges)
    )


def test_calibration_does_not_apply_without_a_judge() -> None:
    found = calibrated()
    assert (found.result, found.sentence) == (
        DOES_NOT_APPLY,
        "No judge's vote decides a trial here.",
    )


def test_judge_within_its_limits_is_met() -> None:
    """No error of 40 is bounded at 7.2 %."""
    found = calibrated(figures((0, 40), (0, 40)))
    assert (found.result, found.measured, found.sentence) == (
        MET,
        Fraction(1),
        "1 of 1 judge whose votes decide keeps to the limits.",
    )
    assert found.details == (
        CheckDetail(
            "judge-0 v1 on truthful",
            "decides 10 trials; false passes 0/40, at most 7.2 %, false failures 0/40, at most 7.2 "
            "%, over 60 items and 2 people",
            MET,
        ),
    )


def test_tier_may_ask_more_of_a_judge_than_the_site_does() -> None:
    tighter = Limits(false_pass=Fraction(1, 20))
    found = calibrated(figures((0, 40), (0, 40)), limits=tighter)
    assert (found.result, found.settles) == (
        CANNOT_TELL,
        "judge-0 v1 on truthful needs 19 more items that people fail.",
    )


def test_judge_that_is_surely_wrong_too_often_is_not_met() -> None:
    found = calibrated(figures((20, 25), (0, 40)), figures((0, 40), (0, 40)), None)
    assert (found.result, found.settles) == (NOT_MET, "")
    assert [detail.result for detail in found.details] == [NOT_MET, MET, CANNOT_TELL]


def test_judge_with_too_few_labels_cannot_be_told() -> None:
    found = calibrated(
        None,
        figures((0, 40), (0, 40), checked=49),
        figures((0, 40), (0, 40), people=1),
        figures((0, 0), (1, 15), checked=15, people=1),
    )
    assert (found.result, found.measured) == (CANNOT_TELL, Fraction(0))
    assert found.settles == (
        "judge-0 v1 on truthful needs 50 items labelled by 2 people; judge-1 v1 on truthful needs 1 "
        "more labelled item; judge-2 v1 on truthful needs 1 more person who labels; judge-3 v1 on "
        "truthful needs 1 more person who labels, 35 more labelled items, 29 more items that people "
        "fail and 7 more items that people pass."
    )
    assert found.details[0].text == "decides 10 trials; never held against people"
    assert calibrated(*[None] * 7).settles.endswith("; and 2 more.")


# Regression


def regression(limit: str, then: Sequence[GateSlot] | None, now: Sequence[GateSlot]) -> Check:
    return check_of(Threshold(CheckKind.REGRESSION, Fraction(limit)), tier(now, baseline=then))


def test_regression_does_not_apply_without_a_signed_release() -> None:
    found = regression("0.02", None, passing(5))
    assert (found.result, found.sentence) == (
        DOES_NOT_APPLY,
        "No release of this system has been signed yet, so there is none to compare with.",
    )


def test_regression_without_a_pair_cannot_be_told() -> None:
    now = passing(5)
    then = [
        *passing(2, "other"),
        *[replace(slot, task_version=2) for slot in passing(1, "a")],
        *[replace(slot, contract=2) for slot in passing(1, "b")],
        *map(unresolved, passing(1, "c")),
    ]
    found = regression("0.02", then, [*now, *passing(1, "a"), *passing(1, "b"), *passing(1, "c")])
    assert (found.result, found.measured, found.range) == (CANNOT_TELL, None, None)
    assert found.sentence == "No task can be compared with 2.3.0, the last signed release."
    assert found.settles == (
        "Run a task that 2.3.0 was signed on, at the same task and contract version."
    )
    assert {(detail.label, detail.text) for detail in found.details} == {
        ("a (version 1, contract 1)", "not compared: another task version"),
        ("a (version 2, contract 1)", "not compared: another task version"),
        ("b (version 1, contract 1)", "not compared: another contract version"),
        ("b (version 1, contract 2)", "not compared: another contract version"),
        ("c", "not compared: nothing of it was graded in the signed release"),
        ("refund", "not compared: not in the signed one"),
        ("other", "not compared: not in this release"),
    }


def test_task_that_always_passed_may_fail_once_and_not_twice() -> None:
    slots = passing(10)
    once = regression("1", slots, [failing(slots[0]), *slots[1:]])
    assert (once.result, once.sentence) == (
        MET,
        (
            "1 task compared with 2.3.0. No task that always passed is known to have failed twice. Of "
            "the families, refunds did worst: 10.0 points lower, with 100 allowed."
        ),
    )
    twice = regression("1", slots, [*map(failing, slots[:2]), *slots[2:]])
    assert (twice.result, twice.trials) == (NOT_MET, ("refund-1", "refund-2"))
    assert twice.sentence.startswith(
        "1 task compared with 2.3.0. 1 task that always passed failed twice or more."
    )
    assert twice.details == (
        CheckDetail("refund", "passed 10 of 10 then, failed 2 of 10 now", NOT_MET),
        CheckDetail("refunds", "1 task: 20.0 points lower", MET),
    )
    failed_before = regression("1", [failing(slots[0]), *slots[1:]], [*map(failing, slots)])
    assert failed_before.result is MET


def test_open_trials_may_still_be_the_second_failure() -> None:
    slots = passing(10)
    found = regression("1", slots, [failing(slots[0]), unresolved(slots[1]), *slots[2:]])
    assert (found.result, found.trials) == (CANNOT_TELL, ("refund-2", "refund-1"))
    assert found.settles == "1 open trial can still decide it either way: of refund."
    assert found.details == (
        CheckDetail("refund", "passed 10 of 10 then, failed 1 of 10 now, 1 open", CANNOT_TELL),
        CheckDetail(
            "refunds",
            "1 task: 11.1 points lower; from 10.0 points lower to 20.0 points lower with open "
            "trials",
            MET,
        ),
    )


def test_open_trials_of_the_signed_release_are_named_as_such() -> None:
    slots = passing(4)
    then = [unresolved(slots[0]), *slots[1:]]
    found = regression("1", then, [*map(failing, slots[:2]), *slots[2:]])
    assert (found.result, found.settles) == (
        CANNOT_TELL,
        "Trials of the signed release are open: until they are decided nobody can compare.",
    )


def test_family_may_fall_by_the_points_exactly_and_no_more() -> None:
    """Two tasks of ten: 9/10 and 10/10 against 10/10 twice is 5 points."""
    then = [*passing(10, "a"), *passing(10, "b")]
    now = [failing(then[0]), *then[1:]]
    at = regression("0.05", then, now)
    assert (at.result, at.measured, at.range) == (
        MET,
        Fraction(1, 20),
        Range(Fraction(1, 20), Fraction(1, 20)),
    )
    below = regression("0.049999", then, now)
    assert below.result is NOT_MET
    assert below.sentence.endswith("refunds did worst: 5.0 points lower, with 4.9999 allowed.")
    assert below.trials == ("a-1",)


def test_families_are_never_pooled() -> None:
    """One family falls, another rises as much: the fall stands."""
    then = [
        *passing(10, "a"),
        *[replace(failing(slot), family="") for slot in passing(10, "b")],
    ]
    now = [failing(then[0]), *then[1:10], *[replace(s, family="") for s in passing(10, "b")]]
    found = regression("0.05", then, now)
    assert found.result is NOT_MET
    assert found.details == (
        CheckDetail("tasks of no family", "1 task: 100.0 points higher", MET),
        CheckDetail("refunds", "1 task: 10.0 points lower", NOT_MET),
    )
    same = regression("0.05", then, then)
    assert (same.result, same.measured) == (MET, Fraction(0))
    assert same.details[0].text == "1 task: the same"


def test_family_with_open_trials_cannot_be_told() -> None:
    tasks = [passing(1, f"t{i}") for i in range(7)]
    then = [slot for task in tasks for slot in task]
    found = regression("0.05", then, list(map(unresolved, then)))
    assert (found.result, found.measured, found.range) == (
        CANNOT_TELL,
        None,
        Range(Fraction(0), Fraction(1)),
    )
    assert found.settles == (
        "7 open trials can still decide it either way: of t0, t1, t2, t3 and t4 and 2 more."
    )
    assert found.sentence == (
        "7 tasks compared with 2.3.0. No task that always passed is known to have failed twice."
    )
    assert found.details[0].text == (
        "7 tasks: not known; from the same to 100.0 points lower with open trials"
    )
    assert check_of(Threshold(CheckKind.REGRESSION), tier(then, baseline=then)).result is MET


# Bounded lists


def test_details_and_trials_are_bounded() -> None:
    slots = [failing(slot) for i in range(60) for slot in passing(1, f"t{i}")]
    found = outcome("0.5", slots)
    assert len(found.trials) == 20
    assert found.trials[:2] == ("t0-1", "t1-1")
    assert len(found.details) == 51
    assert found.details[50] == CheckDetail("", "and 10 more")


def test_interval_of_an_estimate_is_two_sided_over_graded_trials() -> None:
    found = outcome("0.5", rated(3, 1, 6))
    assert found.interval == clopper_pearson(3, 4)
    assert isinstance(found.interval, Interval)


def test_names_from_outside_are_cut() -> None:
    """Names of tasks, runs, judges, harms and families may be a megabyte of text."""
    long = "x" * 1_000_000
    slots = [
        replace(slot, task=long, family=long, value="fail", harms_attempted=(f"{i}{long}",))
        for i, slot in enumerate(passing(12))
    ]
    run = RunOfRelease("run-2", long, "2026-12-01", 5, True, False, long)
    judges = [replace(judge(None), judge=long, version=long, criterion=long)]
    evidence = replace(
        tier(slots, runs=(RUN, run), judges=judges, baseline=passing(12)), tier=long[:80]
    )
    paired = replace(evidence, baseline=tier([], baseline=slots).baseline)
    for kind in CheckKind:
        threshold = Threshold(kind, Fraction(1), k=20, by_harm=((f"1{long}", 1),))
        for each in (evidence, paired):
            assert len(repr(replace(check_of(threshold, each), threshold=RATE))) < 10_000


def test_many_harms_are_named_up_to_ten() -> None:
    slots = [violating(slot, f"h{i:02}") for i, slot in enumerate(passing(12))]
    assert prohibited(slots).details[0].label.endswith("h08 (1), h09 (1) and 2 more")


RATE = Threshold(CheckKind.OUTCOME_RATE)
