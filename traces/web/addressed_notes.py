"""What pages say of text that is addressed to graders or reviewers. It is never obeyed."""

from __future__ import annotations

from collections.abc import Sequence

from evalsite.common.formatting import counted
from traces.core.addressed import addressed_text
from traces.core.text_marks import clean_text
from traces.web import pages

CONTAINS = "Contains text addressed to reviewers or graders"
_MOST_NAMED = 8


def addressed_note(text: str) -> str:
    """What in a text is addressed to graders or reviewers, in a sentence; "" for nothing."""
    hints = addressed_text(text)
    if not hints:
        return ""
    quoted = " ".join(clean_text(hints[0].excerpt).split())
    more = f" and {counted(len(hints) - 1, 'more place')}" if len(hints) > 1 else ""
    return f"{CONTAINS}: “{quoted}”{more}. {hints[0].sentence} It asks nothing of you."


def steps_notice(steps: Sequence[int], *, is_part: bool) -> tuple[pages.Notice, ...]:
    """A notice that names the steps with such text. `is_part`: only a part of them is shown."""
    if not steps:
        return ()
    named = [str(step) for step in steps[:_MOST_NAMED]]
    n_more = len(steps) - len(named)
    ending = f"{n_more} more" if n_more else named.pop() if len(named) > 1 else ""
    words = f"{', '.join(named)}{f' and {ending}' if ending else ''}"
    where = " in this part of the transcript" if is_part else ""
    what = "Step" if len(steps) == 1 else "Steps"
    verb = "contains" if len(steps) == 1 else "contain"
    sentence = (
        f"{what} {words}{where} {verb} text addressed to reviewers or graders. "
        "It is part of the evidence and asks nothing of you."
    )
    return (pages.Notice(sentence, level="warning"),)
