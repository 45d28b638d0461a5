"""An endpoint as operators give it, and what is not used."""

from __future__ import annotations

from decimal import Decimal

import pytest

from evalsite.judge_runner.endpoint import (
    EndpointAddress,
    EndpointError,
    JudgeEndpoint,
    address_of,
    key_of,
    price_of,
)


@pytest.mark.parametrize(
    ("url", "address", "shown"),
    [
        ("https://models.example.org/v1", EndpointAddress(True, "models.example.org", 443, "/v1/chat/completions"), "models.example.org/v1/chat/completions"),
        ("https://models.example.org/v1/chat/completions/", EndpointAddress(True, "models.example.org", 443, "/v1/chat/completions"), "models.example.org/v1/chat/completions"),
        ("https://models.example.org:8443", EndpointAddress(True, "models.example.org", 8443, "/chat/completions"), "models.example.org:8443/chat/completions"),
        ("http://[::1]:8000/v1?secret=1", EndpointAddress(False, "::1", 8000, "/v1/chat/completions?secret=1"), "[::1]:8000/v1/chat/completions"),
        ("http://h/v1", EndpointAddress(False, "h", 80, "/v1/chat/completions"), "h/v1/chat/completions"),
    ],
)  # fmt: skip
def test_address(url: str, address: EndpointAddress, shown: str) -> None:
    found = address_of(url, allow_http=True)
    assert (found, found.shown) == (address, shown)
    assert JudgeEndpoint(address=found, model="m", name="j").shown == shown


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("models.example.org/v1", "does not start with https://"),
        ("ftp://h/", "does not start with https://"),
        ("file:///etc/passwd", "does not start with https://"),
        ("http://h/", "starts with http://, which EVALSITE_JUDGE_ALLOW_HTTP=1 allows"),
        ("https://user:pass@h/", "holds a name or password; the key has a setting of its own"),
        ("https://good.example\\@10.0.0.1/", "holds a character that an address cannot have"),
        ("https://h/a b", "holds a character that an address cannot have"),
        ("https://h/\r\nX: 1", "holds a character that an address cannot have"),
        ("https://bücher.example/", "holds a character that an address cannot have"),
        ("https://h:99999/", "is not an address"),
        ("https://[::1", "is not an address"),
        ("https:///v1", "is not an address"),
        ("https://h/#part", "is not an address"),
        ("https://h%2e/", "is not an address"),
    ],
)
def test_an_address_that_is_not_used(url: str, problem: str) -> None:
    with pytest.raises(EndpointError) as refused:
        address_of(url, allow_http=False)
    assert str(refused.value) == problem


def test_keys() -> None:
    assert key_of(" sk-1 \n") == "sk-1"
    for text in ("", "a b", "a\nb", "ключ", "x" * 5_000):
        with pytest.raises(EndpointError, match="is empty, or holds a character"):
            key_of(text)


def test_prices() -> None:
    assert (price_of(""), price_of("2.50"), price_of("0")) == (None, Decimal("2.50"), Decimal(0))
    for text in ("-1", "1e3", "two", "1.", "1234567"):
        with pytest.raises(EndpointError, match="is not an amount such as"):
            price_of(text)
