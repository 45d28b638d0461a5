"""The written table of verdict words, and what becomes of other words."""

from __future__ import annotations

import pytest
from django.test import Client

from reviews.models import Verdict
from tests.support.cast import Cast
from tests.support.evidence import ingest, record, verdict
from tests.support.visits import root, visit
from traces.core.verdict_words import VERDICT_WORDS, verdict_of
from traces.models import Trial, Upload

pytestmark = pytest.mark.django_db

WORDS = (
    ("satisfied", "pass"), ("Compliant", "pass"), ("correct", "pass"), ("unknown", "unknown"),
    ("unsatisfied", "fail"), ("partially satisfied", "error"), ("looks good", "error"),
)  # fmt: skip


def test_the_page_shows_the_whole_table(client: Client, cast: Cast) -> None:
    page = visit(client, cast.outsider, "/verdict-words/")
    shown = {word: line.verdict for line in page.lines for word in line.words}
    assert shown == {word: value.value for word, value in VERDICT_WORDS.items()}
    assert all(verdict_of(word).value == value for word, value in shown.items())


def test_a_stranger_is_asked_to_sign_in(client: Client, cast: Cast) -> None:
    assert client.get("/verdict-words/").status_code == 302


def test_words_of_graders_are_read_by_the_table_and_kept(client: Client, cast: Cast) -> None:
    given = [
        verdict(word, criterion=f"c{n}", grader="judge", kind="model")
        for n, (word, _) in enumerate(WORDS)
    ]
    ingest(cast.system, [record(verdicts=given)])
    rows = Verdict.objects.order_by("criterion__name").values_list("raw_word", "value")
    assert list(rows) == list(WORDS)
    client.force_login(cast.viewer)
    trial = client.get(f"{root(cast.system)}trials/{Trial.objects.get().uuid}/").content.decode()
    assert trial.count('<a href="/verdict-words/">no verdict word</a>') == 2
    upload = Upload.objects.get()
    page = client.get(f"{root(cast.system)}uploads/{upload.uuid}/").content.decode()
    assert page.count('<a href="/verdict-words/">those of the table</a>') == 1
