from __future__ import annotations

import json

from reviews.charts.judges import RateRow, agreement_by_family, bounds_against_limits


def test_bounds_stand_against_their_limits() -> None:
    rows = [RateRow("False passes", 10.0, 4.0, 22.5, "2 of 20")]

    figure = bounds_against_limits(rows, [10.0])

    rates, limits = figure["data"]
    assert (rates["x"], rates["y"]) == ([10.0], ["False passes"])
    assert (rates["error_x"]["array"], rates["error_x"]["arrayminus"]) == ([12.5], [6.0])
    assert rates["customdata"] == [["2 of 20", 4.0, 22.5]]
    assert (limits["x"], limits["y"], limits["meta"]) == (
        [10.0],
        ["False passes"],
        {"token": "fail"},
    )
    assert figure["layout"]["xaxis"]["range"] == [-1, 22.5 * 1.08]
    assert figure["layout"]["showlegend"] is True


def test_families_are_escaped_and_stay_apart() -> None:
    rows = [
        RateRow("<b>x</b>", 50.0, 0.0, 100.0, "1 of 2"),
        RateRow("y" * 40, 100.0, 60.0, 100.0, "9 of 9"),
        RateRow("y" * 41, 100.0, 60.0, 100.0, "9 of 9"),
    ]

    figure = agreement_by_family(rows)

    assert figure["data"][0]["y"] == [
        "&lt;b&gt;x&lt;/b&gt;",
        "y" * 25 + "…",
        "y" * 25 + "… (2)",
    ]
    assert "<b>" not in json.dumps(figure).replace("<extra></extra>", "")
    assert figure["layout"]["showlegend"] is False
