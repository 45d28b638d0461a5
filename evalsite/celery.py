"""The Celery application. Messages are hints; what is to be done stands in PostgreSQL rows."""

import os
import sys
import warnings
from contextvars import Token
from pathlib import Path
from typing import Any

from celery import Celery
from celery.platforms import SecurityWarning  # type: ignore[attr-defined]
from celery.signals import (
    setup_logging,
    task_postrun,
    task_prerun,
    worker_process_init,
    worker_ready,
)
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

from evalsite.common.acting import Acting, Source, begin_acting, end_acting
from evalsite.embedded.lifeline import end_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

if os.environ.get("EVALSITE_SUPERVISED"):
    # The embedded mode is meant to run as root too, in a container or on a fresh machine.
    warnings.filterwarnings("ignore", category=SecurityWarning)

if Path(sys.argv[0]).name == "celery":
    # Its own report of settings that are missing or wrong would be a traceback.
    try:
        settings.MODE  # noqa: B018
    except ImproperlyConfigured as error:
        sys.exit(str(error))

app = Celery("evalsite")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
# Threads of the web server have no current application of their own: this is theirs.
app.set_default()


@setup_logging.connect
def _keep_logging_of_django(**_: Any) -> None:
    """Celery would replace the log format of the site."""


@worker_process_init.connect
def _end_with_the_worker(**_: Any) -> None:
    """A pool process whose worker was killed would wait for work for ever."""
    end_with_parent(os.getppid())


_tokens: dict[str, Token[Acting | None]] = {}


@task_prerun.connect
def _act_as_worker(task_id: str = "", **_: Any) -> None:
    """What a task does is done by a worker; its log lines and audit events name it."""
    _tokens[task_id] = begin_acting(Acting(Source.WORKER, request_id=task_id[:64]))


@task_postrun.connect
def _act_as_before(task_id: str = "", **_: Any) -> None:
    if token := _tokens.pop(task_id, None):
        end_acting(token)


@worker_ready.connect
def _show_that_a_worker_is_here(**_: Any) -> None:
    """The scheduler's first heartbeat comes only after its interval."""
    app.send_task("evalsite.tasks.heartbeat", expires=30)
