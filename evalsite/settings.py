"""Django's settings, all derived from the environment (environment.py; docs/operating.md)."""

import os
from datetime import timedelta
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF
from django.core.exceptions import ImproperlyConfigured

from evalsite.embedded.postgres import (
    DATABASE,
    PORT,
    USER,
    EmbeddedPostgres,
    sentence_of,
)
from evalsite.environment import (
    Database,
    EnvironmentProblemsError,
    Mode,
    kept_secret_key,
    read_environment,
)

BASE_DIR = Path(__file__).resolve().parent.parent
TESTING = "PYTEST_VERSION" in os.environ

try:
    ENVIRONMENT = read_environment(os.environ, project=BASE_DIR, testing=TESTING)
except EnvironmentProblemsError as error:
    raise ImproperlyConfigured(str(error)) from None

MODE = ENVIRONMENT.mode
PRODUCTION = MODE is Mode.PRODUCTION
EVALSITE_DATA = ENVIRONMENT.data
EVALSITE_UPLOADS = EVALSITE_DATA / "uploads"  # the tests take folders of their own
EVALSITE_KEYS = EVALSITE_DATA / ("keys-test" if TESTING else "keys")
EVALSITE_SIGNING_KEY = ENVIRONMENT.signing_key
EVALSITE_AUDIT_KEY = ENVIRONMENT.audit_key
EVALSITE_REQUEST_ID_HEADER = ENVIRONMENT.request_id_header  # "": every request gets a new id
EVALSITE_DEMO = ENVIRONMENT.demo
EVALSITE_LIMITS = ENVIRONMENT.limits
EVALSITE_API_MAX_BYTES = ENVIRONMENT.api_max_bytes
EVALSITE_UPLOAD_MAX_BYTES = ENVIRONMENT.upload_max_bytes
EVALSITE_PREVIEW_MAX_BYTES = ENVIRONMENT.preview_max_bytes
EVALSITE_UPLOADS_PER_MINUTE = ENVIRONMENT.uploads_per_minute
EVALSITE_MAX_WAITING_UPLOADS = ENVIRONMENT.max_waiting_uploads
EVALSITE_JUDGE = ENVIRONMENT.judge  # None: no judge is asked from here
DEBUG = ENVIRONMENT.debug

try:
    SECRET_KEY = ENVIRONMENT.secret_key or (
        "only-for-tests" if TESTING else kept_secret_key(EVALSITE_DATA / "secret_key")
    )
except OSError as error:
    raise ImproperlyConfigured(sentence_of(error, EVALSITE_DATA)) from None

# Not `*`: another site's page could otherwise reach the demo through a name of its own.
ALLOWED_HOSTS = list(ENVIRONMENT.allowed_hosts) or ["localhost", "127.0.0.1", "[::1]"]
CSRF_TRUSTED_ORIGINS = list(ENVIRONMENT.csrf_trusted_origins)

# --- applications

INSTALLED_APPS = [
    "evalsite",
    "traces",
    "reviews",
    "django.contrib.contenttypes",
    "django.contrib.auth",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.postgres",
    "rest_framework",
    "drf_spectacular",
    "django_htmx",
    "axes",
    "csp",
    "pgtrigger",
]

MIDDLEWARE = [
    "evalsite.middleware.ActingMiddleware",
    "django.middleware.security.SecurityMiddleware",
    "whitenoise.middleware.WhiteNoiseMiddleware",
    # Before everything that may answer by itself, so that each refusal carries them too.
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
    "csp.middleware.CSPMiddleware",
    "evalsite.middleware.AnswerMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "evalsite.devices.SeenMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django_htmx.middleware.HtmxMiddleware",
    "axes.middleware.AxesMiddleware",
]

ROOT_URLCONF = "evalsite.urls"
WSGI_APPLICATION = "evalsite.wsgi.application"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"

TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]

# --- database

