from __future__ import annotations

import json

from reviews.charts.overview import RateLine, rates_over_releases


def test_each_rate_has_its_range_and_every_label_is_escaped() -> None:
    lines = (
        RateLine("outcome", "accent", "dot", (50.0, None), (40.0, None), (70.0, None)),
        RateLine("rule-clean", "pass", "solid", (20.0, 30.0), (20.0, 30.0), (20.0, 45.5)),
    )
    figure = rates_over_releases(("<b>1</b>", "x" * 50), lines)
    first, second = figure["data"]
    assert first["x"] == ["&lt;b&gt;1&lt;/b&gt;", "x" * 13 + "…"]
    assert first["y"] == [50.0, None]
    assert (first["error_y"]["array"], first["error_y"]["arrayminus"]) == ([20.0, 0.0], [10.0, 0.0])
    assert second["error_y"]["array"] == [0.0, 15.5]
    assert second["meta"] == {"token": "pass"}
    assert "template" not in figure["layout"]
    assert "<b>" not in json.dumps(figure).replace("<extra></extra>", "")


def test_releases_whose_short_names_are_the_same_stay_apart() -> None:
    line = RateLine("outcome", "accent", "dot", (1.0, 2.0), (1.0, 2.0), (1.0, 2.0))
    ticks = rates_over_releases(("y" * 40, "y" * 41), (line,))["data"][0]["x"]
    assert ticks == ["y" * 13 + "…", "y" * 13 + "… (2)"]
