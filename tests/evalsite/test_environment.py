"""Reading the environment variables: each that is missing or wrong is named."""

import re
from decimal import Decimal
from pathlib import Path

import pytest

from evalsite.environment import (
    VARIABLES,
    Database,
    Environment,
    EnvironmentProblemsError,
    Mode,
    kept_secret_key,
    read_environment,
)
from evalsite.judge_runner.endpoint import EndpointAddress, JudgeEndpoint
from reviews.core.judge_answers import Prices
from traces.core.limits import DEFAULT_LIMITS

PROJECT = Path(__file__).resolve().parents[2]
KEY = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQR"
PRODUCTION = {
    "DATABASE_URL": "postgresql://me:p%40ss@db:6543/evals?sslmode=require",
    "CELERY_BROKER_URL": "redis://broker/0",
    "EVALSITE_SECRET_KEY": KEY,
    "EVALSITE_ALLOWED_HOSTS": "evals.example.org, www.example.org",
}


def read(values: dict[str, str], *, testing: bool = False) -> Environment:
    return read_environment(values, project=Path("/srv/evalsite"), testing=testing)


def problems(values: dict[str, str]) -> tuple[str, ...]:
    with pytest.raises(EnvironmentProblemsError) as caught:
        read(values)
    assert str(caught.value) == "\n".join(caught.value.problems)
    return caught.value.problems


def test_read_environment_nothing_set_is_embedded() -> None:
    environment = read({})
    assert environment.mode is Mode.EMBEDDED
    assert environment.database is None
    assert environment.data == Path("/srv/evalsite/.data")
    assert environment.limits == DEFAULT_LIMITS
    assert environment.upload_max_bytes == 512 * 1024 * 1024


def test_read_environment_production() -> None:
    environment = read(PRODUCTION)
    assert environment.mode is Mode.PRODUCTION
    assert environment.database == Database(
        host="db",
        port=6543,
        user="me",
        password="p@ss",
        name="evals",
        options=(("sslmode", "require"),),
    )
    assert environment.allowed_hosts == ("evals.example.org", "www.example.org")
    assert environment.https


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("CELERY_BROKER_URL", "CELERY_BROKER_URL is missing: set it to redis://… or amqp://…."),
        (
            "EVALSITE_SECRET_KEY",
            "EVALSITE_SECRET_KEY is missing: set it to 50 or more random characters.",
        ),
        (
            "EVALSITE_ALLOWED_HOSTS",
            "EVALSITE_ALLOWED_HOSTS is missing: set it to the site's host names.",
        ),
    ],
)
def test_read_environment_names_what_production_lacks(name: str, sentence: str) -> None:
    assert problems({k: v for k, v in PRODUCTION.items() if k != name}) == (sentence,)


@pytest.mark.parametrize(
    ("names", "told"),
    [
        (
            ("CELERY_BROKER_URL", "EVALSITE_SECRET_KEY", "EVALSITE_ALLOWED_HOSTS"),
            "CELERY_BROKER_URL, EVALSITE_SECRET_KEY, EVALSITE_ALLOWED_HOSTS",
        ),
        (
            ("CELERY_BROKER_URL", "EVALSITE_ALLOWED_HOSTS"),
            "CELERY_BROKER_URL, EVALSITE_ALLOWED_HOSTS",
        ),
        (("EVALSITE_SECRET_KEY",), "EVALSITE_SECRET_KEY"),
    ],
)
def test_read_environment_production_without_its_database(
    names: tuple[str, ...], told: str
) -> None:
    values = {name: PRODUCTION[name] for name in names}
    sentence = (
        f"DATABASE_URL is missing beside {told}: set it to postgresql://… for production, "
        "or unset these for the embedded database."
    )
    assert problems(values) == (sentence,)
    assert read(values, testing=True).mode is Mode.TESTING