EMBEDDED_POSTGRES = (
    EmbeddedPostgres(EVALSITE_DATA / ("pg-test" if TESTING else "pg"), unsafe=TESTING)
    if ENVIRONMENT.database is None
    else None
)
DATABASE_ADDRESS = ENVIRONMENT.database or Database(
    host=str(EMBEDDED_POSTGRES.socket_folder) if EMBEDDED_POSTGRES else "",
    port=PORT,
    user=USER,
    password="",
    name=DATABASE,
)

# A pool would keep connections to a test database that is about to be dropped.
_POOL: dict[str, Any] = (
    {} if TESTING else {"pool": {"min_size": 1, "max_size": ENVIRONMENT.database_pool}}
)
DATABASES = {
    "default": {
        "ENGINE": "evalsite.embedded.postgres_backend",
        "NAME": DATABASE_ADDRESS.name,
        "USER": DATABASE_ADDRESS.user,
        "PASSWORD": DATABASE_ADDRESS.password,
        "HOST": DATABASE_ADDRESS.host,
        "PORT": DATABASE_ADDRESS.port,
        "CONN_HEALTH_CHECKS": True,
        "OPTIONS": {**dict(DATABASE_ADDRESS.options), **_POOL},
        # Test runs beside each other, also in one folder, must not share a database.
        "TEST": {"NAME": f"test_{os.getpid()}_{DATABASE_ADDRESS.name}"},
    }
}

CACHES = {"default": {"BACKEND": "django.core.cache.backends.locmem.LocMemCache"}}

# --- jobs

CELERY_BROKER_URL = ENVIRONMENT.broker_url or ("memory://" if TESTING else "pgmq://localhost")
CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
    "visibility_timeout": ENVIRONMENT.visibility_seconds
}
if CELERY_BROKER_URL.startswith("pgmq"):
    CELERY_BROKER_TRANSPORT = "evalsite.embedded.broker:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "conn_string": DATABASE_ADDRESS.dsn(),
        "init_extension": False,
        "use_notify": True,
        "polling_interval": 0.1,
        "wait_time_seconds": 0,
        "pool_size": 4,
    }
elif CELERY_BROKER_URL.startswith("redis"):
    # The defaults give back the message of a killed worker only after minutes.
    CELERY_BROKER_TRANSPORT_OPTIONS |= {
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
    }
CELERY_TASK_ACKS_LATE = True
CELERY_TASK_REJECT_ON_WORKER_LOST = True
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 4
CELERY_WORKER_SEND_TASK_EVENTS = False
CELERY_WORKER_CANCEL_LONG_RUNNING_TASKS_ON_CONNECTION_LOSS = True
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_TIMEZONE = "UTC"
# All intervals are short; a file of last runs could only be broken by a kill.
CELERY_BEAT_SCHEDULER = "celery.beat:Scheduler"
CELERY_BEAT_SCHEDULE = {
    "heartbeat": {"task": "evalsite.tasks.heartbeat", "schedule": 10.0},
    "sweep": {"task": "evalsite.sweep", "schedule": 20.0},
}

# --- people

AUTH_USER_MODEL = "traces.User"
AUTHENTICATION_BACKENDS = [
    "axes.backends.AxesStandaloneBackend",
    "django.contrib.auth.backends.ModelBackend",
]
AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]
if TESTING:
    PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
LOGIN_URL = "sign-in"
LOGIN_REDIRECT_URL = "system-list"
LOGOUT_REDIRECT_URL = "sign-in"

AXES_HANDLER = "axes.handlers.database.AxesDatabaseHandler"
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_FAILURE_LIMIT = ENVIRONMENT.sign_in_tries
AXES_COOLOFF_TIME = timedelta(minutes=ENVIRONMENT.sign_in_wait_minutes)
AXES_HTTP_RESPONSE_CODE = 429
AXES_LOCKOUT_TEMPLATE = "429.html"
AXES_RESET_ON_SUCCESS = True
AXES_DISABLE_ACCESS_LOG = True
AXES_CLIENT_IP_CALLABLE = "evalsite.client_address.client_address"

