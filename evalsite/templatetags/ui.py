"""Numbers and icons as the templates write them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

from evalsite.common import formatting
from evalsite.common.formatting import (
    NOTHING,
    bytes_text,
    count_text,
    duration_text,
    money_text,
)

register = template.Library()


@register.filter
def thousands(value: int | None) -> str:
    """A whole number with commas between thousands; "-" when not known."""
    return NOTHING if value is None else count_text(value)


@register.filter
def counted(value: int, words: str) -> str:
    """A number with its noun: `{{ 1|counted:"trial,trials" }}` is "1 trial"."""
    one, _, many = words.partition(",")
    return formatting.counted(value, one, many or None)


@register.filter
def money(value: Decimal | None) -> str:
    """US dollars; "-" when not known."""
    return money_text(value)


@register.filter
def duration(value: Decimal | None) -> str:
    """Seconds as people say them: "0.4 s", "3 min 20 s"; "-" when not known."""
    return duration_text(value)


@register.filter
def data_size(value: int | None) -> str:
    """Bytes as "512 B", "1.2 kB", "3.4 MB"; "-" when not known."""
    return NOTHING if value is None else bytes_text(value)


@register.filter
def moment(value: datetime | None) -> str:
    """A time in UTC, to the minute, that machines can read too; "-" when not known."""
    if value is None:
        return NOTHING
    utc = value.astimezone(UTC)
    return format_html(
        '<time datetime="{}" title="{} UTC">{}</time>',
        utc.isoformat(),
        f"{utc:%Y-%m-%d %H:%M:%S}",
        f"{utc.day} {utc:%b %Y, %H:%M}",
    )


@register.simple_tag
def icon(name: str) -> SafeString:
    """One drawing of the vendored sprite, hidden from screen readers: give it words beside."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"></use></svg>',
        static("vendor/icons.svg"),
        name,
    )
