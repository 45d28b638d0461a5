"""The figures of the overview: rates of releases over time, each with its range."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from reviews.charts.labels import distinct_labels, label_text

_LONGEST_TICK = 14


@dataclass(frozen=True, slots=True)
class RateLine:
    """One rate of each release, in percent. None: nothing is graded there."""

    name: str
    token: str  # its colour among the CSS tokens
    dash: str
    values: tuple[float | None, ...]
    lows: tuple[float | None, ...]
    highs: tuple[float | None, ...]


@lru_cache(maxsize=64)
def rates_over_releases(labels: tuple[str, ...], lines: tuple[RateLine, ...]) -> dict[str, Any]:
    """Lines over releases from old to new; the bars reach over the range of each rate.

    Callers must not change the answer.
    """
    # Importing it takes a third of a second: only processes that draw a chart pay for it.
    import plotly.graph_objects as go

    ticks = distinct_labels([label_text(label, _LONGEST_TICK) for label in labels])
    figure = go.Figure(
        data=[_line(ticks, [label_text(label, 40) for label in labels], line) for line in lines],
        layout={
            "xaxis": {
                "type": "category",
                "title": {"text": "release, from old to new"},
                "range": [-0.5, len(ticks) - 0.5],
                "showgrid": False,
            },
            "yaxis": {"title": {"text": "rate"}, "range": [0, 103], "ticksuffix": "%"},
            "showlegend": True,
            "template": "none",
        },
    )
    plain: dict[str, Any] = figure.to_plotly_json()
    plain["layout"].pop("template", None)  # the page brings its own, in its colours
    return plain


def _line(ticks: Sequence[str], names: Sequence[str], line: RateLine) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": line.name,
        "x": list(ticks),
        "y": list(line.values),
        "meta": {"token": line.token},
        "line": {"dash": line.dash},
        "error_y": {
            "type": "data",
            "symmetric": False,
            "array": [_between(v, high) for v, high in zip(line.values, line.highs, strict=True)],
            "arrayminus": [_between(low, v) for v, low in zip(line.values, line.lows, strict=True)],
            "thickness": 1.2,
            "width": 4,
        },
        "customdata": list(names),
        "hovertemplate": f"release %{{customdata}}: {line.name} %{{y:.1f}}%<extra></extra>",
    }


def _between(low: float | None, high: float | None) -> float:
    return 0.0 if low is None or high is None else max(high - low, 0.0)
