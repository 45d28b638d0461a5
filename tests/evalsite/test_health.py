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
    assert json.loads(answer.content) == {
        "status": "ok",
        "database": True,
        "schema": True,
        "worker": True,
        "worker_seen_seconds_ago": 0,
    }


def test_health_worker_silent_for_long(client: Client) -> None:
    note_worker_alive(now=timezone.now() - timedelta(minutes=10))
    answer = client.get("/health")
    assert answer.status_code == 503
    assert json.loads(answer.content)["worker"] is False
