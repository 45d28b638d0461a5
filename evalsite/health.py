"""Whether the site works: database, schema and worker."""

import logging
from datetime import datetime, timedelta

from django.db import DatabaseError, connection
from django.http import HttpRequest, JsonResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from evalsite.models import WorkerSign
from evalsite.schema import schema_problem

OLDEST_SIGN = timedelta(seconds=90)
_log = logging.getLogger(__name__)


@require_safe
@never_cache
def health(_request: HttpRequest) -> JsonResponse:
    """200 if the site can do its work, else 503; says which part is at fault, and no more."""
    database, schema, age = _database_and_schema()
    worker = age is not None and age <= OLDEST_SIGN
    well = database and schema and worker
    answer = JsonResponse(
        {
            "status": "ok" if well else "failing",
            "database": database,
            "schema": schema,
            "worker": worker,
            "worker_seen_seconds_ago": None if age is None else int(age.total_seconds()),
        },
        status=200 if well else 503,
    )
    # Django would log each 503 as an error of the site, every few seconds.
    answer._has_been_logged = True  # type: ignore[attr-defined]  # noqa: SLF001
    return answer


def note_worker_alive(*, now: datetime | None = None) -> None:
    """Record that a worker takes messages."""
    WorkerSign.objects.update_or_create(id=1, defaults={"seen_at": now or timezone.now()})


def _database_and_schema() -> tuple[bool, bool, timedelta | None]:
    try:
        with connection.cursor() as cursor:
            cursor.execute("select 1")
        problem = schema_problem()
        if problem:
            return True, False, None
        sign = WorkerSign.objects.filter(id=1).first()
    except DatabaseError:
        _log.warning("health_check_found_no_database")
        return False, False, None
    return True, True, None if sign is None else timezone.now() - sign.seen_at
