"""The figures of a judge's card: bounds against their limits, and agreement by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from reviews.charts.labels import distinct_labels, label_text

LONGEST_LABEL = 26


@dataclass(frozen=True, slots=True)
class RateRow:
    """One rate with its interval, in percent."""

    name: str
    value: float
    low: float
    high: float
    words: str  # "2 of 60"


def bounds_against_limits(rows: Sequence[RateRow], limits: Sequence[float]) -> dict[str, Any]:
    """Rates with their whole interval, and the limit that the upper end must keep to."""
    names = [row.name for row in rows]
    top = max([*(row.high for row in rows), *limits], default=100)
    limit = {
        "type": "scatter",
        "mode": "markers",
        "name": "limit of the upper end",
        "x": list(limits),
        "y": names,
        "marker": {"symbol": "line-ns-open", "size": 28, "line": {"width": 3}},
        "meta": {"token": "fail"},
        "hovertemplate": "limit %{x:.1f}%<extra></extra>",
    }
    return _figure(
        [_rates("rate and its 95% bounds", rows, names, "accent"), limit], top, len(rows)
    )


def agreement_by_family(rows: Sequence[RateRow]) -> dict[str, Any]:
    """The agreement of judge and people in each family, with its interval."""
    names = distinct_labels([label_text(row.name, LONGEST_LABEL) for row in rows])
    return _figure([_rates("agreement", rows, names, "accent")], 100, len(rows))


def _rates(name: str, rows: Sequence[RateRow], names: Sequence[str], token: str) -> dict[str, Any]:
    return {
        "type": "scatter",
        "mode": "markers",
        "name": name,
        "x": [row.value for row in rows],
        "y": list(names),
        "marker": {"size": 9},
        "meta": {"token": token},
        "error_x": {
            "type": "data",
            "symmetric": False,
            "array": [max(row.high - row.value, 0.0) for row in rows],
            "arrayminus": [max(row.value - row.low, 0.0) for row in rows],
            "thickness": 2,
            "width": 7,
        },
        "customdata": [[row.words, row.low, row.high] for row in rows],
        "hovertemplate": "%{x:.1f}% (%{customdata[0]}), %{customdata[1]:.1f}% to "
        "%{customdata[2]:.1f}%<extra></extra>",
    }


def _figure(data: list[dict[str, Any]], top: float, n_rows: int) -> dict[str, Any]:
    return {
        "data": data,
        "layout": {
            "xaxis": {"range": [-1, min(top * 1.08, 103)], "ticksuffix": "%", "zeroline": False},
            "yaxis": {"type": "category", "autorange": "reversed", "showgrid": False},
            "height": 110 + 44 * n_rows,
            "showlegend": len(data) > 1,
        },
    }
