"""A made-up system that shows everything: a refund desk, its tasks, and the trials of two releases.

Nothing here is real, and no agent ran: `desk` is the world, a small state machine; `refunds`,
`subscriptions`, `bookings` and `accounts` tell which path each trial takes through it; `session`
records what happens as a harness would; `grading` decides by code from what happened, and tells what
judges and people say; `records` writes native records. The same seed gives the same bytes.

`gated` makes three more releases of the same paths, for the gate.

`contracts/` holds the contract of each task, `people` what the demo's reviewer says. How the known
gradings come out without a contract is said in `subscriptions`.
"""

from evalsite.refund_desk.contract_texts import contract_texts, drafted_texts, earlier_texts
from evalsite.refund_desk.desk import TOOL_KINDS
from evalsite.refund_desk.gated import PAYMENT_TASKS, SERVICE_TASKS, gated_releases
from evalsite.refund_desk.people import PersonSaid, people_said
from evalsite.refund_desk.production import (
    BlindSaid,
    blind_labels,
    probe_words,
    production_lines,
)
from evalsite.refund_desk.records import TASKS, DeclaredRun, MadeUpRelease, releases
from evalsite.refund_desk.story import Task as MadeUpTask

__all__ = [
    "PAYMENT_TASKS",
    "SERVICE_TASKS",
    "TASKS",
    "TOOL_KINDS",
    "BlindSaid",
    "DeclaredRun",
    "MadeUpRelease",
    "MadeUpTask",
    "PersonSaid",
    "blind_labels",
    "contract_texts",
    "drafted_texts",
    "earlier_texts",
    "gated_releases",
    "people_said",
    "probe_words",
    "production_lines",
    "releases",
]
