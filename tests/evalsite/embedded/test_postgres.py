"""The life of an embedded server, with real servers and real kills."""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from evalsite.embedded import postgres
from evalsite.embedded.postgres import EmbeddedPostgres, EmbeddedPostgresError
from tests.support.processes import PROJECT, processes_of, wait_for

_USE = """
import sys, time
from pathlib import Path
from evalsite.embedded.postgres import EmbeddedPostgres
EmbeddedPostgres(Path(sys.argv[1]), unsafe=True).start()
print("started", flush=True)
time.sleep(float(sys.argv[2]))
"""


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a space and a quote in its path."""
    with tempfile.TemporaryDirectory(prefix="eval's site ") as name:
        yield Path(name)
        wait_for(lambda: not processes_of(Path(name)), seconds=20, what="no server left")


@pytest.fixture
def server(folder: Path) -> Iterator[EmbeddedPostgres]:
    cluster = EmbeddedPostgres(folder / "pg")
    cluster.start()
    yield cluster
    cluster.release()
    assert cluster.wait_until_stopped(seconds=20)


def ask(cluster: EmbeddedPostgres, sql: str) -> object:
    with psycopg.connect(
        host=str(cluster.socket_folder), user=postgres.USER, dbname=postgres.DATABASE
    ) as connection:
        cursor = connection.execute(sql.encode())
        row = cursor.fetchone() if cursor.description else None
        return row[0] if row else None


def postmaster(cluster: EmbeddedPostgres) -> int:
    [path] = cluster.root.glob("data-*/postmaster.pid")
    return int(path.read_text().splitlines()[0])


def keeper(cluster: EmbeddedPostgres) -> int:
    [pid] = [pid for pid, line in processes_of(cluster.root.parent).items() if "keeper" in line]
    return pid


def user_of(cluster: EmbeddedPostgres, seconds: float) -> "subprocess.Popen[str]":
    process = subprocess.Popen(
        [sys.executable, "-c", _USE, str(cluster.root), str(seconds)],
        cwd=PROJECT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "started\n"
    process.stdout.close()
    return process


def test_start_makes_a_database_that_sorts_the_same_everywhere(server: EmbeddedPostgres) -> None:
    assert ask(server, "select current_database()") == "evalsite"
    assert ask(server, "select string_agg(x, '' order by x) from unnest('{a,B,ä}'::text[]) x") == (
        "Baä"
    )


def test_start_by_many_at_once_gives_one_server(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    users = [
        subprocess.Popen(
            [sys.executable, "-c", _USE, str(cluster.root), "1"],
            cwd=PROJECT,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    assert [user.communicate(timeout=60)[0] for user in users] == ["started\n"] * 4
    assert cluster.wait_until_stopped(seconds=20)


def test_server_stays_while_one_user_is_left_and_ends_with_the_last(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    first, second = user_of(cluster, 60), user_of(cluster, 60)
    first.terminate()
    first.wait()
    assert not cluster.wait_until_stopped(seconds=20)
    time.sleep(0.6)
    assert cluster.is_ready()
    second.kill()
    second.wait()
    assert cluster.wait_until_stopped(seconds=20)


def test_server_killed_is_started_again_with_its_rows(server: EmbeddedPostgres) -> None:
    ask(server, "create table kept (n int)")
    ask(server, "insert into kept values (7)")
    killed = postmaster(server)
    os.kill(killed, signal.SIGKILL)
    wait_for(lambda: server.is_ready() and postmaster(server) != killed, seconds=30, what="server")
    assert ask(server, "select n from kept") == 7


def test_keeper_killed_takes_the_server_along_and_start_recovers(server: EmbeddedPostgres) -> None:
    old = postmaster(server)
    os.kill(keeper(server), signal.SIGKILL)
    wait_for(lambda: not server.is_ready(), seconds=20, what="the server's end")
    assert server.revive()
    assert not server.revive()
    assert postmaster(server) != old
    assert ask(server, "select 1") == 1


def test_keeper_terminated_stops_the_server(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    cluster.start()
    os.kill(keeper(cluster), signal.SIGTERM)
    wait_for(lambda: not cluster.is_ready(), seconds=20, what="the server's end")
    cluster.release()
    assert cluster.wait_until_stopped(seconds=20)


@pytest.mark.parametrize("kind", ["zombie", "another program"])
def test_start_takes_no_notice_of_a_stale_lock_file(folder: Path, kind: str) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    cluster.start()
    cluster.release()
    assert cluster.wait_until_stopped(seconds=20)
    other = subprocess.Popen(["sleep", "60" if kind == "another program" else "0"])
    if kind == "zombie":
        stat = Path(f"/proc/{other.pid}/stat")
        wait_for(lambda: ") Z " in stat.read_text(), seconds=5, what="a zombie")
    [data] = cluster.root.glob("data-*")
    (data / "postmaster.pid").write_text(f"{other.pid}\n{data}\n0\n5432\n\n\n\nready\n")
    try:
        cluster.start()
        assert ask(cluster, "select 1") == 1
    finally:
        cluster.release()
        other.kill()
        other.wait()


def test_start_throws_away_an_interrupted_first_start(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    half = cluster.root / "data-18.new"
    half.mkdir(parents=True)
    (half / "PG_VERSION").write_text("18\n")
    cluster.start()
    assert ask(cluster, "select 1") == 1
    cluster.release()


def test_socket_of_a_long_path_lies_in_tmp(folder: Path) -> None:
    root = folder / ("x" * 90) / "pg"
    cluster = EmbeddedPostgres(root, unsafe=True)
    assert cluster.socket_folder.parent == Path("/tmp")
    cluster.start()
    assert ask(cluster, "select 1") == 1
    cluster.release()


def test_start_refuses_a_socket_folder_of_somebody_else(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / ("y" * 90) / "pg", unsafe=True)
    target = folder / "elsewhere"
    target.mkdir()
    cluster.socket_folder.symlink_to(target)
    try:
        with pytest.raises(EmbeddedPostgresError, match="belongs to somebody else"):
            cluster.start()
    finally:
        cluster.release()
        cluster.socket_folder.unlink()


def test_start_names_a_broken_data_folder(folder: Path) -> None:
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    cluster.start()
    cluster.release()
    assert cluster.wait_until_stopped(seconds=20)
    [data] = cluster.root.glob("data-*")
    (data / "postgresql.conf").write_text("no_such_setting = on\n")
    with pytest.raises(EmbeddedPostgresError, match="does not start.*configuration file"):
        cluster.start()
    cluster.release()


def test_start_names_a_file_in_the_way(folder: Path) -> None:
    (folder / "pg").write_text("a file")
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    with pytest.raises(EmbeddedPostgresError, match="The data folder is not usable"):
        cluster.start()


def test_start_names_missing_programs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PG_BIN", str(folder / "nothing"))
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    with pytest.raises(EmbeddedPostgresError, match="No PostgreSQL programs were found"):
        cluster.start()
    cluster.release()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives up its rights")
def test_start_as_root_without_user_namespaces(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALSITE_NO_USER_NAMESPACE", "1")
    folder.chmod(0o700)
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    cluster.start()
    copied = Path("/var/tmp") / ("evalsite-" + postgres._short_digest(cluster.root))
    try:
        assert ask(cluster, "select 1") == 1
        assert folder.stat().st_mode & 0o777 == 0o700
    finally:
        cluster.release()
        assert cluster.wait_until_stopped(seconds=20)
        shutil.rmtree(copied)


@pytest.mark.skipif(
    not Path("/usr/lib/postgresql").is_dir(), reason="the system has no PostgreSQL of its own"
)
def test_start_with_the_programs_of_the_system(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest = max(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    monkeypatch.setenv("PG_BIN", str(newest))
    cluster = EmbeddedPostgres(folder / "pg", unsafe=True)
    cluster.start()
    assert ask(cluster, "select 1") == 1
    cluster.release()


@pytest.mark.parametrize(
    ("log", "sentence"),
    [
        (
            "LOG:  x\nPANIC:  could not write: No space left on device\n",
            "The disk is full: PostgreSQL could not write its data folder.",
        ),
        (
            "LOG:  a\nFATAL:  lock file is empty\nHINT:  b\n",
            "The embedded PostgreSQL does not start: lock file is empty.",
        ),
        ("", "The embedded PostgreSQL does not start: no message."),
    ],
)
def test_failure_of_log(log: str, sentence: str) -> None:
    assert postgres.failure_of(log) == sentence
