"""A real HTTP server on this machine that answers as a test wants, well or badly."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from evalsite.judge_runner.endpoint import JudgeEndpoint, address_of

KEY = "sk-secret-0123456789"
Behaviour = Callable[["Handler"], None]


@dataclass
class Endpoint:
    """The server: what it was asked, and what it does next."""

    port: int
    behaviours: list[Behaviour]  # the last one goes on for ever
    asked: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    over: threading.Event = field(default_factory=threading.Event)

    def settings(self, **more: Any) -> JudgeEndpoint:
        """Settings that ask this server."""
        address = address_of(f"http://127.0.0.1:{self.port}/v1", allow_http=True)
        given = {"model": "m-1", "name": "site judge", "key": KEY, "allow_private": True} | more
        return JudgeEndpoint(address=given.pop("address", address), **given)


class Handler(BaseHTTPRequestHandler):
    """Notes the request and does what comes next."""

    protocol_version = "HTTP/1.1"
    endpoint: Endpoint

    def do_POST(self) -> None:
        """A request of a judge."""
        body = self.rfile.read(int(self.headers["Content-Length"]))
        here = self.endpoint
        here.asked.append(json.loads(body))
        here.headers.append({name.lower(): value for name, value in self.headers.items()})
        here.paths.append(self.path)
        next_one = here.behaviours.pop(0) if len(here.behaviours) > 1 else here.behaviours[0]
        try:
            next_one(self)
        except OSError:  # the client hung up, as it should
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - of the base class
        """Say nothing."""

    def send(self, status: int, body: bytes = b"", **headers: str) -> None:
        """A whole reply."""
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def drip(self, piece: bytes, *, seconds: float = 0.05) -> None:
        """The same few bytes again and again, until the client hangs up or the test is over."""
        while not self.endpoint.over.wait(seconds):
            self.wfile.write(piece)
            self.wfile.flush()


def completion(content: Any, **more: Any) -> bytes:
    """A reply of a chat completion endpoint."""
    text = content if isinstance(content, str) else json.dumps(content)
    document = {
        "model": "m-1-2026",
        "choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": text}}],
        "usage": {"prompt_tokens": 1_000, "completion_tokens": 20},
    }
    return json.dumps(document | more).encode()


def answers(
    word: str = "pass", *, steps: Sequence[int] = (2,), why: str = "It is so."
) -> Behaviour:
    """A whole answer."""
    body = completion({"verdict": word, "rationale": why, "steps": list(steps)})
    return lambda handler: handler.send(200, body)


def replies(status: int, body: bytes = b"", **headers: str) -> Behaviour:
    """Any other reply."""
    return lambda handler: handler.send(status, body, **headers)


@contextmanager
def endpoint(*behaviours: Behaviour) -> Iterator[Endpoint]:
    """A server that does one thing after the other, the last one for ever."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    here = Endpoint(server.server_address[1], list(behaviours) or [answers()])
    server.RequestHandlerClass = type("Here", (Handler,), {"endpoint": here})
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield here
    finally:
        here.over.set()
        server.shutdown()
        thread.join()
        server.server_close()
