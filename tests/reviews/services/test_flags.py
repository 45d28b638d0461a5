from __future__ import annotations

import logging
import threading
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction
from django.test.utils import CaptureQueriesContext

from reviews.models import Flag, FlagClosing, FlagCode
from reviews.permissions.flags import BROUGHT_EVIDENCE, closing_refusal
from reviews.services.flags import (
    LONGEST_REASON,
    NOT_OF_TRIAL,
    FlagDeniedError,
    FlagError,
    close_flag,
    close_flags,
    flag_trial,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Role, Trial, TrialDisposition, User

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 12, 1, 10, 0, tzinfo=UTC)
LATER = datetime(2026, 12, 1, 11, 30, tzinfo=UTC)


def stored_trial(cast: Cast) -> Trial:
    ingest(cast.system, [record("t1", 0)])
    return Trial.objects.get(system=cast.system)


@pytest.mark.parametrize("role", Role)
def test_every_member_flags_a_trial_as_often_as_they_like(role: Role, cast: Cast) -> None:
    trial, person = stored_trial(cast), cast.members()[role]

    flags = [flag_trial(trial, reason=" Odd. ", by=person, now=NOW) for _ in range(2)]

    assert list(
        Flag.objects.order_by("pk").values_list("pk", "system", "trial", "code", "reason", "by")
    ) == [(f.pk, cast.system.pk, trial.pk, "person", "Odd.", person.pk) for f in flags]
    assert [flag.raised_at for flag in flags] == [NOW, NOW]
    assert TrialDisposition.objects.get(trial=trial).value == "pass"


def test_an_outsider_flags_nothing(cast: Cast) -> None:
    trial = stored_trial(cast)

    with pytest.raises(FlagDeniedError, match=r"^Only a member of this system flags its trials\.$"):
        flag_trial(trial, reason="Odd.", by=cast.outsider, now=NOW)

    assert not Flag.objects.exists()


NO_REASON = "Say why: the reason is what the next person reads."
BAD_REASONS = [
    pytest.param("", NO_REASON, id="empty"),
    pytest.param(" \n\t ", NO_REASON, id="blanks"),
    pytest.param("\u200b \u202e\u2063", NO_REASON, id="unseen"),
    pytest.param("x" * (LONGEST_REASON + 1), "A reason has at most 2,000 characters.", id="long"),
]


@pytest.mark.parametrize(("reason", "sentence"), BAD_REASONS)
def test_a_flag_and_its_closing_need_a_reason(reason: str, sentence: str, cast: Cast) -> None:
    trial = stored_trial(cast)
    flag = flag_trial(trial, reason="x" * LONGEST_REASON, by=cast.viewer, now=NOW)

    with pytest.raises(FlagError) as refused:
        flag_trial(trial, reason=reason, by=cast.viewer, now=NOW)
    assert str(refused.value) == sentence
    with pytest.raises(FlagError) as refused:
        close_flag(flag, reason=reason, by=cast.reviewer, now=NOW)
    assert str(refused.value) == sentence

    assert (Flag.objects.count(), FlagClosing.objects.count()) == (1, 0)


def test_what_a_column_cannot_hold_is_replaced(cast: Cast) -> None:
    flag = flag_trial(stored_trial(cast), reason="a\x00b\ud800c", by=cast.viewer, now=NOW)

    assert Flag.objects.get(pk=flag.pk).reason == "a\u2400b\ufffdc"


@pytest.mark.parametrize("role", Role)
def test_a_flag_of_somebody_else_is_closed_by_reviewers_only(role: Role, cast: Cast) -> None:
    person = cast.members()[role]
    flag = flag_trial(stored_trial(cast), reason="Odd.", by=cast.second_reviewer, now=NOW)

    if role is Role.REVIEWER:
        closing = close_flag(flag, reason=" Looked. ", by=person, now=LATER)
        assert (closing.flag, closing.reason, closing.by, closing.closed_at) == (
            flag,
            "Looked.",
            person,
            LATER,
        )
    else:
        with pytest.raises(FlagDeniedError) as refused:
            close_flag(flag, reason="Looked.", by=person, now=LATER)
        assert str(refused.value) == closing_refusal(role, is_own=False, has_brought=False) != ""
        assert not FlagClosing.objects.exists()


@pytest.mark.parametrize("role", Role)
def test_whoever_raised_a_flag_withdraws_it(role: Role, cast: Cast) -> None:
    person = cast.members()[role]
    flag = flag_trial(stored_trial(cast), reason="Odd.", by=person, now=NOW)

    close_flag(flag, reason="I misread it.", by=person, now=LATER)

    assert FlagClosing.objects.get().by == person


