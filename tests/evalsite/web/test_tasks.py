from __future__ import annotations

from fractions import Fraction

import pytest
from django.test import Client
from hypothesis import given
from hypothesis import strategies as st

from evalsite.web.estimates import (
    estimate_text,
    pass_at_estimates,
    pass_hat_estimates,
)
from reviews.core.estimators import Counts, TaskCounts, mean_pass_at_k, mean_pass_hat_k
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import Release, Task
from traces.selectors.task_list import CountedTasks

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
SEARCH = (("search", {"q": "a"}),)


def test_a_new_system_says_how_to_begin(client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, root(cast.system) + "tasks/")

    assert page.rows == ()
    assert page.empty.heading == "No task yet"
    assert page.empty.act.href == "/systems/airline/uploads/new/"
    assert page.charts == ()


def test_a_viewer_of_a_new_system_is_not_asked_to_upload(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, root(cast.system) + "tasks/")
    assert page.empty.act is None
    assert "Only an engineer of this system" in page.empty.sentence


def test_tasks_show_passes_and_distinct_passing_paths(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("2", 0),
            record("2", 1, calls=SEARCH),
            record("2", 2, verdicts=FAIL, calls=(("other", {}),)),
            record("10", 0, verdicts=[]),
            record("10", 1, error="boom", verdicts=[]),
        ],
    )
    page = visit(client, cast.viewer, root(cast.system) + "tasks/")

    assert [
        (row.task_id, row.n_paths, row.counts.n_pass, row.counts.n_graded, row.counts.n_run)
        for row in page.rows
    ] == [("2", 2, 2, 3, 3), ("10", 0, 0, 0, 2)]
    assert [(row.n_fail, row.n_unresolved, row.n_error) for row in page.rows] == [
        (1, 0, 0),
        (0, 1, 1),
    ]
    shown = {figure.label: (figure.value, figure.detail) for figure in page.figures}
    assert shown == {
        "Passed / graded / run": ("66.7%", "2 / 3 / 5"),
        "Passing paths": ("2", "exact paths, 2 tasks"),
        "pass^3": ("0.00", "over 1 of 2 tasks; pass^1 0.67"),
        "Unresolved": ("1", ""),
        "Harness errors": ("1", ""),
    }
    assert [chart.id for chart in page.charts] == ["chart-paths", "chart-pass-k"]


def test_pass_k_is_of_the_largest_k_that_most_tasks_can_tell(client: Client, cast: Cast) -> None:
    long = [record("long", trial) for trial in range(5)]
    short = [record(task, trial) for task in ("a", "b") for trial in range(2)]
    ingest(cast.system, [*long, *short])
    page = visit(client, cast.viewer, root(cast.system) + "tasks/")

    shown = {figure.label: figure.detail for figure in page.figures}
    assert shown["pass^2"] == "over 3 of 3 tasks; pass^1 1.00"


def test_the_level_and_messages_are_kept_in_the_address(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("1", 0), record("1", 1, calls=(("get_order", {"order": "B"}),))])
    path = root(cast.system) + "tasks/"
    page = visit(client, cast.viewer, path, level="sequence", messages="1", view="table")

    assert [row.n_paths for row in page.rows] == [1]
    assert page.is_table
    exact = next(choice for choice in page.switches.levels if choice.label == "Exact")
    assert exact.href == f"{path}?level=exact&messages=1&view=table"
    assert [row.n_paths for row in visit(client, cast.viewer, exact.href).rows] == [2]
    assert page.rows[0].href.endswith("/?level=sequence&messages=1")


def test_filters_find_by_family_release_split_and_words(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("refund-1", 0), record("seat%_2", 0)], release="1.0")
    ingest(cast.system, [record("seat%_2", 0, verdicts=FAIL)], release="2.0")
    Task.objects.filter(task_id="refund-1").update(family="refunds", split="tuning")
    path = root(cast.system) + "tasks/"

    def found(**query: str) -> list[tuple[str, int]]:
        page = visit(client, cast.viewer, path, **query)
        return [(row.task_id, row.counts.n_run) for row in page.rows]

    second = Release.objects.get(name="2.0")
    assert found() == [("refund-1", 1), ("seat%_2", 2)]
    assert found(family="refunds") == [("refund-1", 1)]
    assert found(split="tuning") == [("refund-1", 1)]
    assert found(split="none") == [("seat%_2", 2)]
    assert found(q="%_") == [("seat%_2", 2)]
    assert found(q="_%") == []
    assert found(release=str(second.uuid)) == [("refund-1", 0), ("seat%_2", 1)]


