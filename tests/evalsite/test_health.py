import json
from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.health import note_worker_alive

pytestmark = pytest.mark.django_db


def test_health_worker_seen_lately(client: Client) -> None:
    note_worker_alive()
    answer = client.get("/health")
    assert answer.status_code == 200
    found = json.loads(answer.content)
    # Later than at once on a busy machine, but no later than what still counts as lately.
    assert found.pop("worker_seen_seconds_ago") in range(60)
    assert found == {"status": "ok", "database": True, "schema": True, "worker": True}


def test_health_worker_silent_for_long(client: Client) -> None:
    note_worker_alive(now=timezone.now() - timedelta(minutes=10))
    answer = client.get("/health")
    assert answer.status_code == 503
    assert json.loads(answer.content)["worker"] is False