@pytest.mark.parametrize(
    "values",
    [
        {"CELERY_BROKER_URL": "redis://broker/0"},
        {"EVALSITE_ALLOWED_HOSTS": "evals.example.org", "EVALSITE_BEHIND_PROXY": "1"},
        # `up` opens the site to all names for its own programs.
        {
            "CELERY_BROKER_URL": "redis://broker/0",
            "EVALSITE_ALLOWED_HOSTS": "*",
            "EVALSITE_SUPERVISED": "1",
        },
    ],
)
def test_read_environment_embedded_takes_a_broker_or_host_names(values: dict[str, str]) -> None:
    assert read(values).mode is Mode.EMBEDDED


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("DATABASE_URL", "mysql://h/n", "DATABASE_URL does not start with postgresql://."),
        ("DATABASE_URL", "postgresql://h:x/n", "DATABASE_URL is not a URL."),
        (
            "DATABASE_URL",
            "postgresql://h/",
            "DATABASE_URL names no database: postgresql://USER:PASSWORD@HOST:PORT/NAME.",
        ),
        (
            "CELERY_BROKER_URL",
            "localhost:6379",
            "CELERY_BROKER_URL does not start with redis://, rediss://, amqp:// or pgmq://.",
        ),
        (
            "EVALSITE_SECRET_KEY",
            "short",
            "EVALSITE_SECRET_KEY is too weak: 50 or more random characters are needed.",
        ),
        ("EVALSITE_HTTPS", "yes", "EVALSITE_HTTPS is neither 0 nor 1."),
        ("EVALSITE_WORKERS", "-1", "EVALSITE_WORKERS is not a whole number above 0."),
        ("EVALSITE_WORKERS", "٣", "EVALSITE_WORKERS is not a whole number above 0."),
        (
            "EVALSITE_LOG_LEVEL",
            "loud",
            "EVALSITE_LOG_LEVEL is none of DEBUG, INFO, WARNING and ERROR.",
        ),
        (
            "EVALSITE_CSRF_TRUSTED_ORIGINS",
            "evals.example.org",
            "EVALSITE_CSRF_TRUSTED_ORIGINS holds an origin without https:// in front.",
        ),
        (
            "EVALSITE_DEMO",
            "1",
            "EVALSITE_DEMO is set: sign-in without a password is for local use only.",
        ),
        (
            "EVALSITE_DEBUG",
            "1",
            "EVALSITE_DEBUG is set: error details must not be shown in production.",
        ),
        (
            "EVALSITE_HOSTS",
            "x",
            "EVALSITE_HOSTS is not a setting of evalsite; check its spelling.",
        ),
    ],
)
def test_read_environment_names_what_is_wrong(name: str, value: str, sentence: str) -> None:
    assert problems({**PRODUCTION, name: value}) == (sentence,)


def test_read_environment_names_all_problems_at_once() -> None:
    assert len(problems({"DATABASE_URL": "nonsense", "EVALSITE_WORKERS": "many"})) == 5


def test_read_environment_testing_needs_no_production_settings() -> None:
    environment = read({"DATABASE_URL": "postgresql:///x?host=/run"}, testing=True)
    assert environment.mode is Mode.TESTING
    assert environment.database is not None
    assert environment.database.host == "/run"


def test_database_dsn_quotes_every_value() -> None:
    database = Database(host="/a b", port=5432, user="it's", password="\\", name="n")
    assert database.dsn() == r"host='/a b' port='5432' user='it\'s' password='\\' dbname='n'"


def test_kept_secret_key_is_made_once_and_private(tmp_path: Path) -> None:
    file = tmp_path / "data" / "secret_key"
    key = kept_secret_key(file)
    assert len(key) >= 50
    assert kept_secret_key(file) == key
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["secret_key"]


def test_kept_secret_key_replaces_a_broken_one(tmp_path: Path) -> None:
    file = tmp_path / "secret_key"
    file.write_text("")
    key = kept_secret_key(file)
    assert len(key) >= 50
    assert file.read_text() == key


JUDGE = {
    "EVALSITE_JUDGE_URL": "https://models.example.org/v1",
    "EVALSITE_JUDGE_MODEL": "m-1",
}


def test_no_judge_is_asked_unless_an_endpoint_is_given() -> None:
    assert read({}).judge is None
    assert read({"EVALSITE_JUDGE_ALLOW_PRIVATE": "1"}).judge is None


