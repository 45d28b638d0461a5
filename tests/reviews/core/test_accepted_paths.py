from __future__ import annotations

from dataclasses import replace

import pytest

from reviews.core.accepted_paths import (
    LONGEST_REASON,
    GroupStanding,
    PathFacts,
    RefusalCode,
    Taking,
    accepted_name,
    refusal_of_path,
    refusal_of_reason,
    standing_of_group,
    taking_of,
)

GOOD = PathFacts(
    is_passing=True, is_comparable=True, compares_arguments=True, n_flagged=0, accepted=()
)


def code_of(facts: PathFacts) -> RefusalCode | None:
    refusal = refusal_of_path(facts)
    return refusal.code if refusal else None


def test_a_passing_comparable_path_without_flags_can_be_accepted() -> None:
    assert refusal_of_path(GOOD) is None


def test_each_reason_refuses_and_the_weightiest_is_told() -> None:
    facts = replace(GOOD, accepted=(2,))
    assert code_of(facts) is RefusalCode.ALREADY
    facts = replace(facts, n_flagged=1)
    assert code_of(facts) is RefusalCode.FLAGGED
    facts = replace(facts, is_comparable=False)
    assert code_of(facts) is RefusalCode.NOT_COMPARABLE
    facts = replace(facts, is_passing=False)
    assert code_of(facts) is RefusalCode.NOT_PASSING


def test_missing_arguments_matter_only_where_arguments_are_compared() -> None:
    facts = replace(GOOD, is_comparable=False, compares_arguments=False)
    assert refusal_of_path(facts) is None


@pytest.mark.parametrize(
    ("n", "words"),
    [
        (1, "1 passing trial on this path carries an open flag."),
        (1200, "1,200 passing trials on this path carry an open flag."),
    ],
)
def test_a_flag_is_counted_in_words(n: int, words: str) -> None:
    refusal = refusal_of_path(replace(GOOD, n_flagged=n))
    assert refusal is not None
    assert refusal.sentence.startswith(words)


def test_a_path_that_is_accepted_is_named() -> None:
    refusal = refusal_of_path(replace(GOOD, accepted=(3, 1)))
    assert refusal is not None
    assert refusal.sentence.endswith("already: Accepted 1 and 3.")


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("", RefusalCode.NO_REASON),
        (" \n\t", RefusalCode.NO_REASON),
        ("x" * (LONGEST_REASON + 1), RefusalCode.LONG_REASON),
        ("x" * LONGEST_REASON, None),
        ("It asks first.", None),
    ],
    ids=["empty", "blank", "too-long", "longest", "good"],
)
def test_a_reason_is_needed_and_bounded(reason: str, code: RefusalCode | None) -> None:
    refusal = refusal_of_reason(reason)
    assert (refusal.code if refusal else None) is code


@pytest.mark.parametrize(
    ("numbers", "name"),
    [
        ((1,), "Accepted 1"),
        ((3, 1), "Accepted 1 and 3"),
        ((4, 1, 3), "Accepted 1, 3 and 4"),
    ],
    ids=["one", "two", "three"],
)
def test_one_path_has_the_names_of_all_its_acceptances(numbers: tuple[int, ...], name: str) -> None:
    assert accepted_name(numbers) == name


@pytest.mark.parametrize(
    ("n_covered", "is_first_seen", "standing"),
    [
        (3, True, GroupStanding.ACCEPTED),
        (3, False, GroupStanding.ACCEPTED),
        (1, True, GroupStanding.PARTLY),
        (1, False, GroupStanding.PARTLY),
        (0, True, GroupStanding.NEW),
        (0, False, GroupStanding.NOT_ACCEPTED),
    ],
)
def test_coverage_comes_before_novelty(
    n_covered: int, is_first_seen: bool, standing: GroupStanding
) -> None:
    found = standing_of_group(n_trials=3, n_covered=n_covered, is_first_seen=is_first_seen)
    assert found is standing


@pytest.mark.parametrize(
    ("n_here", "n_graded", "n_before", "taking"),
    [
        (1, 3, 0, Taking.TAKEN),
        (1, 3, 9, Taking.TAKEN),
        (0, 3, 1, Taking.NO_LONGER),
        (0, 3, 0, Taking.NOT_YET),
        (0, 0, 1, Taking.CANNOT_TELL),
        (0, 0, 0, Taking.CANNOT_TELL),
    ],
)
def test_a_path_is_lost_only_where_graded_trials_left_it(
    n_here: int, n_graded: int, n_before: int, taking: Taking
) -> None:
    assert taking_of(n_here=n_here, n_graded=n_graded, n_before=n_before) is taking
