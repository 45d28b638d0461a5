"""The WSGI application. What is wrong with the environment is said in sentences, not tracebacks."""

import os
import sys

from django.core.exceptions import ImproperlyConfigured
from django.core.wsgi import get_wsgi_application

from evalsite.embedded.lifeline import end_with_parent

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "evalsite.settings")

if os.environ.get("EVALSITE_SUPERVISED"):
    # The server's worker would go on serving the port after the server was killed.
    end_with_parent(os.getppid())

try:
    application = get_wsgi_application()
except ImproperlyConfigured as error:
    sys.exit(str(error))
