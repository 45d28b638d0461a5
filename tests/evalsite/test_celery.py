"""A real worker and a real broker: the embedded one, or that of CELERY_BROKER_URL."""

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from evalsite.models import WorkerSign
from tests.support.processes import PROJECT, python, wait_for
from tests.support.production import production_environment

pytestmark = pytest.mark.django_db(transaction=True)

APP = "tests.support.jobs"


@contextmanager
def worker(env: dict[str, str], log: Path) -> "Iterator[subprocess.Popen[bytes]]":
    with log.open("ab") as out:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "celery", "--quiet", "--app", APP, "worker"),
                *("--concurrency", "1", "--without-gossip", "--without-mingle"),
                *("--loglevel", "warning"),
            ],
            cwd=PROJECT,
            env=env,
            stdout=out,
            stderr=out,
            start_new_session=True,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def send(env: dict[str, str], task: str, *arguments: object) -> None:
    python("-m", "celery", "--app", APP, "call", task, "--args", json.dumps(arguments), env=env)


def test_task_round_trip_and_ping(tmp_path: Path) -> None:
    env = production_environment(EVALSITE_TEST_QUEUE=f"q{time.time_ns()}")
    with worker(env, tmp_path / "log"):
        wait_for(WorkerSign.objects.exists, seconds=30, what="the worker's first sign")
        WorkerSign.objects.all().delete()
        send(env, "evalsite.tasks.heartbeat")
        wait_for(WorkerSign.objects.exists, seconds=30, what="the task's row")
        answer = python(
            *("-m", "celery", "--app", APP, "inspect", "ping", "--timeout", "3", "--json"),
            env=env,
        )
    assert list(json.loads(answer).values()) == [{"ok": "pong"}]


def test_task_of_a_killed_worker_is_handed_out_again(tmp_path: Path) -> None:
    env = production_environment(
        EVALSITE_TEST_QUEUE=f"q{time.time_ns()}", EVALSITE_VISIBILITY_SECONDS="3"
    )
    notes = tmp_path / "notes"
    with worker(env, tmp_path / "log") as first:
        send(env, "tests.first_time_forever", str(notes))
        wait_for(notes.exists, seconds=30, what="the first try")
        first.kill()
    with worker(env, tmp_path / "log"):
        wait_for(lambda: "done" in notes.read_text(), seconds=60, what="the second try")
    assert notes.read_text() == "begun\nbegun\ndone\n"
