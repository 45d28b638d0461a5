"""Hints to the workers. A message only says that a row waits; the row is the truth."""

from __future__ import annotations

import logging

from celery import current_app
from django.db import transaction

log = logging.getLogger("evalsite.hints")

PROCESS_UPLOAD = "evalsite.process_upload"


def hint_upload(upload_id: int) -> None:
    """Tell a worker, once the transaction has committed, that an upload waits to be read.

    Never fails: with the broker away the sweeper finds the row.
    """
    transaction.on_commit(lambda: send_hint(upload_id), robust=True)


def send_hint(upload_id: int) -> bool:
    """Send the hint now. False, with a line in the log, when the broker does not take it."""
    try:
        current_app.send_task(PROCESS_UPLOAD, args=[upload_id], retry=False)
    except Exception as error:  # noqa: BLE001 - each transport raises what its client raises
        log.warning("hint not sent", extra={"upload_id": upload_id, "cause": type(error).__name__})
        return False
    return True
