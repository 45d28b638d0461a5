"""The endpoint of judges as the operator gives it. No Django here: the environment is read first."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final
from urllib.parse import urlsplit

from reviews.core.judge_answers import Prices

COMPLETIONS: Final = "/chat/completions"
_HOST: Final = re.compile(r"[A-Za-z0-9._:-]{1,253}")
_TARGET: Final = re.compile(r"[!-\[\]^-~]*")  # printable ASCII without blank and backslash
_KEY: Final = re.compile(r"[!-~]{1,4096}")


class EndpointError(Exception):
    """The endpoint cannot be used as it is given; the text completes the sentence 'NAME …'."""


@dataclass(frozen=True, slots=True)
class EndpointAddress:
    """Where requests go: the parts of an http or https address."""

    is_https: bool
    host: str  # a name or an address, without brackets
    port: int
    target: str  # path and query

    @property
    def shown(self) -> str:
        """Host and path for people: no query, in which operators put secrets."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        default = 443 if self.is_https else 80
        port = "" if self.port == default else f":{self.port}"
        return f"{host}{port}{self.target.partition('?')[0]}"[:300]


@dataclass(frozen=True, slots=True)
class JudgeEndpoint:
    """How judges are asked."""

    address: EndpointAddress
    model: str
    name: str  # of the judge as a grader
    key: str = field(default="", repr=False)
    allow_private: bool = False
    timeout_seconds: int = 60  # for one try, from the first look-up to the last byte
    tries: int = 3
    max_characters: int = 200_000  # of evidence in one request
    max_tokens: int = 2_000  # of an answer
    prices: Prices = field(default_factory=Prices)

    @property
    def shown(self) -> str:
        """Host and path for people."""
        return self.address.shown


def address_of(url: str, *, allow_http: bool) -> EndpointAddress:
    """The parts of an endpoint's address. Raises `EndpointError` for what is not used."""
    if _TARGET.fullmatch(url) is None:
        raise EndpointError("holds a character that an address cannot have")
    try:
        parts = urlsplit(url)
        port, host = parts.port, parts.hostname or ""
    except ValueError:
        raise EndpointError("is not an address") from None
    if parts.scheme not in {"https", "http"}:
        raise EndpointError("does not start with https://")
    if parts.scheme == "http" and not allow_http:
        raise EndpointError("starts with http://, which EVALSITE_JUDGE_ALLOW_HTTP=1 allows")
    if "@" in parts.netloc:
        raise EndpointError("holds a name or password; the key has a setting of its own")
    if parts.fragment or _HOST.fullmatch(host) is None:
        raise EndpointError("is not an address")
    path = parts.path.rstrip("/")
    if not path.endswith(COMPLETIONS):
        path += COMPLETIONS
    return EndpointAddress(
        is_https=parts.scheme == "https",
        host=host,
        port=port or (443 if parts.scheme == "https" else 80),
        target=f"{path}?{parts.query}" if parts.query else path,
    )


def key_of(text: str) -> str:
    """A key as it can stand in a header. Raises `EndpointError`, which does not repeat it."""
    key = text.strip()
    if _KEY.fullmatch(key) is None:
        raise EndpointError("is empty, or holds a character that a key cannot have")
    return key


def price_of(text: str) -> Decimal | None:
    """US dollars for a million tokens; None for "". Raises `EndpointError`."""
    if not text:
        return None
    if re.fullmatch(r"[0-9]{1,6}(?:\.[0-9]{1,6})?", text) is None:
        raise EndpointError("is not an amount such as 2.50")
    return Decimal(text)
