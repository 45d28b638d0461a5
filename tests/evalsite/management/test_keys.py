"""`manage.py keys`: what is told of keys, and never the keys themselves."""

from __future__ import annotations

from io import StringIO
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from evalsite.signing_keys import audit_key, signing_key


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, settings: Settings) -> None:
    settings.EVALSITE_KEYS = tmp_path / "keys"


def told(*arguments: str) -> str:
    out = StringIO()
    call_command("keys", *arguments, stdout=out)
    return out.getvalue()


def test_keys_are_listed_rotated_and_handed_out(settings: Settings) -> None:
    first, tag = signing_key().key_id, audit_key()[0]
    assert told("list") == (
        f"signing  {first}  in use  data folder\naudit  {tag}  in use  data folder\n"
    )
    assert told("rotate", "signing").startswith("The signing key is ")
    second = signing_key().key_id
    assert told("list").splitlines()[:2] == [
        f"signing  {second}  in use  data folder",
        f"signing  {first}  verifies only  data folder",
    ]
    lines = told("export").splitlines()
    assert [line.partition(":")[0] for line in lines] == ["public", "public"]
    settings.EVALSITE_AUDIT_KEY = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    with pytest.raises(CommandError, match="EVALSITE_AUDIT_KEY gives the key"):
        told("rotate", "audit")
