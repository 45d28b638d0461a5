"""Every address of the site."""

from django.urls import path

from evalsite.health import health

urlpatterns = [
    path("health", health, name="health"),
]
