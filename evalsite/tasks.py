"""Jobs of the site itself."""

from celery import shared_task

from evalsite.health import note_worker_alive


@shared_task(name="evalsite.tasks.heartbeat", ignore_result=True, expires=30)
def heartbeat() -> None:
    """Note that a worker takes messages, for /health."""
    note_worker_alive()
