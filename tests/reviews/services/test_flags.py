from __future__ import annotations

import logging
from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction

from reviews.models import Flag, FlagClosing, FlagCode
from reviews.permissions.flags import closing_refusal
from reviews.services.flags import (
    LONGEST_REASON,
    FlagDeniedError,
    FlagError,
    close_flag,
    flag_trial,
)
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Role, Trial, TrialDisposition

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
        assert str(refused.value) == closing_refusal(role, is_own=False) != ""
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
