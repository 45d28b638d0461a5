from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.web import task_diagnostics
from reviews.models import AcceptedPath, AcceptedPathWithdrawal
from tests.evalsite.web.test_task import calculates, telecom, use_rules
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import n_queries, root, visit
from traces.core.paths import PathLevel
from traces.models import Release, System, Task, TrajectoryPaths, Trial
from traces.selectors import diagnostics
from traces.selectors.rules import shown_rules

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
OPEN: list[dict[str, Any]] = []
ABCD = ("get_reservation", "check_fare_rules", "cancel_reservation", "book_flight")


def calls(*names: str, reservation: str = "R1") -> tuple[tuple[str, dict[str, Any]], ...]:
    return tuple((name, {"id": reservation}) for name in names)


def path_of(system: System, task_id: str = "t1") -> str:
    task = Task.objects.get(system=system, task_id=task_id)
    return f"{root(system)}tasks/{task.uuid}/diagnostics/"


def marks(row: Any) -> str:
    """What a row says, in the order of the columns."""
    return " ".join(mark.words for mark in row.marks)


def labels(page: Any) -> dict[str, str]:
    return {row.trial.title: marks(row) for row in page.rows}


def accept(
    cast: Cast, label: str, number: int = 1, level: PathLevel = PathLevel.SEQUENCE
) -> AcceptedPath:
    trial = Trial.objects.get(label=label)
    rules = shown_rules(cast.system)
    paths = TrajectoryPaths.objects.get(trajectory=trial.trajectory, rules=rules)
    return AcceptedPath.objects.create(
        task=trial.task,
        number=number,
        level=level,
        messages=False,
        trajectory=trial.trajectory,
        trial=trial,
        rules=rules,
        key=getattr(paths, level.value),
        reason="Looked at.",
        by=cast.engineer,
        accepted_at=timezone.now(),
    )


def withdraw(cast: Cast, path: AcceptedPath) -> None:
    AcceptedPathWithdrawal.objects.create(
        path=path, reason="No more.", by=cast.engineer, withdrawn_at=timezone.now()
    )


@pytest.fixture
def known(cast: Cast) -> Cast:
    """The trajectories A to E of the known answers; A three times, so that it is the reference."""
    records = [
        *(record("t1", f"A{n}", calls=calls(*ABCD)) for n in range(3)),
        record("t1", "B", calls=calls(ABCD[1], ABCD[0], *ABCD[2:]), verdicts=FAIL),
        record("t1", "C", calls=calls(ABCD[0], "search_flights", *ABCD[1:])),
        record("t1", "D", calls=calls(ABCD[0], *ABCD[2:]), verdicts=OPEN),
        record("t1", "E", calls=calls(*ABCD, reservation="R2"), verdicts=FAIL),
    ]
    ingest(cast.system, records)
    return cast


def test_trials_are_matched_with_the_largest_passing_path(client: Client, known: Cast) -> None:
    page = visit(client, known.viewer, path_of(known.system))

    assert (page.reference.name, page.reference.words) == (
        "Trial A0 of 1.0",
        "first of 3 trials on the largest passing path",
    )
    assert page.reference.calls == "4 calls in 4 messages"
    assert [[cell.name for cell in cells] for cells in page.reference.messages] == [
        [name] for name in ABCD
    ]
    assert [column.label for column in page.columns] == [
        *("Strict", "Unordered", "Subset", "Superset", "Exact", "In order", "Any order"),
        *("Precision", "Recall", "Uses tool"),
    ]
    assert [
        (row.trial.title, row.words, row.n_pass, row.n_fail, row.n_unresolved, row.n_calls)
        for row in page.rows
    ] == [
        ("Trial A0 of 1.0", "of 1.0, and 3 more", 3, 1, 0, 4),
        ("Trial B of 1.0", "of 1.0", 0, 1, 0, 4),
        ("Trial C of 1.0", "of 1.0", 1, 0, 0, 5),
        ("Trial D of 1.0", "of 1.0", 0, 0, 1, 3),
    ]
    assert [marks(row) for row in page.rows] == [
        "yes yes yes yes yes yes yes 4/4 4/4 yes",
        "no yes yes yes no no yes 4/4 4/4 yes",
        "no no no yes no yes yes 4/5 4/4 yes",
        "no no yes no no no no 3/3 3/4 yes",
    ]
    assert [row.is_reference for row in page.rows] == [True, False, False, False]
    assert page.words == "4 paths, most trials first"
    assert page.note == ""


