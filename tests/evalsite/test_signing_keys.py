"""Keys of the site: made once, kept private, rotated, or given by the environment."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from pytest_django import Settings

from evalsite.signing_keys import (
    KeyKind,
    KeysError,
    audit_key,
    audit_keys,
    is_given,
    public_keys,
    rotate,
    signing_key,
)

GIVEN = "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="


@pytest.fixture
def folder(tmp_path: Path, settings: Settings) -> Path:
    settings.EVALSITE_KEYS = tmp_path / "data" / "keys"
    return tmp_path / "data" / "keys"


def test_keys_are_made_on_first_use_and_only_their_owner_may_read_them(folder: Path) -> None:
    signs, tags = signing_key(), audit_key()
    assert signing_key() == signs
    assert audit_key() == tags
    assert list(public_keys()) == [signs.key_id]
    assert audit_keys() == {tags[0]: tags[1]}
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
    assert modes == {".lock": 0o600, "signing.keys": 0o600, "audit.keys": 0o600}
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_rotated_keys_leave_the_older_ones_for_verification(folder: Path) -> None:
    first, first_tag = signing_key(), audit_key()
    second = rotate(KeyKind.SIGNING)
    second_tag = rotate(KeyKind.AUDIT)
    assert signing_key().key_id == second
    assert list(public_keys()) == [second, first.key_id]
    assert audit_key()[0] == second_tag
    assert list(audit_keys().items())[1:] == [first_tag]
    # What signed before cannot sign any more.
    assert (folder / "signing.keys").read_text().count("private:") == 1


def test_keys_of_the_environment_are_used_and_not_rotated_here(
    folder: Path, settings: Settings
) -> None:
    settings.EVALSITE_SIGNING_KEY = settings.EVALSITE_AUDIT_KEY = GIVEN
    assert signing_key().seed == bytes(range(32))
    assert audit_key()[1] == bytes(range(32))
    assert is_given(KeyKind.AUDIT)
    assert not folder.exists()
    with pytest.raises(KeysError) as caught:
        rotate(KeyKind.SIGNING)
    assert str(caught.value) == (
        "EVALSITE_SIGNING_KEY gives the key: put a new one in front of it there, on every host."
    )


def test_processes_that_start_at_once_end_with_one_key(tmp_path: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from django.conf import settings;"
        "settings.configure(EVALSITE_KEYS=Path(sys.argv[1]), EVALSITE_SIGNING_KEY='',"
        " EVALSITE_AUDIT_KEY='');"
        "sys.stdin.readline();"
        "from evalsite.signing_keys import audit_key, signing_key;"
        "print(signing_key().key_id, audit_key()[0])"
    )
    command = [sys.executable, "-c", program, str(tmp_path / "keys")]
    started = [
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).resolve().parents[2],
            env=os.environ,
        )
        for _ in range(4)
    ]
    told = set()
    for process in started:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
    for process in started:
        told.add(process.communicate(timeout=60)[0])
        assert process.returncode == 0
    assert len(told) == 1
