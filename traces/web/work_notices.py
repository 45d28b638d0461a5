"""What pages that show paths say while an approved rules version is not in force yet."""

from __future__ import annotations

from traces.selectors.rules_work import work_notice
from traces.web import pages


def work_notices(system_id: int) -> tuple[pages.Notice, ...]:
    """One notice, or none, in one query."""
    sentence = work_notice(system_id)
    return (pages.Notice(sentence),) if sentence else ()
