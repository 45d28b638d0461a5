"""The public keys that signatures are verified with."""

from __future__ import annotations

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_GET

from evalsite.access import signed_in
from evalsite.common.shell import Crumb
from evalsite.key_texts import PublicKey
from evalsite.signing_keys import KeysError
from evalsite.signing_keys import signing_keys as kept_keys
from traces.web import pages
from traces.web.pages.gates import PublicKeyRow, SigningKeysPage
from traces.web.shell import person_shell


@require_GET
@signed_in
def signing_keys(request: HttpRequest) -> HttpResponse:
    """The public keys of this site, the one in use first."""
    try:
        rows = tuple(
            PublicKeyRow(key.key_id, _pem(key), is_current=n == 0)
            for n, key in enumerate(kept_keys().public)
        )
    except (KeysError, OSError, ValueError):
        rows = ()
    page = SigningKeysPage(
        shell=person_shell(request),
        crumbs=(Crumb("Systems", reverse("system-list")), Crumb("Public keys")),
        rows=rows,
        command="manage.py verify FILE",
        empty=None
        if rows
        else pages.Empty(
            heading="No key can be read",
            sentence="The site's operator sees why in the log; until then nothing can be signed.",
        ),
    )
    return render(request, "reviews/sign_keys.html", {"page": page})


def _pem(key: PublicKey) -> str:
    found = key.load().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    return found.decode("ascii").strip()
