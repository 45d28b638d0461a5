"""Every page over every hostile or odd input: it opens, stays small, and shows text as text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.test import Client

from evalsite.pipeline import process_upload
from tests.support.cast import Cast
from tests.support.evidence import receive
from tests.support.visits import root
from traces.models import Release, Run, System, Task, Trial, Upload

pytestmark = pytest.mark.django_db

FOLDER = Path(__file__).resolve().parents[2] / "data" / "cases"
KINDS = (
    "bidi-and-ansi",
    "big-integer--args-and-state",
    "csv-formula",
    "deep-nesting--control-40",
    "empty-trajectory",
    "judge-contradiction",
    "judge-malformed-verdict--spellings",
    "log-injection",
    "lone-surrogate",
    "multi-part-content",
    "negative-duration",
    "non-object-args",
    "nul-byte",
    "odd-identifiers",
    "oversize-field",
    "prompt-injection",
    "stored-xss",
    "text-framing--u2028",
    "tool-name-forms",
    "truncated-tool-args",
    "unknown-criterion",
)
FILES = sorted(path.name for path in FOLDER.iterdir() if path.name.startswith(KINDS))
LARGEST_PAGE = 500_000
UNSEEN = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069\u200b]")


class Active(HTMLParser):
    """Finds markup that acts: events, scripts of the page's own, addresses that run or embed."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        is_data = values.get("type") == "application/json"
        if tag in {"iframe", "object", "embed", "base", "svg:script"}:
            self.found.append(tag)
        if tag == "script" and "src" not in values and not is_data:
            self.found.append("script")
        for name, value in values.items():
            leads = name in {"href", "src", "action", "formaction", "xlink:href"}
            if name.startswith("on") or name == "style":
                self.found.append(f"{tag} {name}")
            elif leads and re.match(r"\s*(?:javascript|data|vbscript):", value, re.IGNORECASE):
                self.found.append(f"{tag} {name}={value[:40]}")


def active(text: str) -> list[str]:
    parser = Active()
    parser.feed(text)
    return parser.found


def addresses(system: System) -> Iterator[str]:
    base = root(system)
    yield from (base + part for part in ("tasks/?view=table", "trials/", "rules/"))
    for upload in Upload.objects.filter(system=system):
        yield f"{base}uploads/{upload.uuid}/"
    for task in Task.objects.filter(system=system).order_by("pk")[:1]:
        yield f"{base}tasks/{task.uuid}/?level=exact&messages=1&overlay=fail,unresolved"
        trials = Trial.objects.filter(task=task).order_by("pk")
        if trials:
            sides = f"side={trials[0].uuid}&side={trials[len(trials) - 1].uuid}"
            yield f"{base}tasks/{task.uuid}/compare/?{sides}&messages=1"
    for trial in Trial.objects.filter(system=system).order_by("pk")[:2]:
        yield f"{base}trials/{trial.uuid}/"
    for run in Run.objects.filter(release__system=system)[:1]:
        yield f"{base}runs/{run.uuid}/"
    for release in Release.objects.filter(system=system)[:1]:
        yield f"{base}releases/{release.uuid}/"


@pytest.mark.parametrize("file", FILES)
def test_pages_show_a_hostile_input_as_text(file: str, client: Client, cast: Cast) -> None:
    upload = receive(cast.system, (FOLDER / file).read_bytes(), release=None, file_name=file)
    process_upload(upload.pk)
    if not Trial.objects.filter(system=cast.system).exists():
        again = receive(cast.system, (FOLDER / file).read_bytes(), file_name=file)
        process_upload(again.pk)
    client.force_login(cast.viewer)
    found: dict[str, object] = {}
    for address in addresses(cast.system):
        answer = client.get(address)
        text = answer.content.decode()
        if answer.status_code != 200 or len(answer.content) > LARGEST_PAGE:
            found[address] = (answer.status_code, len(answer.content))
        elif acts := active(text):
            found[address] = acts
        elif hit := UNSEEN.search(text):
            found[address] = text[max(0, hit.start() - 60) : hit.end() + 60]
    assert found == {}
