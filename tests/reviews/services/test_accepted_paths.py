from __future__ import annotations

import threading
import uuid
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from reviews.core.accepted_paths import LONGEST_REASON
from reviews.models import AcceptedPath, AcceptedPathWithdrawal, Flag, FlagClosing, FlagCode
from reviews.services.accepted_paths import AcceptanceError, accept_path, withdraw_path
from tests.support.accepted import accept, show_rules, task_of, trial_of
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, record, verdict
from traces.core.paths import PathLevel
from traces.core.rules import ArgumentRule, Arithmetic, RuleSet
from traces.models import Role, System, TrajectoryPaths, Trial
from traces.services.people import set_member

pytestmark = pytest.mark.django_db

FAIL = [verdict("fail")]
ENGINEERS = "Only an engineer of this system uploads evidence, declares runs, proposes tasks"


def calculates(expression: str) -> tuple[tuple[str, dict[str, Any]], ...]:
    return (("calculate", {"expression": expression}),)


def flag(trial: Trial) -> Flag:
    return Flag.objects.create(
        system=trial.system,
        trial=trial,
        code=FlagCode.PERSON.value,
        key=uuid.uuid4(),
        reason="It never asked.",
        by=trial.system.created_by,
        raised_at=timezone.now(),
    )


def close(raised: Flag) -> None:
    assert raised.by is not None
    FlagClosing.objects.create(
        flag=raised, reason="It did.", by=raised.by, closed_at=timezone.now()
    )


def test_a_path_is_accepted_with_all_that_led_to_it(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1)])
    trial, now = trial_of(cast.system), timezone.now()
    path = accept(cast, level=PathLevel.EXACT, reason=" Asks first.\x00 ", messages=True, now=now)

    keys = TrajectoryPaths.objects.get(trajectory=trial.trajectory)
    assert (path.number, path.level, path.messages) == (1, "exact", True)
    assert (path.trial, path.trajectory_id, path.key) == (
        trial,
        trial.trajectory_id,
        keys.exact_msg,
    )
    assert (path.rules, path.by, path.accepted_at) == (
        cast.system.shown_rules,
        cast.engineer,
        now,
    )
    assert path.reason == "Asks first.\u2400"


@pytest.mark.parametrize("level", [PathLevel.TOOL_SET, PathLevel.EFFECTS])
def test_messages_count_for_nothing_where_the_level_knows_none(
    cast: Cast, level: PathLevel
) -> None:
    ingest(cast.system, [record("t1", 0)])
    assert accept(cast, level=level, messages=True).messages is False
    with pytest.raises(AcceptanceError, match="already: Accepted 1"):
        accept(cast, level=level)


@pytest.mark.parametrize("role", [Role.VIEWER, Role.REVIEWER, Role.OWNER])
def test_only_an_engineer_accepts_and_withdraws(cast: Cast, role: Role) -> None:
    ingest(cast.system, [record("t1", 0)])
    person = cast.members()[role]
    with pytest.raises(AcceptanceError, match=ENGINEERS):
        accept(cast, by=person)
    path = accept(cast)
    with pytest.raises(AcceptanceError, match=ENGINEERS):
        withdraw_path(path, reason="no", by=person, now=timezone.now())
    assert not AcceptedPathWithdrawal.objects.exists()


def test_an_engineer_of_another_system_accepts_nothing_here(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)])
    stranger = person("stranger")
    set_member(cast.other_system, stranger, Role.ENGINEER)
    with pytest.raises(AcceptanceError, match="Only a member of the system"):
        accept(cast, by=stranger)


def test_a_trial_that_did_not_pass_shows_no_path(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, verdicts=FAIL),
            record("t1", 1, verdicts=[]),
            record("t1", 2, error="lost"),
            record("t1", 2, attempt=2),
            record("t1", 3, environment="production"),
            record("t1", 4, fault={"kind": "timeout"}),
        ],
    )
    first = Trial.objects.get(label="2", attempt=1)
    others = [trial_of(cast.system, label) for label in ("0", "1", "3", "4")]
    for trial in (first, *others):
        with pytest.raises(AcceptanceError, match="Only the path of a passing trial"):
            accept_path(
                task_of(cast.system),
                trial=trial.uuid,
                level=PathLevel.SEQUENCE,
                messages=False,
                reason="x",
                by=cast.engineer,
                now=timezone.now(),
            )
    assert not AcceptedPath.objects.exists()


