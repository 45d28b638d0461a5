"""The description of the API: as an OpenAPI document, and as a page for people.

The page is our own: what OpenAPI viewers draw is neither readable in the dark nor by everybody.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.views.decorators.http import require_safe
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.views import SpectacularJSONAPIView
from rest_framework.permissions import AllowAny

from evalsite.access import public


class Schema(SpectacularJSONAPIView):
    """The OpenAPI document. It describes the doors and holds nothing that is behind them."""

    authentication_classes = ()
    permission_classes = (AllowAny,)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view: Any = super().as_view(**initkwargs)
        view.access_rule = "public"
        return view


class ApiKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """How the document says that a key is sent. Known to drf-spectacular by being defined."""

    target_class = "evalsite.api_access.ApiKeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, str]:  # noqa: ARG002
        return {"type": "http", "scheme": "bearer", "description": "A key of a system: evs_…"}


@dataclass(frozen=True, slots=True)
class Row:
    """A name with what it means."""

    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Operation:
    """One act of the API."""

    anchor: str
    method: str
    path: str
    words: str
    parameters: tuple[Row, ...]
    bodies: tuple[Row, ...]  # content type, and the fields that it takes
    answers: tuple[Row, ...]


@dataclass(frozen=True, slots=True)
class DocsPage:
    """The context of the page."""

    operations: tuple[Operation, ...]
    schema_url: str
    home_url: str


@public
@require_safe
def docs(request: HttpRequest) -> HttpResponse:
    """The page that shows the API to people."""
    page = DocsPage(_operations(), reverse("api-schema"), "/")
    return render(request, "api_docs.html", {"page": page})


@lru_cache(maxsize=1)
def _operations() -> tuple[Operation, ...]:
    document: Any = SchemaGenerator().get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    components = document["components"]["schemas"]
    return tuple(
        _operation(path, method, act, components)
        for path, acts in document["paths"].items()
        for method, act in acts.items()
    )


def _operation(path: str, method: str, act: Any, components: Any) -> Operation:
    return Operation(
        anchor=act["operationId"],
        method=method.upper(),
        path=path,
        words=act.get("description", ""),
        parameters=tuple(
            Row(one["name"], _parameter_words(one))
            for one in act.get("parameters", [])
            if one["in"] != "path"
        ),
        bodies=tuple(_bodies(act, components)),
        answers=tuple(Row(code, HTTPStatus(int(code)).phrase) for code in sorted(act["responses"])),
    )


def _parameter_words(parameter: Any) -> str:
    choices = parameter["schema"].get("enum")
    words = [parameter.get("description", "")]
    if choices:
        words.append(f"One of: {', '.join(choices)}.")
    if parameter["schema"].get("type") == "array":
        words.append("May be given several times.")
    if parameter["in"] == "header":
        words.append("A header.")
    return " ".join(filter(None, words))


def _bodies(act: Any, components: Any) -> Iterator[Row]:
    for kind, one in act.get("requestBody", {}).get("content", {}).items():
        schema = one["schema"]
        if "$ref" in schema:
            schema = components[schema["$ref"].rpartition("/")[2]]
        fields = ", ".join(schema.get("properties", {})) or "the file itself"
        yield Row(kind, fields)
