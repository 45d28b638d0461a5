"""Sets up everything and runs it: database, tables, sample data, web, worker and scheduler."""

import contextlib
import errno
import hashlib
import ipaddress
import logging
import os
import shutil
import socket
import sys
import time
import urllib.error
import urllib.request
from argparse import ArgumentParser
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.contrib.staticfiles.finders import get_finders
from django.core.management import BaseCommand, call_command
from django.db import OperationalError, connection, connections

from evalsite.database import DatabaseUnreachableError, direct_connection
from evalsite.demo_password import stored_password
from evalsite.embedded.locks import try_lock
from evalsite.embedded.postgres import EmbeddedPostgresError, sentence_of
from evalsite.schema import schema_problem
from evalsite.supervisor import Program, StopAskedError, StopSignal, Supervisor

_LEAST_FREE_BYTES: Final = 128 * 1024 * 1024
_ANSWER_SECONDS: Final = 60.0
_STOP_SECONDS: Final = 30.0


class CannotStartError(Exception):
    """Something stands in the way; the text is one sentence for people."""


class Command(BaseCommand):
    help = "Set up and run evalsite: database, sample data, web, worker and scheduler."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
        parser.add_argument("--port", type=int, default=8000, help="port to listen on")
        parser.add_argument("--no-sample", action="store_true", help="load no sample data")

    def handle(self, *args: Any, host: str, port: int, no_sample: bool, **options: Any) -> None:
        stop = StopSignal()
        stop.install()
        try:
            sys.exit(self._run(host, port, sample=not no_sample, stop=stop))
        except StopAskedError:
            self._release_database()
            self._say("Stopped before everything was set up; the next start goes on from here.")
            sys.exit(130)
        except (CannotStartError, DatabaseUnreachableError, EmbeddedPostgresError) as error:
            self._release_database()
            sys.exit(str(error))

    def _run(self, host: str, port: int, *, sample: bool, stop: StopSignal) -> int:
        data = settings.EVALSITE_DATA
        _check_data_folder(data)
        lock = try_lock(data / "up.lock")
        if lock is None:
            raise CannotStartError(
                f"evalsite already runs on the data folder {data}: stop that one first, or set "
                "EVALSITE_DATA to another folder."
            )
        _check_port(host, port)
        with _plain_sentences(data), _only_warnings_logged():
            self._set_up(sample=sample)
        # The supervisor itself needs the database no more.
        connections.close_all()
        connection.close_pool()  # type: ignore[attr-defined]
        stop.raises = False
        return self._supervise(host, port, stop)

    # --- set-up

    def _set_up(self, *, sample: bool) -> None:
        self._say(f"evalsite is starting; its data is in {settings.EVALSITE_DATA}")
        with self._step("database"):
            direct_connection().close()
        with self._step("tables"):
            call_command("migrate", interactive=False, verbosity=0)
            if problem := schema_problem():
                raise CannotStartError(problem)
        with self._step("static files"):
            _collect_static_files()
        if sample:
            with self._step("sample data"):
                self._load_sample()

    def _load_sample(self) -> None:
        if find_spec("evalsite.sample_loader") is None:
            return
        from evalsite.sample_loader import load_sample

        load_sample(progress=lambda text: self._say(f"                {text}"))

    @contextlib.contextmanager
    def _step(self, name: str) -> Iterator[None]:
        self._say(f"  {name:<13} …")
        begun = time.monotonic()
        yield
        self._say(f"  {name:<13} ready ({time.monotonic() - begun:.1f} s)")

    # --- running

    def _supervise(self, host: str, port: int, stop: StopSignal) -> int:
        demo = _is_loopback(host) and not settings.PRODUCTION
        supervisor = Supervisor(
            environment=_environment_of_programs(demo=demo),
            folder=settings.BASE_DIR,
            say=self._say,
        )
        try:
            supervisor.start(_programs(host, port))
            if not _web_answers(host, port, supervisor, stop) and not stop.asked:
                self._say("The web process does not answer; see the lines above.")
            elif not stop.asked:
                self._say_where(host, port, demo=demo)
            stayed_up = supervisor.watch(stop, each_time=self._revive_database)
        finally:
            if stop.asked:
                self._say("Stopping …")
            supervisor.stop(stop)
            self._release_database()
        self._say("Stopped.")
        return 0 if stayed_up else 1

    def _revive_database(self) -> None:
        if settings.EMBEDDED_POSTGRES is None:
            return
        try:
            if settings.EMBEDDED_POSTGRES.revive():
                self._say("PostgreSQL had ended; it was started again.")
        except EmbeddedPostgresError as error:
            self._say(str(error))
            time.sleep(2)

    def _release_database(self) -> None:
        with contextlib.suppress(Exception):
            connections.close_all()
            connection.close_pool()  # type: ignore[attr-defined]
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.release()
            settings.EMBEDDED_POSTGRES.wait_until_stopped(seconds=_STOP_SECONDS)

    def _say_where(self, host: str, port: int, *, demo: bool) -> None:
        self._say(f"\nevalsite runs at {_address(host, port)}")
        if demo:
            self._say("Open it and choose engineer, reviewer, owner or viewer: one click signs you")
            self._say("in, without a password, as long as evalsite listens on this machine only.")
            if password := stored_password(settings.EVALSITE_DATA):
                self._say(f"Signing a release asks for the owner's password: {password}")
        else:
            self._say("Sign in with your account; `python3 manage.py member --help` makes one.")
        self._say("Ctrl-C stops everything.\n")

    def _say(self, text: str) -> None:
        # A closed terminal must not keep the programs from being stopped.
        with contextlib.suppress(OSError):
            self.stdout.write(text)
            self.stdout.flush()


