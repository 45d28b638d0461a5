"""The environment of a production process that works on this test run's own database."""

import os
from urllib.parse import quote

from django.conf import settings
from django.db import connection

from tests.support.processes import clean_environment


def production_environment(**more: str) -> dict[str, str]:
    """Environment variables as an operator sets them; the broker is that of the test run."""
    address = settings.DATABASE_ADDRESS
    user = quote(address.user, safe="")
    password = ":" + quote(address.password, safe="") if address.password else ""
    host = f"host={quote(address.host, safe='')}"
    options = "".join(f"&{key}={quote(value, safe='')}" for key, value in address.options)
    name = connection.settings_dict["NAME"]
    return clean_environment(
        DATABASE_URL=f"postgresql://{user}{password}@:{address.port}/{name}?{host}{options}",
        CELERY_BROKER_URL=os.environ.get("CELERY_BROKER_URL", "pgmq://localhost"),
        EVALSITE_SECRET_KEY="0123456789abcdefghijklmnopqrstuvwxyz-0123456789-0123456789",
        EVALSITE_ALLOWED_HOSTS="localhost,127.0.0.1",
        EVALSITE_HTTPS="0",
        **more,
    )
