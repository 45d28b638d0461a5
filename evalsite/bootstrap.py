"""Makes the project's own environment and goes on inside it. Standard library only.

Where Django can be imported, this does nothing, and a `.venv` that somebody else made is used as it
is: whoever has an environment of their own is left alone. Otherwise `.venv` is made, the packages
of `requirements.lock` are installed with their hashes checked, and the same command is run again inside.
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
_MISLEADING = frozenset({"VIRTUAL_ENV", "PYTHONHOME", "__PYVENV_LAUNCHER__"})
_IN_THE_MIDDLE = "being made"
_TIMES_TOLD = 10


def run_inside_environment(argv: Sequence[str]) -> None:
    """Return at once if Django can be imported; else run `argv` again inside `.venv`.

    Raises:
        SystemExit: with one sentence, if the environment cannot be made.
    """
    if importlib.util.find_spec("django") is not None:
        return
    if os.environ.get("EVALSITE_INSIDE"):
        sys.exit("Django is missing from .venv: remove that folder and try again.")
    environment = Environment(PROJECT)
    try:
        with _one_at_a_time(PROJECT / ".venv.lock"):
            if not environment.is_usable():
                environment.make()
    except KeyboardInterrupt:
        sys.exit("Stopped; the next start begins the installation again.")
    environment.run_again(argv)


def run_tests(arguments: Sequence[str]) -> int:
    """Run pytest with the project as its root; pytest's exit code.

    Without arguments the whole suite runs in two processes, each with a database of its own.
    """
    chosen = list(arguments) or ["-n", "2", "--dist", "loadfile"]
    try:
        return subprocess.call([sys.executable, "-m", "pytest", *chosen], cwd=PROJECT)
    except KeyboardInterrupt:
        return 130


class Environment:
    """The project's virtual environment. A mark beside it says which lock file it was made for."""

    def __init__(self, project: Path) -> None:
        self.folder = project / ".venv"
        self.lock = project / "requirements.lock"
        self.mark = project / ".venv.mark"
        self.python = self.folder / "bin" / "python"

    def is_usable(self) -> bool:
        """Whether it is finished and fits the lock file, or was made by somebody else."""
        if not self.python.exists():
            return False
        if not self.mark.exists():
            return self._has_django()
        return self.mark.read_text() == self._wanted_mark()

    def make(self) -> None:
        """Make the environment anew: what an interrupted installation left is thrown away."""
        if not self.lock.exists():
            sys.exit(f"The list of packages is missing: {self.lock}.")
        _say("Setting up evalsite's own environment in .venv; this happens once.")
        self.mark.write_text(_IN_THE_MIDDLE)
        if uv := shutil.which("uv"):
            self._make_with_uv(uv)
        else:
            self._make_with_pip()
        self.mark.write_text(self._wanted_mark())
        _say("The environment is ready.")

    def run_again(self, argv: Sequence[str]) -> None:
        """Replace this process by the same command inside the environment."""
        environment = {**_clean_environment(), "EVALSITE_INSIDE": "1"}
        sys.stdout.flush()
        os.execve(self.python, [str(self.python), *argv], environment)

    def _make_with_uv(self, uv: str) -> None:
        _say("  making the environment with uv …")
        _call([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(self.folder)])
        _say(f"  installing {self._n_packages()} packages with uv …")
        install = [uv, "pip", "install", "--quiet", "--require-hashes", "--python"]
        _call([*install, str(self.python), "-r", str(self.lock)])

    def _make_with_pip(self) -> None:
        _say("  making the environment …")
        shutil.rmtree(self.folder, ignore_errors=True)
        _call([sys.executable, "-m", "venv", str(self.folder)])
        n_packages = self._n_packages()
        _say(f"  installing {n_packages} packages; this takes about a minute …")
        install = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input"]
        install += ["--progress-bar", "off", "--require-hashes", "-r", str(self.lock)]
        _call([str(self.python), *install], n_packages=n_packages)

    def _has_django(self) -> bool:
        command = [str(self.python), "-c", "import django"]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0

    def _n_packages(self) -> int:
        return sum("==" in line for line in self.lock.read_text().splitlines())

    def _wanted_mark(self) -> str:
        digest = hashlib.sha256(self.lock.read_bytes()).hexdigest()
        return f"{digest} {sys.version_info.major}.{sys.version_info.minor}"


def _clean_environment() -> "dict[str, str]":
    return {key: value for key, value in os.environ.items() if key not in _MISLEADING}


def _call(command: "list[str]", *, n_packages: int = 0) -> None:
    """Run a command, telling how many packages it has come to; end with a sentence if it fails."""
    lines = []
    with subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=_clean_environment(),
    ) as process:
        n_met = 0
        for line in process.stdout or ():
            lines.append(line)
            if line.startswith("Collecting ") and n_packages:
                n_met += 1
                if n_met % max(n_packages // _TIMES_TOLD, 1) == 0:
                    _say(f"    {n_met} of {n_packages}")
            elif line.startswith("Installing collected"):
                _say("    unpacking …")
    if process.returncode:
        sys.exit(_reason("".join(lines)))


def _reason(output: str) -> str:
    if "No space left on device" in output:
        return "The disk is full: the packages could not be installed. Free some space; try again."
    if "ensurepip" in output:
        return (
            "This Python cannot make environments: install the package python3-venv (Debian, "
            "Ubuntu) or uv, and try again."
        )
    last = (output.strip().splitlines() or ["no message"])[-1].strip()
    return f"The environment could not be made; the next start begins again. The reason: {last}"


@contextlib.contextmanager
def _one_at_a_time(path: Path) -> "Iterator[None]":
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
