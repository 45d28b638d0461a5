"""Django's PostgreSQL backend, which starts the embedded server before the first connection.

Importing the settings starts nothing, so that type checkers, `check` and the like stay quick.
"""

from typing import Any

from django.conf import settings
from django.db.backends.postgresql import base


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        if settings.EMBEDDED_POSTGRES is not None:
            settings.EMBEDDED_POSTGRES.start()
        return super().get_connection_params()
