from django.template import Context, Template
from hypothesis import given
from hypothesis import strategies as st

from traces.core.text_marks import has_marks
from traces.templatetags.trace_text import visible, visible_text


def test_markup_in_a_trace_is_shown_as_text() -> None:
    assert visible("<script>alert(1)</script>") == (
        "<bdi>&lt;script&gt;alert(1)&lt;/script&gt;</bdi>"
    )


def test_a_character_that_cannot_be_seen_gets_a_mark() -> None:
    assert visible("a\u202e<b>") == (
        '<bdi>a<span class="ctl" title="A character that cannot be seen">U+202E</span>'
        "&lt;b&gt;</bdi>"
    )


def test_template_syntax_in_a_trace_is_text() -> None:
    template = Template("{% load trace_text %}{{ name|visible }}")
    assert template.render(Context({"name": "{{7*7}}{% now %}"})) == ("<bdi>{{7*7}}{% now %}</bdi>")


def test_an_attribute_is_escaped_and_marked() -> None:
    template = Template('{% load trace_text %}<a title="{{ name|visible_text }}">')
    assert template.render(Context({"name": '"\u200b<'})) == '<a title="&quot;[U+200B]&lt;">'


def test_other_values_are_written_as_text() -> None:
    assert (visible(3), visible_text(3)) == ("<bdi>3</bdi>", "3")


@given(st.text())
def test_no_unseen_character_and_no_markup_gets_through(text: str) -> None:
    html = str(visible(text)).removeprefix("<bdi>").removesuffix("</bdi>")
    html = html.replace('<span class="ctl" title="A character that cannot be seen">', "")
    html = html.replace("</span>", "")
    assert not has_marks(html)
    assert "<" not in html
    assert not has_marks(visible_text(text))
