from __future__ import annotations

from traces.core.pointers import escaped, pointer_of


def test_pointer_of_escapes_each_name() -> None:
    assert pointer_of(()) == ""
    assert pointer_of(("a/b", "~", "0", "*", "")) == "/a~1b/~0/0/*/"
    assert escaped("~1") == "~01"