def test_trials_are_matched_with_their_arguments(client: Client, known: Cast) -> None:
    page = visit(client, known.viewer, path_of(known.system), arguments="exact")
    found = labels(page)

    assert list(found) == [f"Trial {label} of 1.0" for label in ("A0", "B", "C", "D", "E")]
    assert found["Trial E of 1.0"] == "no no no no no no no 0/4 0/4 yes"
    assert [choice.label for choice in page.arguments if choice.is_current] == ["Arguments exact"]


def test_trials_are_matched_with_their_arguments_by_the_rules(client: Client, cast: Cast) -> None:
    use_rules(cast.system)
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("2 * 600")),
            record("t1", 1, calls=calculates("1200")),
            record("t1", 2, calls=calculates("7")),
        ],
    )
    path = path_of(cast.system)
    exact, rules = (
        [
            (row.n_pass, row.marks[0].words)
            for row in visit(client, cast.viewer, path, arguments=a).rows
        ]
        for a in ("exact", "rules")
    )

    assert exact == [(1, "yes"), (1, "no"), (1, "no")]
    assert rules == [(2, "yes"), (1, "no")]


def test_figures_say_how_passing_and_failing_trials_match(client: Client, known: Cast) -> None:
    page = visit(client, known.viewer, path_of(known.system))

    assert [(figure.label, figure.value, figure.detail) for figure in page.figures] == [
        ("Strict match", "4 of 7", "3 of 4 passing, 1 of 2 failing"),
        ("Unordered match", "5 of 7", "3 of 4 passing, 2 of 2 failing"),
        ("Subset match", "6 of 7", "3 of 4 passing, 2 of 2 failing"),
        ("Superset match", "6 of 7", "4 of 4 passing, 2 of 2 failing"),
    ]


def test_any_trial_may_be_the_reference(client: Client, known: Cast) -> None:
    first = visit(client, known.viewer, path_of(known.system))
    address = next(row.reference_url for row in first.rows if row.trial.title == "Trial D of 1.0")
    page = visit(client, known.viewer, address)

    assert (page.reference.name, page.reference.words) == ("Trial D of 1.0", "unresolved")
    assert labels(page)["Trial A0 of 1.0"] == "no no no yes no yes yes 3/4 3/3 yes"
    (chosen,) = (o for group in page.references for o in group.options if o.is_selected)
    assert chosen.label == "Trial D of 1.0, unresolved"


def test_first_accepted_path_in_force_is_the_reference(client: Client, known: Cast) -> None:
    withdraw(known, accept(known, "B"))
    second = accept(known, "C", number=2)
    third = accept(known, "A1", number=3)
    page = visit(client, known.viewer, path_of(known.system))

    assert (page.reference.name, page.reference.words) == (
        "Accepted path 2",
        "level sequence, shown by trial C of 1.0",
    )
    assert page.reference.href == f"{root(known.system)}trials/{second.trial.uuid}/"
    assert [
        (group.label, [option.label for option in group.options][:2]) for group in page.references
    ] == [
        ("Accepted paths", ["Accepted path 2", "Accepted path 3"]),
        ("Trials", ["Trial A0 of 1.0, pass", "Trial A1 of 1.0, pass"]),
    ]
    other = visit(client, known.viewer, path_of(known.system), reference=str(third.uuid))
    assert other.reference.name == "Accepted path 3"
    assert [row.trial.title for row in other.rows if row.is_reference] == ["Trial A0 of 1.0"]


