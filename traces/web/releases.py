"""Releases in words."""

from __future__ import annotations

from collections.abc import Sequence

from evalsite.common.formatting import counted
from traces.selectors.releases import ReleaseRow
from traces.web.rows import facts_of

_LONGEST_DETAIL = 120


def left_out_words(rows: Sequence[ReleaseRow]) -> str:
    """Which trials of some releases stand in no figure, as a sentence without its full stop."""
    kinds = (
        (sum(row.n_left_out for row in rows), "of production or with an injected fault"),
        (sum(row.n_tuning for row in rows), "of split tuning"),
    )
    told = [(n, kind) for n, kind in kinds if n]
    if not told:
        return ""
    (first, kind), *rest = told
    parts = [f"{counted(first, 'trial')} {kind}", *(f"{n:,} {other}" for n, other in rest)]
    verb = "stands" if sum(n for n, _ in told) == 1 else "stand"
    return f"{' and '.join(parts)} {verb} in no figure here"


def detail_words(row: ReleaseRow) -> str:
    """Model and agent, from the version record."""
    telling = [
        fact.value
        for fact in facts_of(row.details)
        if fact.name.rsplit(".", 1)[-1] in ("model", "llm", "implementation", "name")
    ]
    return ", ".join(dict.fromkeys(telling))[:_LONGEST_DETAIL]
