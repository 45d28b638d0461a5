from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client

from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.models import System, Task, Trial

pytestmark = pytest.mark.django_db

FIRST = (("get_user", {"id": 1}), ("search", {"date": "05-20"}), ("book", {"seat": "1A"}))
SECOND = (("get_user", {"id": 1}), ("search", {"date": "05-21"}), ("book", {"seat": "1A"}))
THIRD = (("get_user", {"id": 1}), ("book", {"seat": "1A"}))


def compare_path(system: System) -> str:
    task = Task.objects.get(system=system, task_id="t1")
    return f"{root(system)}tasks/{task.uuid}/compare/"


def trial_hex(label: str) -> str:
    return Trial.objects.get(label=label).uuid.hex


@pytest.fixture
def three(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=FIRST),
            record("t1", 1, calls=SECOND),
            record("t1", 2, calls=THIRD, verdicts=[verdict("fail")], result="Error: no"),
        ],
    )


def test_two_trials_differ_at_an_argument(client: Client, cast: Cast, three: None) -> None:
    path = compare_path(cast.system)
    page = visit(client, cast.viewer, path, side=[trial_hex("0"), trial_hex("1")])
    rows = [row for stretch in page.stretches for row in stretch.rows]

    assert page.title == "Trial 0 against Trial 1"
    assert page.divergence == (
        "Paths part at step 4: Trial 0 and Trial 1 call search with another date."
    )
    assert page.divergence_href == "#row-2"
    assert (page.n_equal, page.n_different) == (2, 1)
    assert [(row.is_equal, row.is_first_divergence) for row in rows] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    left, right = rows[1].left.arguments, rows[1].right.arguments
    assert [(a.name, a.value, a.is_different) for a in (*left, *right)] == [
        ("date", '"05-20"', True),
        ("date", '"05-21"', True),
    ]
    assert rows[1].left.href.endswith("?step=4#step-4")
    assert page.swap_url.endswith(f"side={trial_hex('1')}&side={trial_hex('0')}")


def test_paths_are_compared_by_default_the_largest_first(
    client: Client, cast: Cast, three: None
) -> None:
    page = visit(client, cast.viewer, compare_path(cast.system), level="exact")

    assert page.title == "Path A against Path B"
    assert page.left.words == "1 trial of 1 release; shown: trial 0 of 1.0"
    assert [option.label for option in page.left.options if option.is_selected] == [
        "Path A, 1 trial"
    ]


def test_paths_stay_paths_at_another_level(client: Client, cast: Cast, three: None) -> None:
    page = visit(client, cast.viewer, compare_path(cast.system), level="exact")
    sequence = next(choice for choice in page.levels if choice.label == "Sequence")
    other = visit(client, cast.viewer, sequence.href)

    assert other.title == "Path A against Path A"
    assert "Trial" not in other.left.name


def test_a_failing_trial_against_a_path(client: Client, cast: Cast, three: None) -> None:
    task = visit(
        client, cast.viewer, compare_path(cast.system).removesuffix("compare/"), overlay="fail"
    )
    sides = [task.aligned.groups[0].key, task.aligned.overlaid[0].key]
    page = visit(client, cast.viewer, compare_path(cast.system), side=sides)
    rows = [row for stretch in page.stretches for row in stretch.rows]

    assert (page.left.name, page.right.name) == ("Path A", "Trial 2")
    assert (page.left.state, page.right.state) == ("pass", "fail")
    assert [row.right is None for row in rows] == [False, True, False]
    assert rows[0].right.is_rejected


def test_a_and_b_name_the_sides_too(client: Client, cast: Cast, three: None) -> None:
    query = {"a": trial_hex("2"), "b": str(Trial.objects.get(label="0").uuid)}
    page = visit(client, cast.viewer, compare_path(cast.system), **query)
    assert page.title == "Trial 2 against Trial 0"


def test_long_equal_stretches_are_folded(client: Client, cast: Cast) -> None:
    same = tuple(("step", {"n": n}) for n in range(5))
    ingest(
        cast.system,
        [record("t1", 0, calls=same), record("t1", 1, calls=(*same, ("more", {})))],
    )
    page = visit(client, cast.viewer, compare_path(cast.system))

    assert [(s.is_folded, len(s.rows)) for s in page.stretches] == [(True, 5), (False, 1)]
    assert page.stretches[0].words == "steps 1 to 5 are equal"


def test_very_long_paths_are_cut_and_say_so(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", n, calls=tuple(("s", {"n": k}) for k in range(410 + n))) for n in range(2)],
    )
    page = visit(client, cast.viewer, compare_path(cast.system))
    assert sum(len(s.rows) for s in page.stretches) == 400
    assert page.note == "Cut after 400 of 411 steps."
    assert page.divergence_href == ""


def test_odd_arguments_are_compared_whole(client: Client, cast: Cast) -> None:
    def with_arguments(trial: int, arguments: Any) -> dict[str, Any]:
        one = record("t1", trial)
        function = one["messages"][1]["tool_calls"][0]["function"]
        function.pop("arguments")
        if arguments is not None:
            function["arguments"] = arguments
        return one

    ingest(
        cast.system,
        [
            with_arguments(0, "{oops"),
            with_arguments(1, '{"a": 1, "b": 2}'),
            with_arguments(2, None),
            with_arguments(3, '{"a": 1}'),
        ],
    )

    def shown(left: str, right: str) -> list[list[tuple[str, str, bool]]]:
        sides = [trial_hex(left), trial_hex(right)]
        page = visit(client, cast.viewer, compare_path(cast.system), side=sides)
        row = page.stretches[0].rows[0]
        return [
            [(a.name, a.value, a.is_different) for a in side.arguments]
            for side in (row.left, row.right)
        ]

    assert shown("0", "1")[0] == [("", "{oops", True)]
    assert shown("1", "3") == [
        [("a", "1", False), ("b", "2", True)],
        [("a", "1", False), ("b", "absent", True)],
    ]
    assert shown("2", "3")[0] == []
    notes = visit(
        client, cast.viewer, compare_path(cast.system), side=[trial_hex("0"), trial_hex("2")]
    )
    row = notes.stretches[0].rows[0]
    assert (row.left.note, row.right.note) == (
        "Not JSON: kept as it came.",
        "The arguments were not recorded.",
    )


@pytest.mark.parametrize("side", [[str(uuid.uuid4())], ["00" * 16, "11" * 16]])
def test_what_is_no_path_or_trial_of_the_task_is_404(
    side: list[str], client: Client, cast: Cast, three: None
) -> None:
    client.force_login(cast.viewer)
    answer = client.get(compare_path(cast.system), {"side": side})
    assert answer.status_code == 404


def test_a_task_without_a_passing_path_has_nothing_to_compare(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=[verdict("fail")])])
    client.force_login(cast.viewer)
    assert client.get(compare_path(cast.system)).status_code == 404


def test_query_count_of_a_comparison_does_not_grow(client: Client, cast: Cast, three: None) -> None:
    client.force_login(cast.viewer)
    path = compare_path(cast.system)
    few = n_queries(client, path)
    ingest(cast.system, [record("t1", n, calls=((f"tool-{n}", {}),)) for n in range(3, 6)])

    assert (few, n_queries(client, path)) == (13, 13)
