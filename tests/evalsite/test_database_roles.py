from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from evalsite.audit.chain import verify_chain
from evalsite.database_roles import LOCKED_ROWS, append_only_tables
from reviews.models import Flag
from reviews.services.flags import close_flags, flag_trial
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from traces.models import Trial

ROLE = "evalsite_test_app"


def run(sql: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql)


@pytest.fixture
def role(db: None) -> str:
    """The role of web and worker, with its rights, until the test's transaction is undone."""
    run(f"CREATE ROLE {ROLE} NOSUPERUSER")
    call_command("database_roles", app=ROLE, apply=True, stdout=io.StringIO())
    return ROLE


@contextmanager
def as_app() -> Iterator[None]:
    run(f"SET ROLE {ROLE}")
    try:
        yield
    finally:
        run("RESET ROLE")


def refusal(sql: str) -> str:
    """What the database says to the role."""
    with as_app(), pytest.raises(DatabaseError) as raised, transaction.atomic():
        run(sql)
    return str(raised.value).splitlines()[0]


@pytest.mark.parametrize(
    ("sql", "sentence"),
    [
        ("UPDATE traces_trial SET label = 'x'", "permission denied for table traces_trial"),
        ("UPDATE reviews_signoff SET reason = 'x'", "permission denied for table reviews_signoff"),
        ("DELETE FROM evalsite_auditevent", "permission denied for table evalsite_auditevent"),
        ("TRUNCATE evalsite_auditevent", "permission denied for table evalsite_auditevent"),
        ("TRUNCATE traces_task CASCADE", "permission denied for table traces_task"),
        (
            "ALTER TABLE traces_trial DISABLE TRIGGER ALL",
            "must be owner of table traces_trial",
        ),
        (
            "SET session_replication_role = replica",
            'permission denied to set parameter "session_replication_role"',
        ),
        ("CREATE TABLE public.mine ()", "permission denied for schema public"),
    ],
)
def test_the_role_is_refused_what_changes_evidence(role: str, sql: str, sentence: str) -> None:
    assert refusal(sql) == sentence


def test_the_role_changes_no_row_of_any_table_that_only_grows(role: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name, privilege_type FROM information_schema.role_table_grants"
            " WHERE grantee = %s AND table_name = ANY(%s)",
            [role, list(append_only_tables())],
        )
        found = set(cursor.fetchall())
        cursor.execute(
            "SELECT table_name, column_name FROM information_schema.role_column_grants"
            " WHERE grantee = %s AND privilege_type = 'UPDATE' AND table_name = ANY(%s)",
            [role, list(append_only_tables())],
        )
        columns = dict(cursor.fetchall())
    assert found == {
        (table, right) for table in append_only_tables() for right in ("SELECT", "INSERT")
    }
    assert columns == LOCKED_ROWS


def test_the_key_that_locks_need_is_kept_by_the_trigger(role: str, cast: Cast) -> None:
    ingest(cast.system, [record()])
    assert "append-only" in refusal("UPDATE traces_trial SET id = id + 1")


def test_evidence_arrives_and_acts_are_recorded_under_the_role(role: str, cast: Cast) -> None:
    with as_app():
        ingest(cast.system, [record()])
        trial = Trial.objects.get()
        now = timezone.now()
        flag = flag_trial(trial, reason="Look again.", by=cast.viewer, now=now)
        close_flags([flag], reason="Looked.", by=cast.reviewer, now=now)
        assert verify_chain(cast.system) == ()
    assert Flag.objects.filter(pk=flag.pk).exists()


@pytest.mark.django_db
def test_the_command_prints_what_it_would_do() -> None:
    run(f"CREATE ROLE {ROLE}")
    out = io.StringIO()
    call_command("database_roles", app=ROLE, stdout=out)
    assert f'GRANT USAGE ON SCHEMA "public" TO "{ROLE}";'.replace('"public"', "public") in (
        out.getvalue().splitlines()
    )
    assert "TRUNCATE" not in out.getvalue()


@pytest.mark.django_db
def test_the_command_refuses_a_role_that_no_right_binds() -> None:
    run(f"CREATE ROLE {ROLE} SUPERUSER")
    with pytest.raises(CommandError, match="is a superuser or replicates"):
        call_command("database_roles", app=ROLE)
    with pytest.raises(CommandError, match="There is no role 'nobody_here'"):
        call_command("database_roles", app="nobody_here")


@pytest.mark.django_db
def test_the_command_refuses_a_role_that_owns_a_table() -> None:
    run(f"CREATE ROLE {ROLE}")
    run(f"ALTER TABLE traces_task OWNER TO {ROLE}")
    with pytest.raises(CommandError, match="owns traces_task"):
        call_command("database_roles", app=ROLE)
