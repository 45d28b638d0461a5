"""Ends a process when its parent ends, also when the parent was killed and could not say so.

Linux has this in the kernel (`PR_SET_PDEATHSIG`, prctl(2)); elsewhere a thread looks at the
parent's id. Run as `python lifeline.py PARENT MODULE ARGUMENT…` it runs a module under that rule.
Standard library only: it runs before anything else is imported.
"""

import ctypes
import os
import runpy
import signal
import sys
import threading
import time
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_LOOK_AGAIN_SECONDS = 1.0


def end_with_parent(parent: int, *, by: signal.Signals = signal.SIGKILL) -> None:
    """Have this process end by signal `by` as soon as process `parent`, its parent, has ended.

    Call it from the main thread of the process, after any change of user: the kernel forgets the
    wish when credentials change. A parent that is already gone ends this process at once.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    else:
        threading.Thread(target=_watch, args=(parent, by), daemon=True).start()
    if os.getppid() != parent:
        os.kill(os.getpid(), by)


def _watch(parent: int, by: signal.Signals) -> None:
    while os.getppid() == parent:
        time.sleep(_LOOK_AGAIN_SECONDS)
    os.kill(os.getpid(), by)


def main() -> None:
    parent, module, *arguments = sys.argv[1:]
    end_with_parent(int(parent))
    sys.argv = [module, *arguments]
    # The folder of this file would shadow top-level modules such as `celery`.
    sys.path[0] = str(Path.cwd())
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
