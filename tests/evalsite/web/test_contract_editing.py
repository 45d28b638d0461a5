"""The editor of a contract and the form that takes a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from tests.support.cast import Cast
from tests.support.contract_drafts import drafted, in_effect, proposed, text_of
from tests.support.evidence import ingest, record
from tests.support.visits import root, visit
from traces.core.contracts.documents import MOST_TEXT_BYTES
from traces.models import ContractPreview, Task

pytestmark = pytest.mark.django_db

CASES = Path(__file__).parents[2] / "data" / "cases"


@pytest.fixture
def filled(cast: Cast) -> Cast:
    ingest(cast.system, [record("t1", 0), record("t2", 0)])
    return cast


def form_url(cast: Cast) -> str:
    return f"{root(cast.system)}contracts/edit/"


def load_url(cast: Cast) -> str:
    return f"{root(cast.system)}contracts/load/"


def task_of(task_id: str = "t1") -> Task:
    return Task.objects.get(task_id=task_id)


def begun_with(page: Any) -> str:
    return str(page.form.initial["text"])


def upload(client: Client, cast: Cast, content: bytes, name: str = "some.yaml") -> Any:
    client.force_login(cast.engineer)
    return client.post(load_url(cast), {"file": SimpleUploadedFile(name, content)})


# What the editor begins with


def test_the_editor_begins_with_what_is_in_effect(client: Client, filled: Cast) -> None:
    text = text_of(rest="# the author's own words\n")
    in_effect(filled, text)
    page = visit(client, filled.engineer, form_url(filled), task=task_of().uuid)
    assert (page.heading, page.sentence) == ("Contract of task t1", "Version 1 is in effect.")
    assert begun_with(page) == text
    assert [(field.name, field.value) for field in page.hidden] == [("task", str(task_of().uuid))]


def test_the_editor_begins_with_a_draft_of_the_definition(client: Client, filled: Cast) -> None:
    page = visit(client, filled.engineer, form_url(filled), task=task_of().uuid)
    assert page.sentence == "A first draft, made from the task's definition."
    assert begun_with(page).startswith("task: t1\n")


def test_the_editor_begins_with_an_earlier_version_or_a_draft(client: Client, filled: Cast) -> None:
    version = proposed(filled, text_of(ident="earlier")).versions.get()
    page = visit(client, filled.engineer, form_url(filled), version=version.uuid)
    assert (page.sentence, begun_with(page)) == ("A copy of version 1.", version.text)
    preview = drafted(filled, text_of("t2", ident="draft"))
    query = {"preview": preview.uuid, "of": "t2", "task": task_of("t2").uuid}
    page = visit(client, filled.engineer, form_url(filled), **query)
    assert (page.sentence, begun_with(page)) == (
        "As it was previewed.",
        text_of("t2", ident="draft"),
    )
    assert [field.name for field in page.hidden] == ["preview", "of", "task"]


def test_a_new_contract_begins_with_hints(client: Client, filled: Cast) -> None:
    page = visit(client, filled.engineer, form_url(filled))
    assert page.heading == "New contract"
    assert "# required:" in begun_with(page)


def test_a_proposal_that_waits_is_said(client: Client, filled: Cast) -> None:
    proposed(filled)
    page = visit(client, filled.engineer, form_url(filled), task=task_of().uuid)
    assert [notice.sentence[:40] for notice in page.notices] == [
        "Proposal 1, for task t1 too, waits for a"
    ]


@pytest.mark.parametrize(
    "query",
    [
        {"task": "nonsense"},
        {"task": "0189aa00-0000-7000-8000-000000000000"},
        {"version": "nonsense"},
        {"preview": "nonsense", "of": "t1"},
    ],
    ids=["no-uuid", "no-task", "no-version", "no-preview"],
)
def test_what_is_not_there_is_404(client: Client, filled: Cast, query: dict[str, str]) -> None:
    client.force_login(filled.engineer)
    assert client.get(form_url(filled), query).status_code == 404


def test_only_an_engineer_writes(client: Client, filled: Cast) -> None:
    for user in (filled.reviewer, filled.owner, filled.viewer):
        client.force_login(user)
        for path in (form_url(filled), load_url(filled)):
            assert client.get(path).status_code == 403
            assert client.post(path, {"text": text_of()}).status_code == 403
    assert not ContractPreview.objects.exists()


# What is sent


def test_a_right_text_becomes_a_preview(client: Client, filled: Cast) -> None:
    client.force_login(filled.engineer)
    sent = text_of().replace("\n", "\r\n")
    answer = client.post(form_url(filled), {"text": sent, "task": task_of().uuid})
    preview = ContractPreview.objects.get()
    assert answer.headers["Location"] == f"{root(filled.system)}contracts/previews/{preview.uuid}/"
    assert preview.texts == {"t1": text_of()}
    assert preview.by == filled.engineer


def test_mistakes_are_named_with_their_places(client: Client, filled: Cast) -> None:
    client.force_login(filled.engineer)
    text = "task: t1\nrequired:\n  - {id: a, call: nothing_known}\nbudgets: {turns: 3}\n"
    answer = client.post(form_url(filled), {"text": text, "task": task_of().uuid})
    page = answer.context["page"]
    assert answer.status_code == 422
    assert [(each.place, each.field, each.href) for each in page.findings] == [
        ("Line 4, column 1", "budgets", "#line-4")
    ]
    assert page.findings_words == "1 place has to be mended. Nothing was kept."
    assert page.wrong == "4"
    assert [line.number for line in page.lines if line.notes] == [4]
    assert text in answer.content.decode()
    assert not ContractPreview.objects.exists()
    mended = text.replace("budgets", "budget")
    page = client.post(form_url(filled), {"text": mended}).context["page"]
    assert [(each.place, each.field) for each in page.findings] == [
        ("Line 3, column 19", "required[0].call")
    ]


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        ({}, "Write a contract first."),
        ({"text": "  \n"}, "Write a contract first."),
        ({"text": "task: \x00"}, "Null characters are not allowed."),
    ],
    ids=["nothing", "blank", "nul"],
)
def test_what_is_no_text_is_said_beside_the_field(
    client: Client, filled: Cast, data: dict[str, str], sentence: str
) -> None:
    client.force_login(filled.engineer)
    answer = client.post(form_url(filled), data)
    assert answer.status_code == 422
    form = answer.context["page"].form
    errors = [*form.errors.get("text", []), *[e.sentence for e in answer.context["page"].findings]]
    assert sentence in errors or errors == ["There is no contract in this text."]


def test_the_same_again_is_said(client: Client, filled: Cast) -> None:
    in_effect(filled)
    client.force_login(filled.engineer)
    answer = client.post(form_url(filled), {"text": text_of()})
    assert answer.status_code == 422
    assert answer.context["page"].error.startswith("Each of these contracts says the same")


# Files


def test_a_file_of_many_documents_becomes_one_preview(client: Client, filled: Cast) -> None:
    body = f"---\n{text_of('t1')}---\n{text_of('t2')}".encode()
    assert upload(client, filled, body).status_code == 302
    assert set(ContractPreview.objects.get().texts) == {"t1", "t2"}


@pytest.mark.parametrize(
    ("content", "line", "start"),
    [
        (b"", 0, ""),
        (b"task: \xff\n", 1, "The text is not UTF-8"),
        (b"# only a comment\n", 1, "There is no contract"),
        (b"x" * (MOST_TEXT_BYTES + 1), 0, "The text is too large"),
    ],
    ids=["empty", "not-utf-8", "no-contract", "too-large"],
)
def test_a_file_that_is_none_is_said(
    client: Client, filled: Cast, content: bytes, line: int, start: str
) -> None:
    answer = upload(client, filled, content)
    page = answer.context["page"]
    assert answer.status_code == 422
    if not start:
        assert page.form.errors["file"] == ["The file is empty: there is no contract in it."]
        return
    assert [each.line for each in page.findings] == [line]
    assert page.findings[0].sentence.startswith(start)


def test_no_file_at_all_is_said(client: Client, filled: Cast) -> None:
    client.force_login(filled.engineer)
    answer = client.post(load_url(filled), {})
    assert (answer.status_code, answer.context["page"].form.errors["file"]) == (
        422,
        ["Choose a file."],
    )
    assert visit(client, filled.engineer, load_url(filled)).is_file


def test_a_file_that_changes_nothing_is_said(client: Client, filled: Cast) -> None:
    in_effect(filled)
    answer = upload(client, filled, text_of().encode())
    assert answer.context["page"].error.startswith("Each of these contracts says the same")


@pytest.mark.parametrize("path", sorted(CASES.glob("contract-*.yaml")), ids=lambda path: path.stem)
def test_hostile_contracts_are_refused_at_once_with_their_line(
    client: Client, filled: Cast, path: Path
) -> None:
    began = time.monotonic()
    answer = upload(client, filled, path.read_bytes(), f"<b>{path.name}")
    assert time.monotonic() - began < 2
    assert answer.status_code == 422
    assert all(each.line for each in answer.context["page"].findings)
    assert "<b>contract" not in answer.content.decode()
    text = path.read_text()
    assert client.post(form_url(filled), {"text": text}).status_code == 422
    assert not ContractPreview.objects.exists()
    assert not Path("/tmp/pwned_by_contract").exists()
