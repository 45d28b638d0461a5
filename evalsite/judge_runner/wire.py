"""One HTTP request to a checked address, bounded in time and size.

On httpcore, which follows no redirect, reads no proxy from the environment and inflates nothing;
what it lacks is a bound of the whole time, so that every read and write of the connection gets
only what is left until one deadline. A peer that drips bytes gains nothing by it.
"""

from __future__ import annotations

import ssl
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import httpcore

from evalsite.judge_runner.endpoint import EndpointAddress

MOST_BYTES: Final = 2 * 1024 * 1024  # of a reply
NO_CONNECTION: Final = "No connection to the endpoint, or none that its certificate allows."
PHASE_SECONDS: Final = 10.0  # to connect, and to send; reading may take all that is left


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back."""

    status: int
    headers: tuple[tuple[str, str], ...]  # names in lower case
    body: bytes

    def header(self, name: str) -> str:
        """The first value of a header; "" where it is absent."""
        return next((value for found, value in self.headers if found == name), "")


class WireError(Exception):
    """No whole reply came; the text is a sentence for people."""


class TooLateError(WireError):
    """The time-out passed first."""


class TooLargeError(WireError):
    """The reply has more bytes than are read."""


def post(
    address: EndpointAddress,
    ip: str,
    body: bytes,
    *,
    key: str,
    deadline: float,
    most_bytes: int = MOST_BYTES,
) -> Reply:
    """Send a JSON body and read the reply. `deadline` is on the monotonic clock.

    Raises `TooLateError`, `TooLargeError`, and `WireError` for what is no HTTP reply at all.
    """
    pool = httpcore.ConnectionPool(
        ssl_context=_tls(),
        max_connections=1,
        http1=True,
        http2=False,
        network_backend=_Backend(ip, deadline),
    )
    request = pool.stream(
        "POST",
        _url(address),
        headers=_headers(address, body, key),
        content=body,
        extensions={"timeout": {"connect": PHASE_SECONDS, "write": PHASE_SECONDS}},
    )
    with _named(), pool, request as response:
        headers = tuple(
            (name.decode("latin-1").lower(), value.decode("latin-1"))
            for name, value in response.headers
        )
        is_read = response.status == 200
        content = _content(response.iter_stream(), most_bytes) if is_read else b""
        return Reply(response.status, headers, content)


@contextmanager
def _named() -> Iterator[None]:
    """What goes wrong on the wire, in sentences that repeat nothing of what was sent."""
    try:
        yield
    except httpcore.TimeoutException:
        raise TooLateError("The endpoint did not answer in time.") from None
    except httpcore.ConnectError:
        raise WireError(NO_CONNECTION) from None
    except (httpcore.NetworkError, httpcore.ProtocolError, OSError):
        raise WireError("The connection to the endpoint broke.") from None


def _content(chunks: Iterable[bytes], most_bytes: int) -> bytes:
    parts: list[bytes] = []
    n_bytes = 0
    for chunk in chunks:
        n_bytes += len(chunk)
        if n_bytes > most_bytes:
            raise TooLargeError(f"The reply has more than {most_bytes:,} bytes.")
        parts.append(chunk)
    return b"".join(parts)


def _url(address: EndpointAddress) -> httpcore.URL:
    return httpcore.URL(
        scheme=b"https" if address.is_https else b"http",
        host=address.host.encode("ascii"),
        port=address.port,
        target=address.target.encode("ascii"),
    )


def _headers(address: EndpointAddress, body: bytes, key: str) -> list[tuple[bytes, bytes]]:
    host = f"[{address.host}]" if ":" in address.host else address.host
    default = 443 if address.is_https else 80
    port = "" if address.port == default else f":{address.port}"
    headers = [
        ("Host", f"{host}{port}"),
        ("Content-Type", "application/json"),
        ("Content-Length", str(len(body))),
        ("Accept", "application/json"),
        ("Accept-Encoding", "identity"),
        ("Connection", "close"),
        ("User-Agent", "evalsite"),
    ]
    if key:
        headers.append(("Authorization", f"Bearer {key}"))
    return [(name.encode("ascii"), value.encode("ascii")) for name, value in headers]


@lru_cache(maxsize=1)
def _tls() -> ssl.SSLContext:
    return httpcore.default_ssl_context()


class _Backend(httpcore.NetworkBackend):
    """Connects to one address that was checked, whatever the name would be by now."""

    def __init__(self, ip: str, deadline: float) -> None:
        self._ip, self._deadline = ip, deadline
        self._plain = httpcore.SyncBackend()

    def connect_tcp(
        self,
        host: str,  # noqa: ARG002 - it was looked up already
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """A connection to the checked address."""
        left = _left(self._deadline, timeout, httpcore.ConnectTimeout)
        stream = self._plain.connect_tcp(self._ip, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)


class _Stream(httpcore.NetworkStream):
    """A connection of which each act gets what is left until the deadline."""

    def __init__(self, stream: httpcore.NetworkStream, deadline: float) -> None:
        self._stream, self._deadline = stream, deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Some bytes."""
        left = _left(self._deadline, timeout, httpcore.ReadTimeout)
        return self._stream.read(max_bytes, left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Send bytes; a peer that takes a few at a time gets no more time by it."""
        connection = self._stream.get_extra_info("socket")
        view = memoryview(buffer)
        while view:
            connection.settimeout(_left(self._deadline, timeout, httpcore.WriteTimeout))
            try:
                view = view[connection.send(view) :]
            except TimeoutError:
                raise httpcore.WriteTimeout from None
            except OSError:
                raise httpcore.WriteError from None

    def close(self) -> None:
        """Close the connection."""
        self._stream.close()

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """The connection under TLS; the certificate is checked against the endpoint's name."""
        left = _left(self._deadline, timeout, httpcore.ConnectTimeout)
        return _Stream(self._stream.start_tls(ssl_context, server_hostname, left), self._deadline)

    def get_extra_info(self, info: str) -> Any:
        """What the connection says of itself."""
        return self._stream.get_extra_info(info)


def _left(deadline: float, timeout: float | None, late: type[Exception]) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise late
    return left if timeout is None else min(left, timeout)
