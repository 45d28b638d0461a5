"""The contracts of the made-up tasks, as their author wrote them: one YAML file a task.

`contracts/` holds what is in effect once the sample is loaded, `contracts/earlier/` a first version
that was mended, `contracts/drafts/` one that is proposed and waits for somebody to decide.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Final

_FOLDER: Final = Path(__file__).resolve().parent / "contracts"


def contract_texts() -> MappingProxyType[str, str]:
    """The contract of each task, by the task's id."""
    return _texts_in(_FOLDER)


def earlier_texts() -> MappingProxyType[str, str]:
    """First versions that were mended later."""
    return _texts_in(_FOLDER / "earlier")


def drafted_texts() -> MappingProxyType[str, str]:
    """Versions that are proposed and not decided."""
    return _texts_in(_FOLDER / "drafts")


@cache
def _texts_in(folder: Path) -> MappingProxyType[str, str]:
    return MappingProxyType({file.stem: file.read_text() for file in sorted(folder.glob("*.yaml"))})