@pytest.mark.parametrize(
    ("level", "label", "n_own"),
    [
        pytest.param(PathLevel.TOOL_SET, "Names only", 5, id="tool-set"),
        pytest.param(PathLevel.READS_ANY_ORDER, "Names only", 5, id="reads-any-order"),
        pytest.param(PathLevel.SEQUENCE, "Names only", 5, id="sequence"),
        pytest.param(PathLevel.EFFECTS, "By the rules", 4, id="effects"),
        pytest.param(PathLevel.EQUIVALENT, "By the rules", 4, id="equivalent"),
        pytest.param(PathLevel.EXACT, "Arguments exact", 2, id="exact"),
    ],
)
def test_arguments_are_compared_as_the_accepted_path_compares_them(
    client: Client, cast: Cast, level: PathLevel, label: str, n_own: int
) -> None:
    use_rules(cast.system)
    spellings = ("1200", "1200", "2 * 600", "2*600", "7")
    ingest(
        cast.system, [record("t1", n, calls=calculates(each)) for n, each in enumerate(spellings)]
    )
    accept(cast, "0", level=level)
    path = path_of(cast.system)
    page = visit(client, cast.viewer, path)
    names = visit(client, cast.viewer, path, arguments="names")

    assert [choice.label for choice in page.arguments if choice.is_current] == [label]
    assert [row.n_pass for row in page.rows if row.is_reference] == [n_own]
    assert [choice.label for choice in names.arguments if choice.is_current] == ["Names only"]


def test_arguments_stay_when_a_row_becomes_the_reference(client: Client, known: Cast) -> None:
    accept(known, "A0", level=PathLevel.EXACT)
    page = visit(client, known.viewer, path_of(known.system))
    other = next(row for row in page.rows if row.trial.title == "Trial E of 1.0")
    then = visit(client, known.viewer, other.reference_url)

    assert (then.reference.name, then.reference.words) == ("Trial E of 1.0", "fail")
    assert [choice.label for choice in then.arguments if choice.is_current] == ["Arguments exact"]
    assert "level=exact" in other.compare_url


def test_a_release_is_looked_at_against_the_same_reference(client: Client, known: Cast) -> None:
    ingest(known.system, [record("t1", "F", calls=calls(*ABCD[:2]))], release="2.0")
    release = Release.objects.get(name="2.0")
    page = visit(client, known.viewer, path_of(known.system), release=str(release.uuid))

    assert page.releases_label == "2.0"
    assert page.reference.name == "Trial A0 of 1.0"
    assert labels(page) == {"Trial F of 2.0": "no no yes no no no no 2/2 2/4 yes"}
    assert {field.name for field in page.hidden} == {"release", "level"}
    assert {field.name for field in page.release_hidden} == {"reference", "level"}
    asked = visit(
        client,
        known.viewer,
        path_of(known.system),
        release=str(release.uuid),
        arguments="names",
    )
    assert {field.name for field in asked.hidden} == {"release", "arguments", "level"}
    assert {field.name for field in asked.release_hidden} == {"reference", "arguments", "level"}


def test_trials_of_several_releases_are_one_row(client: Client, known: Cast) -> None:
    ingest(known.system, [record("t1", "A0", calls=calls(*ABCD))], release="2.0")
    page = visit(client, known.viewer, path_of(known.system))

    assert page.rows[0].words == "of 1.0, and 4 more in 2 releases"


def test_a_version_is_looked_at_alone(client: Client, cast: Cast) -> None:
    ingest(cast.system, telecom((0, 1)), file_name="results.json")
    ingest(cast.system, telecom((2,), reason="My phone is slow."), file_name="results.json")
    task = Task.objects.get(system=cast.system)
    path = path_of(cast.system, task.task_id)
    page = visit(client, cast.viewer, path)
    first = visit(client, cast.viewer, path, version="1")

    assert [notice.sentence for notice in page.notices] == [
        "All 2 versions of this task are taken together here."
    ]
    assert sum(row.n_pass + row.n_fail for row in page.rows) == 3
    assert sum(row.n_pass + row.n_fail for row in first.rows) == 2
    assert [(choice.label, choice.is_current) for choice in first.versions] == [
        ("All versions", False),
        ("Version 2", False),
        ("Version 1", True),
    ]
    assert "version 1" in first.facts
    assert first.notices == ()


