from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from traces.selectors.path_groups import label_order, ordered_groups

labels = st.text("0123456789ab:", min_size=1, max_size=6)


def test_groups_come_largest_first_then_by_first_label() -> None:
    groups = [["10"], ["2"], ["1", "0"], ["b"], ["a", "11", "3"]]
    assert ordered_groups(groups) == (("3", "11", "a"), ("0", "1"), ("2",), ("10",), ("b",))


def test_labels_of_thousands_of_digits_have_an_order() -> None:
    assert label_order("9" * 5_000) == (1, 0, "9" * 5_000)
    assert label_order("\u0662") == (1, 0, "\u0662")


@given(st.lists(labels, unique=True, min_size=1), st.randoms())
def test_the_order_does_not_depend_on_what_came_first(names: list[str], random: object) -> None:
    groups = [names[at : at + 2] for at in range(0, len(names), 2)]
    again = [list(reversed(group)) for group in reversed(groups)]
    assert ordered_groups(groups) == ordered_groups(again)
