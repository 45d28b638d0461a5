"""Messages to the workers. A message only says that a row waits; the row is the truth."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from functools import partial

from celery import current_app
from django.db import transaction

log = logging.getLogger("evalsite.hints")

COMPUTE_GATE = "evalsite.compute_gate"


def hint_gates(release_pks: Iterable[int]) -> None:
    """Tell a worker, once the transaction has committed, that gates are out of date; never fails."""
    for pk in release_pks:
        transaction.on_commit(partial(_send, COMPUTE_GATE, pk), robust=True)


def _send(task: str, pk: int) -> None:
    send_hint_of(task, pk)  # by its name here, where it can be watched


def send_hint_of(task: str, pk: int, *, after: float = 0) -> bool:
    """Send a hint to do a task on a row, now or `after` seconds.

    False when the broker does not take it.
    """
    try:
        current_app.send_task(task, args=[pk], retry=False, countdown=after or None)
    except Exception as error:  # noqa: BLE001 - each transport raises what its client raises
        extra = {"task": task, "row": pk, "cause": type(error).__name__}
        log.warning("hint not sent", extra=extra)
        return False
    return True