def test_who_is_no_member_any_more_withdraws_nothing(cast: Cast) -> None:
    flag = flag_trial(stored_trial(cast), reason="Odd.", by=cast.viewer, now=NOW)
    cast.system.members.filter(user=cast.viewer).delete()

    with pytest.raises(FlagDeniedError, match="Only a member"):
        close_flag(flag, reason="I misread it.", by=cast.viewer, now=LATER)


def test_a_closed_flag_is_closed_once_and_says_by_whom(cast: Cast) -> None:
    flag = flag_trial(stored_trial(cast), reason="Odd.", by=cast.viewer, now=NOW)
    cast.reviewer.first_name, cast.reviewer.last_name = "Ann", "Lee"
    cast.reviewer.save()
    close_flag(flag, reason="Looked.", by=cast.reviewer, now=LATER)

    for person in (cast.reviewer, cast.second_reviewer, cast.viewer):
        with pytest.raises(FlagError) as refused:
            close_flag(flag, reason="Again.", by=person, now=LATER)
        assert str(refused.value) == (
            "Ann Lee closed this flag at 2026-12-01 11:30:00 UTC; it is closed once."
        )

    assert FlagClosing.objects.get().reason == "Looked."


def test_each_act_is_one_line_of_the_log_without_its_reason(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    trial = stored_trial(cast)
    with caplog.at_level(logging.INFO, logger="evalsite.flags"):
        flag = flag_trial(trial, reason="A secret.", by=cast.viewer, now=NOW)
        close_flag(flag, reason="A secret.", by=cast.reviewer, now=LATER)

    lines = [line for line in caplog.records if line.name == "evalsite.flags"]
    assert [line.getMessage() for line in lines] == ["flag raised", "flag closed"]
    assert all(line.__dict__["flag"] == str(flag.uuid) for line in lines)
    assert not any("secret" in str(line.__dict__) for line in caplog.records)


# ---- several at once ----


def some_flags(trial: Trial, *people: User) -> list[Flag]:
    return [flag_trial(trial, reason="Odd.", by=by, now=NOW) for by in people]


def test_flags_of_a_trial_are_closed_together_each_by_a_row(
    cast: Cast, caplog: pytest.LogCaptureFixture
) -> None:
    flags = some_flags(stored_trial(cast), cast.viewer, cast.engineer, cast.reviewer, cast.viewer)

    with caplog.at_level(logging.INFO, logger="evalsite.flags"):
        closings = close_flags(
            [flags[2], flags[0], flags[2], flags[1]],
            reason=" Looked. ",
            by=cast.reviewer,
            now=LATER,
        )

    assert [(c.flag, c.reason, c.by, c.closed_at) for c in closings] == [
        (flag, "Looked.", cast.reviewer, LATER) for flag in flags[:3]
    ]
    assert list(FlagClosing.objects.order_by("pk").values_list("pk", "reason")) == [
        (flag.pk, "Looked.") for flag in flags[:3]
    ]
    lines = [line for line in caplog.records if line.getMessage() == "flag closed"]
    assert [(line.name, line.__dict__["flag"]) for line in lines] == [
        ("evalsite.flags", str(flag.uuid)) for flag in flags[:3]
    ]


def test_closing_many_takes_as_many_queries_as_closing_one(cast: Cast) -> None:
    trial, n_queries = stored_trial(cast), []
    for n in (1, 3):
        flags = some_flags(trial, *[cast.viewer] * n)
        with CaptureQueriesContext(connection) as captured:
            close_flags(flags, reason="Looked.", by=cast.reviewer, now=LATER)
        n_queries.append(len(captured))

    assert n_queries == [10, 10]


@pytest.mark.parametrize(
    ("role", "n_own"),
    [(Role.VIEWER, 1), (Role.ENGINEER, 1), (Role.OWNER, 0)],
)
def test_one_flag_that_a_person_may_not_close_keeps_all_open(
    role: Role, n_own: int, cast: Cast
) -> None:
    person = cast.members()[role]
    flags = some_flags(stored_trial(cast), *[person] * n_own, cast.second_reviewer)

    with pytest.raises(FlagDeniedError) as refused:
        close_flags(flags, reason="Looked.", by=person, now=LATER)

    assert str(refused.value) == closing_refusal(role, is_own=False, has_brought=False)
    assert not FlagClosing.objects.exists()


def test_a_flag_that_was_closed_meanwhile_keeps_all_open(cast: Cast) -> None:
    flags = some_flags(stored_trial(cast), *[cast.viewer] * 3)
    close_flag(flags[1], reason="Looked.", by=cast.second_reviewer, now=NOW)

    with pytest.raises(FlagError) as refused:
        close_flags(flags, reason="Me too.", by=cast.reviewer, now=LATER)

    assert str(refused.value) == (
        "second_reviewer closed one of these flags at 2026-12-01 10:00:00 UTC; it is closed once. "
        "Nothing was closed now."
    )
    assert FlagClosing.objects.get().flag == flags[1]


def test_flags_of_other_trials_and_systems_are_not_closed_along(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0), record("t1", 1)])
    ingest(cast.other_system, [record("t1", 0)])
    first, second, foreign = (
        flag_trial(trial, reason="Odd.", by=by, now=NOW)
        for trial, by in zip(
            Trial.objects.order_by("system", "label"),
            (cast.reviewer, cast.reviewer, cast.outsider),
            strict=True,
        )
    )

    for chosen in ([first, second], [second, foreign], []):
        with pytest.raises(FlagError) as refused:
            close_flags(chosen, reason="Looked.", by=cast.reviewer, now=LATER)
        assert str(refused.value) == NOT_OF_TRIAL

    assert not FlagClosing.objects.exists()


