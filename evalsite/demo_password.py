"""The password of the demo's owner, who signs releases: signing asks for one at each signature.

It is made once, lies in the data folder and is printed by `manage.py up`. The demo's one-click
sign-in goes on to work for the owner as long as it is the password.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path
from typing import Final

from traces.models import User

OWNER: Final = "owner"
_FILE: Final = "demo-owner-password"
_WORDS: Final = (
    *("amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "hazel", "inlet", "juniper"),
    *("kelp", "larch", "meadow", "north", "olive", "pebble", "quartz", "ridge", "sorrel", "tundra"),
    *("umber", "valley", "willow", "yarrow"),
)


def stored_password(folder: Path) -> str:
    """The password that was made earlier; "" when none was."""
    with contextlib.suppress(OSError):
        return (folder / _FILE).read_text().strip()
    return ""


def made_password(folder: Path) -> str:
    """The password, made now where there is none. Raises `OSError` when it cannot be kept."""
    if known := stored_password(folder):
        return known
    words = [secrets.choice(_WORDS) for _ in range(4)]
    password = "-".join([*words, f"{secrets.randbelow(10_000):04}"])
    with contextlib.suppress(FileExistsError):
        handle = os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(handle, "w") as file:
            file.write(password + "\n")
    return stored_password(folder)


def give_owner_password(owner: User, folder: Path) -> None:
    """Give the demo's owner the password, unless they have one of their own."""
    if owner.has_usable_password():
        return
    owner.set_password(made_password(folder))
    owner.save(update_fields=["password"])


def has_demo_password(person: User, folder: Path) -> bool:
    """Whether the demo's owner still has the password that was made for the demo."""
    known = stored_password(folder)
    return person.username == OWNER and bool(known) and person.check_password(known)
