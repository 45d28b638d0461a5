from __future__ import annotations

import pytest
from django.test import Client

from reviews.models import Rubric, RubricRequest, RubricVersion
from reviews.permissions.rubrics import NOT_A_WRITER
from reviews.services.rubrics import open_request
from tests.reviews.services.test_rubrics import TEXT, unclear, written
from tests.support.cast import Cast
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit

pytestmark = pytest.mark.django_db

SENT = {"name": "tone", "version": "1", "text": "Be polite.", "reason": "First."}


def test_an_engineer_writes_the_first_text(client: Client, cast: Cast) -> None:
    page = visit(client, cast.engineer, f"{root(cast.system)}rubrics/", name="tone")
    answer = client.post(f"{root(cast.system)}rubrics/new", SENT)

    row = RubricVersion.objects.get()
    assert page.empty is not None
    assert page.new.form.initial == {"name": "tone"}
    assert (answer.status_code, answer["Location"]) == (
        302,
        f"{root(cast.system)}rubrics/{row.rubric_id}/",
    )
    assert (row.rubric.name, row.text, row.by) == ("tone", "Be polite.", cast.engineer)


def test_an_invalid_text_comes_back_as_it_was_sent(client: Client, cast: Cast) -> None:
    written(cast)
    client.force_login(cast.reviewer)
    answer = client.post(f"{root(cast.system)}rubrics/new", SENT | {"text": "Be short."})

    assert answer.status_code == 422
    assert "wrote another text of version 1" in answer.content.decode()
    assert answer.context["page"].new.form["text"].value() == "Be short."
    missing = client.post(f"{root(cast.system)}rubrics/new", SENT | {"version": ""})
    assert missing.status_code == 422


def test_a_further_text_answers_the_requests_that_are_chosen(client: Client, cast: Cast) -> None:
    rubric = written(cast).rubric
    asked = open_request(unclear(cast, cast.reviewer))
    contract_in_effect(cast.system, TEXT, by=cast.engineer)
    here = f"{root(cast.system)}rubrics/{rubric.pk}/"
    before = visit(client, cast.engineer, here)
    sent = {"version": "2", "text": "Be polite to the user.", "reason": "To whom."}
    refused = client.post(f"{here}version", sent | {"answers": ["77"]})
    answer = client.post(f"{here}version", sent | {"answers": [str(asked.pk), "x"]})
    after = visit(client, cast.engineer, here)

    assert before.new.chosen == {asked.pk}
    assert [use.note for use in before.uses] == [
        "The text of this version is not written down here."
    ]
    assert (refused.status_code, refused.context["page"].new.chosen) == (422, {77})
    assert answer.status_code == 302
    assert [(t.version, t.used) for t in after.texts] == [
        ("2", "asked for by 1 task"),
        ("1", "no contract in effect asks for it"),
    ]
    assert [r.outcome for r in after.requests] == ["answered by version 2, engineer"]
    assert [use.note for use in after.uses] == [""]


def test_a_request_is_closed_with_a_reason(client: Client, cast: Cast) -> None:
    asked = open_request(unclear(cast, cast.reviewer))
    path = f"{root(cast.system)}rubrics/requests/{asked.pk}/close"
    listed = visit(client, cast.engineer, f"{root(cast.system)}rubrics/")
    without = client.post(path, {}, follow=True)
    is_open = RubricRequest.objects.get(pk=asked.pk).closed_at is None
    done = client.post(path, {"reason": "It says so."}, follow=True)
    again = client.post(path, {"reason": "It says so."}, follow=True)

    assert [r.close_url for r in listed.requests] == [path]
    assert "The request stays: This field is required." in without.content.decode()
    assert is_open
    assert "The request is closed." in done.content.decode()
    assert "The request stays: This request was closed at" in again.content.decode()


def test_others_read_and_are_told_why_they_do_not_write(client: Client, cast: Cast) -> None:
    rubric = written(cast).rubric
    asked = open_request(unclear(cast, cast.reviewer))
    page = visit(client, cast.owner, f"{root(cast.system)}rubrics/{rubric.pk}/")
    answers = [
        client.post(f"{root(cast.system)}rubrics/new", SENT),
        client.post(f"{root(cast.system)}rubrics/{rubric.pk}/version", SENT),
        client.post(f"{root(cast.system)}rubrics/requests/{asked.pk}/close", {"reason": "x"}),
    ]

    assert page.new.why_not == NOT_A_WRITER
    assert [r.close_url for r in page.requests] == [""]
    assert [answer.status_code for answer in answers] == [403, 403, 403]


def test_the_pages_take_the_same_queries_with_one_row_and_with_three(
    client: Client, cast: Cast
) -> None:
    rubric = written(cast).rubric
    client.force_login(cast.viewer)
    pages = (f"{root(cast.system)}rubrics/", f"{root(cast.system)}rubrics/{rubric.pk}/")
    one = [n_queries(client, page) for page in pages]
    for version in ("2", "3"):
        written(cast, version=version, text=version)
        written(cast, name=f"other {version}")
    three = [n_queries(client, page) for page in pages]

    assert Rubric.objects.count() == 3
    assert (one, three) == ([10, 10], [10, 10])
