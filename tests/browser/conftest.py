"""A live site with evidence in it, and pages of a real Chromium that report what went wrong."""

from __future__ import annotations

import logging
import os
import queue
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from celery import current_app
from django.contrib.sessions.backends.db import SessionStore
from django.core.management import call_command
from django.db import connection, connections
from django.test import Client, override_settings
from pytest_django.live_server_helper import LiveServer
from pytest_django.plugin import DjangoDbBlocker

import evalsite.common.hints
import evalsite.tasks
import traces.tasks
from evalsite.sample_loader import load_sample
from tests.browser.evidence import add_systems
from traces.models import System, User

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

# Playwright's sync API runs an event loop in this thread, where Django would refuse its ORM.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

WAIT_MS = 30_000
_CHROMIUM_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
_CHROMIUM_NAMES = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
)


def find_chromium() -> str | None:
    """The browser's program: CHROMIUM, else the first that is on PATH."""
    if chosen := os.environ.get("CHROMIUM"):
        return chosen if Path(chosen).exists() else None
    return next(filter(None, map(shutil.which, _CHROMIUM_NAMES)), None)


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """A Chromium of the machine; tests that want it are skipped where there is none."""
    program = find_chromium()
    if program is None:
        message = "no Chromium: install it, or set CHROMIUM to its path"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=WAIT_MS)

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(_CHROMIUM_FLAGS))
        yield chromium
        chromium.close()
        # Django keeps the connections of a thread that runs an event loop apart from its others.
        connections.close_all()


class Worker:
    """Does what it is hinted at, in one thread of this process.

    A hint goes straight to the job's own function instead of through a broker: nothing polls, so a
    receipt is done as soon as it can be, and a test can hold the worker back to see what waits.
    Broker and worker processes have tests of their own.
    """

    def __init__(self) -> None:
        self._hints: queue.SimpleQueue[tuple[str, int] | None] = queue.SimpleQueue()
        self._may_work = threading.Event()
        self._may_work.set()
        self._thread = threading.Thread(target=self._work, name="worker")

    def start(self) -> None:
        self._thread.start()

    def hint(self, task: str, pk: int, *, after: float = 0) -> bool:
        if after:
            later = threading.Timer(after, self._hints.put, [(task, pk)])
            later.daemon = True
            later.start()
        else:
            self._hints.put((task, pk))
        return True

    @contextmanager
    def held_back(self) -> Iterator[None]:
        """Take no hint inside this block."""
        self._may_work.clear()
        try:
            yield
        finally:
            self._may_work.set()

    def stop(self) -> None:
        self._may_work.set()
        self._hints.put(None)
        self._thread.join()

    def _work(self) -> None:
        while (hint := self._hints.get()) is not None:
            self._may_work.wait()
            task, pk = hint
            current_app.tasks[task](pk)
        connections.close_all()


class Reports(logging.Handler):
    """What browsers reported to /csp-report."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(f"{record.getMessage()} {getattr(record, 'directive', '')}")


@dataclass(frozen=True, slots=True)
class Site:
    """The running site."""

    url: str
    worker: Worker
    reports: Reports

    def system(self, slug: str) -> System:
        return System.objects.get(slug=slug)

    def session_of(self, username: str) -> str:
        """The cookie of a new session."""
        client = Client()
        client.force_login(User.objects.get(username=username))
        session = client.session
        assert isinstance(session, SessionStore)
        key: str = client.cookies["sessionid"].value
        return key


@pytest.fixture(scope="package")
def transactional_db() -> None:
    """Stands for pytest-django's fixture of that name, which would empty the database after each
    test. By the name pytest-django still knows that these tests want a database and commit.
    """


@pytest.fixture(scope="package")
def site(
    transactional_db: None, django_db_setup: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[Site]:
    """One site for all browser tests, with all the evidence, which takes some seconds to load.

    Tests commit and clean nothing up; each works in a system of its own or only reads. At the end
    the database is emptied for the tests of other folders.
    """
    worker, reports = Worker(), Reports()
    logging.getLogger("evalsite.csp").addHandler(reports)
    with (
        django_db_blocker.unblock(),
        override_settings(EVALSITE_DEMO=True),
        pytest.MonkeyPatch.context() as patch,
    ):
        for module in (traces.tasks, evalsite.tasks, evalsite.common.hints):
            patch.setattr(module, "send_hint_of", worker.hint)
        load_sample(lambda line: None)
        add_systems()
        worker.start()
        server = LiveServer("127.0.0.1")
        try:
            yield Site(server.url, worker, reports)
        finally:
            server.stop()
            worker.stop()
            logging.getLogger("evalsite.csp").removeHandler(reports)
            _empty_database()


def _empty_database() -> None:
    connections.close_all()
    with connection.cursor() as cursor:
        cursor.execute("set session_replication_role = replica")
        call_command("flush", verbosity=0, interactive=False, inhibit_post_migrate=False)
        cursor.execute("reset session_replication_role")


@dataclass  # without slots: Playwright notes its listeners in the object
class Watch:
    """All that a page must not do while a test looks at it."""

    origin: str
    expected: tuple[str, ...] = ()
    problems: list[str] = field(default_factory=list)

    def follow(self, context: BrowserContext) -> None:
        context.on("page", self._follow_page)
        context.on("request", self._request)

    def _follow_page(self, page: Page) -> None:
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.problems.append(f"script error: {error}"))
        page.on("dialog", self._dialog)

    def _console(self, message: Any) -> None:
        if message.type in {"error", "warning"} and not any(
            word in message.text for word in self.expected
        ):
            self.problems.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.problems.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def _request(self, request: Any) -> None:
        url = request.url
        if not url.startswith((self.origin, "data:", "blob:")):
            self.problems.append(f"request to elsewhere: {url}")
        if url.endswith("/csp-report"):
            self.problems.append("report of a broken policy")


# A violation is also told in the console, where the watch sees it.
_TELL_VIOLATIONS = """
document.addEventListener("securitypolicyviolation", (event) =>
  console.error(`policy broken: ${event.effectiveDirective} ${event.blockedURI}`));
"""

Opener = Callable[..., "Page"]


@pytest.fixture
def open_page(site: Site, browser: Browser) -> Iterator[Opener]:
    """Opens a page as one of the people (`None`: nobody). Ends with a check that all went well.

    `expect` names words of console messages that the test itself causes.
    """
    contexts: list[BrowserContext] = []
    watches: list[Watch] = []
    n_reports = len(site.reports.seen)

    def open_(
        path: str = "/",
        *,
        who: str | None = "engineer",
        width: int = 1440,
        scheme: Literal["light", "dark"] = "light",
        scripts: bool = True,
        expect: tuple[str, ...] = (),
    ) -> Page:
        context = browser.new_context(
            base_url=site.url,
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        watch = Watch(site.url, expect)
        watches.append(watch)
        watch.follow(context)
        if scripts:
            context.add_init_script(_TELL_VIOLATIONS)
        if who is not None:
            context.add_cookies(
                [{"name": "sessionid", "value": site.session_of(who), "url": site.url}]
            )
        page = context.new_page()
        # A listener from the start: one added just before the click may come too late.
        page.on("filechooser", lambda chooser: None)
        page.goto(path)
        return page

    yield open_
    for context in contexts:
        context.close()
    assert [problem for watch in watches for problem in watch.problems] == []
    assert site.reports.seen[n_reports:] == []