def test_a_trial_of_another_task_is_none_of_this_one(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    other = trial_of(cast.system, task_id="t2")
    for trial in (other.uuid, uuid.uuid4()):
        with pytest.raises(AcceptanceError, match="no such trial of this task"):
            accept(cast, trial=trial)


def test_an_open_flag_anywhere_on_the_path_keeps_it_from_being_accepted(cast: Cast) -> None:
    ingest(
        cast.system,
        [
            record("t1", 0, calls=calculates("1 + 1")),
            record("t1", 1, calls=calculates("2")),
            record("t1", 2, calls=calculates("2"), environment="production"),
            record("t1", 3, calls=calculates("3"), verdicts=FAIL),
        ],
    )
    raised = [flag(trial_of(cast.system, label)) for label in ("1", "1", "2", "3")]
    accept(cast, level=PathLevel.EXACT)
    with pytest.raises(AcceptanceError, match="2 passing trials on this path carry an open flag"):
        accept(cast)
    for one in raised[:2]:
        close(one)
    with pytest.raises(AcceptanceError, match="1 passing trial on this path carries an open flag"):
        accept(cast)
    close(raised[2])
    assert accept(cast).number == 2


def test_a_path_without_arguments_is_accepted_only_where_they_are_not_compared(
    cast: Cast,
) -> None:
    bare = record("t1", 0)
    bare["messages"][1]["tool_calls"][0]["function"].pop("arguments")
    ingest(cast.system, [bare])
    for level in PathLevel:
        if level.compares_arguments:
            with pytest.raises(AcceptanceError, match="recorded without its arguments"):
                accept(cast, level=level)
        else:
            accept(cast, level=level)
    assert [path.level for path in AcceptedPath.objects.order_by("number")] == [
        "tool_set",
        "reads_any_order",
        "sequence",
    ]


@pytest.mark.parametrize(
    ("reason", "sentence"),
    [("", "Say why"), (" \n", "Say why"), ("x" * (LONGEST_REASON + 1), "longer than 4,000")],
    ids=["empty", "blank", "too-long"],
)
def test_a_reason_is_needed(cast: Cast, reason: str, sentence: str) -> None:
    ingest(cast.system, [record("t1", 0)])
    with pytest.raises(AcceptanceError, match=sentence):
        accept(cast, reason=reason)
    path = accept(cast)
    with pytest.raises(AcceptanceError, match=sentence):
        withdraw_path(path, reason=reason, by=cast.engineer, now=timezone.now())


def test_the_same_path_is_accepted_once_at_a_level_until_it_is_withdrawn(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1)])
    first = accept(cast)
    with pytest.raises(AcceptanceError, match="already: Accepted 1"):
        accept(cast, "1")
    assert accept(cast, "1", level=PathLevel.EXACT).number == 2
    assert accept(cast, messages=True).number == 3
    withdraw_path(first, reason="It lies.", by=cast.engineer, now=timezone.now())
    with pytest.raises(AcceptanceError, match="Accepted 1 is withdrawn already"):
        withdraw_path(first, reason="Again.", by=cast.engineer, now=timezone.now())
    assert accept(cast, "1").number == 4


def test_rules_that_merge_a_path_with_an_accepted_one_make_it_accepted(cast: Cast) -> None:
    ingest(
        cast.system,
        [record("t1", 0, calls=calculates("1200")), record("t1", 1, calls=calculates("2 * 600"))],
    )
    accept(cast, level=PathLevel.EQUIVALENT)
    show_rules(
        cast.system,
        RuleSet(rules=(ArgumentRule("calculate", "expression", Arithmetic(), "Same.", "e"),)),
    )
    with pytest.raises(AcceptanceError, match="already: Accepted 1"):
        accept(cast, "1", level=PathLevel.EQUIVALENT)
    assert accept(cast, "1", level=PathLevel.EXACT).rules == cast.system.shown_rules


@pytest.mark.parametrize("table", ["reviews_acceptedpath", "reviews_acceptedpathwithdrawal"])
@pytest.mark.parametrize(
    "change", ["UPDATE {} SET reason = 'other'", "DELETE FROM {}", "TRUNCATE {} CASCADE"]
)
def test_what_was_accepted_and_withdrawn_cannot_be_changed(
    cast: Cast, table: str, change: str
) -> None:
    ingest(cast.system, [record("t1", 0)])
    withdraw_path(accept(cast), reason="It lies.", by=cast.engineer, now=timezone.now())
    with (
        pytest.raises(DatabaseError, match="append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(change.format(table))


@pytest.mark.django_db(transaction=True)
def test_two_engineers_at_once_accept_a_path_once(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1, calls=(("other", {}),))])
    barrier, answers = threading.Barrier(6), []

    def ask(label: str) -> None:
        try:
            barrier.wait()
            answers.append(str(accept(cast, label).number))
        except AcceptanceError as error:
            answers.append(str(error).partition(":")[0])
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(label,)) for label in "000111"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == [
        "1",
        "2",
        *["This path is accepted at this level already"] * 4,
    ]
    assert System.objects.count() == 2
