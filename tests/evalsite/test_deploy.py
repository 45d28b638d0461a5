"""The example of a deployment in `deploy/`."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
import yaml
from django.http.request import split_domain_port, validate_host

from tests.support.processes import clean_environment

COMPOSE = Path(__file__).resolve().parents[2] / "deploy" / "compose.yaml"


class Health(BaseHTTPRequestHandler):
    """Answers as the site does: 400 to a host name that is not allowed, else the status."""

    allowed: tuple[str, ...] = ()
    status = 200

    def do_GET(self) -> None:
        host = split_domain_port(self.headers["Host"])[0]
        well = self.path == "/health" and validate_host(host, self.allowed)
        self.send_response(self.status if well else 400)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Nothing."""


def exit_code_of_health_check(allowed: str, *, status: int = 200) -> int:
    program, *words = yaml.safe_load(COMPOSE.read_text())["services"]["web"]["healthcheck"]["test"][
        1:
    ]
    assert (program, words[0], len(words)) == ("python", "-c", 2)
    names = tuple(name.strip() for name in allowed.split(","))
    handler = type("Site", (Health,), {"allowed": names, "status": status})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.handle_request, daemon=True).start()
        script = words[1].replace("127.0.0.1:8000", f"127.0.0.1:{server.server_port}")
        assert script != words[1]
        return subprocess.run(
            [sys.executable, "-c", script],
            env=clean_environment(EVALSITE_ALLOWED_HOSTS=allowed),
            capture_output=True,
            timeout=30,
            check=False,
        ).returncode


@pytest.mark.parametrize(
    "allowed", ["evals.example.org", " evals.example.org , www.example.org", ".example.org", "*"]
)
def test_health_check_of_the_web_container_asks_with_an_allowed_name(allowed: str) -> None:
    assert exit_code_of_health_check(allowed) == 0


def test_health_check_of_the_web_container_sees_a_site_that_fails() -> None:
    assert exit_code_of_health_check("evals.example.org", status=503) == 1
