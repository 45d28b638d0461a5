"""What all tests share: the test database's clean-up and the browser."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.cast import cast  # noqa: F401 - a fixture for all tests

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Playwright's sync API runs an event loop in this thread, where Django would refuse its ORM.
os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "true"

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


@pytest.fixture(scope="session")
def browser() -> "Iterator[Browser]":
    """A Chromium of the machine; tests that want it are skipped where there is none."""
    program = find_chromium()
    if program is None:
        message = "no Chromium: install it, or set CHROMIUM to its path"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=program, args=list(_CHROMIUM_FLAGS))
        yield chromium
        chromium.close()


@pytest.fixture(scope="session", autouse=True)
def _flush_in_spite_of_triggers() -> Iterator[None]:
    """Let a test that commits empty the tables of evidence afterwards, which refuse TRUNCATE."""
    from django.db import connection
    from django.test import TransactionTestCase

    original = TransactionTestCase._fixture_teardown

    def teardown(self: TransactionTestCase) -> None:
        with connection.cursor() as cursor:
            cursor.execute("set session_replication_role = replica")
        try:
            original(self)
        finally:
            with connection.cursor() as cursor:
                cursor.execute("reset session_replication_role")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(TransactionTestCase, "_fixture_teardown", teardown)
        yield


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None,
) -> None:
    """Drop the databases that killed test runs left behind."""
    from tests.support.databases import drop_abandoned_test_databases

    drop_abandoned_test_databases()
