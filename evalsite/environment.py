"""The environment variables of evalsite: one table that reads them, checks them and documents them.

docs/operating.md holds the same table for people; a test compares the two.
"""

import contextlib
import os
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

from evalsite.judge_runner.endpoint import (
    EndpointAddress,
    EndpointError,
    JudgeEndpoint,
    address_of,
    key_of,
    price_of,
)
from evalsite.key_texts import KeyTextError, audit_keys_in, signing_keys_in
from reviews.core.judge_answers import Prices
from traces.core.limits import MIB, Limits

T = TypeVar("T")

_SHORTEST_KEY: Final = 50
_BROKER_SCHEMES: Final = ("redis", "rediss", "amqp", "amqps", "pgmq")
# Set by evalsite itself for the processes that it starts.
_INTERNAL: Final = {
    "EVALSITE_INSIDE": "",
    "EVALSITE_SUPERVISED": "",
    "EVALSITE_NO_USER_NAMESPACE": "",
    "EVALSITE_TEST_QUEUE": "",
}


class Mode(StrEnum):
    """How the site runs: on its own embedded services, in production, or under the tests."""

    EMBEDDED = "embedded"
    PRODUCTION = "production"
    TESTING = "testing"


class EnvironmentProblemsError(Exception):
    """One or more variables are missing or wrong; the text has one sentence for each."""

    def __init__(self, problems: Sequence[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(problems))


class _WrongValueError(Exception):
    """A value cannot be read; the text completes the sentence 'NAME is …'."""


@dataclass(frozen=True, slots=True)
class Database:
    """A PostgreSQL address; `options` are parameters of libpq, such as `sslmode`."""

    host: str
    port: int
    user: str
    password: str
    name: str
    options: tuple[tuple[str, str], ...] = ()

    def dsn(self) -> str:
        """The address in libpq's keyword form, every value quoted."""
        parts = {
            "host": self.host,
            "port": str(self.port),
            "user": self.user,
            "password": self.password,
            "dbname": self.name,
            **dict(self.options),
        }
        quoted = (
            f"{key}='{value.replace(chr(92), chr(92) * 2).replace(chr(39), chr(92) + chr(39))}'"
            for key, value in parts.items()
            if value
        )
        return " ".join(quoted)


@dataclass(frozen=True, slots=True)
class Variable:
    """One environment variable: its name, the default as text, and what it means."""

    name: str
    default: str
    meaning: str


VARIABLES: Final = (
    Variable(
        "DATABASE_URL",
        "",
        "PostgreSQL to use, `postgresql://USER:PASSWORD@HOST:PORT/NAME`. "
        "Setting it selects production mode; without it an embedded server is started.",
    ),
    Variable(
        "CELERY_BROKER_URL",
        "",
        "Broker, `redis://…` or `amqp://…`; `pgmq://` keeps the "
        "queue in the database. Needed in production.",
    ),
    Variable(
        "EVALSITE_SECRET_KEY",
        "",
        "Key that signs sessions, 50 characters or more. Needed "
        "in production; the embedded mode makes one in the data folder.",
    ),
    Variable(
        "EVALSITE_ALLOWED_HOSTS",
        "",
        "Host names that the site answers to, separated by commas. Needed in production.",
    ),
    Variable(
        "EVALSITE_CSRF_TRUSTED_ORIGINS",
        "",
        "Origins such as `https://evals.example.org`, "
        "separated by commas, for a proxy that changes the host name.",
    ),
    Variable(
        "EVALSITE_HTTPS",
        "1",
        "Production: 1 sends people to https and marks cookies secure; "
        "0 for a network of your own without it.",
    ),
    Variable(
        "EVALSITE_BEHIND_PROXY",
        "0",
        "1 if a proxy of yours sets `X-Forwarded-Proto` and "
        "appends to `X-Forwarded-For`; without one, these headers can be forged.",
    ),
    Variable(
        "EVALSITE_REQUEST_ID_HEADER",
        "",
        "Header in which a proxy of yours names each request, "
        "such as `X-Request-Id`; empty: every request gets a new name. Without a proxy, the header "
        "can be forged.",
    ),
    Variable(
        "EVALSITE_DATA",
        ".data",
        "Folder of uploads, built static files and embedded "
        "services; a relative path starts at the project.",
    ),
    Variable(
        "EVALSITE_DEMO",
        "0",
        "1 offers one-click sign-in to callers on the same machine. "
        "`up` sets it on a loopback address; refused in production.",
    ),
    Variable(
        "EVALSITE_DEBUG",
        "0",
        "1 shows error details in the browser; refused in production.",
    ),
    Variable("EVALSITE_LOG_LEVEL", "INFO", "DEBUG, INFO, WARNING or ERROR."),
    Variable(
        "EVALSITE_SIGNING_KEY",
        "",
        "Ed25519 key that signs sign-offs, 32 bytes in base64; older ones behind it, separated by "
        "commas, only verify. Without it one is made in the data folder. Several hosts need the same.",
    ),
    Variable(
        "EVALSITE_SIGNING_KEY_FILE",
        "",
        "File that holds these keys, as base64 or PEM, instead of the keys themselves.",
    ),
    Variable(
        "EVALSITE_AUDIT_KEY",
        "",
        "Key that tags the audit log, 32 bytes or more in base64; older ones behind it, separated "
        "by commas. Without it one is made in the data folder. Several hosts need the same.",
    ),
    Variable("EVALSITE_AUDIT_KEY_FILE", "", "File that holds these keys, instead of the keys."),
    Variable("EVALSITE_DATABASE_POOL", "8", "Most database connections of one process."),
    Variable("EVALSITE_WORKERS", "2", "Worker processes that `up` starts."),
    Variable(
        "EVALSITE_VISIBILITY_SECONDS",
        "3600",
        "Seconds after which a message that a worker "
        "took and never finished is handed out again; longer than the longest job.",
    ),
    Variable(
        "EVALSITE_SIGN_IN_TRIES",
        "5",
        "Wrong passwords for one name from one address before sign-in is refused for a while.",
    ),
    Variable("EVALSITE_SIGN_IN_WAIT_MINUTES", "15", "Minutes that sign-in is refused then."),
    Variable(
        "EVALSITE_SESSION_HOURS",
        "12",
        "Hours after which a signed-in person signs in again.",
    ),
    Variable(
        "EVALSITE_API_MAX_BYTES",
        str(20 * MIB),
        "Largest body of one API request, plain or inflated, in bytes.",
    ),
    Variable("EVALSITE_UPLOAD_MAX_BYTES", str(512 * MIB), "Largest upload, in bytes as sent."),
    Variable(
        "EVALSITE_RECORD_MAX_BYTES",
        str(16 * MIB),
        "Largest record of an upload, in bytes.",
    ),
    Variable(
        "EVALSITE_PREVIEW_MAX_BYTES",
        str(64 * 1024),
        "Longest stretch of a text that a page shows before it offers the rest, in bytes.",
    ),
    Variable("EVALSITE_MAX_DEPTH", "64", "Deepest nesting of a record."),
    Variable("EVALSITE_MAX_KEYS", "10000", "Most keys of one object in a record."),
    Variable("EVALSITE_MAX_STEPS", "200000", "Most steps of one trial."),
    Variable("EVALSITE_MAX_ID_CHARACTERS", "512", "Longest identifier, in characters."),
    Variable("EVALSITE_MAX_INTEGER_DIGITS", "4000", "Longest integer, in digits."),
    Variable("EVALSITE_ARCHIVE_MAX_MEMBERS", "10000", "Most files in one archive."),
    Variable(
        "EVALSITE_INFLATED_MAX_BYTES",
        str(512 * MIB),
        "Most bytes that an upload of one file may inflate to.",
    ),
    Variable(
        "EVALSITE_ARCHIVE_MAX_BYTES",
        str(2048 * MIB),
        "Most bytes that all files of one archive together may inflate to.",
    ),
    Variable(
        "EVALSITE_UPLOADS_PER_MINUTE",
        "120",
        "Uploads that one API key or person may send in a minute.",
    ),
    Variable(
        "EVALSITE_MAX_WAITING_UPLOADS",
        "1000",
        "Uploads that may wait to be read; beyond that the site answers 503 with Retry-After.",
    ),
    Variable(
        "EVALSITE_JUDGE_URL",
        "",
        "Endpoint of judges, OpenAI-compatible, such as `https://models.example.org/v1`. Without it no judge is asked from here.",
    ),
    Variable("EVALSITE_JUDGE_MODEL", "", "Model that is asked; needed with the endpoint."),
    Variable("EVALSITE_JUDGE_NAME", "site judge", "Name of the judge as a grader."),
    Variable(
        "EVALSITE_JUDGE_KEY",
        "",
        "Key of the endpoint, sent as a bearer token. It is never shown or logged.",
    ),
    Variable("EVALSITE_JUDGE_KEY_FILE", "", "File that holds the key, instead of the key itself."),
    Variable("EVALSITE_JUDGE_ALLOW_HTTP", "0", "1 allows an endpoint without https."),
    Variable(
        "EVALSITE_JUDGE_ALLOW_PRIVATE",
        "0",
        "1 allows an endpoint at a loopback or private address. Link-local and metadata addresses are never connected to.",
    ),
    Variable("EVALSITE_JUDGE_TIMEOUT", "60", "Seconds that one request may take in all."),
    Variable(
        "EVALSITE_JUDGE_TRIES",
        "3",
        "Tries of a request that meets 429, a server error or the time-out.",
    ),
    Variable(
        "EVALSITE_JUDGE_MAX_CHARACTERS",
        "200000",
        "Most characters of evidence in one request; what is left out is said.",
    ),
    Variable("EVALSITE_JUDGE_MAX_TOKENS", "2000", "Most tokens of one answer."),
    Variable(
        "EVALSITE_JUDGE_INPUT_PRICE",
        "",
        "US dollars for a million tokens sent, such as `2.50`; with both prices costs are recorded.",
    ),
    Variable("EVALSITE_JUDGE_OUTPUT_PRICE", "", "US dollars for a million tokens of answers."),
)


@dataclass(frozen=True, slots=True)
class Environment:
    """What the environment variables say. `database` is None where the embedded one is meant."""

    mode: Mode
    data: Path
    database: Database | None
    broker_url: str
    secret_key: str
    allowed_hosts: tuple[str, ...]
    csrf_trusted_origins: tuple[str, ...]
    https: bool
    behind_proxy: bool
    request_id_header: str
    demo: bool
    debug: bool
    log_level: str
    database_pool: int
    workers: int
    visibility_seconds: int
    sign_in_tries: int
    sign_in_wait_minutes: int
    session_hours: int
    api_max_bytes: int
    upload_max_bytes: int
    preview_max_bytes: int
    uploads_per_minute: int
    max_waiting_uploads: int
    limits: Limits
    judge: JudgeEndpoint | None  # None: no judge is asked from here
    signing_key: str = field(default="", repr=False)  # as given; "": kept in the data folder
    audit_key: str = field(default="", repr=False)


class _Reader:
    """Reads variables one by one and gathers a sentence for each that is missing or wrong."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self._values = values
        self._defaults = {variable.name: variable.default for variable in VARIABLES}
        self.problems: list[str] = []

    def text(self, name: str) -> str:
        return self._values.get(name, "").strip() or self._defaults[name]

    def parsed(self, name: str, parse: Callable[[str], T], fallback: T) -> T:
        try:
            return parse(self.text(name))
        except _WrongValueError as error:
            self.problems.append(f"{name} {error}.")
            return fallback

    def number(self, name: str) -> int:
        return self.parsed(name, _positive_number, 1)

    def switch(self, name: str) -> bool:
        return self.parsed(name, _switch, False)

    def words(self, name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in self.text(name).split(",") if word.strip())

    def unknown_names(self) -> None:
        for name in sorted(self._values):
            if name.startswith("EVALSITE_") and name not in self._defaults | _INTERNAL:
                self.problems.append(f"{name} is not a setting of evalsite; check its spelling.")


def read_environment(values: Mapping[str, str], *, project: Path, testing: bool) -> Environment:
    """Read and check all variables.

    Raises:
        EnvironmentProblemsError: names every variable that is missing or wrong.
    """
    reader = _Reader(values)
    reader.unknown_names()
    has_url = bool(reader.text("DATABASE_URL"))
    mode = Mode.TESTING if testing else Mode.PRODUCTION if has_url else Mode.EMBEDDED
    environment = Environment(
        mode=mode,
        data=(project / reader.text("EVALSITE_DATA")).resolve(),
        database=reader.parsed("DATABASE_URL", database_of, None) if has_url else None,
        broker_url=reader.parsed("CELERY_BROKER_URL", _broker, ""),
        secret_key=reader.text("EVALSITE_SECRET_KEY"),
        allowed_hosts=reader.words("EVALSITE_ALLOWED_HOSTS"),
        csrf_trusted_origins=reader.parsed("EVALSITE_CSRF_TRUSTED_ORIGINS", _origins, ()),
        https=reader.switch("EVALSITE_HTTPS"),
        behind_proxy=reader.switch("EVALSITE_BEHIND_PROXY"),
        request_id_header=reader.text("EVALSITE_REQUEST_ID_HEADER").strip(),
        demo=reader.switch("EVALSITE_DEMO"),
        debug=reader.switch("EVALSITE_DEBUG"),
        log_level=reader.parsed("EVALSITE_LOG_LEVEL", _log_level, "INFO"),
        database_pool=reader.number("EVALSITE_DATABASE_POOL"),
        workers=reader.number("EVALSITE_WORKERS"),
        visibility_seconds=reader.number("EVALSITE_VISIBILITY_SECONDS"),
        sign_in_tries=reader.number("EVALSITE_SIGN_IN_TRIES"),
        sign_in_wait_minutes=reader.number("EVALSITE_SIGN_IN_WAIT_MINUTES"),
        session_hours=reader.number("EVALSITE_SESSION_HOURS"),
        api_max_bytes=reader.number("EVALSITE_API_MAX_BYTES"),
        upload_max_bytes=reader.number("EVALSITE_UPLOAD_MAX_BYTES"),
        preview_max_bytes=reader.number("EVALSITE_PREVIEW_MAX_BYTES"),
        uploads_per_minute=reader.number("EVALSITE_UPLOADS_PER_MINUTE"),
        max_waiting_uploads=reader.number("EVALSITE_MAX_WAITING_UPLOADS"),
        limits=_limits(reader),
        judge=_judge(reader),
        signing_key=_own_key(reader, "EVALSITE_SIGNING_KEY", signing_keys_in),
        audit_key=_own_key(reader, "EVALSITE_AUDIT_KEY", audit_keys_in),
    )
    if mode is Mode.PRODUCTION:
        reader.problems.extend(
            _production_problems(environment, has_broker=bool(reader.text("CELERY_BROKER_URL")))
        )
    if mode is Mode.EMBEDDED and not values.get("EVALSITE_SUPERVISED"):
        reader.problems.extend(_embedded_problems(reader))
    if reader.problems:
        raise EnvironmentProblemsError(reader.problems)
    return environment


def database_of(url: str) -> Database:
    """A PostgreSQL address from its URL; a socket folder may stand in `?host=`."""
    try:
        parts = urlsplit(url)
        port = parts.port or 5432
    except ValueError:
        raise _WrongValueError("is not a URL") from None
    if parts.scheme not in {"postgresql", "postgres"}:
        raise _WrongValueError("does not start with postgresql://")
    options = dict(parse_qsl(parts.query))
    host = options.pop("host", parts.hostname or "")
    name = unquote(parts.path.lstrip("/"))
    if not name:
        raise _WrongValueError("names no database: postgresql://USER:PASSWORD@HOST:PORT/NAME")
    return Database(
        host=host,
        port=port,
        user=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
        name=name,
        options=tuple(sorted(options.items())),
    )


def kept_secret_key(file: Path) -> str:
    """The secret key of an embedded site: read from the file, which is made on first use.

    Raises:
        OSError: the file cannot be read or made.
    """
    try:
        key = file.read_text().strip()
    except FileNotFoundError:
        key = ""
    if len(key) >= _SHORTEST_KEY:
        return key
    file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    fresh = file.with_name(f"{file.name}.{secrets.token_hex(4)}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as out:
        out.write(secrets.token_urlsafe(64))
    # Whoever links first wins; a broken file of an interrupted start is replaced.
    if key or file.exists():
        fresh.replace(file)
    else:
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)
        fresh.unlink()
    return file.read_text().strip()


def _limits(reader: _Reader) -> Limits:
    return Limits(
        record_bytes=reader.number("EVALSITE_RECORD_MAX_BYTES"),
        depth=reader.number("EVALSITE_MAX_DEPTH"),
        keys=reader.number("EVALSITE_MAX_KEYS"),
        steps=reader.number("EVALSITE_MAX_STEPS"),
        identifier_chars=reader.number("EVALSITE_MAX_ID_CHARACTERS"),
        integer_digits=reader.number("EVALSITE_MAX_INTEGER_DIGITS"),
        inflated_bytes=reader.number("EVALSITE_INFLATED_MAX_BYTES"),
        archive_members=reader.number("EVALSITE_ARCHIVE_MAX_MEMBERS"),
        archive_bytes=reader.number("EVALSITE_ARCHIVE_MAX_BYTES"),
    )


def _judge(reader: _Reader) -> JudgeEndpoint | None:
    """The endpoint of judges; None where none is given, or one cannot be used."""
    url, model = reader.text("EVALSITE_JUDGE_URL"), reader.text("EVALSITE_JUDGE_MODEL")
    key = _judge_key(reader)
    allow_http = reader.switch("EVALSITE_JUDGE_ALLOW_HTTP")
    address = reader.parsed("EVALSITE_JUDGE_URL", _judge_address(allow_http=allow_http), None)
    endpoint = JudgeEndpoint(
        address=address or EndpointAddress(is_https=True, host="", port=443, target=""),
        model=model[:200],
        name=reader.text("EVALSITE_JUDGE_NAME")[:200],
        key=key,
        allow_private=reader.switch("EVALSITE_JUDGE_ALLOW_PRIVATE"),
        timeout_seconds=reader.number("EVALSITE_JUDGE_TIMEOUT"),
        tries=reader.number("EVALSITE_JUDGE_TRIES"),
        max_characters=reader.number("EVALSITE_JUDGE_MAX_CHARACTERS"),
        max_tokens=reader.number("EVALSITE_JUDGE_MAX_TOKENS"),
        prices=Prices(
            reader.parsed("EVALSITE_JUDGE_INPUT_PRICE", _price, None),
            reader.parsed("EVALSITE_JUDGE_OUTPUT_PRICE", _price, None),
        ),
    )
    if bool(url) != bool(model):
        given, missing = ("URL", "MODEL") if url else ("MODEL", "URL")
        reader.problems.append(
            f"EVALSITE_JUDGE_{missing} is missing: EVALSITE_JUDGE_{given} needs it."
        )
    return endpoint if address is not None and model else None


def _judge_key(reader: _Reader) -> str:
    key, file = reader.text("EVALSITE_JUDGE_KEY"), reader.text("EVALSITE_JUDGE_KEY_FILE")
    if key and file:
        reader.problems.append("EVALSITE_JUDGE_KEY and EVALSITE_JUDGE_KEY_FILE are both set.")
    if file:
        return reader.parsed("EVALSITE_JUDGE_KEY_FILE", _key_in_file, "")
    return reader.parsed("EVALSITE_JUDGE_KEY", _key, "") if key else ""


def _own_key(reader: _Reader, name: str, parse: Callable[[str], object]) -> str:
    """The text of keys of this site, from the variable or the file that another one names."""
    text, file = reader.text(name), reader.text(f"{name}_FILE")
    if text and file:
        reader.problems.append(f"{name} and {name}_FILE are both set.")

    def checked(text: str) -> str:
        try:
            parse(text)
        except KeyTextError as error:
            raise _WrongValueError(str(error)) from None
        return text

    if file:
        return reader.parsed(f"{name}_FILE", lambda path: checked(_text_in_file(path)), "")
    return reader.parsed(name, checked, "") if text else ""


def _judge_address(*, allow_http: bool) -> Callable[[str], EndpointAddress | None]:
    def parsed(text: str) -> EndpointAddress | None:
        return _or_wrong(lambda: address_of(text, allow_http=allow_http)) if text else None

    return parsed


def _price(text: str) -> Decimal | None:
    return _or_wrong(lambda: price_of(text))


def _key(text: str) -> str:
    return _or_wrong(lambda: key_of(text))


def _key_in_file(name: str) -> str:
    return _key(_text_in_file(name))


def _text_in_file(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, ValueError):
        raise _WrongValueError("names a file that cannot be read") from None


def _or_wrong(parse: Callable[[], T]) -> T:
    try:
        return parse()
    except EndpointError as error:
        raise _WrongValueError(str(error)) from None


def _production_problems(environment: Environment, *, has_broker: bool) -> list[str]:
    problems = []
    if not has_broker:
        problems.append("CELERY_BROKER_URL is missing: set it to redis://… or amqp://….")
    if not environment.secret_key:
        problems.append("EVALSITE_SECRET_KEY is missing: set it to 50 or more random characters.")
    elif len(environment.secret_key) < _SHORTEST_KEY or len(set(environment.secret_key)) < 5:
        problems.append("EVALSITE_SECRET_KEY is too weak: 50 or more random characters are needed.")
    if not environment.allowed_hosts:
        problems.append("EVALSITE_ALLOWED_HOSTS is missing: set it to the site's host names.")
    if environment.demo:
        problems.append("EVALSITE_DEMO is set: sign-in without a password is for local use only.")
    if environment.debug:
        problems.append("EVALSITE_DEBUG is set: error details must not be shown in production.")
    return problems


def _embedded_problems(reader: _Reader) -> list[str]:
    """What tells that production was meant: without its database a site would start empty."""
    names = ("CELERY_BROKER_URL", "EVALSITE_SECRET_KEY", "EVALSITE_ALLOWED_HOSTS")
    found = [name for name in names if reader.text(name)]
    # The embedded site has uses for each of the other two alone, and none for a key.
    if len(found) < 2 and "EVALSITE_SECRET_KEY" not in found:
        return []
    sentence = (
        f"DATABASE_URL is missing beside {', '.join(found)}: set it to postgresql://… for "
        "production, or unset these for the embedded database."
    )
    return [sentence]


def _positive_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) <= 15 and int(text) > 0):
        raise _WrongValueError("is not a whole number above 0")
    return int(text)


def _switch(text: str) -> bool:
    if text not in {"0", "1"}:
        raise _WrongValueError("is neither 0 nor 1")
    return text == "1"


def _broker(text: str) -> str:
    scheme, separator, _ = text.partition("://")
    if text and (not separator or scheme not in _BROKER_SCHEMES):
        raise _WrongValueError("does not start with redis://, rediss://, amqp:// or pgmq://")
    return text


def _log_level(text: str) -> str:
    if text.upper() not in {"DEBUG", "INFO", "WARNING", "ERROR"}:
        raise _WrongValueError("is none of DEBUG, INFO, WARNING and ERROR")
    return text.upper()


def _origins(text: str) -> tuple[str, ...]:
    origins = tuple(word.strip() for word in text.split(",") if word.strip())
    if not all(origin.startswith(("https://", "http://")) for origin in origins):
        raise _WrongValueError("holds an origin without https:// in front")
    return origins
