from django.apps import AppConfig


class EvalsiteConfig(AppConfig):
    name = "evalsite"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Shared tasks bind to the application that exists when the first of them is sent.
        from evalsite import celery  # noqa: F401
