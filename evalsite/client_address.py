"""The network address that a request came from."""

import ipaddress

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The caller's address; behind a proxy, the last one that the proxy itself wrote down.

    Earlier entries of `X-Forwarded-For` come from the caller and can be forged. Where the last
    one is no address, what connected counts.
    """
    direct: str = request.META.get("REMOTE_ADDR", "")
    if not settings.ENVIRONMENT.behind_proxy:
        return direct
    forwarded: str = request.META.get("HTTP_X_FORWARDED_FOR", "")
    last = forwarded.rsplit(",", 1)[-1].strip()
    return _address_in(last) or direct


def _address_in(text: str) -> str:
    """The address of `203.0.113.9`, `203.0.113.9:1234`, `2001:db8::1` or `[2001:db8::1]:1234`."""
    bare = text[1:].partition("]")[0] if text.startswith("[") else text
    if bare.count(":") == 1:
        bare = bare.partition(":")[0]
    try:
        return str(ipaddress.ip_address(bare))
    except ValueError:
        return ""