def test_the_endpoint_of_judges(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-1\n")
    prices = {"EVALSITE_JUDGE_INPUT_PRICE": "2.50", "EVALSITE_JUDGE_OUTPUT_PRICE": "10"}
    limits = {"EVALSITE_JUDGE_TIMEOUT": "9", "EVALSITE_JUDGE_ALLOW_PRIVATE": "1"}
    judge = read(JUDGE | {"EVALSITE_JUDGE_KEY_FILE": str(file)} | prices | limits).judge
    assert judge == JudgeEndpoint(
        address=EndpointAddress(True, "models.example.org", 443, "/v1/chat/completions"),
        model="m-1",
        name="site judge",
        key="sk-1",
        allow_private=True,
        timeout_seconds=9,
        prices=Prices(Decimal("2.50"), Decimal(10)),
    )
    assert "sk-1" not in repr(judge)
    judge = read(JUDGE | {"EVALSITE_JUDGE_KEY": "sk-2"}).judge
    assert judge is not None
    assert judge.key == "sk-2"


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            {"EVALSITE_JUDGE_URL": "https://h/"},
            "EVALSITE_JUDGE_MODEL is missing: EVALSITE_JUDGE_URL needs it.",
        ),
        (
            {"EVALSITE_JUDGE_MODEL": "m"},
            "EVALSITE_JUDGE_URL is missing: EVALSITE_JUDGE_MODEL needs it.",
        ),
        (
            JUDGE | {"EVALSITE_JUDGE_URL": "http://h/"},
            "EVALSITE_JUDGE_URL starts with http://, which EVALSITE_JUDGE_ALLOW_HTTP=1 allows.",
        ),
        (
            JUDGE | {"EVALSITE_JUDGE_KEY": "a b"},
            "EVALSITE_JUDGE_KEY is empty, or holds a character that a key cannot have.",
        ),
        (
            JUDGE | {"EVALSITE_JUDGE_KEY_FILE": "/nowhere/key"},
            "EVALSITE_JUDGE_KEY_FILE names a file that cannot be read.",
        ),
        (
            JUDGE | {"EVALSITE_JUDGE_INPUT_PRICE": "cheap"},
            "EVALSITE_JUDGE_INPUT_PRICE is not an amount such as 2.50.",
        ),
    ],
)
def test_an_endpoint_that_cannot_be_used_is_named(values: dict[str, str], sentence: str) -> None:
    assert problems(values) == (sentence,)


def test_one_key_is_enough(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("sk-1")
    both = {"EVALSITE_JUDGE_KEY": "sk-2", "EVALSITE_JUDGE_KEY_FILE": str(file)}
    assert problems(JUDGE | both) == (
        "EVALSITE_JUDGE_KEY and EVALSITE_JUDGE_KEY_FILE are both set.",
    )


def test_keys_of_this_site_are_given_by_text_or_file(tmp_path: Path) -> None:
    key = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    (tmp_path / "audit").write_text(f"{key}\n")
    given = {
        "EVALSITE_SIGNING_KEY": key,
        "EVALSITE_AUDIT_KEY_FILE": str(tmp_path / "audit"),
    }
    environment = read(given)
    assert (environment.signing_key, environment.audit_key) == (key, f"{key}\n")
    assert key not in repr(environment)
    assert problems(given | {"EVALSITE_AUDIT_KEY": "short"}) == (
        "EVALSITE_AUDIT_KEY and EVALSITE_AUDIT_KEY_FILE are both set.",
    )
    assert problems({"EVALSITE_AUDIT_KEY": "AAEC", "EVALSITE_SIGNING_KEY": "*"}) == (
        "EVALSITE_SIGNING_KEY holds something that is no base64.",
        "EVALSITE_AUDIT_KEY holds a key of fewer than 32 bytes in base64.",
    )


def test_operating_guide_has_exactly_these_variables() -> None:
    guide = (PROJECT / "docs" / "operating.md").read_text()
    rows = re.findall(r"^\| `([A-Z_]+)` \| (?:`(.*?)`|) *\| (.*?) \|$", guide, re.MULTILINE)
    assert rows == [(v.name, v.default, v.meaning) for v in VARIABLES]
