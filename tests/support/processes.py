"""Real processes of evalsite, started the way a person starts them, and what is left of them."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[2]
_OF_THE_TESTS = ("PYTEST", "EVALSITE_", "DJANGO_", "DATABASE_URL", "CELERY_BROKER_URL")


def clean_environment(**more: str) -> dict[str, str]:
    """The environment without what belongs to the test run itself."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(_OF_THE_TESTS)}
    return {**kept, **more}


def python(
    *arguments: str, env: dict[str, str], seconds: float = 240, stdin: str | None = None
) -> str:
    """Run Python in the project's folder; its whole output, which it must end well for."""
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=PROJECT,
        env=env,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=seconds,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(true: Callable[[], object], *, seconds: float, what: str) -> None:
    """Wait until something is so, or fail saying what was waited for."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, f"waited {seconds} s in vain: {what}"
        time.sleep(0.05)


def processes_of(data: Path) -> dict[int, str]:
    """Every living process that works on a data folder, with its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            environ = (entry / "environ").read_bytes()
            folder = str((entry / "cwd").readlink())
            state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
        except OSError:
            continue
        mine = (
            f"EVALSITE_DATA={data}\0".encode() in environ
            or folder.startswith(str(data))
            or str(data) in command
        )
        if mine and state != "Z":
            found[int(entry.name)] = command
    return found


def pid_of(data: Path, word: str) -> int:
    """The first-born process of a data folder whose command line has a word."""
    return min((pid for pid, command in processes_of(data).items() if word in command), key=_born)


def _born(pid: int) -> tuple[int, int]:
    """When a process began, in ticks since the machine did. Its number tells less: they wrap."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return (sys.maxsize, pid)  # it has ended meanwhile
    return (int(stat.rsplit(")", 1)[1].split()[19]), pid)


class Up:
    """`manage.py up` on a data folder of its own."""

    def __init__(self, data: Path, *arguments: str, **environment: str) -> None:
        self.data = data
        self.port = free_port()
        self.log = data.with_name(f"{data.name}-{self.port}.log")
        command = [sys.executable, "manage.py", "up", "--no-sample", "--port", str(self.port)]
        with self.log.open("wb") as out:
            self.process = subprocess.Popen(
                [*command, *arguments],
                cwd=PROJECT,
                env=clean_environment(EVALSITE_DATA=str(data), **environment),
                stdout=out,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def output(self) -> str:
        return self.log.read_text()

    def wait_until_it_runs(self, *, seconds: float = 240) -> None:
        wait_for(
            lambda: "evalsite runs at" in self.output() or self.process.poll() is not None,
            seconds=seconds,
            what="the address",
        )
        assert self.process.poll() is None, self.output()

    def interrupt(self) -> int:
        self.process.send_signal(signal.SIGINT)
        return self.process.wait(120)

    def end(self) -> int:
        """Wait for a start that fails by itself; its exit code."""
        return self.process.wait(240)

    def kill(self) -> None:
        """End everything at once; used where the end itself is not what is tested."""
        self.process.kill()
        self.process.wait()
        wait_for(lambda: not processes_of(self.data), seconds=60, what="all processes gone")
