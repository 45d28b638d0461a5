"""`manage.py up` as a person meets it: real processes, real kills, real obstacles."""

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from evalsite.management.commands import up
from tests.support.processes import (
    PROJECT,
    Up,
    clean_environment,
    free_port,
    pid_of,
    processes_of,
    wait_for,
)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A data folder whose path has a space; the tests of this module start on it in turn."""
    folder = tmp_path_factory.mktemp("up") / "the data"
    yield folder
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture
def running(data: Path) -> Iterator[Up]:
    started = Up(data)
    started.wait_until_it_runs()
    yield started
    started.kill()


def health(port: int) -> dict[str, object]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/health", timeout=5) as answer:
            body = answer.read()
    except urllib.error.HTTPError as error:
        with error:
            body = error.read()
    except OSError:
        return {}
    found: dict[str, object] = json.loads(body)
    return found


def is_well(port: int) -> bool:
    return health(port).get("status") == "ok"


def test_up_first_start_runs_everything_and_ctrl_c_ends_it(data: Path) -> None:
    first = Up(data)
    first.wait_until_it_runs()
    wait_for(lambda: is_well(first.port), seconds=30, what="a worker")
    assert first.interrupt() == 0
    assert processes_of(data) == {}
    output = first.output()
    assert f"evalsite runs at http://127.0.0.1:{first.port}/" in output
    assert "one click signs you" in output
    assert output.rstrip().endswith("Stopped.")
    assert "Traceback" not in output
    assert (data / "secret_key").stat().st_mode & 0o777 == 0o600


def test_up_killed_leaves_nothing_and_the_next_start_recovers(data: Path) -> None:
    first = Up(data)
    first.wait_until_it_runs()
    assert len(processes_of(data)) > 6
    first.process.kill()
    first.process.wait()
    wait_for(lambda: not processes_of(data), seconds=15, what="nothing left")
    again = Up(data)
    again.wait_until_it_runs(seconds=15)
    again.kill()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("granian", "The web process ended (killed by SIGKILL); starting it again."),
        ("-n 1@%h", "The worker 1 process ended (killed by SIGKILL); starting it again."),
        ("evalsite beat", "The scheduler process ended (killed by SIGKILL); starting it again."),
        # Whichever process misses the server first starts it again.
        ("embedded.keeper", ""),
        ("bin/postgres -D", ""),
    ],
)
def test_up_starts_again_what_was_killed(running: Up, word: str, said: str) -> None:
    killed = pid_of(running.data, word)
    os.kill(killed, signal.SIGKILL)
    wait_for(
        lambda: any(
            word in line and pid != killed for pid, line in processes_of(running.data).items()
        ),
        seconds=20,
        what="another process",
    )
    wait_for(lambda: is_well(running.port), seconds=40, what="a well site")
    assert said in running.output()


def test_up_twice_at_once_says_so(running: Up) -> None:
    second = Up(running.data)
    assert second.end() == 1
    assert second.output() == (
        f"evalsite already runs on the data folder {running.data}: stop that one first, or set "
        "EVALSITE_DATA to another folder.\n"
    )


def test_up_port_in_use_says_so(data: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        second = Up(data, "--port", str(port))
        assert second.end() == 1
    assert second.output() == f"Port {port} on 127.0.0.1 is in use: choose another with --port.\n"


def test_up_strange_address_says_so(data: Path) -> None:
    second = Up(data, "--host", "192.0.2.1")
    assert second.end() == 1
    assert second.output() == (
        "192.0.2.1 is no address of this machine: choose another with --host.\n"
    )


@pytest.mark.parametrize("port", ["0", "-1", "65536", "99999"])
def test_up_number_that_is_no_port_says_so(port: str, data: Path) -> None:
    second = Up(data, "--port", port)
    assert second.end() == 1
    assert second.output() == f"{port} is no port: choose one from 1 to 65535 with --port.\n"


def test_up_file_in_place_of_the_data_folder_says_so(tmp_path: Path) -> None:
    in_the_way = tmp_path / "data"
    in_the_way.write_text("")
    second = Up(in_the_way)
    assert second.end() == 1
    assert "The data folder is not usable" in second.output()
    assert second.output().count("\n") == 1


@pytest.mark.parametrize(
    ("mounted", "options", "sentence"),
    [
        ("", "size=1m", "The disk is full: "),
        ("", "size=300m,ro", "cannot be used: Read-only file system."),
        ("pg", "size=20m", "The disk is full: PostgreSQL could not write its data folder."),
    ],
)
def test_up_on_a_disk_that_takes_nothing_says_so(
    tmp_path: Path, mounted: str, options: str, sentence: str
) -> None:
    data = tmp_path / "data"
    (data / mounted).mkdir(parents=True)
    script = 'mount -t tmpfs -o "$1" tmpfs "$2" && shift 2 && exec "$@"'
    inside = ["unshare", "--mount", "sh", "-c", script, "sh", options, str(data / mounted)]
    if shutil.which("unshare") is None or subprocess.run([*inside, "true"], check=False).returncode:
        pytest.skip("this user may not mount a small file system")
    done = subprocess.run(
        [*inside, sys.executable, "manage.py", "up", "--no-sample", "--port", str(free_port())],
        cwd=PROJECT,
        env=clean_environment(EVALSITE_DATA=str(data)),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 1
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


def test_up_broken_database_says_so(data: Path) -> None:
    [settings] = data.glob("pg/data-*/postgresql.conf")
    whole = settings.read_text()
    settings.write_text("no_such_setting = on\n")
    try:
        second = Up(data)
        assert second.end() == 1
    finally:
        settings.write_text(whole)
    assert "The embedded PostgreSQL does not start: configuration file" in second.output()
    assert "Traceback" not in second.output()


@pytest.mark.parametrize(
    ("host", "loopback"),
    [("127.0.0.1", True), ("localhost", True), ("::1", True), ("0.0.0.0", False), ("a.b", False)],
)
def test_is_loopback(host: str, loopback: bool) -> None:
    assert up._is_loopback(host) is loopback


@pytest.mark.parametrize(
    ("host", "address"),
    [
        ("127.0.0.1", "http://127.0.0.1:80/"),
        ("0.0.0.0", "http://127.0.0.1:80/"),
        ("::", "http://[::1]:80/"),
    ],
)
def test_address(host: str, address: str) -> None:
    assert up._address(host, 80) == address


def test_environment_of_programs_offers_the_demo_on_loopback_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("EVALSITE_ALLOWED_HOSTS", raising=False)
    assert up._environment_of_programs(demo=True)["EVALSITE_DEMO"] == "1"
    assert "EVALSITE_ALLOWED_HOSTS" not in up._environment_of_programs(demo=True)
    open_to_all = up._environment_of_programs(demo=False)
    assert open_to_all["EVALSITE_DEMO"] == "0"
    assert open_to_all["EVALSITE_ALLOWED_HOSTS"] == "*"
