"""Contracts brought into effect as people do it: drafted, previewed, proposed, approved, regraded."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.test import Client

from evalsite.contract_previews import work_out_contract_preview
from evalsite.regrading import work_out_regrade
from reviews.models import Regrade
from tests.support.cast import Cast
from tests.support.keys import header
from traces.core.contracts.writing import join_documents
from traces.models import ContractPreview
from traces.web.addresses import Addresses

API = "/api/v1/contracts"


def previewed(client: Client, cast: Cast, texts: Iterable[str]) -> dict[str, Any]:
    """The finished preview of contracts that the engineer drafts through the API."""
    headers = header(cast.system, cast.engineer)
    answer = client.post(
        f"{API}/previews",
        join_documents(texts).encode(),
        content_type="application/yaml",
        **headers,
    )
    assert answer.status_code == 202, answer.content.decode()
    work_out_contract_preview(ContractPreview.objects.get(uuid=answer.json()["id"]).pk)
    found: dict[str, Any] = client.get(answer["Location"], **headers).json()
    return found


def proposed(client: Client, cast: Cast, texts: Iterable[str]) -> int:
    """The number of the proposal that the engineer makes of contracts."""
    preview = previewed(client, cast, texts)
    answer = client.post(
        f"{API}/previews/{preview['id']}/propose",
        {"reason": "As the handbook says."},
        content_type="application/json",
        **header(cast.system, cast.engineer),
    )
    assert answer.status_code == 201, answer.content.decode()
    return int(answer.json()["number"])


def brought_into_effect(client: Client, cast: Cast, texts: Iterable[str]) -> Regrade:
    """The finished regrade of contracts that the reviewer approves on the page."""
    number = proposed(client, cast, texts)
    client.force_login(cast.reviewer)
    page = Addresses.of(cast.system.slug).contract_proposal(number)
    answer = client.post(f"{page}decide", {"outcome": "approved", "reason": "Read with care."})
    assert answer.status_code == 302, answer.content.decode()
    regrade = Regrade.objects.get(system=cast.system, proposal__number=number)
    work_out_regrade(regrade.pk)
    regrade.refresh_from_db()
    assert regrade.state == "done", regrade.failure
    return regrade
