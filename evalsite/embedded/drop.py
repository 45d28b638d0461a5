"""Gives up root and becomes a PostgreSQL program: `python drop.py HOW PARENT PROGRAM ARGUMENT…`.

PostgreSQL refuses to run as root. HOW is `userns` (a user namespace with one user in it: no
account is made and no folder's mode changes), `nobody` (for systems that forbid such
namespaces) or `same` (not root). PARENT is the process to end with, or 0. Standard library only.
"""

import ctypes
import os
import pwd
import signal
import sys
from pathlib import Path

_CLONE_NEWUSER = 0x10000000
_PR_SET_PDEATHSIG = 1


def _enter_user_namespace() -> None:
    nobody = pwd.getpwnam("nobody")
    uid, gid = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER):
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{nobody.pw_uid} {uid} 1")
    Path("/proc/self/gid_map").write_text(f"{nobody.pw_gid} {gid} 1")


def _become_nobody() -> None:
    nobody = pwd.getpwnam("nobody")
    os.setgroups([])
    os.setgid(nobody.pw_gid)
    os.setuid(nobody.pw_uid)


def main() -> None:
    how, parent, *command = sys.argv[1:]
    if how == "userns":
        _enter_user_namespace()
    elif how == "nobody":
        _become_nobody()
    if sys.platform == "linux" and parent != "0":
        # After the change of user, which clears it. SIGINT is PostgreSQL's fast, clean shutdown.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGINT), 0, 0, 0)
        if os.getppid() != int(parent):
            sys.exit("the process that asked for PostgreSQL has ended")
    os.execv(command[0], command)


if __name__ == "__main__":
    main()
