"""The published JSON Schema of contracts, for editors of people's own choice."""

from __future__ import annotations

import hashlib
import json
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import condition, require_safe

from evalsite.access import public
from traces.core.contracts.schema import CONTRACT_SCHEMA

_BODY: Final = json.dumps(CONTRACT_SCHEMA, indent=2, ensure_ascii=False).encode() + b"\n"
_ETAG: Final = f'"{hashlib.sha256(_BODY).hexdigest()}"'


def _etag(_request: HttpRequest) -> str:
    return _ETAG


@require_safe
@public
@condition(etag_func=_etag)
def contract_schema(_request: HttpRequest) -> HttpResponse:
    """The schema, the same for everybody and every system."""
    return HttpResponse(
        _BODY, content_type="application/schema+json", headers={"Cache-Control": "no-cache"}
    )
