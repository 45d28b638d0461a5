"""Runs a few programs side by side: restarts what ends, and ends all of them together.

Each program leads a process group of its own, so that its children can be ended with it, and ends
when the supervisor ends, however that happens (embedded/lifeline.py).
"""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Final

_LIFELINE: Final = Path(__file__).with_name("embedded") / "lifeline.py"
_LOOK_SECONDS: Final = 0.2
_EARLY_SECONDS: Final = 5.0
_EARLY_ENDS: Final = 8
_LONGEST_PAUSE: Final = 2.0
_LONGEST_PAUSE_SECONDS: Final = 3.0
_WARM_SECONDS: Final = 12.0
_COLD_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Program:
    """A Python module to run, under the name that people see."""

    name: str
    module: str
    arguments: tuple[str, ...] = ()


@dataclass(slots=True)
class _Running:
    program: Program
    process: "subprocess.Popen[bytes]"
    born: float
    early_ends: int = 0
    is_proven: bool = False  # it has stayed up once


class StopAskedError(Exception):
    """A signal asked this process to stop."""


@dataclass(slots=True)
class StopSignal:
    """Turns Ctrl-C and the like into a flag, or into an exception while `raises` is set."""

    raises: bool = True
    asked: int = field(default=0, init=False)

    def install(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, self._note)

    def _note(self, _number: int, _frame: FrameType | None) -> None:
        self.asked += 1
        if self.raises:
            self.raises = False
            raise StopAskedError


class Supervisor:
    """The programs that run now. `say` shows one line to the person at the terminal."""

    def __init__(
        self, *, environment: Mapping[str, str], folder: Path, say: Callable[[str], None]
    ) -> None:
        self._environment = dict(environment)
        self._folder = folder
        self._say = say
        self._running: list[_Running] = []

    def start(self, programs: Sequence[Program]) -> None:
        for program in programs:
            self._running.append(_Running(program, self._spawn(program), time.monotonic()))

    def all_run(self) -> bool:
        """Whether every program is still the one that was started."""
        return all(running.process.poll() is None for running in self._running)

    def watch(self, stop: StopSignal, *, each_time: Callable[[], None]) -> bool:
        """Restart what ends until `stop` is asked for; False if a program never came to stay up.

        One that has stayed up before is started again without end, after growing pauses.
        """
        while not stop.asked:
            each_time()
            for running in self._running:
                if running.process.poll() is not None and not self._restart(running):
                    return False
            time.sleep(_LOOK_SECONDS)
        return True

    def stop(self, stop: StopSignal) -> None:
        """End all programs: politely, then firmly; at once when asked a second time."""
        asked = stop.asked
        steps = ((signal.SIGTERM, _WARM_SECONDS), (signal.SIGQUIT, _COLD_SECONDS))
        for number, seconds in steps:
            for running in self._running:
                with contextlib.suppress(ProcessLookupError):
                    running.process.send_signal(number)
            end = time.monotonic() + seconds
            while not self._all_ended() and time.monotonic() < end and stop.asked <= asked:
                time.sleep(0.05)
            if self._all_ended() or stop.asked > asked:
                break
        for running in self._running:
            _end_group(running.process)
            running.process.wait()
        self._running.clear()

    def _all_ended(self) -> bool:
        return all(running.process.poll() is not None for running in self._running)

    def _restart(self, running: _Running) -> bool:
        name, process = running.program.name, running.process
        _end_group(process)
        # Whoever is killed from outside could have stayed up.
        early = process.returncode >= 0 and time.monotonic() - running.born < _EARLY_SECONDS
        running.early_ends = running.early_ends + 1 if early else 0
        if running.early_ends >= _EARLY_ENDS and not running.is_proven:
            self._say(f"The {name} process does not stay up ({_ending(process.returncode)}).")
            return False
        self._say(f"The {name} process ended ({_ending(process.returncode)}); starting it again.")
        time.sleep(min(0.5 * running.early_ends, _LONGEST_PAUSE_SECONDS))
        running.process, running.born = self._spawn(running.program), time.monotonic()
        return True

    def _spawn(self, program: Program) -> "subprocess.Popen[bytes]":
        command = [sys.executable, str(_LIFELINE), str(os.getpid()), program.module]
        return subprocess.Popen(
            [*command, *program.arguments],
            env=self._environment,
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )


def _end_group(process: "subprocess.Popen[bytes]") -> None:
    """Kill what a program left behind; a group is named after its first process."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _ending(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"
