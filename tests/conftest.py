"""What all tests share: the cast, and the test database's clean-up."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pytest_django.plugin import DjangoDbBlocker

from tests.support.cast import cast  # noqa: F401 - a fixture for all tests


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
def django_db_setup(
    django_test_environment: None, django_db_blocker: DjangoDbBlocker
) -> Iterator[None]:
    """Instead of pytest-django's: a copy of tables that are made once on each server."""
    from tests.support.databases import drop_abandoned_test_databases, own_database

    drop_abandoned_test_databases()
    with django_db_blocker.unblock(), own_database():
        yield


@pytest.fixture(scope="session", autouse=True)
def uploads_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder for the bytes of uploads that this process of the test run has to itself."""
    from django.conf import settings

    folder = tmp_path_factory.mktemp("uploads")
    settings.EVALSITE_UPLOADS = folder
    return folder


@pytest.fixture(scope="module")
def module_db(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """A transaction around all tests of a module, for rows that they share.

    A fixture of the module that asks for this one writes once; each test of the module (marked
    `django_db` as always) starts from there, and what it writes itself is undone at its end. Not
    for tests that commit. Objects are shared too: a test changes rows, not the objects.
    """
    from django.db import transaction

    from evalsite.common.remembering import forget_rows

    forget_rows()
    with django_db_blocker.unblock():
        atomic = transaction.atomic()
        atomic._from_testcase = True
        with atomic:
            yield
            transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def _forget_rows_of_other_tests() -> None:
    """Each test may see another database, whose rows have the ids of the one before."""
    from evalsite.common.remembering import forget_rows

    forget_rows()
