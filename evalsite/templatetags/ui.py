"""Numbers and icons as the templates write them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal

from django import template
from django.templatetags.static import static
from django.utils.html import format_html
from django.utils.safestring import SafeString

register = template.Library()


@register.filter
def thousands(value: int | None) -> str:
    """A whole number with commas; None reads as a dash."""
    return "–" if value is None else f"{value:,}"


@register.filter
def counted(value: int, words: str) -> str:
    """A number with its noun: `{{ 1|counted:"trial,trials" }}` is "1 trial"."""
    one, _, many = words.partition(",")
    return f"{value:,} {one if value == 1 else many or one + 's'}"


@register.filter
def money(value: Decimal | float | None) -> str:
    """US dollars: three decimals below one dollar, two from there on; None reads as a dash."""
    if value is None:
        return "–"
    return f"${value:,.2f}" if abs(value) >= 1 else f"${value:.3f}"


@register.filter
def duration(value: Decimal | float | None) -> str:
    """Seconds as people say them: "0.4 s", "84 s", "12 min", "3.5 h"; None reads as a dash."""
    if value is None:
        return "–"
    if value < 10:
        return f"{value:.1f} s"
    if value < 120:
        return f"{value:.0f} s"
    return f"{value / 60:.0f} min" if value < 7200 else f"{value / 3600:.1f} h"


@register.filter
def data_size(value: int | None) -> str:
    """Bytes as "512 B", "1.2 kB", "3.4 MB"; None reads as a dash."""
    if value is None:
        return "–"
    size = float(value)
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            break
        size /= 1000
    return f"{value} B" if unit == "B" else f"{size:.1f} {unit}"


@register.filter
def moment(value: datetime | None) -> str:
    """A time in UTC, to the minute, that machines can read too; None reads as a dash."""
    if value is None:
        return "–"
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
