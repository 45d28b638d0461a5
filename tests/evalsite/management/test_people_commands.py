"""`member`, `apikey` and `run declare`."""

from __future__ import annotations

import getpass
import io
import warnings
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client
from django.utils import timezone

from tests.support.cast import Cast, person, role_of
from traces.models import ApiKey, Member, Release, Run, RunTask, System, User

pytestmark = pytest.mark.django_db


def said(*words: str, **options: Any) -> str:
    out = io.StringIO()
    call_command(*words, stdout=out, stderr=io.StringIO(), **options)
    return out.getvalue()


def typed(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(text))


def test_member_gives_a_role_and_changes_it(cast: Cast) -> None:
    guest = person("guest")

    assert said("member", cast.system.slug, "guest", "reviewer") == (
        "guest is reviewer of airline.\n"
    )
    said("member", "Airline", "guest", "viewer")

    assert role_of(guest, cast.system) == "viewer"


def test_member_makes_a_person_with_a_password_from_standard_input(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "a long enough secret\n")
    said(
        "member",
        "airline",
        "ada",
        "owner",
        "--create",
        "--email",
        "ada@example.org",
        "--name",
        "Ada Lovelace",
        "--password-stdin",
    )

    ada = User.objects.get(username="ada")
    assert ada.check_password("a long enough secret")
    assert (ada.printed_name, ada.email) == ("Ada Lovelace", "ada@example.org")
    assert role_of(ada, cast.system) == "owner"


def test_member_asks_for_the_password_twice(cast: Cast, monkeypatch: pytest.MonkeyPatch) -> None:
    answers = iter(["a long enough secret", "a long enough secre"])
    monkeypatch.setattr("getpass.getpass", lambda _: next(answers))
    with pytest.raises(CommandError, match="differ"):
        said("member", "airline", "ada", "owner", "--create")

    monkeypatch.setattr("getpass.getpass", lambda _: "a long enough secret")
    said("member", "airline", "ada", "owner", "--create")
    assert User.objects.get(username="ada").check_password("a long enough secret")


def test_member_without_a_terminal_says_how_to_send_the_password(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    sentence = (
        "There is no terminal to ask for the password on: add --password-stdin and send it "
        "on standard input."
    )

    def no_terminal(_: str) -> str:
        warnings.warn("Can not control echo on the terminal.", getpass.GetPassWarning, stacklevel=2)
        raise AssertionError("the password was read in the open")

    def closed(_: str) -> str:
        raise EOFError

    for ask in (no_terminal, closed):
        monkeypatch.setattr("getpass.getpass", ask)
        with pytest.raises(CommandError) as refused:
            said("member", "airline", "ada", "owner", "--create")
        assert str(refused.value) == sentence
    assert not User.objects.filter(username="ada").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["nowhere", "owner", "owner"], "There is no system 'nowhere'"),
        (["airline", "nobody", "owner"], "There is no person 'nobody'. Add --create"),
        (["airline", "owner", "king"], "'king' is not a role: viewer, engineer"),
        (["airline"], "Give a person a role"),
        (["airline", "owner", "owner", "--create"], "There is a person 'owner' already"),
        (["airline", "bad name!", "owner", "--create", "--password-stdin"], "username"),
        (["remove", "airline", "outsider"], "outsider is no member of airline."),
    ],
)
def test_member_says_what_is_wrong(
    cast: Cast, monkeypatch: pytest.MonkeyPatch, words: list[str], sentence: str
) -> None:
    typed(monkeypatch, "a long enough secret\n")
    with pytest.raises(CommandError, match=sentence.replace("(", r"\(")):
        said("member", *words)


