"""Model helpers that both apps share."""

from __future__ import annotations

from enum import StrEnum

from django.db import models
from django.db.models import Q


def one_of(field: str, values: type[StrEnum], *, name: str) -> models.CheckConstraint:
    """A named check that `field` holds one of the values of an enumeration."""
    return models.CheckConstraint(
        condition=Q(**{f"{field}__in": [value.value for value in values]}), name=name
    )