# --- safety of the browser

CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF, "data:"],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
        "object-src": [NONE],
        "report-uri": "/csp-report",
    }
}
X_FRAME_OPTIONS = "DENY"
SECURE_CONTENT_TYPE_NOSNIFF = True
SECURE_REFERRER_POLICY = "same-origin"
SECURE_CROSS_ORIGIN_OPENER_POLICY = "same-origin"
SESSION_COOKIE_HTTPONLY = True
SESSION_COOKIE_SAMESITE = "Lax"
SESSION_COOKIE_AGE = ENVIRONMENT.session_hours * 3600
CSRF_COOKIE_SAMESITE = "Lax"
_HTTPS = PRODUCTION and ENVIRONMENT.https
SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = SECURE_SSL_REDIRECT = _HTTPS
SECURE_HSTS_SECONDS = 31_536_000 if _HTTPS else 0
SECURE_HSTS_INCLUDE_SUBDOMAINS = SECURE_HSTS_PRELOAD = _HTTPS
# A load balancer asks for the site's health without https and by address.
SECURE_REDIRECT_EXEMPT = [r"^health$"]
if ENVIRONMENT.behind_proxy:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# --- bodies of requests

# Uploads are streamed and counted by the ingest; this bounds form fields and JSON bodies.
DATA_UPLOAD_MAX_MEMORY_SIZE = EVALSITE_API_MAX_BYTES
DATA_UPLOAD_MAX_NUMBER_FIELDS = 2_000
DATA_UPLOAD_MAX_NUMBER_FILES = 50
FILE_UPLOAD_MAX_MEMORY_SIZE = 1024 * 1024
FILE_UPLOAD_PERMISSIONS = 0o600
FILE_UPLOAD_TEMP_DIR = None

# --- API

REST_FRAMEWORK = {
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
    "DEFAULT_RENDERER_CLASSES": ["rest_framework.renderers.JSONRenderer"],
    "DEFAULT_PARSER_CLASSES": ["rest_framework.parsers.JSONParser"],
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "UNAUTHENTICATED_USER": "django.contrib.auth.models.AnonymousUser",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "evalsite",
    "VERSION": "1",
    "SERVE_INCLUDE_SCHEMA": False,
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}

# --- static files

STATIC_URL = "/static/"
STATICFILES_DIRS = [BASE_DIR / "static"]
STATIC_ROOT = EVALSITE_DATA / "static"
WHITENOISE_USE_FINDERS = TESTING or DEBUG
WHITENOISE_AUTOREFRESH = DEBUG
if TESTING:
    _STATIC_STORAGE = "django.contrib.staticfiles.storage.StaticFilesStorage"
elif PRODUCTION:
    _STATIC_STORAGE = "evalsite.static_storage.CompressedStorage"
else:
    _STATIC_STORAGE = "evalsite.static_storage.HashedStorage"
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {"BACKEND": _STATIC_STORAGE},
}

# --- language and time

LANGUAGE_CODE = "en-gb"
USE_I18N = False
USE_TZ = True
TIME_ZONE = "UTC"

# --- logs

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {"line": {"()": "evalsite.logs.LineFormatter"}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line"}},
    "root": {"handlers": ["stderr"], "level": ENVIRONMENT.log_level},
    "loggers": {
        "django": {"level": "INFO"},
        "django.utils.autoreload": {"level": "WARNING"},
        # Says each refused request twice.
        "django.request": {"level": "ERROR"},
        "axes": {"level": "WARNING"},
        "celery": {"level": "WARNING"},
        "kombu": {"level": "WARNING"},
        "pgmq": {"level": "WARNING"},
        "psycopg.pool": {"level": "WARNING"},
    },
}

SILENCED_SYSTEM_CHECKS: list[str] = []