# --- what stands in the way


def _check_data_folder(data: Path) -> None:
    try:
        data.mkdir(parents=True, exist_ok=True, mode=0o700)
        probe = data / f".probe-{os.getpid()}"
        probe.write_bytes(b"evalsite")
        probe.unlink()
        free = shutil.disk_usage(data).free
    except OSError as error:
        raise CannotStartError(_sentence_of(error, data)) from None
    if free < _LEAST_FREE_BYTES:
        raise CannotStartError(
            f"The disk is full: {data} has {free // 2**20} MiB left and "
            f"{_LEAST_FREE_BYTES // 2**20} MiB are needed."
        )


def _check_port(host: str, port: int) -> None:
    if not 1 <= port <= 65535:  # the system would quietly take the number modulo 65536
        raise CannotStartError(f"{port} is no port: choose one from 1 to 65535 with --port.")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except (OSError, OverflowError) as error:
        raise CannotStartError(_port_sentence(error, host, port)) from None


def _port_sentence(error: Exception, host: str, port: int) -> str:
    match getattr(error, "errno", None):
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is in use: choose another with --port."
        case errno.EACCES:
            return f"Port {port} may not be used by this user: choose one above 1023 with --port."
        case errno.EADDRNOTAVAIL | socket.EAI_NONAME:
            return f"{host} is no address of this machine: choose another with --host."
        case _:
            return f"It is not possible to listen on {host} port {port}: {error}."


@contextlib.contextmanager
def _only_warnings_logged() -> Iterator[None]:
    """Keep log lines from breaking up the lines of progress."""
    logging.disable(logging.INFO)
    try:
        yield
    finally:
        logging.disable(logging.NOTSET)


@contextlib.contextmanager
def _plain_sentences(data: Path) -> Iterator[None]:
    """Turn what can go wrong with disk and database into one sentence each."""
    try:
        yield
    except OSError as error:
        raise CannotStartError(_sentence_of(error, data)) from None
    except OperationalError as error:
        text = str(error).strip()
        if "No space left on device" in text:
            raise CannotStartError(_full(data)) from None
        first = (text.splitlines() or ["no message"])[0]
        raise CannotStartError(f"The database cannot be used: {first}") from None


def _sentence_of(error: OSError, data: Path) -> str:
    return _full(data) if error.errno == errno.ENOSPC else sentence_of(error, data)


def _full(data: Path) -> str:
    return f"The disk is full: evalsite cannot write to {data}."


# --- static files


def _collect_static_files() -> None:
    """Collect static files if any of their sources changed since the last time."""
    stamp = settings.STATIC_ROOT / ".collected"
    wanted = _fingerprint_of_static_files()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    call_command("collectstatic", interactive=False, verbosity=0, clear=False)
    stamp.write_text(wanted)


def _fingerprint_of_static_files() -> str:
    digest = hashlib.sha256(settings.STORAGES["staticfiles"]["BACKEND"].encode())
    for finder in get_finders():
        for name, storage in finder.list([]):
            state = Path(storage.path(name)).stat()
            digest.update(f"{name}\0{state.st_size}\0{state.st_mtime_ns}\n".encode())
    return digest.hexdigest()


# --- programs


def _environment_of_programs(*, demo: bool) -> dict[str, str]:
    environment = {**os.environ, "PYTHONUNBUFFERED": "1", "EVALSITE_SUPERVISED": "1"}
    environment["EVALSITE_DEMO"] = "1" if demo else "0"
    if not demo and not settings.ENVIRONMENT.allowed_hosts:
        environment["EVALSITE_ALLOWED_HOSTS"] = "*"
    return environment


def _programs(host: str, port: int) -> tuple[Program, ...]:
    web: tuple[str, ...] = ("--interface", "wsgi", "--host", host, "--port", str(port))
    web += ("--workers", "1", "--blocking-threads", "8", "--log-level", "error")
    web += ("evalsite.wsgi:application",)
    app = ("--quiet", "--app", "evalsite")
    calm = ("--without-gossip", "--without-mingle", "--loglevel", "warning")
    # Workers without a pool: a pool whose process was killed can wait for its lock for ever.
    workers = (
        Program(f"worker {n}", "celery", (*app, "worker", "--pool", "solo", "-n", f"{n}@%h", *calm))
        for n in range(1, settings.ENVIRONMENT.workers + 1)
    )
    scheduler = Program(
        "scheduler", "celery", (*app, "beat", "--pidfile=", "--loglevel", "warning")
    )
    return (Program("web", "granian", web), *workers, scheduler)


def _web_answers(host: str, port: int, supervisor: Supervisor, stop: StopSignal) -> bool:
    """Wait until the web process answers; a program that ended is left to the supervisor."""
    url = _address(host, port) + "health"
    end = time.monotonic() + _ANSWER_SECONDS
    while time.monotonic() < end and not stop.asked and supervisor.all_run():
        if _answers(url):
            return True
        time.sleep(0.1)
    return False


def _answers(url: str) -> bool:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        opener.open(url, timeout=5).close()
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False
    return True


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _address(host: str, port: int) -> str:
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - for show only
    return f"http://[{shown}]:{port}/" if ":" in shown else f"http://{shown}:{port}/"