def test_tasks_of_split_tuning_stand_in_no_figure(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("1", 0, verdicts=FAIL), record("2", 0)])
    Task.objects.filter(task_id="1").update(split="tuning")
    page = visit(client, cast.viewer, root(cast.system) + "tasks/")

    assert page.figures[0].detail == "1 / 1 / 1"
    assert "1 task of split tuning" in page.notices[0].sentence


@pytest.mark.parametrize(
    "query",
    [
        {"q": "\x00"},
        {"level": "nonsense", "release": "x", "split": "y", "sort": "drop", "after": "-1"},
        {"after": "9" * 19, "before": "9" * 40},
        {"family": "\ud800"},
    ],
)
def test_nonsense_in_an_address_asks_for_nothing(
    query: dict[str, str], client: Client, cast: Cast
) -> None:
    client.force_login(cast.viewer)
    from urllib.parse import urlencode

    text = urlencode(query, errors="surrogatepass")
    answer = client.get(f"{root(cast.system)}tasks/?{text}")
    assert answer.status_code == 200


@pytest.mark.parametrize("sort", ["", "-task", "paths", "-paths", "rate", "-run", "family"])
def test_pages_of_any_order_show_every_task_once(
    sort: str, client: Client, cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    ingest(
        cast.system,
        [
            record(str(n), t, verdicts=FAIL if n % 3 else None)
            for n in range(7)
            for t in range(n % 2 + 1)
        ],
    )
    from evalsite.web import tasks

    whole = [
        row.task_id
        for row in visit(client, cast.viewer, root(cast.system) + "tasks/", sort=sort).rows
    ]
    original = tasks.task_rows
    monkeypatch.setattr(tasks, "task_rows", lambda *a, **k: original(*a, n=3, **k))
    seen: list[str] = []
    url = f"{root(cast.system)}tasks/?sort={sort}"
    backward = ""
    while url:
        page = visit(client, cast.viewer, url)
        seen += [row.task_id for row in page.rows]
        url, backward = page.pager.next_url, page.pager.previous_url
    before = visit(client, cast.viewer, backward)

    assert seen == whole
    assert [row.task_id for row in before.rows] == whole[3:6]


def test_query_count_of_the_list_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("1", 0)])
    client.force_login(cast.viewer)
    path = root(cast.system) + "tasks/"
    one = n_queries(client, path)
    ingest(cast.system, [record("2", 0), record("3", 0)], release="2.0")

    assert (one, n_queries(client, path)) == (9, 9)


counted = st.tuples(st.integers(0, 6), st.integers(0, 6)).map(
    lambda pair: CountedTasks(min(pair), max(pair), 1)
)


@given(st.lists(counted, max_size=8))
def test_estimates_are_the_means_of_the_core(tasks: list[CountedTasks]) -> None:
    singly = [
        TaskCounts(str(n), Counts(task.n_pass, task.n_graded, task.n_graded))
        for n, task in enumerate(tasks)
    ]
    for found, mean in (
        (pass_hat_estimates(tuple(tasks)), mean_pass_hat_k),
        (pass_at_estimates(tuple(tasks)), mean_pass_at_k),
    ):
        for each in found:
            expected = mean(singly, each.k)
            assert (each.value, each.n_tasks) == (expected.value, expected.n_tasks)
            assert each.n_left_out == len(expected.left_out)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (Fraction(0), "0.00"),
        (Fraction(1), "1.00"),
        (Fraction(999, 1000), "0.99"),
        (Fraction(1, 1000), "< 0.01"),
        (Fraction(1, 3), "0.33"),
    ],
)
def test_an_estimate_never_claims_more_than_it_is(value: Fraction | None, text: str) -> None:
    assert estimate_text(value) == text
