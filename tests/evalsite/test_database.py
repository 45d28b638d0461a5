"""A database that is away: what the commands say, and that they say it soon."""

import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from django.db import connection

from evalsite.database import direct_connection
from tests.support.processes import PROJECT, clean_environment, free_port

KEY = "0123456789abcdefghijklmnopqrstuvwxyz-0123456789-0123456789"


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that takes connections and never says a word."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        yield listening.getsockname()[1]


def ended(
    data: Path, program: list[str], *, url: str = "", **more: str
) -> subprocess.CompletedProcess[str]:
    settings = {"DATABASE_URL": url, "EVALSITE_DATA": str(data), "EVALSITE_SECRET_KEY": KEY}
    return subprocess.run(
        [sys.executable, *program],
        cwd=PROJECT,
        env=clean_environment(**settings, **more),
        capture_output=True,
        text=True,
        timeout=25,
        check=False,
    )


@pytest.mark.parametrize("command", ["migrate", "up"])
@pytest.mark.parametrize("silent", [False, True])
def test_command_names_a_database_that_does_not_answer(
    tmp_path: Path, silent_port: int, command: str, *, silent: bool
) -> None:
    port = silent_port if silent else free_port()
    words = ["up", "--port", str(free_port())] if command == "up" else [command]
    done = ended(
        tmp_path,
        ["manage.py", *words],
        url=f"postgresql://u:p@127.0.0.1:{port}/n",
        CELERY_BROKER_URL="redis://broker.invalid/0",
        EVALSITE_ALLOWED_HOSTS="x",
    )
    assert done.returncode == 1
    [sentence] = done.stderr.splitlines()
    assert "The database cannot be used: " in sentence
    assert ("timeout" if silent else "Connection refused") in sentence


def test_celery_names_what_is_missing_without_a_traceback(tmp_path: Path) -> None:
    celery = str(Path(sys.executable).with_name("celery"))
    for words in (["worker"], ["beat", "--pidfile="]):
        done = ended(tmp_path, [celery, "--app", "evalsite", *words], url="postgresql://h/n")
        assert done.returncode == 1
        assert done.stderr.splitlines() == [
            "CELERY_BROKER_URL is missing: set it to redis://… or amqp://….",
            "EVALSITE_ALLOWED_HOSTS is missing: set it to the site's host names.",
        ]


@pytest.mark.django_db
def test_direct_connection_is_to_the_database_that_django_uses() -> None:
    with direct_connection() as direct:
        row = direct.execute("select current_database()").fetchone()
        assert direct.autocommit
    assert row == (connection.settings_dict["NAME"],)
