"""Changing one's own password."""

from __future__ import annotations

import logging
from datetime import datetime

from django.contrib.auth.password_validation import validate_password
from django.db import transaction

from evalsite.common.audit import AuditedObject, record
from traces.models import User

log = logging.getLogger("evalsite.accounts")


@transaction.atomic
def change_password(user: User, new: str, *, now: datetime) -> User:
    """Give the person a new password. Whether they may was asked before.

    Raises `ValidationError` with the sentences for a password that is too weak.
    """
    person = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    validate_password(new, person)
    person.set_password(new)
    person.save(update_fields=["password"])
    record(
        "account.password_changed",
        system_pk=None,
        by_pk=person.pk,
        at=now,
        obj=AuditedObject("person", str(person.uuid), person.printed_name),
    )
    log.info("password changed", extra={"user": person.pk})
    return person
