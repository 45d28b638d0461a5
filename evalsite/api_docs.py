"""The description of the API: as an OpenAPI document, and as a page."""

from __future__ import annotations

from typing import Any

from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.permissions import AllowAny


class Schema(SpectacularJSONAPIView):
    """The OpenAPI document. It describes the doors and holds nothing that is behind them."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view: Any = super().as_view(**initkwargs)
        view.access_rule = "public"
        return view
