from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traces.core.rules import RuleSet
from traces.core.trajectory import ToolKind
from traces.web.rows import percent
from traces.web.tool_names import LONGEST_LABEL, tool_looks


def labels(*names: str) -> list[str]:
    return [look.label for look in tool_looks(names, RuleSet()).values()]


def test_a_label_is_the_telling_word_of_a_name() -> None:
    assert labels("get_user_details", "calculate", "searchDirectFlight", "a.b/c") == [
        "user",
        "calculate",
        "search",
        "b",
    ]


def test_a_long_word_is_cut_with_a_sign_of_it() -> None:
    assert labels("get_reservation_details", "renew_internationalisation") == [
        "reservation",
        "renew",
    ]
    assert labels("internationalisation") == ["internation…"]


def test_tools_that_share_a_word_are_told_apart_by_words() -> None:
    assert labels("get_user", "update_user", "user", "set_user_name", "user_") == [
        "get user",
        "update user",
        "user",
        "name",
        "user2",
    ]


def test_a_word_that_reads_like_that_of_another_tool_is_no_label_of_its_own() -> None:
    names = ("get_subscription", "list_subscriptions", "get_customer", "list_customer_notes")
    expected = ["get subscri.", "list subscr.", "get customer", "notes"]
    assert labels(*names) == expected
    assert labels(*reversed(names)) == expected[::-1]
    assert labels("get_category", "list_categories") == ["get category", "list catego."]


def test_both_of_two_long_words_are_shortened() -> None:
    assert labels("reservation_discounts", "reservations", "discount") == [
        "rese. disco.",
        "reservations",
        "discount",
    ]


def test_names_of_one_word_that_read_alike_keep_what_differs() -> None:
    assert labels("user", "users", "User") == ["user", "users", "user2"]
    assert labels("subscription", "subscriptions") == ["subscription", "subscr…tions"]
    assert labels("update_order", "update_orders") == ["update order", "update…rders"]


def test_very_long_names_that_differ_late_are_numbered() -> None:
    assert labels("a" * 300, "a" * 299 + "b", "x_" * 100, "x_" * 99) == [
        "aaaaaaaaaaa…",
        "aaaaaaaaaa…2",
        "x",
        "x2",
    ]
    many = [f"{'word_' * 30}{number}" for number in range(300)]
    assert len(set(labels(*many))) == 300


def test_a_label_holds_no_initials() -> None:
    names = ("get_order", "list_orders", "find_order", "orders", "order_items", "order_lines")
    assert labels(*names) == [
        "get order",
        "list orders",
        "find order",
        "orders",
        "items",
        "lines",
    ]


def test_a_name_of_plain_words_or_of_none_has_a_label_too() -> None:
    assert labels("get", "---", "", "\u202e", "工具") == [
        "get",
        "---",
        "(none)",
        "[U+202E]",
        "工具",
    ]


def test_colours_and_kinds_come_in_the_order_of_use() -> None:
    rules = RuleSet(tool_kinds=(("b", ToolKind.READ),))
    looks = tool_looks(["b", "a", "b"], rules)
    assert [(look.name, look.colour, look.kind) for look in looks.values()] == [
        ("b", 0, "read"),
        ("a", 1, "write"),
    ]
    assert looks["b"].key.css == "cell tool-c0"


alike_names = st.lists(st.sampled_from(["get", "list", "user", "users", "subscription", "_"]))


@given(st.lists(st.text(max_size=12) | alike_names.map("_".join), max_size=40, unique=True))
def test_labels_are_short_and_never_the_same(names: list[str]) -> None:
    found = labels(*names)
    assert len(set(found)) == len(names)
    assert all(0 < len(label) <= LONGEST_LABEL for label in found)


@pytest.mark.parametrize(
    ("part", "whole", "text"),
    [
        (0, 0, "-"),
        (0, 7, "0.0%"),
        (7, 7, "100.0%"),
        (1, 3, "33.3%"),
        (2, 3, "66.7%"),
        (1, 8, "12.5%"),
        (9999, 10_000, "99.9%"),
        (1, 10_000, "< 0.1%"),
    ],
)
def test_a_percentage_never_claims_more_than_it_is(part: int, whole: int, text: str) -> None:
    assert percent(part, whole) == text