def test_single_tool_use_is_of_the_tool_that_is_chosen(client: Client, known: Cast) -> None:
    page = visit(client, known.viewer, path_of(known.system), tool="search_flights")

    assert [option.value for option in page.tools] == [*ABCD, "search_flights"]
    assert [option.value for option in page.tools if option.is_selected] == ["search_flights"]
    assert [
        (row.trial.label.removeprefix("Trial ")[0], row.marks[-1].words) for row in page.rows
    ] == [
        ("A", "no"),
        ("B", "no"),
        ("C", "yes"),
        ("D", "no"),
    ]


def in_one_message(*names: str, say_between: bool = False) -> list[dict[str, Any]]:
    """Calls of one message, and one after it, with or without a word between them."""
    made = [
        {"id": name, "type": "function", "function": {"name": name, "arguments": "{}"}}
        for name in names
    ]
    first = [{"role": "assistant", "tool_calls": made[:-1]}]
    between = [{"role": "assistant", "content": "One moment."}] if say_between else []
    return [*first, *between, {"role": "assistant", "tool_calls": made[-1:]}]


def test_messages_without_a_call_make_no_row_of_their_own(client: Client, cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0) | {"messages": in_one_message("a", "b", "c")},
            record("t1", 1) | {"messages": in_one_message("a", "b", "c", say_between=True)},
            record("t1", 2, calls=(("a", {}), ("b", {}), ("c", {}))),
        ],
    )
    page = visit(client, cast.viewer, path_of(cast.system))

    assert page.reference.calls == "3 calls in 2 messages, a frame for calls of one message"
    assert [(row.n_pass, row.words, marks(row)) for row in page.rows] == [
        (2, "of 1.0, and 1 more", "yes yes yes yes yes yes yes 3/3 3/3 yes"),
        (1, "of 1.0", "no yes yes yes yes yes yes 3/3 3/3 yes"),
    ]


def test_calls_without_arguments_never_match_and_the_page_says_so(
    client: Client, cast: Cast
) -> None:
    bare = {
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": "1", "function": {"name": "a"}}]},
        ]
    }
    ingest(cast.system, [record("t1", 0) | bare, record("t1", 1) | bare])
    path = path_of(cast.system)
    exact = visit(client, cast.viewer, path, arguments="exact")

    assert [(row.n_pass, row.note, marks(row)) for row in exact.rows] == [
        (
            1,
            "1 call was recorded without arguments and cannot match",
            "no no no no no no no 0/1 0/1 yes",
        )
    ] * 2
    assert [notice.sentence for notice in exact.notices] == [
        "In the reference, 1 call was recorded without arguments and cannot match."
    ]
    names = visit(client, cast.viewer, path)
    assert [(row.n_pass, row.note, row.marks[0].words) for row in names.rows] == [(2, "", "yes")]


def test_trajectory_without_calls_has_no_precision(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1), record("t1", 2, calls=())])
    page = visit(client, cast.viewer, path_of(cast.system))
    empty = page.rows[1]

    assert marks(empty) == "no no yes no no no no - 0/1 no"
    assert empty.marks[7].help == "This trajectory makes no call."
    other = visit(client, cast.viewer, empty.reference_url)
    assert marks(other.rows[0]) == "no no no yes no yes yes 0/1 - yes"
    assert other.rows[0].marks[8].help == "The reference makes no call."


def test_harness_errors_are_no_rows(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, error="broke")])
    page = visit(client, cast.viewer, path_of(cast.system))

    assert [(row.n_pass, row.n_fail, row.n_unresolved) for row in page.rows] == [(1, 0, 0)]


def test_without_a_passing_trial_a_reference_is_asked_for(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0, verdicts=FAIL)])
    page = visit(client, cast.viewer, path_of(cast.system))

    assert (page.reference, page.rows, page.figures) == (None, (), ())
    assert page.empty.heading == "No reference yet"
    assert [option.label for option in page.references[0].options] == [
        "Choose a trial",
        "Trial 0 of 1.0, fail",
    ]
    chosen = visit(
        client, cast.viewer, path_of(cast.system), reference=page.references[0].options[1].value
    )
    assert [marks(row) for row in chosen.rows] == ["yes yes yes yes yes yes yes 1/1 1/1 yes"]


