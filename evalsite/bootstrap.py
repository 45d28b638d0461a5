"""Makes the project's own environment and goes on inside it. Standard library only.

Where Django can be imported, this does nothing: whoever has an environment of their own is left
alone. Otherwise `.venv` is made, the packages of `requirements.lock` are installed with their
hashes checked, and the same command is run again inside.
"""

import contextlib
import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

PROJECT = Path(__file__).resolve().parents[1]


def run_inside_environment(argv: Sequence[str]) -> None:
    """Return at once if Django can be imported; else run `argv` again inside `.venv`.

    Raises:
        SystemExit: with one sentence, if the environment cannot be made.
    """
    if importlib.util.find_spec("django") is not None:
        return
    environment = Environment(PROJECT)
    if environment.is_current():
        environment.run_again(argv)
    with _one_at_a_time(PROJECT / ".venv.lock"):
        if not environment.is_current():
            environment.make()
    environment.run_again(argv)


def run_tests(arguments: Sequence[str]) -> int:
    """Run pytest with the project as its root; pytest's exit code."""
    command = [sys.executable, "-m", "pytest", *arguments]
    return subprocess.call(command, cwd=PROJECT)


class Environment:
    """The project's virtual environment; it is whole when its mark fits the lock file."""

    def __init__(self, project: Path) -> None:
        self.folder = project / ".venv"
        self.lock = project / "requirements.lock"
        self.mark = self.folder / "evalsite.mark"
        self.python = self.folder / "bin" / "python"

    def is_current(self) -> bool:
        """Whether a finished installation of just this lock file and Python is there."""
        try:
            return self.python.exists() and self.mark.read_text() == self._wanted_mark()
        except OSError:
            return False

    def make(self) -> None:
        """Make the environment anew: what an interrupted installation left is thrown away."""
        if not self.lock.exists():
            sys.exit(f"{self.lock} is missing: the list of packages to install.")
        _say("Setting up evalsite's own environment in .venv; this happens once.")
        if uv := shutil.which("uv"):
            self._make_with_uv(uv)
        else:
            self._make_with_pip()
        self.mark.write_text(self._wanted_mark())
        _say("The environment is ready.")

    def run_again(self, argv: Sequence[str]) -> None:
        """Replace this process by the same command inside the environment."""
        environment = {k: v for k, v in os.environ.items() if k not in _MISLEADING}
        if os.environ.get("EVALSITE_INSIDE"):
            sys.exit("Django is missing from .venv: remove that folder and try again.")
        environment["EVALSITE_INSIDE"] = "1"
        sys.stdout.flush()
        os.execve(self.python, [str(self.python), *argv], environment)

    def _make_with_uv(self, uv: str) -> None:
        _say("1/2  making the environment (uv)")
        _call(
            [
                uv,
                "venv",
                "--quiet",
                "--clear",
                "--python",
                sys.executable,
                str(self.folder),
            ]
        )
        _say(f"2/2  installing {self._packages()} packages (uv)")
        install = [uv, "pip", "install", "--quiet", "--require-hashes", "--python"]
        _call([*install, str(self.python), "-r", str(self.lock)])

    def _make_with_pip(self) -> None:
        _say("1/2  making the environment")
        shutil.rmtree(self.folder, ignore_errors=True)
        made = subprocess.run(
            [sys.executable, "-m", "venv", str(self.folder)],
            capture_output=True,
            text=True,
            env=_clean_environment(),
            check=False,
        )
        if made.returncode:
            if "ensurepip" in made.stdout + made.stderr:
                sys.exit(
                    "This Python cannot make environments: install the package python3-venv "
                    "(Debian, Ubuntu) or uv, and try again."
                )
            sys.exit(f"The environment cannot be made: {_last_line(made.stderr or made.stdout)}")
        _say(f"2/2  installing {self._packages()} packages (about a minute)")
        install = [
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            "--no-input",
        ]
        _call([str(self.python), *install, "--require-hashes", "-r", str(self.lock)])

    def _packages(self) -> int:
        return sum("==" in line for line in self.lock.read_text().splitlines())

    def _wanted_mark(self) -> str:
        digest = hashlib.sha256(self.lock.read_bytes()).hexdigest()
        return f"{digest} {sys.version_info.major}.{sys.version_info.minor}"


_MISLEADING = frozenset({"VIRTUAL_ENV", "PYTHONHOME", "__PYVENV_LAUNCHER__"})


def _clean_environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key not in _MISLEADING}


def _call(command: list[str]) -> None:
    done = subprocess.run(command, stderr=subprocess.PIPE, env=_clean_environment(), check=False)
    if done.returncode:
        text = done.stderr.decode(errors="replace")
        sys.stderr.write(text)
        sys.exit(_reason(text))


def _reason(text: str) -> str:
    if "No space left on device" in text:
        return "The disk is full: the packages could not be installed. Free some space; try again."
    return (
        "The packages could not be installed; the lines above say why. "
        "The next start begins again from the beginning."
    )


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["no message"])[-1]


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> Iterator[None]:
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        sys.exit(f"The project's folder cannot be written: {error.strerror} at {path}.")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _say(text: str) -> None:
    print(text, flush=True)
