"""The first start on a machine with nothing but Python, with a package that stands in for Django."""

import hashlib
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from tests.support.processes import PROJECT, clean_environment

_SAYS = """
import sys
def execute_from_command_line(argv):
    print("inside", sys.prefix, argv[1:])
"""
_METADATA = "Metadata-Version: 2.1\nName: django\nVersion: 1.0\n"
_WHEEL = "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"

pytestmark = pytest.mark.skipif(
    subprocess.run(
        [sys._base_executable, "-c", "import django"],  # type: ignore[attr-defined]
        capture_output=True,
        check=False,
    ).returncode
    == 0,
    reason="this Python has Django of its own",
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A clone with the files that the first start needs, and a lock of one package."""
    clone = tmp_path / "a clone"
    (clone / "evalsite" / "embedded").mkdir(parents=True)
    for name in ("manage.py", "evalsite/__init__.py", "evalsite/bootstrap.py"):
        shutil.copy(PROJECT / name, clone / name)
    for path in (PROJECT / "evalsite" / "embedded").glob("*.py"):
        shutil.copy(path, clone / "evalsite" / "embedded" / path.name)
    wheel = clone / "django-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("django/__init__.py", "")
        archive.writestr("django/core/__init__.py", "")
        archive.writestr("django/core/exceptions.py", "class ImproperlyConfigured(Exception): ...")
        archive.writestr("django/core/management/__init__.py", _SAYS)
        archive.writestr("django-1.0.dist-info/METADATA", _METADATA)
        archive.writestr("django-1.0.dist-info/WHEEL", _WHEEL)
        archive.writestr("django-1.0.dist-info/RECORD", "")
    digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
    (clone / "requirements.lock").write_text(
        f"# django==1.0\n./{wheel.name} --hash=sha256:{digest}\n"
    )
    return clone


def start(project: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    # Without uv, so that pip is what is tested; pip must not look at the network.
    path = os.pathsep.join(
        folder
        for folder in os.environ["PATH"].split(os.pathsep)
        if not (Path(folder) / "uv").exists()
    )
    return subprocess.run(
        [sys._base_executable, "manage.py", "hello", "there"],  # type: ignore[attr-defined]
        cwd=project,
        env=clean_environment(PATH=path, PIP_NO_INDEX="1", **environment),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_first_start_installs_and_goes_on_inside(project: Path) -> None:
    inside = f"inside {project / '.venv'} ['hello', 'there']\n"
    first = start(project)
    assert first.stdout.startswith("Setting up evalsite's own environment in .venv;")
    assert first.stdout.endswith("The environment is ready.\n" + inside)
    assert start(project).stdout == inside


def test_start_after_an_interrupted_installation_begins_again(project: Path) -> None:
    (project / ".venv" / "bin").mkdir(parents=True)
    (project / ".venv" / "bin" / "python").symlink_to(sys.executable)
    (project / ".venv.mark").write_text("being made")
    assert start(project).stdout.endswith("['hello', 'there']\n")


def test_start_leaves_an_environment_of_ones_own_alone(project: Path) -> None:
    start(project)
    (project / ".venv.mark").unlink()
    (project / "requirements.lock").write_text("another")
    assert start(project).stdout == f"inside {project / '.venv'} ['hello', 'there']\n"


def test_start_with_a_package_that_was_tampered_with_stops(project: Path) -> None:
    lock = project / "requirements.lock"
    lock.write_text(lock.read_text().replace("sha256:", "sha256:" + "0" * 8)[:-9] + "\n")
    failed = start(project)
    assert failed.returncode == 1
    assert failed.stderr.startswith("The environment could not be made; the next start begins")
    assert "Traceback" not in failed.stderr


def test_start_without_a_lock_says_so(project: Path) -> None:
    (project / "requirements.lock").unlink()
    failed = start(project)
    assert failed.stderr == (f"The list of packages is missing: {project / 'requirements.lock'}.\n")
