from __future__ import annotations

from decimal import Decimal

import pytest

from traces.templatetags.transcript import as_article, text_block
from traces.web.pages import Argument, TextBlock, TranscriptCall, TranscriptStep

HOSTILE = '<b onclick="x">\u202e&'
SAFE = '&lt;b onclick=&quot;x&quot;&gt;<span class="ctl" title="A character that cannot be seen">'


def test_a_message_stands_with_its_actor_and_time() -> None:
    step = TranscriptStep(3, "agent", "/t/?step=3#step-3", (TextBlock("Hi", size=2),), at="10:00")
    assert as_article(step) == (
        '<article class="step" id="step-3" tabindex="-1" data-step="3" data-actor="agent"'
        ' aria-label="step 3, agent"><a class="step-number" href="/t/?step=3#step-3"'
        ' data-copy-link="/t/?step=3#step-3" title="Copy a link to this step">3</a>'
        '<div class="step-body"><div class="step-head"><b class="actor">agent</b>'
        ' <span class="note at"><bdi>10:00</bdi></span></div>'
        '<div class="text"><bdi>Hi</bdi></div></div></article>\n'
    )


def test_a_step_without_content_says_so() -> None:
    text = as_article(
        TranscriptStep(1, "tool", "/", is_error=True, note="a result without its call")
    )
    assert '<p class="muted">no content</p>' in text
    assert ' <span class="tag" data-state="fail">error</span>' in text
    assert "<bdi>a result without its call</bdi>" in text


def test_a_rejected_call_stands_with_its_result() -> None:
    call = TranscriptCall(
        "book",
        3,
        "write",
        "rejected",
        arguments=(Argument("seat", '"1A"'),),
        result=TextBlock("Error: taken", size=12),
        result_step=5,
        result_href="/t/?step=5#step-5",
        seconds=Decimal("0.4"),
    )
    step = TranscriptStep(4, "agent", "/", calls=(call,), is_error=True, cited_by=("tone by j",))
    text = as_article(step)

    assert " data-error data-cited" in text
    assert 'calls <b class="tool-name tool-c3"><bdi>book</bdi></b>' in text
    assert "<div><dt><bdi>seat</bdi></dt> <dd><bdi>&quot;1A&quot;</bdi></dd></div>" in text
    assert '<div class="result-row" id="step-5">' in text
    assert '<div class="block result" data-state="fail"><bdi>Error: taken</bdi></div>' in text
    assert "writes · 0.4 s" in text
    assert text.count("cited by") == 1


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (TranscriptCall("a", 0, "read", "committed"), ("reads", "no arguments")),
        (TranscriptCall("a", 0, "handoff", "unknown"), ("hands over", "no result recorded")),
        (TranscriptCall("a", 0, "write", "unknown", raw_note="Not recorded."), ("Not recorded.",)),
        (
            TranscriptCall("a", 0, "write", "committed", raw=TextBlock("{x"), raw_note="Not JSON."),
            ("Not JSON.", '<div class="block"><bdi>{x</bdi></div>'),
        ),
        (
            TranscriptCall("a", 0, "write", "committed", by_user=True),
            ('<b class="actor">user</b>', ", not the agent&#x27;s"),
        ),
    ],
)
def test_a_call_says_what_it_is(call: TranscriptCall, words: tuple[str, ...]) -> None:
    text = as_article(TranscriptStep(1, "agent", "/", calls=(call,)))
    assert [word for word in words if word not in text] == []


@pytest.mark.parametrize(
    ("block", "words"),
    [
        (TextBlock("x", kind="reasoning", size=1), ("never given to a judge", "1 B")),
        (TextBlock("x", kind="image", size=2000), ("image, 2.0 kB, not shown:",)),
        (
            TextBlock("y" * 200, size=200, is_long=True),
            (f"<bdi>{'y' * 100}</bdi>", f"<bdi>{'y' * 200}</bdi>", "200 B, show"),
        ),
        (
            TextBlock("x", size=99_000, is_cut=True, full_url="/whole?a=1&b"),
            ('The first part of 99.0 kB. <a href="/whole?a=1&amp;b">Download all of it</a>',),
        ),
        (TextBlock("\u202e", size=3, n_marks=1), ("1 character that cannot be seen, marked",)),
        (TextBlock("x", size=1, addressed="<b>"), ('class="note addressed"', "&lt;b&gt;")),
    ],
)
def test_a_text_says_what_is_left_out(block: TextBlock, words: tuple[str, ...]) -> None:
    text = text_block(block, "text")
    assert [word for word in words if word not in text] == []


def test_everything_from_a_trace_is_escaped_and_marked() -> None:
    block = TextBlock(HOSTILE, size=20, n_marks=1)
    call = TranscriptCall(
        HOSTILE,
        0,
        "write",
        "committed",
        arguments=(Argument(HOSTILE, HOSTILE),),
        result=block,
        result_step=2,
        result_href="/?a=<b>",
    )
    step = TranscriptStep(
        1, "other", '/"><b>', (block,), (call,), HOSTILE, HOSTILE, cited_by=(HOSTILE,), note=HOSTILE
    )
    text = as_article(step)

    assert "<b onclick" not in text
    assert '"><b>' not in text
    assert text.count(SAFE) == 9
