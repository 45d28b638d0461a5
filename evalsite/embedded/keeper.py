"""The parent of an embedded PostgreSQL server: `python -m evalsite.embedded.keeper ROOT [--unsafe]`.

Prints `ready`, or one sentence that says what is wrong, and goes on in the background. It starts
the server again when that was killed, and stops it when the last process that used it has gone.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import FrameType

from evalsite.embedded.locks import try_lock
from evalsite.embedded.postgres import (
    EmbeddedPostgres,
    EmbeddedPostgresError,
    Server,
    failure_of,
    sentence_of,
)

_LOOK_SECONDS = 0.2
_READY_SECONDS = 60.0
_STOP_SECONDS = 60.0
_TRIES = 20
# What a server says that starts while the children of a killed one still end.
_SIGNS_OF_THE_OLD_SERVER = ("is still in use", "already exists", "Address already in use")
_LOG_BYTES_KEPT = 16 * 1024 * 1024

_stop_wanted = False


def _want_stop(_signal: int, _frame: FrameType | None) -> None:
    global _stop_wanted  # noqa: PLW0603 - a signal handler has no other way to speak
    _stop_wanted = True


class _Keeper:
    def __init__(self, server: Server) -> None:
        self.server = server
        self.run = server.cluster.lock_folder
        self.child: subprocess.Popen[bytes] | None = None

    def start_server(self) -> None:
        """Start the server, trying again while the children of a killed one are still ending."""
        for left in range(_TRIES - 1, -1, -1):
            offset = self._log_size()
            self.child = self.server.spawn()
            if self._wait_ready(self.child):
                return
            log = self._log_after(offset)
            was_killed = (self.child.returncode or 0) < 0
            may_come = was_killed or any(sign in log for sign in _SIGNS_OF_THE_OLD_SERVER)
            if not (left and may_come):
                raise EmbeddedPostgresError(failure_of(log))
            time.sleep(0.3)

    def watch(self) -> None:
        """Keep the server alive until nobody uses it or this process is told to end."""
        while not _stop_wanted:
            time.sleep(_LOOK_SECONDS)
            if self.child is not None and self.child.poll() is not None:
                self.start_server()
            if self._nobody_is_left():
                return
        self.stop()

    def stop(self) -> None:
        if self.child is None or self.child.poll() is not None:
            return
        self.child.send_signal(signal.SIGINT)
        try:
            self.child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.child.send_signal(signal.SIGQUIT)
            self.child.wait()

    def _nobody_is_left(self) -> bool:
        """Stop the server if no process uses it; hold both locks so that none can come meanwhile."""
        users = try_lock(self.run / "users.lock")
        if users is None:
            return False
        try:
            start = try_lock(self.run / "start.lock")
            if start is None:
                return False
            try:
                self.stop()
                return True
            finally:
                os.close(start)
        finally:
            os.close(users)

    def _wait_ready(self, child: "subprocess.Popen[bytes]") -> bool:
        end = time.monotonic() + _READY_SECONDS
        while child.poll() is None:
            if self.server.cluster.is_ready():
                return True
            if time.monotonic() > end:
                self.stop()
                return False
            time.sleep(0.02)
        return False

    def _log_size(self) -> int:
        path = self.server.cluster.log_file
        if path.exists() and path.stat().st_size > _LOG_BYTES_KEPT:
            path.replace(path.with_suffix(".log.1"))
        return path.stat().st_size if path.exists() else 0

    def _log_after(self, offset: int) -> str:
        with self.server.cluster.log_file.open("rb") as file:
            file.seek(offset)
            return file.read().decode(errors="replace")


def _tell(answer: str) -> None:
    """Answer the process that waits, and let it go on."""
    sys.stdout.write(answer + "\n")
    sys.stdout.flush()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def _keep(cluster: EmbeddedPostgres) -> None:
    if try_lock(cluster.lock_folder / "keeper.lock") is None:
        _tell("ready")
        return
    try:
        server = Server.of(cluster)
        server.prepare()
        server.end_strayed()
        keeper = _Keeper(server)
        keeper.start_server()
    except EmbeddedPostgresError as error:
        _tell(str(error))
        return
    except OSError as error:
        _tell(sentence_of(error, cluster.root))
        return
    _tell("ready")
    try:
        keeper.watch()
    finally:
        keeper.stop()


def main() -> None:
    if os.fork():
        # The caller waits for the end of this process and for the end of its output. The second
        # is held open by the child until it has answered.
        os._exit(0)
    signal.signal(signal.SIGTERM, _want_stop)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    _keep(EmbeddedPostgres(Path(sys.argv[1]), unsafe="--unsafe" in sys.argv[2:]))


if __name__ == "__main__":
    main()