def test_no_trial_of_a_release_says_so(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    ingest(cast.system, [record("t2", 0)], release="2.0")
    other = Release.objects.get(name="2.0")
    page = visit(client, cast.viewer, path_of(cast.system), release=str(other.uuid))

    assert (page.empty.heading, page.rows) == ("No trial here", ())
    assert visit(client, cast.viewer, page.empty.act.href).empty is None


def test_what_is_cut_is_said(client: Client, known: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diagnostics, "MOST_ROWS", 2)
    page = visit(client, known.viewer, path_of(known.system))
    assert len(page.rows) == 2
    assert page.note == (
        "The 2 paths with the most trials are shown; 2 of 7 trials took other ones, which count"
        " nowhere here."
    )
    assert page.figures[0].value == "4 of 5"
    monkeypatch.setattr(diagnostics, "MOST_CALLS", 1)
    assert len(visit(client, known.viewer, path_of(known.system)).rows) == 1


def test_long_reference_is_drawn_in_part(
    client: Client, known: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_diagnostics, "MOST_CELLS", 2)
    page = visit(client, known.viewer, path_of(known.system))
    assert ([len(cells) for cells in page.reference.messages], page.reference.n_more) == ([1, 1], 2)
    assert b"and 2 more calls" in client.get(path_of(known.system)).content


@pytest.mark.parametrize(
    "query",
    [
        pytest.param({"reference": "x" * 3000, "arguments": "fuzzy"}, id="nonsense"),
        pytest.param({"reference": "\x00", "tool": "\x00\ud83d", "arguments": "\x00"}, id="nul"),
        pytest.param({"reference": str(uuid.UUID(int=7)), "release": "7"}, id="nobodys-uuid"),
        pytest.param({"version": "9" * 30, "level": "none", "messages": "x"}, id="numbers"),
        pytest.param({"tool": "é" * 2000}, id="long-tool"),
    ],
)
def test_odd_parameters_ask_for_nothing(client: Client, known: Cast, query: dict[str, str]) -> None:
    odd = {name: value.encode("utf-8", "surrogatepass") for name, value in query.items()}
    page = visit(client, known.viewer, path_of(known.system), **odd)
    assert page.reference.name == "Trial A0 of 1.0"
    assert marks(page.rows[0]) == "yes yes yes yes yes yes yes 4/4 4/4 yes"


def test_reference_of_another_task_or_system_asks_for_nothing(client: Client, known: Cast) -> None:
    ingest(known.system, [record("t2", "other")])
    ingest(known.other_system, [record("t1", "foreign")])
    for label in ("other", "foreign"):
        trial = Trial.objects.get(label=label)
        page = visit(client, known.viewer, path_of(known.system), reference=str(trial.uuid))
        assert page.reference.name == "Trial A0 of 1.0"


def test_hostile_names_are_shown_marked(client: Client, cast: Cast) -> None:
    name = "<script>\u202e"
    ingest(cast.system, [record("t1", "<b>\u202e", calls=((name, {}),))])
    client.force_login(cast.viewer)
    answer = client.get(path_of(cast.system), {"tool": name})
    body = answer.content.decode()

    assert answer.status_code == 200
    assert "<script>\u202e" not in body
    assert "<b>\u202e" not in body
    assert "&lt;script&gt;" in body


def test_query_count_does_not_grow(client: Client, cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    client.force_login(cast.viewer)
    path = path_of(cast.system)
    one = n_queries(client, path)
    ingest(
        cast.system,
        [record("t1", 1, calls=(("x", {}),)), record("t1", 2, calls=(("y", {}),))],
        release="2.0",
    )

    assert (one, n_queries(client, path)) == (15, 15)
    assert n_queries(client, path, arguments="rules") == 15


def test_outsider_and_nobodys_task_get_404(client: Client, known: Cast) -> None:
    client.force_login(known.outsider)
    assert client.get(path_of(known.system)).status_code == 404
    client.force_login(known.viewer)
    nobody = f"{root(known.system)}tasks/{uuid.uuid4()}/diagnostics/"
    assert client.get(nobody).status_code == 404
    assert client.post(path_of(known.system)).status_code == 405
