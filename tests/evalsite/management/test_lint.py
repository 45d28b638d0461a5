import json
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command
from pytest_django import Settings

from evalsite.management.commands import lint
from tests.support.processes import clean_environment, python
from tests.support.production import production_environment


@pytest.fixture
def vendor(settings: Settings, tmp_path: Path) -> Path:
    folder = tmp_path / "static" / "vendor"
    folder.mkdir(parents=True)
    (folder / "a.js").write_text("")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    (folder / "vendor.json").write_text(json.dumps([{"file": "a.js", "sha256": empty}]))
    settings.BASE_DIR = tmp_path
    return folder


def test_vendored_problem_none(vendor: Path) -> None:
    assert lint.vendored_problem() == ""


def test_vendored_problem_changed_file(vendor: Path) -> None:
    (vendor / "a.js").write_text("alert(1)")
    assert lint.vendored_problem() == "a.js differs from its checksum"


def test_vendored_problem_missing_file(vendor: Path) -> None:
    (vendor / "a.js").unlink()
    assert lint.vendored_problem() == "a.js is missing"


def test_lint_tells_each_check_and_fails_if_one_does(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(lint, "_CHECKS", (("good", lambda: ""), ("bad", lambda: "line 3: no")))
    with pytest.raises(CommandError, match="^Not in order: bad.$"):
        call_command("lint")
    told = capsys.readouterr().out
    assert "ok      good (0.0 s)\nFAILED  bad (0.0 s)\nline 3: no\n" in told


def test_lint_in_order(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(lint, "_CHECKS", (("good", lambda: ""),))
    call_command("lint")
    assert capsys.readouterr().out.endswith("All in order.\n")


def test_lint_names_missing_tools(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "_TOOLS", ("no-such-tool",))
    with pytest.raises(CommandError, match="^Not installed: no-such-tool.$"):
        call_command("lint")


@pytest.mark.django_db
def test_check_deploy_is_clean() -> None:
    env = production_environment() | {"EVALSITE_HTTPS": "1"}
    assert "no issues" in python(
        "manage.py", "check", "--deploy", "--fail-level", "WARNING", env=env
    )


def test_manage_names_what_is_missing_without_a_traceback(tmp_path: Path) -> None:
    env = clean_environment(DATABASE_URL="postgresql://h/n", EVALSITE_DATA=str(tmp_path))
    with pytest.raises(AssertionError) as failed:
        python("manage.py", "check", env=env)
    text = str(failed.value)
    assert "CELERY_BROKER_URL is missing" in text
    assert "EVALSITE_SECRET_KEY is missing" in text
    assert "EVALSITE_ALLOWED_HOSTS is missing" in text
    assert "Traceback" not in text
