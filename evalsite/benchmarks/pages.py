"""How dear the main pages are, beside a bare Django view that renders the same rows.

The bare view runs the statements that the page itself ran, fetches their rows, unpacks what is
stored packed, and renders every value into a plain table by a Django template, behind the same
middleware. What the page costs beyond that is its own: deciding, aligning, marking up.
"""

from __future__ import annotations

import re
import statistics
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db import connection
from django.http import HttpRequest, HttpResponse
from django.template import Context, Engine
from django.test import Client
from django.test.utils import CaptureQueriesContext, override_settings
from django.urls import include, path
from django.utils import timezone

from evalsite.benchmarks.ingest import ingest_file, write_trials
from evalsite.common import blobs
from evalsite.rules_reach import work_out_preview
from traces.core.rule_changes import RuleChange
from traces.core.rules import ArgumentRule, Ignore
from traces.models import Role, RulesPreview, System, Task, Trial, User
from traces.services.people import create_system, set_member
from traces.services.rules import start_preview
from traces.web.addresses import Addresses

_WARM_UPS = 3
_REQUESTS = 15
_BARE_ADDRESS = "/bare"
_PACKED = b"\x28\xb5\x2f\xfd"  # how zstd begins
_OWN_TABLES = re.compile(r'(?:FROM|JOIN|UPDATE|INTO)\s+"?(?:traces|reviews)_', re.IGNORECASE)
_PERSON_TABLES = re.compile(r'FROM "traces_user"')

_BARE = Engine().from_string(
    "<!doctype html><title>bare</title>{% for rows in tables %}<table>{% for row in rows %}<tr>"
    "{% for value in row %}<td>{{ value }}</td>{% endfor %}</tr>{% endfor %}</table>{% endfor %}"
)


@dataclass(frozen=True, slots=True)
class PageResult:
    """What one page costs."""

    name: str
    status: int
    n_queries: int
    n_queries_small: int  # of the same page of a small system
    n_bytes: int
    milliseconds: float  # median, server side, with the middleware
    bare_milliseconds: float


def measure_pages(folder: Path, *, n_trials: int, n_tasks: int) -> tuple[PageResult, ...]:
    """Fill two systems, a large and a small one, and measure the pages of both."""
    person = User.objects.create_user("benchmark")
    large = _filled(folder, "large", person, n_trials=n_trials, n_tasks=n_tasks)
    small = _filled(folder, "small", person, n_trials=3, n_tasks=1)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    with override_settings(ROOT_URLCONF=__name__, STORAGES=_PLAIN_STATIC):
        client = Client(SERVER_NAME="localhost")
        client.force_login(person, "django.contrib.auth.backends.ModelBackend")
        other = _pages_of(small)
        return tuple(
            _measured(client, name, address, other[name])
            for name, address in _pages_of(large).items()
        )


_PLAIN_STATIC = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": "django.contrib.staticfiles.storage.StaticFilesStorage"},
}


def _filled(folder: Path, name: str, person: User, *, n_trials: int, n_tasks: int) -> System:
    file = folder / f"{name}.jsonl"
    write_trials(file, n_trials=n_trials, n_tasks=n_tasks)
    system = create_system(name, by=None)
    set_member(system, person, Role.ENGINEER)
    ingest_file(system, file)
    return system


def _pages_of(system: System) -> dict[str, str]:
    addresses = Addresses.of(system.slug)
    task = Task.objects.filter(system=system).order_by("pk")[0]
    trial = Trial.objects.filter(task=task).order_by("-n_messages", "pk")[0]
    release = system.releases.order_by("-pk")[0]
    return {
        "overview": addresses.overview,
        "production": addresses.production,
        "tasks page": addresses.tasks,
        "task page": addresses.task(task.uuid),
        "tree": addresses.tree(task.uuid),
        "diagnostics": addresses.diagnostics(task.uuid),
        "accepted paths": addresses.register(task.uuid),
        "compare": addresses.compare(task.uuid),
        "trial page": addresses.trial(trial.uuid),
        "release page": addresses.release(release.uuid),
        "rules": addresses.rules,
        "preview of rules": addresses.rules_preview(_preview(system).uuid),
        "flags": addresses.flags,
        "receipt": addresses.upload(system.uploads.get().uuid),
    }


def _preview(system: System) -> RulesPreview:
    """A preview whose effect is known."""
    rule = ArgumentRule(
        "transfer_to_human_agents", "summary", Ignore(), "free wording", "benchmark"
    )
    person = User.objects.get(username="benchmark")
    preview = start_preview(system, RuleChange(put=(rule,)), by=person, now=timezone.now())
    work_out_preview(preview.pk)
    return preview


def _measured(client: Client, name: str, address: str, small_address: str) -> PageResult:
    n_small, _, _ = _statements(client, small_address)
    n_queries, statements, response = _statements(client, address)
    _BareView.statements = statements
    milliseconds, bare_milliseconds = _medians(client, address, _BARE_ADDRESS)
    return PageResult(
        name=name,
        status=response.status_code,
        n_queries=n_queries,
        n_queries_small=n_small,
        n_bytes=len(response.content),
        milliseconds=milliseconds,
        bare_milliseconds=bare_milliseconds,
    )


def _statements(client: Client, address: str) -> tuple[int, list[str], Any]:
    """How many queries a warm page takes, those that read the system's rows, and its answer."""
    client.get(address)
    with CaptureQueriesContext(connection) as queries:
        response = client.get(address)
    texts = [query["sql"] for query in queries.captured_queries]
    reading = [
        text
        for text in texts
        if text.lstrip().upper().startswith(("SELECT", "WITH"))
        and _OWN_TABLES.search(text)
        and not _PERSON_TABLES.search(text)
    ]
    return len(texts), reading, response


def _medians(client: Client, *addresses: str) -> list[float]:
    """Median milliseconds of some addresses, asked in turn so that they share what disturbs."""
    took: dict[str, list[float]] = {address: [] for address in addresses}
    for round_ in range(_WARM_UPS + _REQUESTS):
        for address in addresses:
            began = time.perf_counter()
            client.get(address)
            if round_ >= _WARM_UPS:
                took[address].append(time.perf_counter() - began)
    return [statistics.median(took[address]) * 1000 for address in addresses]


class _BareView:
    """The bare view, and the statements whose rows it renders."""

    statements: Sequence[str] = ()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        assert request.user.is_authenticated
        tables = [list(_rows(statement)) for statement in self.statements]
        return HttpResponse(_BARE.render(Context({"tables": tables})))


def _rows(statement: str) -> Iterator[tuple[object, ...]]:
    # The driver has put the values into the text already; a percent sign in it is just that.
    with connection.cursor() as cursor:
        cursor.execute(statement)
        for row in cursor.fetchall():
            packed = [value for value in row if isinstance(value, bytes | memoryview)]
            if not any(bytes(value).startswith(_PACKED) for value in packed):
                yield row
                continue
            yield tuple(value for value in row if not isinstance(value, bytes | memoryview))
            for value in packed:
                content = blobs.unpack(value)
                for entry in content if isinstance(content, list) else [content]:
                    yield tuple(entry.values())


urlpatterns = [
    path(_BARE_ADDRESS.removeprefix("/"), _BareView()),
    path("", include("evalsite.urls")),
]
