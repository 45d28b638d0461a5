"""The network address that a request came from."""

from django.conf import settings
from django.http import HttpRequest


def client_address(request: HttpRequest) -> str:
    """The caller's address; behind a proxy, the last one that the proxy itself wrote down.

    Earlier entries of `X-Forwarded-For` come from the caller and can be forged.
    """
    direct: str = request.META.get("REMOTE_ADDR", "")
    if not settings.ENVIRONMENT.behind_proxy:
        return direct
    forwarded: str = request.META.get("HTTP_X_FORWARDED_FOR", "")
    return forwarded.rsplit(",", 1)[-1].strip() or direct
