"""The figures of the list of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from html import escape
from typing import Any

from traces.core.text_marks import marked_text

_LONGEST_LABEL = 40
_LONGEST_TICK = 12  # of an axis that holds many


def label_text(text: str, longest: int = _LONGEST_LABEL) -> str:
    """Text from a trace for a figure: unseen characters marked, and escaped.

    Plotly reads tags such as `<a href>` in every text that it draws.
    """
    plain = marked_text(text)
    shown = plain if len(plain) <= longest else f"{plain[: longest - 1]}…"
    # In text a quotation mark needs none, and Plotly shows its entity as it stands.
    return escape(shown, quote=False)


@lru_cache(maxsize=64)
def paths_per_task(task_ids: tuple[str, ...], n_paths: tuple[int, ...]) -> dict[str, Any]:
    """A bar a task: its number of distinct passing paths. Callers must not change the answer."""
    labels = _distinct([label_text(task_id, _LONGEST_TICK) for task_id in task_ids])
    return _figure(
        [
            {
                "type": "bar",
                "x": labels,
                "y": list(n_paths),
                "meta": {"token": "accent"},
                "customdata": [label_text(task_id) for task_id in task_ids],
                "hovertemplate": "task %{customdata}: %{y} paths<extra></extra>",
            }
        ],
        x_title="task",
        y_title="passing paths",
        x_axis={"type": "category", "showgrid": False, "range": [-0.6, len(labels) - 0.4]},
        # Few paths would else get ticks between whole numbers.
        y_axis={"rangemode": "tozero", "tickformat": "d", **_whole_steps(n_paths)},
    )


@lru_cache(maxsize=64)
def passes_against_k(hat: tuple[float | None, ...], at: tuple[float | None, ...]) -> dict[str, Any]:
    """pass^k and pass@k for k from 1 on. Callers must not change the answer."""
    ks = list(range(1, len(hat) + 1))
    line = {"type": "scatter", "mode": "lines+markers", "x": ks}
    return _figure(
        [
            {
                **line,
                "y": list(hat),
                "name": "pass^k: all k pass",
                "meta": {"token": "pass"},
                "hovertemplate": "pass^%{x}: %{y:.3f}<extra></extra>",
            },
            {
                **line,
                "y": list(at),
                "name": "pass@k: at least one of k passes",
                "meta": {"token": "accent"},
                "line": {"dash": "dot"},
                "hovertemplate": "pass@%{x}: %{y:.3f}<extra></extra>",
            },
        ],
        x_title="k",
        y_title="mean over tasks",
        x_axis={"dtick": 1},
        y_axis={"range": [0, 1.03], "tickformat": ".0%"},
    )


def _whole_steps(numbers: Sequence[int]) -> dict[str, int]:
    return {"dtick": 1} if max(numbers, default=0) < 8 else {}


def _distinct(labels: Sequence[str]) -> list[str]:
    """The labels, told apart where they are the same once shortened: a category is drawn once."""
    seen: dict[str, int] = {}
    distinct: list[str] = []
    for label in labels:
        seen[label] = seen.get(label, 0) + 1
        distinct.append(label if seen[label] == 1 else f"{label} ({seen[label]})")
    return distinct


def _figure(
    traces: list[dict[str, Any]],
    *,
    x_title: str,
    y_title: str,
    x_axis: dict[str, Any],
    y_axis: dict[str, Any],
) -> dict[str, Any]:
    # Importing it takes a third of a second: only processes that draw a chart pay for it.
    import plotly.graph_objects as go

    figure = go.Figure(
        data=traces,
        layout={
            "xaxis": {**x_axis, "title": {"text": x_title}},
            "yaxis": {**y_axis, "title": {"text": y_title}},
            "showlegend": len(traces) > 1,
            "template": "none",
        },
    )
    plain: dict[str, Any] = figure.to_plotly_json()
    plain["layout"].pop("template", None)  # the page brings its own, in its colours
    return plain
