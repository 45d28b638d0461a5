"""`manage.py refund_desk`: the made-up trials of one release, on screen or in a file."""

from __future__ import annotations

import subprocess
import sys
from io import StringIO
from pathlib import Path

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from evalsite.refund_desk import releases


def test_the_lines_of_a_release_are_printed(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    call_command("refund_desk", "desk-1.1")

    assert capfdbinary.readouterr().out == b"".join(releases()[1].lines)


def test_the_lines_of_a_release_are_written_to_a_file(tmp_path: Path) -> None:
    out, said = tmp_path / "desk.jsonl", StringIO()

    call_command("refund_desk", "desk-1.0", out=out, stdout=said)

    assert out.read_bytes() == b"".join(releases()[0].lines)
    assert said.getvalue().startswith("98 made-up trials of desk-1.0, ")


def test_a_reader_that_has_enough_hears_no_complaint() -> None:
    command = [sys.executable, "manage.py", "refund_desk", "desk-1.0"]
    with subprocess.Popen(
        command, cwd=settings.BASE_DIR, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as printing:
        assert printing.stdout is not None
        assert printing.stderr is not None
        assert printing.stdout.read(1) == b"{"
        printing.stdout.close()
        assert printing.stderr.read() == b""

    assert printing.returncode == 0


def test_what_cannot_be_done_is_said_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="invalid choice: 'desk-2'"):
        call_command("refund_desk", "desk-2")
    with pytest.raises(CommandError, match=r"cannot be written: Is a directory\."):
        call_command("refund_desk", "desk-1.0", out=tmp_path)
