"""What the queue of cases must know of a trial that was decided."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecidedCase:
    """A trial as it was decided, whether or not there is a case of it.

    A trial that does not stand was followed by a further attempt, which speaks for their slot.
    """

    trial_id: int
    system_id: int
    task_id: int
    release_id: int
    disposition: str  # a `Disposition`
    actions: tuple[str, ...]  # next actions, in their order; the first one is shown
    open_criteria: tuple[str, ...]  # mandatory ones, in the order of the requirements
    stands: bool
