"""A step of a transcript as HTML.

A page has up to 200 steps with some forty values each. Written as a template they take four times
as long, which is most of what a trial page costs; everything here is escaped by `format_html`.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from django import template
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from evalsite.common.formatting import bytes_text, counted, duration_text
from evalsite.templatetags.ui import icon
from traces.templatetags.trace_text import visible
from traces.web.pages import TextBlock, TranscriptCall, TranscriptStep

register = template.Library()

_NOTHING = SafeString("")
_KINDS = {"read": "reads", "handoff": "hands over"}
_OUTCOMES = {
    "rejected": SafeString(' <span class="tag" data-state="fail">rejected</span>'),
    "unknown": SafeString(' <span class="tag" data-state="unresolved">no result recorded</span>'),
}
_FIRST_CHARACTERS = 100  # of a folded text


@register.filter
@lru_cache(maxsize=2048)
def as_article(step: TranscriptStep) -> SafeString:
    """One step with its calls and their results; remembered, since evidence never changes."""
    return format_html(
        '<article class="step" id="step-{}" tabindex="-1" data-step="{}" data-actor="{}"{}{}'
        ' aria-label="step {}, {}"><a class="step-number" href="{}" data-copy-link="{}"'
        ' title="Copy a link to this step">{}</a><div class="step-body">{}{}{}</div></article>\n',
        step.number,
        step.number,
        step.actor,
        SafeString(" data-error") if step.is_error else _NOTHING,
        SafeString(" data-cited") if step.cited_by else _NOTHING,
        step.number,
        step.actor,
        step.href,
        step.href,
        step.number,
        _head(step) if step.blocks or not step.calls else _NOTHING,
        _blocks(step),
        _joined(_call(step, call, is_first=at == 0) for at, call in enumerate(step.calls)),
    )


def _joined(parts: Iterable[SafeString]) -> SafeString:
    return format_html_join("", "{}", ((part,) for part in parts))


def _note(text: str, css: str = "note") -> SafeString:
    return format_html(' <span class="{}">{}</span>', css, visible(text)) if text else _NOTHING


def _cited(step: TranscriptStep) -> SafeString:
    return format_html_join(
        "", ' <span class="note">cited by {}</span>', ((visible(who),) for who in step.cited_by)
    )


def _head(step: TranscriptStep) -> SafeString:
    is_error = step.is_error and not step.calls
    return format_html(
        '<div class="step-head"><b class="actor">{}</b>{}{}{}{}{}</div>',
        step.actor,
        _note(step.role),
        SafeString(' <span class="tag" data-state="fail">error</span>') if is_error else _NOTHING,
        _cited(step),
        _note(step.note),
        _note(step.at, "note at"),
    )


def _blocks(step: TranscriptStep) -> SafeString:
    if not step.blocks and not step.calls:
        return SafeString('<p class="muted">no content</p>')
    return _joined(text_block(block, "text") for block in step.blocks)


def _call(step: TranscriptStep, call: TranscriptCall, *, is_first: bool) -> SafeString:
    lacks_head = is_first and not step.blocks
    return format_html(
        '<div class="call" data-outcome="{}"><div class="step-head"><b class="actor">{}</b> calls'
        ' <b class="tool-name tool-c{}">{}</b>{} <span class="note">{}{}{}</span>{}{}</div>'
        "{}{}</div>",
        call.outcome,
        "user" if call.by_user else "agent",
        call.colour,
        visible(call.name),
        _OUTCOMES.get(call.outcome, _NOTHING),
        _KINDS.get(call.kind, "writes"),
        ", not the agent's" if call.by_user else "",
        "" if call.seconds is None else f" · {duration_text(call.seconds)}",
        _cited(step) if lacks_head else _NOTHING,
        _note(step.at, "note at") if lacks_head else _NOTHING,
        _joined((_arguments(call), _addressed(call.addressed))),
        _result(call, call.result) if call.result else _NOTHING,
    )


def _arguments(call: TranscriptCall) -> SafeString:
    note = format_html('<p class="note">{}</p>', call.raw_note) if call.raw_note else _NOTHING
    if call.raw:
        return _joined((note, text_block(call.raw, "block")))
    if call.arguments:
        rows = format_html_join(
            "",
            "<div><dt>{}</dt> <dd>{}</dd></div>",
            ((visible(one.name), visible(one.value)) for one in call.arguments),
        )
        return format_html('<dl class="block args">{}</dl>', rows)
    return note or SafeString('<p class="block muted">no arguments</p>')


def _result(call: TranscriptCall, result: TextBlock) -> SafeString:
    state = "fail" if call.outcome == "rejected" else ""
    return format_html(
        '<div class="result-row" id="step-{}"><a class="note" href="{}" data-copy-link="{}"'
        ' title="Copy a link to this step">{}</a>{}</div>',
        call.result_step,
        call.result_href,
        call.result_href,
        call.result_step,
        text_block(result, "block result", state),
    )


@register.simple_tag
def text_block(block: TextBlock, css: str, state: str = "") -> SafeString:
    """A text of a trace: folded when it is long, with what was cut and what cannot be seen."""
    return _joined((_shown(block, css, state), _block_note(block), _addressed(block.addressed)))


def _addressed(sentence: str) -> SafeString:
    if not sentence:
        return _NOTHING
    return format_html(
        '<p class="note addressed">{} {}</p>', icon("triangle-alert"), visible(sentence)
    )


def _shown(block: TextBlock, css: str, state: str) -> SafeString:
    text = visible(block.text)
    if block.kind == "reasoning":
        return format_html(
            '<details class="reasoning"><summary class="note">reasoning, {} (kept; never given to'
            ' a judge)</summary><div class="text">{}</div></details>',
            bytes_text(block.size),
            text,
        )
    if block.kind in ("image", "data"):
        return format_html(
            '<p class="block muted">{}, {}, not shown: {}</p>',
            block.kind,
            bytes_text(block.size),
            text,
        )
    marked = format_html(' data-state="{}"', state) if state else _NOTHING
    whole = format_html('<div class="{}"{}>{}</div>', css, marked, text)
    if not block.is_long:
        return whole
    return format_html(
        '<details class="long"><summary><span class="{}">{}</span> <span class="note">{}, show'
        "</span></summary>{}</details>",
        "clip" if css == "text" else "clip mono",
        visible(block.text[:_FIRST_CHARACTERS]),
        bytes_text(block.size),
        whole,
    )


def _block_note(block: TextBlock) -> SafeString:
    if not (block.is_cut or block.n_marks):
        return _NOTHING
    cut = (
        format_html(
            'The first part of {}. <a href="{}">Download all of it</a>',
            bytes_text(block.size),
            block.full_url,
        )
        if block.is_cut
        else _NOTHING
    )
    marks = (
        f" {counted(block.n_marks, 'character')} that cannot be seen, marked"
        if block.n_marks
        else ""
    )
    return format_html('<p class="note block-note">{}{}</p>', cut, marks)
