import sys
from pathlib import Path

from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Shared tasks bind to the application that exists when the first of them is sent.
        from evalsite import celery  # noqa: F401
        from evalsite.common.acting import set_command
        from evalsite.common.audit import use_key
        from evalsite.signing_keys import audit_key

        use_key(audit_key)
        if Path(sys.argv[0]).name == "manage.py":
            set_command("".join(sys.argv[1:2]))
