"""Visits to pages as a signed-in person."""

from __future__ import annotations

from typing import Any

from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from traces.models import System, User


def visit(client: Client, user: User, path: str, **query: Any) -> Any:
    """The page's dataclass, as the template gets it."""
    client.force_login(user)
    answer = client.get(path, query)
    assert answer.status_code == 200, (answer.status_code, answer.get("Location"))
    return answer.context["page"]


def n_queries(client: Client, path: str, **query: Any) -> int:
    """How many queries a page takes."""
    with CaptureQueriesContext(connection) as captured:
        answer = client.get(path, query)
    assert answer.status_code == 200
    return len(captured)


def root(system: System) -> str:
    """Where the pages of a system begin."""
    return f"/systems/{system.slug}/"
