"""Broken bytes at the door and behind it: no answer of 500, and every upload comes to an end."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from django.core.cache import cache
from django.test import Client

from evalsite import sample_loader
from evalsite.pipeline import process_upload
from tests.support.cast import Cast
from tests.support.keys import header
from traces.models import Upload, UploadJob

pytestmark = pytest.mark.django_db

CASES = Path(__file__).resolve().parents[2] / "data" / "cases"
SEEDS = sorted(path for path in CASES.iterdir() if path.suffix != ".gz" and path.stat().st_size)
N_MUTATIONS = 150


def mutated(body: bytes, chance: random.Random) -> bytes:
    """The bytes with a few of them changed, lost, doubled or cut off."""
    data = bytearray(body[:20_000])
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(data) or 1)
        match chance.randrange(5):
            case 0 if data:
                data[at] = chance.randrange(256)
            case 1:
                del data[at : at + chance.randint(1, 40)]
            case 2:
                data[at:at] = data[at : at + chance.randint(1, 40)]
            case 3:
                data[at:at] = chance.choice(
                    [
                        b"\x00",
                        b"\xff",
                        b'"',
                        b"{",
                        b"]",
                        b"\\u0000",
                        b"1e999",
                        b"NaN",
                        b"\n",
                        b"null",
                    ]
                )
            case _:
                del data[len(data) - chance.randrange(len(data) or 1) :]
    return bytes(data)


def test_broken_bytes_are_refused_or_listed_and_never_break_anything(
    client: Client, cast: Cast, settings: object
) -> None:
    cache.clear()
    settings.EVALSITE_UPLOADS_PER_MINUTE = 10 * N_MUTATIONS  # type: ignore[attr-defined]
    chance = random.Random(20_261_130)
    headers = header(cast.system, cast.engineer)
    packed = (sample_loader.FOLDER / "tau2_airline" / "azure-gpt-4o.json.gz").read_bytes()
    codes = set()
    for number in range(N_MUTATIONS):
        seed = packed if number % 10 == 0 else chance.choice(SEEDS).read_bytes()
        answer = client.post(
            "/api/v1/uploads?release=1",
            mutated(seed, chance),
            content_type="application/octet-stream",
            **headers,
        )
        codes.add(answer.status_code)
        assert answer.status_code in (202, 400), answer.content

    for upload in Upload.objects.order_by("pk"):
        process_upload(upload.pk)

    assert codes == {202, 400}
    assert set(UploadJob.objects.values_list("state", flat=True)) <= {"done", "failed"}
    assert not UploadJob.objects.filter(state="failed", failure="").exists()
    cache.clear()
