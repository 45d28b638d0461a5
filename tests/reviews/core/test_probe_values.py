"""Wrong values of the same type, and what follows them."""

from __future__ import annotations

from decimal import Decimal
from random import Random
from typing import Any

import pytest

from reviews.core.probe_values import (
    MOST_LEAVES,
    Leaf,
    followed_in_state,
    followed_in_text,
    leaves_of,
    with_value,
    wrong_value,
)
from traces.core.values import Json


def known(_: str) -> bool:
    return False


def changed(
    value: Any, *, seed: int = 1, others: tuple[str, ...] = (), is_known: Any = known
) -> Any:
    return wrong_value(Leaf(("x",), value, 0), Random(seed), others=others, is_known=is_known)


def test_leaves_are_values_and_no_prose() -> None:
    arguments: Json = {
        "order": "A-1",
        "amount": 84.0,
        "exact": Decimal("84.00"),
        "fast": True,
        "to": {"lines": ["card", None, "", "  "]},
        "why": "It arrived broken and I am sad",
        "long": "x" * 81,
        "two": "a\nb",
        "huge": 10**40,
        "big": 1e300,
        "sign": "—",
    }
    found = [(leaf.pointer, leaf.name, leaf.value, leaf.rank) for leaf in leaves_of(arguments)]
    assert found == [
        ("/order", "order", "A-1", 0),
        ("/amount", "amount", 84.0, 0),
        ("/exact", "exact", Decimal("84.00"), 0),
        ("/fast", "fast", True, 1),
        ("/to/lines/0", "lines", "card", 2),
    ]
    assert [leaf.name for leaf in leaves_of([[5]])] == [""]
    assert [leaf.path for leaf in leaves_of("A-1")] == [()]
    assert len(list(leaves_of(list(range(3 * MOST_LEAVES))))) == MOST_LEAVES - 1


@pytest.mark.parametrize("seed", range(20))
def test_a_wrong_value_is_another_one_of_the_same_type(seed: int) -> None:
    for value in (1, 0, -84, 84.5, 0.0, Decimal("84.00"), True, "A-2291", "2026-05-17", "card"):
        new = changed(value, seed=seed)
        assert new != value
        assert type(new) is type(value)
    assert str(changed(Decimal("84.00"), seed=seed)).endswith("4.00")
    assert changed("A-2291", seed=seed)[:-1] == "A-229"
    assert changed("2026-05-31T10:00", seed=seed)[8:10] in {f"{day:02}" for day in range(1, 29)}
    assert changed("2026-05-31T10:00", seed=seed)[10:] == "T10:00"


def test_a_value_that_the_transcript_holds_is_not_taken() -> None:
    held = {f"A-{n}" for n in range(10) if n != 4}
    assert changed("A-1", is_known=lambda text: text in held) == "A-4"
    assert changed("A-1", is_known=lambda _: True) != "A-1"


def test_a_word_becomes_another_that_the_argument_had_or_a_made_up_one() -> None:
    assert changed("card", others=("card", "voucher")) == "voucher"
    made_up = changed("Card_x", others=("Card_x",))
    assert made_up != "Card_x"
    assert (len(made_up), made_up[4], made_up[0].isupper()) == (6, "_", True)


def test_a_place_in_arguments_is_set() -> None:
    arguments: Json = {"a": [1, {"b": 2}], "c": 3}
    assert with_value(arguments, ("a", 1, "b"), 9) == {"a": [1, {"b": 9}], "c": 3}
    assert with_value("A-1", (), "A-2") == "A-2"
    assert arguments == {"a": [1, {"b": 2}], "c": 3}


@pytest.mark.parametrize(
    ("text", "name", "old", "new", "after"),
    [
        ('{"order": "A-1"} A-1. A-12', "order", "A-1", "A-7", '{"order": "A-7"} A-7. A-12'),
        ('{"to": "x1", "by": "x1"}', "to", "x1", "x2", '{"to": "x2", "by": "x1"}'),
        ("paid 84.00, 84 and 184.", "amount", 84.0, 34.0, "paid 34.00, 34 and 184."),
        ("paid 84 of 84.5", "amount", Decimal(84), Decimal("34.50"), "paid 34.50 of 84.5"),
        ('{"n": 1, "m": 1}', "n", 1, 7, '{"n": 7, "m": 1}'),
        ("1" * 100, "n", 11, 12, "1" * 100),
        ('{"fast": true, "far": true}', "fast", True, False, '{"fast": false, "far": true}'),
        ("ok", "x", None, None, "ok"),
    ],
)
def test_a_result_follows_the_wrong_value(
    text: str, name: str, old: Json, new: Json, after: str
) -> None:
    assert followed_in_text(text, name, old, new) == after


def test_a_state_follows_where_the_trial_changed_it() -> None:
    initial: Json = {"orders": {"A-22": {"id": "A-22"}}, "refunds": []}
    final: Json = {
        "orders": {"A-22": {"id": "A-22"}},
        "refunds": [{"order": "A-22", "n": 1, "m": 1, "fast": True}],
    }
    assert followed_in_state(final, initial, "order", "A-22", "A-27") == (
        {
            "orders": {"A-22": {"id": "A-22"}},
            "refunds": [{"order": "A-27", "n": 1, "m": 1, "fast": True}],
        },
        ("/refunds/0/order",),
    )
    assert followed_in_state(final, initial, "n", 1, 5)[1] == ("/refunds/0/n",)
    assert followed_in_state(final, initial, "fast", True, False)[1] == ("/refunds/0/fast",)
    assert followed_in_state(final, initial, "other", True, False)[1] == ()
    assert followed_in_state("A-22", "A-11", "order", "A-22", "A-27") == ("A-27", ("",))
    assert followed_in_state([1, "A-22"], [1], "order", "A-22", "A-27")[1] == ("/1",)
    assert followed_in_state(final, None, "order", "A-22", "A-27") == (final, ())
