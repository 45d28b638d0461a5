"""The WSGI application. What keeps it from serving is said in sentences, not tracebacks."""

import logging
import os
import sys
from typing import NoReturn

from django.core.exceptions import ImproperlyConfigured
from django.core.handlers.wsgi import WSGIHandler
from django.core.wsgi import get_wsgi_application
from django.db import OperationalError

from evalsite.embedded.lifeline import end_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

_CANNOT_SERVE = 3


def checked_application() -> WSGIHandler:
    """The application, once environment and database schema are known to fit this code.

    Raises:
        SystemExit: they do not; what is wrong has been printed.
    """
    try:
        handler = get_wsgi_application()
    except ImproperlyConfigured as error:
        _refuse(str(error))
    from evalsite.schema import schema_problem

    try:
        problem = schema_problem()
    except OperationalError:
        # A database that is away may come back; /health says so meanwhile.
        logging.getLogger(__name__).warning("started_without_database")
        return handler
    if problem is not None:
        _refuse(problem)
    return handler


def _refuse(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr, flush=True)
    sys.exit(_CANNOT_SERVE)


if os.environ.get("EVALSITE_SUPERVISED"):
    # The server's worker would go on serving the port after the server was killed.
    end_with_parent(os.getppid())

application = checked_application()
