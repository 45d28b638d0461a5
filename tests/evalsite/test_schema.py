import subprocess
import sys

import pytest
from django.db import connection
from django.db.migrations.recorder import MigrationRecorder

from evalsite.schema import schema_problem
from tests.support.processes import PROJECT
from tests.support.production import production_environment

pytestmark = pytest.mark.django_db


def test_schema_problem_fitting_database() -> None:
    assert schema_problem() is None


def test_schema_problem_database_behind() -> None:
    MigrationRecorder(connection).record_unapplied("evalsite", "0001_worker_sign")
    assert schema_problem() == (
        "The database is behind this version of evalsite: 1 migrations are not applied, the first "
        "is evalsite.0001_worker_sign. Run `manage.py migrate`."
    )


def test_schema_problem_database_ahead() -> None:
    MigrationRecorder(connection).record_applied("traces", "0999_from_the_future")
    assert schema_problem() == (
        "The database is ahead of this version of evalsite: it has traces.0999_from_the_future, "
        "which this version does not know. Install the newer version."
    )


@pytest.mark.django_db(transaction=True)
def test_web_refuses_a_schema_that_it_does_not_know() -> None:
    recorder = MigrationRecorder(connection)
    recorder.record_applied("traces", "0999_from_the_future")
    try:
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", "import evalsite.wsgi"],
            cwd=PROJECT,
            env=production_environment(),
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        recorder.record_unapplied("traces", "0999_from_the_future")
    assert done.returncode == 3
    assert done.stderr == (
        "The database is ahead of this version of evalsite: it has traces.0999_from_the_future, "
        "which this version does not know. Install the newer version.\n"
    )
