"""A database and an uploads folder that are made for a benchmark and gone after it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import cast

from django.db import connection
from django.test.utils import override_settings

from evalsite.embedded.postgres_backend.base import DatabaseWrapper


@contextlib.contextmanager
def scratch_site() -> Iterator[Path]:
    """Everything inside works on an empty, migrated database. Gives a folder for files.

    The database of the installation is not touched.
    """
    installed = connection.settings_dict["NAME"]
    options, names = connection.settings_dict["OPTIONS"], connection.settings_dict["TEST"]
    usual = names["NAME"]
    # The form of name by which test runs know what a killed process left behind.
    names["NAME"] = f"test_{os.getpid()}_benchmark"
    pool = options.pop("pool", None)
    connection.close()
    if pool is not None:
        cast("DatabaseWrapper", connection).close_pool()
    with tempfile.TemporaryDirectory(prefix="evalsite-benchmark-") as folder:
        uploads = Path(folder) / "uploads"
        with override_settings(EVALSITE_UPLOADS=uploads):
            connection.creation.create_test_db(verbosity=0, autoclobber=True, serialize=False)
            try:
                yield Path(folder)
            finally:
                connection.creation.destroy_test_db(installed, verbosity=0)
                names["NAME"] = usual
                if pool is not None:
                    options["pool"] = pool
