"""The table of words that are read as verdicts, the same for every system."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_GET

from evalsite.access import signed_in
from traces.core.records import VerdictValue
from traces.core.verdict_words import VERDICT_WORDS
from traces.web.pages.verdict_words import VerdictWordsLine, VerdictWordsPage
from traces.web.shell import person_shell

_LINES = {
    VerdictValue.PASS: ("pass", "The criterion is met."),
    VerdictValue.FAIL: ("fail", "The criterion is not met."),
    VerdictValue.UNKNOWN: ("unresolved", "The evidence does not suffice to tell."),
    VerdictValue.ERROR: ("harness-error", "The grader gave no verdict."),
}


@require_GET
@signed_in
def verdict_words(request: HttpRequest) -> HttpResponse:
    """Which word stands for which verdict."""
    page = VerdictWordsPage(
        shell=person_shell(request),
        lines=tuple(
            VerdictWordsLine(
                value.value,
                state,
                meaning,
                tuple(word for word, stands_for in VERDICT_WORDS.items() if stands_for is value),
            )
            for value, (state, meaning) in _LINES.items()
        ),
    )
    return render(request, "traces/verdict_words.html", {"page": page})
