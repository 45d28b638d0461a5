"""Rows are read once, until somebody says that the database is another one."""

from evalsite.common.remembering import forget_rows, remembered


def test_read_is_remembered_until_rows_are_forgotten() -> None:
    asked: list[int] = []

    @remembered(4)
    def read(pk: int) -> str:
        asked.append(pk)
        return f"row {pk}"

    assert (read(1), read(1), read(2)) == ("row 1", "row 1", "row 2")
    assert asked == [1, 2]
    forget_rows()
    assert read(1) == "row 1"
    assert asked == [1, 2, 1]
