from dataclasses import replace

import pytest
from django.test import RequestFactory
from pytest_django import Settings

from evalsite.client_address import client_address


@pytest.mark.parametrize(
    ("behind_proxy", "forwarded", "address"),
    [
        (False, "6.6.6.6", "10.0.0.1"),
        (True, "6.6.6.6, 203.0.113.9", "203.0.113.9"),
        (True, "", "10.0.0.1"),
        (True, "203.0.113.9:4711", "203.0.113.9"),
        (True, "2001:DB8::1", "2001:db8::1"),
        (True, "[2001:db8::1]:4711", "2001:db8::1"),
        (True, "6.6.6.6, unknown", "10.0.0.1"),
    ],
)
def test_client_address(
    settings: Settings, behind_proxy: bool, forwarded: str, address: str
) -> None:
    settings.ENVIRONMENT = replace(settings.ENVIRONMENT, behind_proxy=behind_proxy)
    request = RequestFactory().get("/", REMOTE_ADDR="10.0.0.1", HTTP_X_FORWARDED_FOR=forwarded)
    assert client_address(request) == address