@pytest.mark.parametrize(("reason", "sentence"), BAD_REASONS)
def test_closing_together_needs_a_reason(reason: str, sentence: str, cast: Cast) -> None:
    flags = some_flags(stored_trial(cast), cast.viewer, cast.engineer)

    with pytest.raises(FlagError) as refused:
        close_flags(flags, reason=reason, by=cast.reviewer, now=LATER)

    assert str(refused.value) == sentence
    assert not FlagClosing.objects.exists()


def test_who_brought_evidence_of_the_release_closes_only_their_own_flags(cast: Cast) -> None:
    ingest(cast.system, [record("t1", 0)], release="1.0", by=cast.reviewer)
    ingest(cast.system, [record("t1", 0)], release="2.0", by=cast.engineer)
    built, other = Trial.objects.order_by("release__name")
    own, foreign = some_flags(built, cast.reviewer, cast.viewer)
    (elsewhere,) = some_flags(other, cast.viewer)

    for chosen in ([foreign], [own, foreign]):
        with pytest.raises(FlagDeniedError) as refused:
            close_flags(chosen, reason="Looked.", by=cast.reviewer, now=LATER)
        assert str(refused.value) == BROUGHT_EVIDENCE
    assert not FlagClosing.objects.exists()

    close_flag(own, reason="I misread it.", by=cast.reviewer, now=LATER)
    close_flag(elsewhere, reason="Looked.", by=cast.reviewer, now=LATER)
    close_flag(foreign, reason="Looked.", by=cast.second_reviewer, now=LATER)
    assert FlagClosing.objects.count() == 3


@pytest.mark.django_db(transaction=True)
def test_people_who_choose_the_same_flags_at_once_never_close_half_of_them(cast: Cast) -> None:
    flags = some_flags(stored_trial(cast), *[cast.viewer] * 4)
    choices = [flags[:3], flags[2::-1], flags[1:], flags[:0:-1]]
    barrier = threading.Barrier(len(choices))
    answers: list[tuple[int, ...]] = []
    refusals: list[str] = []

    def ask(chosen: list[Flag]) -> None:
        try:
            barrier.wait()
            closed = close_flags(chosen, reason="Looked.", by=cast.reviewer, now=LATER)
            answers.append(tuple(closing.flag_id for closing in closed))
        except FlagError as error:
            refusals.append(str(error).partition(" at ")[0])
        finally:
            connection.close()

    threads = [threading.Thread(target=ask, args=(chosen,)) for chosen in choices]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    (closed,) = answers
    assert refusals == ["reviewer closed one of these flags"] * 3
    assert closed in {tuple(flag.pk for flag in some) for some in (flags[:3], flags[1:])}
    assert set(FlagClosing.objects.values_list("flag", flat=True)) == set(closed)


# ---- what is stored ----


@pytest.mark.parametrize("table", ["reviews_flag", "reviews_flagclosing"])
@pytest.mark.parametrize(
    "statement", ["UPDATE {} SET reason = 'x'", "DELETE FROM {}", "TRUNCATE {} CASCADE"]
)
def test_flags_and_closings_are_append_only(statement: str, table: str, cast: Cast) -> None:
    flag = flag_trial(stored_trial(cast), reason="Odd.", by=cast.viewer, now=NOW)
    close_flag(flag, reason="Looked.", by=cast.reviewer, now=LATER)

    with (
        pytest.raises(DatabaseError, match="flag is append-only"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        # Checks that still wait would refuse TRUNCATE in their own words.
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        cursor.execute(statement.format(table))


def test_codes_of_flags_are_those_of_notices_that_flag_and_a_persons() -> None:
    from reviews.core.notices import NoticeCode

    assert {code.value for code in FlagCode} == {
        "person",
        *(code.value for code in NoticeCode if code.flags),
    }
