import pytest

from traces.web.pages.compare import ComparedRow, ComparedStretch
from traces.web.pages.parts import Counts, PathCell, ToolKey
from traces.web.pages.uploads import shape_of, words_of


def test_rate_is_a_rate_of_graded_trials() -> None:
    assert (Counts(9, 10, 12).rate, Counts(9, 10, 12).percent) == (0.9, "90.0%")


def test_rate_without_a_graded_trial_is_none() -> None:
    assert (Counts(0, 0, 3).rate, Counts(0, 0, 3).percent) == (None, "none")


@pytest.mark.parametrize(
    ("cell", "css", "words"),
    [
        (PathCell("calc", "calculate", colour=4, kind="read"), "cell tool-c4", "calculate, reads"),
        (PathCell("bags", "bags", differs=True), "cell tool-c0 w d",
         "bags, writes, arguments differ within this path"),
        (PathCell("bags", "bags", n_rejected=1), "cell tool-c0 w x",
         "bags, writes, rejected by the tool"),
        (PathCell("bags", "bags", n_rejected=2, leaves=True), "cell tool-c0 w x lv",
         "bags, writes, rejected by the tool in 2 trials, leaves the passing paths here"),
        (PathCell("bags", "bags", n_rejected=1, n_not_rejected=2), "cell tool-c0 w x some",
         "bags, writes, rejected by the tool in 1 of 3 trials"),
        (PathCell("bags", "bags", n_not_rejected=2), "cell tool-c0 w", "bags, writes"),
        (PathCell("bags", "bags", other="n differs from path A"), "cell tool-c0 w o",
         "bags, writes, n differs from path A"),
        (PathCell("out", "hand", kind="handoff", step=7), "cell tool-c0 h",
         "step 7, hand, hands over"),
        (PathCell("msg", "", kind="message"), "cell m", "agent message"),
        (PathCell("msg", "", kind="message", leaves=True), "cell m lv",
         "agent message, leaves the passing paths here"),
    ],
)  # fmt: skip
def test_a_cell_says_in_words_what_it_shows(cell: PathCell, css: str, words: str) -> None:
    assert (cell.css, cell.words) == (css, words)


def test_the_legend_looks_like_the_cells() -> None:
    assert ToolKey("calc", "calculate", 4, "read").css == "cell tool-c4"


def test_a_fold_says_what_it_hides() -> None:
    rows = tuple(ComparedRow(number, None, None, is_equal=True) for number in (3, 4, 5))
    assert ComparedStretch(True, rows).words == "steps 3 to 5 are equal"
    assert ComparedStretch(True, rows[:1]).words == "step 3 is equal"


@pytest.mark.parametrize(
    ("state", "n_problems", "shape", "words"),
    [
        ("received", 0, "waiting", "waiting"),
        ("processing", 0, "working", "reading"),
        ("done", 0, "pass", "done"),
        ("done", 2, "unresolved", "done, not all taken"),
        ("failed", 0, "fail", "unreadable"),
    ],
)
def test_the_state_of_an_upload(state: str, n_problems: int, shape: str, words: str) -> None:
    assert (shape_of(state, n_problems), words_of(state, n_problems)) == (shape, words)
