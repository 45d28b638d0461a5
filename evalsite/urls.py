"""Every address of the site."""

from django.urls import include, path

from evalsite.api_docs import Schema, docs
from evalsite.health import health

urlpatterns = [
    path("health", health, name="health"),
    path("api/v1/", include("traces.api.urls")),
    path("api/v1/", include("reviews.api.urls")),
    path("api/schema", Schema.as_view(), name="api-schema"),
    path("api/docs", docs, name="api-docs"),
]
