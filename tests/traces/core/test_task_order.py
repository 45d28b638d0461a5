"""Task ids in natural order."""

from traces.core.task_order import sort_text


def test_task_ids_are_in_the_order_that_people_expect() -> None:
    ids = ["task10", "b", "2", "task2", "10", "007", "", "task2b"]
    assert sorted(ids, key=sort_text) == ["2", "007", "10", "", "b", "task2", "task2b", "task10"]


def test_a_sort_text_fits_its_column() -> None:
    assert len(sort_text("1a" * 400)) == 1200
