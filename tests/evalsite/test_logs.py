"""Log lines: one for each event, and none that an identifier could forge."""

import logging

from evalsite.common.acting import Acting, Source, acting_as
from evalsite.logs import LineFormatter


def line(message: str, **extra: object) -> str:
    record = logging.makeLogRecord(
        {"name": "evalsite.x", "levelname": "INFO", "msg": message, "created": 0.25, **extra}
    )
    record.msecs = 250
    return LineFormatter().format(record)


def test_format_event_with_values() -> None:
    assert line("upload_stored", upload="u-1", n=3, ok=True, why=None) == (
        "1970-01-01T00:00:00.250Z INFO evalsite.x event=upload_stored upload=u-1 n=3 ok=true "
        "why=null"
    )


def test_format_hostile_identifier_stays_on_its_line() -> None:
    forged = "a\n1970-01-01T00:00:00.250Z INFO evalsite.x event=signed\u2028\x1b[2J\u202e"
    formatted = line("trial_refused", trial=forged)
    assert "\n" not in formatted
    assert formatted.isascii()
    assert formatted.endswith(
        r'trial="a\n1970-01-01T00:00:00.250Z INFO evalsite.x event=signed\u2028\u001b[2J\u202e"'
    )


def test_format_withholds_the_secret_of_an_invitation() -> None:
    place = "/invitations/0c9a3a60-6b1c-4a6e-9c35-6f3d8e2a1b90/"
    formatted = line(f"Forbidden: {place}s3cret_-x/", path=f"/sign-in/?next={place}s3cret_-x/&a=1")
    assert formatted == (
        "1970-01-01T00:00:00.250Z INFO evalsite.x "
        f'event="Forbidden: {place}[withheld]/" path="/sign-in/?next={place}[withheld]/&a=1"'
    )


def test_format_hostile_message_stays_on_its_line() -> None:
    assert "\n" not in line("first\nsecond")


def test_format_exception_stays_on_its_line() -> None:
    try:
        raise ValueError("bad\nvalue")
    except ValueError as error:
        formatted = line("failed", exc_info=(ValueError, error, error.__traceback__))
    assert formatted.count("\n") == 0
    assert "ValueError: bad" in formatted


def test_format_withholds_requests() -> None:
    assert "secret" not in line("x", request="secret", data="secret")


def test_format_names_the_request() -> None:
    with acting_as(Acting(Source.PAGE, request_id="r-1")):
        assert line("signed").endswith("event=signed request=r-1")
