from __future__ import annotations

import json

from traces.charts.figures import label_text, passes_against_k, paths_per_task


def test_a_label_is_escaped_marked_and_short() -> None:
    assert label_text('<a href="x">\u202e') == '&lt;a href="x"&gt;[U+202E]'
    assert label_text("x" * 50) == "x" * 39 + "…"


def test_paths_per_task_keeps_tasks_apart_whose_labels_are_the_same() -> None:
    figure = paths_per_task(("y" * 60, "y" * 61, "<b>"), (1, 2, 3))
    label = "y" * 11 + "…"

    assert figure["data"][0]["x"] == [label, f"{label} (2)", "&lt;b&gt;"]
    assert figure["data"][0]["customdata"] == ["y" * 39 + "…", "y" * 39 + "…", "&lt;b&gt;"]
    assert figure["data"][0]["y"] == [1, 2, 3]
    assert figure["layout"]["yaxis"]["dtick"] == 1
    assert "dtick" not in paths_per_task(("a",), (8,))["layout"]["yaxis"]
    assert "template" not in figure["layout"]
    assert "<b>" not in json.dumps(figure).replace("<extra></extra>", "")


def test_passes_against_k_leaves_out_what_is_not_known() -> None:
    figure = passes_against_k((0.5, None), (0.5, 0.75))
    assert [(trace["x"], trace["y"]) for trace in figure["data"]] == [
        ([1, 2], [0.5, None]),
        ([1, 2], [0.5, 0.75]),
    ]
