"""Labels of figures: text from traces as Plotly can show it."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from traces.core.text_marks import marked_text


def label_text(text: str, longest: int) -> str:
    """A text as a label, unseen characters marked, escaped, and shortened where it is long."""
    plain = marked_text(text)
    shown = plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
    # In text a quotation mark needs none, and Plotly shows its entity as it stands.
    return escape(shown, quote=False)


def distinct_labels(labels: Sequence[str]) -> list[str]:
    """The labels, told apart where they are the same once shortened: a category is drawn once."""
    seen: dict[str, int] = {}
    distinct: list[str] = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        distinct.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return distinct
