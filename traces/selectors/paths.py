"""The columns that hold path keys."""

from __future__ import annotations

from traces.core.paths import PathLevel

KEY_NAMES = (
    "tool_set",
    "effects",
    "reads_any_order",
    "reads_any_order_msg",
    "sequence",
    "sequence_msg",
    "equivalent",
    "equivalent_msg",
    "exact",
    "exact_msg",
)
"""The columns of `TrajectoryPaths`, and the entries of `TaskFigures.n_paths`, in order."""

_WITHOUT_MESSAGES = (PathLevel.TOOL_SET, PathLevel.EFFECTS)


def key_name(level: PathLevel, *, messages: bool) -> str:
    """The column that holds the key of a level."""
    if messages and level not in _WITHOUT_MESSAGES:
        return f"{level.value}_msg"
    return level.value
