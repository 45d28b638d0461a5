"""A made-up system that shows everything: a refund desk, its tasks, and the trials of two releases.

Nothing here is real, and no agent ran: `desk` is the world, a small state machine; `refunds`,
`subscriptions`, `bookings` and `accounts` tell which path each trial takes through it; `session`
records what happens as a harness would; `grading` decides by code from what happened, and tells what
judges and people say; `records` writes native records. The same seed gives the same bytes.

Which rows of the known gradings come out by code alone, and which need a contract, is said in
`subscriptions`. The five trials of `refund_damaged_item` in `desk-1.0` come out by code alone.
"""

from evalsite.refund_desk.desk import TOOL_KINDS
from evalsite.refund_desk.records import TASKS, DeclaredRun, MadeUpRelease, releases
from evalsite.refund_desk.story import Task as MadeUpTask

__all__ = ["TASKS", "TOOL_KINDS", "DeclaredRun", "MadeUpRelease", "MadeUpTask", "releases"]
