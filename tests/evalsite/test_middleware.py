from __future__ import annotations

import re

import pytest
from django.test import Client
from pytest_django import Settings


def test_every_answer_names_its_request(client: Client) -> None:
    first, second = (client.get("/help/none")["X-Request-Id"] for _ in range(2))
    assert re.fullmatch("[0-9a-f]{32}", first)
    assert first != second


def test_a_name_is_taken_from_no_header_that_is_not_configured(client: Client) -> None:
    assert client.get("/help/none", headers={"X-Request-Id": "mine"})["X-Request-Id"] != "mine"


@pytest.mark.parametrize(
    ("given", "is_taken"),
    [("req-7.a", True), ("", False), ("a b", False), ("a" * 65, False), ("a\nb", False)],
)
def test_a_trusted_proxys_name_is_taken_where_it_is_fit(
    client: Client, settings: Settings, given: str, is_taken: bool
) -> None:
    settings.EVALSITE_REQUEST_ID_HEADER = "X-Edge-Id"
    answer = client.get("/help/none", headers={"X-Edge-Id": given})
    assert (answer["X-Request-Id"] == given) is is_taken
