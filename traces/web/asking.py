"""What the query of an address asks for. Nonsense in it asks for nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol
from uuid import UUID

from django.http import HttpRequest

from evalsite.common.shell import Pager
from traces.core.text_marks import clean_text
from traces.web.addresses import Value, address

_LARGEST = 2**63 - 1


def number_in(request: HttpRequest, name: str) -> int | None:
    """A whole number that a column can hold; None without one."""
    text = request.GET.get(name, "")
    if not (text.isascii() and text.isdigit() and len(text) < 20):
        return None
    number = int(text)
    return number if number <= _LARGEST else None


def text_in(request: HttpRequest, name: str, *, most: int = 512) -> str:
    """A text as a column can hold it, without blanks around it."""
    return clean_text(request.GET.get(name, ""))[:most].strip()


def uuid_of(text: str) -> UUID | None:
    """The UUID that a text spells; None when it is none."""
    try:
        return UUID(text)
    except ValueError:
        return None


class Page(Protocol):
    """One page of a list, with the places of its neighbours."""

    @property
    def next_after(self) -> int | None: ...

    @property
    def previous_before(self) -> int | None: ...


def pager_of(
    page: Page, path: str, values: Mapping[str, Value], *, words: str = "", place: str = ""
) -> Pager:
    """Links to the neighbours of a page; `values` is what they keep of the address."""
    after, before = page.next_after, page.previous_before
    return Pager(
        previous_url=""
        if before is None
        else address(path, {**values, "before": before}, place=place),
        next_url="" if after is None else address(path, {**values, "after": after}, place=place),
        words=words,
    )
