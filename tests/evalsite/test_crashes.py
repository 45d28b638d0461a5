"""What was acknowledged survives kill -9 of any process, once and only once."""

import contextlib
import json
import os
import random
import signal
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.evidence import jsonl, record
from tests.support.processes import Up, clean_environment, processes_of, python, wait_for

UPLOADS = 20
TRIALS_EACH = 20
_WORDS = {"web": "granian", "worker": "celery", "database": "postgres -D"}
_RETRIED = {429, 502, 503, 504}


class Client:
    """A client that keeps the rules of the door: it retries what it may, under one key."""

    def __init__(self, port: int, key: str) -> None:
        self.base = f"http://127.0.0.1:{port}/api/v1"
        self.key = key

    def call(self, path: str, body: bytes | None = None, **headers: str) -> dict[str, object]:
        end = time.monotonic() + 120
        while True:
            request = urllib.request.Request(  # noqa: S310 - the test's own server
                self.base + path,
                data=body,
                headers={"Authorization": f"Bearer {self.key}", **headers},
            )
            try:
                with urllib.request.urlopen(request, timeout=20) as answer:  # noqa: S310
                    found: dict[str, object] = json.loads(answer.read())
                    return found
            except urllib.error.HTTPError as error:
                with error:
                    if error.code not in _RETRIED:
                        pytest.fail(f"{error.code}: {error.read()[:500]!r}")
            except (OSError, ValueError):
                pass  # the answer was lost: whether it was stored is not known, so ask again
            assert time.monotonic() < end, "the site did not come back"
            time.sleep(0.3)

    def upload(self, number: int) -> str:
        body = jsonl(record(f"task {number}", trial) for trial in range(TRIALS_EACH))
        answer = self.call(
            "/uploads?release=1.0",
            body,
            **{"Content-Type": "application/x-ndjson", "Idempotency-Key": str(uuid.uuid4())},
        )
        return str(answer["id"])


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Up]:
    data = tmp_path / "data"
    started = Up(data)
    started.wait_until_it_runs()
    yield started
    started.kill()


def api_key(data: Path) -> str:
    """A key of a new system, made as an operator makes it."""
    env = clean_environment(EVALSITE_DATA=str(data))
    first = data.with_name("first.jsonl")
    first.write_bytes(jsonl([record("first", 0)]))
    asked = ("--system", "crash-test", "--release", "0.9")
    python("manage.py", "ingest", str(first), *asked, env=env)
    member = ("member", "crash-test", "tess", "engineer", "--create", "--password-stdin")
    python("manage.py", *member, env=env, stdin="a long enough passphrase\n")
    return python("manage.py", "apikey", "create", "crash-test", "tess", env=env).strip()


def kill_at_random(data: Path, stop: threading.Event, chance: random.Random) -> list[str]:
    """Kill one process of each part in turn, in an order and at moments that chance decides."""
    killed: list[str] = []
    parts: list[str] = []
    while not stop.wait(chance.uniform(0.5, 2.0)):
        parts = parts or chance.sample(sorted(_WORDS), len(_WORDS))
        part = parts.pop()
        victims = [pid for pid, line in processes_of(data).items() if _WORDS[part] in line]
        if victims:
            with contextlib.suppress(ProcessLookupError):
                os.kill(chance.choice(victims), signal.SIGKILL)
            killed.append(part)
    return killed


def test_kills_during_uploads_lose_double_and_block_nothing(site: Up) -> None:
    client = Client(site.port, api_key(site.data))
    stop, killed = threading.Event(), list[str]()
    chance = random.Random(20)  # noqa: S311 - which process dies when
    killer = threading.Thread(target=lambda: killed.extend(kill_at_random(site.data, stop, chance)))
    killer.start()
    try:
        acknowledged = []
        for number in range(UPLOADS):
            acknowledged.append(client.upload(number))
            time.sleep(chance.uniform(0, 1))
    finally:
        stop.set()
        killer.join()

    def ended() -> bool:
        states = [client.call(f"/uploads/{one}")["state"] for one in acknowledged]
        return set(states) == {"done"}

    wait_for(ended, seconds=180, what="every acknowledged upload read")
    assert set(killed) == set(_WORDS), killed
    assert len(set(acknowledged)) == UPLOADS
    figures = client.call("/figures?release=1.0")
    assert (figures["n_tasks"], figures["n_trials"]) == (UPLOADS, UPLOADS * TRIALS_EACH)
    ledgers = [client.call(f"/uploads/{one}")["ledger"] for one in acknowledged]
    for ledger in ledgers:
        assert isinstance(ledger, dict)
        assert (ledger["received"], ledger["stored"]) == (TRIALS_EACH, TRIALS_EACH)