def test_member_refuses_a_weak_password_and_makes_nobody(
    cast: Cast, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed(monkeypatch, "12345678\n")
    with pytest.raises(CommandError, match="password"):
        said("member", "airline", "ada", "owner", "--create", "--password-stdin")
    assert not User.objects.filter(username="ada").exists()


def test_member_lists_and_removes(cast: Cast) -> None:
    assert said("member", "list", "airline").splitlines() == [
        "engineer  engineer",
        "owner     owner",
        "reviewer  reviewer",
        "reviewer  second_reviewer",
        "viewer    viewer",
    ]

    said("member", "remove", "airline", "viewer")

    assert not Member.objects.filter(system=cast.system, user=cast.viewer).exists()


def test_member_lists_that_nobody_is_there(db: None) -> None:
    System.objects.create(slug="new-one", name="New one")
    assert said("member", "list", "new-one") == "new-one has no members.\n"


def test_apikey_is_shown_once_lists_and_ends(cast: Cast, client: Client) -> None:
    secret = said("apikey", "create", "airline", "engineer", "--scope", "read").strip()
    key = ApiKey.objects.get()
    address = "/api/v1/figures"
    headers = {"HTTP_AUTHORIZATION": f"Bearer {secret}"}

    assert secret.startswith(f"evs_{key.prefix}_")
    assert key.scopes == ["read"]
    assert timedelta(days=89) < key.expires_at - timezone.now() <= timedelta(days=90)
    assert client.get(address, **headers).status_code == 200
    listed = said("apikey", "list", "airline")
    assert key.prefix in listed
    assert secret not in listed
    assert "expires" in listed

    said("apikey", "revoke", secret)

    assert client.get(address, **headers).status_code == 401
    assert "revoked" in said("apikey", "list", "airline")


def test_apikey_shows_an_expired_key_as_expired(cast: Cast) -> None:
    said("apikey", "create", "airline", "engineer", "--name", "night", "--days", "1")
    ApiKey.objects.update(expires_at=timezone.now() - timedelta(seconds=1))
    assert "ingest,read  expired" in said("apikey", "list", "airline")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["create", "airline", "owner"], "only an engineer holds a key"),
        (["create", "airline", "engineer", "--days", "0"], "--days"),
        (["revoke", "abc"], "There is no key"),
    ],
)
def test_apikey_says_what_is_wrong(cast: Cast, words: list[str], sentence: str) -> None:
    with pytest.raises(CommandError, match=sentence):
        said("apikey", *words)


def declare(*more: str) -> str:
    words = ["--system", "airline", "--release", "1.0", "--name", "night"]
    return said("run", "declare", *words, *more)


def test_run_declare_with_and_without_tasks(cast: Cast, tmp_path: Path) -> None:
    tasks = tmp_path / "tasks.txt"
    tasks.write_bytes("\ufefft1\r\n\r\nt2\nt1\n".encode())

    assert declare("--trials", "5", "--tasks", str(tasks), "--by", "engineer") == (
        "Run 'night' is declared: 5 trials of 2 tasks.\n"
    )

    run = Run.objects.get()
    assert (run.declared_trials, run.declared_by) == (5, cast.engineer)
    assert set(RunTask.objects.values_list("task__task_id", flat=True)) == {"t1", "t2"}
    with pytest.raises(CommandError, match="exists already"):
        declare("--trials", "5")


def test_run_declare_makes_system_and_release(db: None) -> None:
    said("run", "declare", "--system", "New one", "--release", "1", "--name", "n", "--trials", "2")
    assert System.objects.get().slug == "new-one"
    assert Release.objects.get().name == "1"
    assert Run.objects.get().declared_by is None


@pytest.mark.parametrize(
    ("content", "sentence"),
    [(None, "cannot be read: No such file"), (b"\n", "names no task"), (b"\xff", "not UTF-8")],
)
def test_run_declare_says_what_is_wrong_with_the_tasks(
    cast: Cast, tmp_path: Path, content: bytes | None, sentence: str
) -> None:
    file = tmp_path / "tasks"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CommandError, match=sentence):
        declare("--trials", "2", "--tasks", str(file))
    with pytest.raises(CommandError, match="at least one trial"):
        declare("--trials", "0")
    assert Run.objects.count() == 0
    assert Release.objects.count() == 0
