"""What a command says where its words name nothing."""

from __future__ import annotations

import pytest
from django.core.management import CommandError
from django.db import connection
from django.test import override_settings

from evalsite.management.lookups import system_or_error

pytestmark = pytest.mark.django_db


@pytest.mark.parametrize(
    ("embedded", "said"),
    [
        ("a server", "`python3 manage.py up` makes them"),
        (None, "`python3 manage.py migrate` makes"),
    ],
    ids=["embedded", "production"],
)
def test_a_database_without_tables_is_named_in_one_sentence(
    embedded: str | None, said: str
) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE traces_system RENAME TO gone")

    with (
        override_settings(EMBEDDED_POSTGRES=embedded),
        pytest.raises(CommandError) as refused,
    ):
        system_or_error("desk")

    assert said in str(refused.value)
    assert ("EVALSITE_DATA" in str(refused.value)) == (embedded is not None)
