"""Jobs of the site itself. Each is safe to run twice, at once or days later."""

from __future__ import annotations

import logging
from datetime import timedelta

from celery import shared_task
from django.db import InterfaceError, OperationalError
from django.utils import timezone

from evalsite.health import note_worker_alive
from evalsite.pipeline import process_upload, stale_uploads
from traces.services.acceptance import remove_abandoned_files
from traces.tasks import PROCESS_UPLOAD, send_hint

log = logging.getLogger("evalsite.jobs")

STALE_SECONDS = 30.0
ABANDONED_AFTER = timedelta(days=1)


@shared_task(name="evalsite.tasks.heartbeat", ignore_result=True, expires=30)
def heartbeat() -> None:
    """Note that a worker takes messages, for /health."""
    note_worker_alive()


@shared_task(name=PROCESS_UPLOAD, ignore_result=True)
def process_upload_by_hint(upload_id: int) -> None:
    """Read an upload that a hint named. What fails is left to the sweeper, which tries again."""
    try:
        process_upload(upload_id)
    except (OperationalError, InterfaceError) as error:
        log.warning(
            "upload waits for the database",
            extra={"upload_id": upload_id, "cause": type(error).__name__},
        )


@shared_task(name="evalsite.sweep", ignore_result=True, expires=60)
def sweep() -> None:
    """Send hints again for uploads that wait too long, and remove what broken-off uploads left."""
    now = timezone.now()
    stale = stale_uploads(now=now, older_than_seconds=STALE_SECONDS)
    n_sent = sum(map(send_hint, stale))
    n_removed = remove_abandoned_files(older_than=now - ABANDONED_AFTER)
    if stale or n_removed:
        log.info("swept", extra={"stale": len(stale), "hints": n_sent, "files": n_removed})
