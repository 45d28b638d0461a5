"""How templates write text that came from outside: escaped, isolated, unseen characters marked."""

from __future__ import annotations

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from traces.core import text_marks

register = template.Library()

_MARK = '<span class="ctl" title="A character that cannot be seen">{}</span>'


@register.filter
def visible(text: object) -> SafeString:
    """The text as HTML, in an element of its own so that no direction mark leaks out of it."""
    plain = str(text)
    if not text_marks.has_marks(plain):
        return format_html("<bdi>{}</bdi>", plain)
    pieces = (
        format_html(_MARK, segment.mark) if segment.mark else segment.text
        for segment in text_marks.visible(plain)
    )
    return format_html("<bdi>{}</bdi>", format_html_join("", "{}", ((piece,) for piece in pieces)))


@register.filter
def visible_text(text: object) -> str:
    """The text for an attribute, unseen characters written as `[U+202E]`; escaped by the template."""
    plain = str(text)
    return text_marks.marked_text(plain) if text_marks.has_marks(plain) else plain
