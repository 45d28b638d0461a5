from __future__ import annotations

from collections import Counter

import pytest

from reviews.core.sampling import (
    Candidate,
    Drawn,
    Stratum,
    StratumDraw,
    chosen_order,
    even_shares,
    random_draw,
    read_strata,
    strata_document,
    stratified_draw,
    stratum_of,
    suggested_shares,
)

PASS, FAIL = Stratum.CLEAR_PASS, Stratum.CLEAR_FAILURE
ALTERNATE, UNDECIDED = Stratum.ALTERNATE_PATH, Stratum.UNDECIDED


def many(n: int, stratum: Stratum = PASS, family: str = "", first: int = 1) -> list[Candidate]:
    return [Candidate(pk, family, stratum) for pk in range(first, first + n)]


@pytest.mark.parametrize(
    ("passes", "is_usual", "stratum"),
    [
        (True, True, PASS),
        (True, False, ALTERNATE),
        (False, True, FAIL),
        (False, False, FAIL),
        (None, True, UNDECIDED),
        (None, False, UNDECIDED),
    ],
)
def test_stratum_of(passes: bool | None, is_usual: bool, stratum: Stratum) -> None:
    assert stratum_of(passes=passes, is_usual_path=is_usual) is stratum


def test_a_random_draw_has_each_trial_once_and_is_made_again_from_its_seed() -> None:
    pool = many(100)

    drawn = random_draw(pool, 40, seed=7)

    assert len({each.pk for each in drawn.candidates}) == 40
    assert random_draw(reversed(pool), 40, seed=7) == drawn
    assert random_draw(pool, 40, seed=8) != drawn
    assert drawn.strata == ()


def test_a_random_draw_of_more_than_there_is_takes_all_in_a_drawn_order() -> None:
    pool = many(30)

    drawn = random_draw(pool, 50, seed=1)

    assert sorted(drawn.candidates, key=lambda each: each.pk) == pool
    assert list(drawn.candidates) != pool
    assert random_draw([], 5, seed=1) == Drawn(())


def test_each_trial_is_as_likely_as_any_other() -> None:
    pool = many(10)

    hits = Counter(
        each.pk for seed in range(2_000) for each in random_draw(pool, 3, seed=seed).candidates
    )

    # 600 expected of each; five standard deviations are 102.
    assert all(498 <= hits[each.pk] <= 702 for each in pool)


def test_a_stratified_draw_takes_so_many_of_each_and_says_what_is_missing() -> None:
    pool = [*many(50), *many(3, FAIL, first=100), *many(10, ALTERNATE, first=200)]

    drawn = stratified_draw(pool, {PASS: 10, FAIL: 29, ALTERNATE: 10, UNDECIDED: 4}, seed=3)

    assert drawn.strata == (
        StratumDraw(PASS, 10, 50, 10),
        StratumDraw(FAIL, 29, 3, 3),
        StratumDraw(ALTERNATE, 10, 10, 10),
        StratumDraw(UNDECIDED, 4, 0, 0),
    )
    assert Counter(each.stratum for each in drawn.candidates) == {PASS: 10, FAIL: 3, ALTERNATE: 10}
    assert [each.shortage for each in drawn.strata] == [
        "",
        "29 wanted of clear failure; only 3 trials are there.",
        "",
        "4 wanted of undecided; no trial is there.",
    ]
    assert StratumDraw(FAIL, 2, 1, 1).shortage == (
        "2 wanted of clear failure; only 1 trial is there."
    )


def test_a_stratified_draw_takes_families_in_turn() -> None:
    pool = [
        *many(100, family="large"),
        *many(4, family="small", first=200),
        *many(1, family="single", first=300),
    ]

    drawn = stratified_draw(pool, {PASS: 9}, seed=5)

    assert Counter(each.family for each in drawn.candidates) == {
        "large": 4,
        "small": 4,
        "single": 1,
    }


def test_neighbours_of_a_stratified_draw_tell_nothing() -> None:
    pool = [*many(50), *many(50, FAIL, first=100)]

    alike = sum(
        one.stratum is other.stratum
        for seed in range(100)
        for drawn in [stratified_draw(pool, {PASS: 50, FAIL: 50}, seed=seed).candidates]
        for one, other in zip(drawn, drawn[1:], strict=False)
    )

    # 49 of 99 neighbours are alike by chance: 4,900 in a hundred draws, within four deviations.
    assert 4_700 <= alike <= 5_100


def test_a_stratified_draw_without_wishes_is_empty() -> None:
    assert stratified_draw(many(5), {}, seed=1) == Drawn(())


def test_trials_chosen_by_hand_come_in_a_drawn_order() -> None:
    pool = many(20)

    drawn = chosen_order(pool, seed=2)

    assert sorted(drawn.candidates, key=lambda each: each.pk) == pool
    assert list(drawn.candidates) != pool
    assert chosen_order(pool[::-1], seed=2) == drawn


@pytest.mark.parametrize(
    ("n", "found", "shares"),
    [
        (50, {PASS: 100, FAIL: 100, ALTERNATE: 100}, {PASS: 17, FAIL: 17, ALTERNATE: 16}),
        (50, {PASS: 100, FAIL: 5}, {PASS: 45, FAIL: 5}),
        (50, {PASS: 10, UNDECIDED: 3}, {PASS: 10, UNDECIDED: 3}),
        (2, {PASS: 9, FAIL: 9, ALTERNATE: 9, UNDECIDED: 9}, {PASS: 1, FAIL: 1}),
        (0, {PASS: 9}, {}),
        (5, {}, {}),
    ],
)
def test_even_shares(n: int, found: dict[Stratum, int], shares: dict[Stratum, int]) -> None:
    assert even_shares(n, found) == dict.fromkeys(Stratum, 0) | shares


def test_strata_are_read_as_they_were_stored() -> None:
    strata = (StratumDraw(PASS, 10, 50, 10), StratumDraw(FAIL, 29, 3, 3))

    document = strata_document(strata)

    assert document == [
        {"stratum": "clear pass", "wanted": 10, "found": 50, "drawn": 10},
        {"stratum": "clear failure", "wanted": 29, "found": 3, "drawn": 3},
    ]
    assert read_strata(document) == strata


@pytest.mark.parametrize(
    ("found", "shares"),
    [
        ({PASS: 100, FAIL: 100}, {PASS: 21, FAIL: 29}),
        ({PASS: 100, FAIL: 9, ALTERNATE: 10}, {PASS: 31, FAIL: 9, ALTERNATE: 10}),
        ({PASS: 3, FAIL: 100}, {PASS: 3, FAIL: 29}),
        ({}, {}),
    ],
)
def test_suggested_shares(found: dict[Stratum, int], shares: dict[Stratum, int]) -> None:
    assert suggested_shares(50, found, n_failures=29) == dict.fromkeys(Stratum, 0) | shares


def test_suggested_shares_of_a_small_set_are_failures_first() -> None:
    found = {PASS: 9, FAIL: 9}

    assert suggested_shares(5, found, n_failures=29) == dict.fromkeys(Stratum, 0) | {FAIL: 5}
