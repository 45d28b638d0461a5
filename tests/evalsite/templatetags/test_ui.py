from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from django.template import Context, Template

from evalsite.templatetags.ui import counted, data_size, duration, moment, money, thousands


@pytest.mark.parametrize(("value", "text"), [(None, "-"), (0, "0"), (1204, "1,204")])
def test_thousands(value: int | None, text: str) -> None:
    assert thousands(value) == text


@pytest.mark.parametrize(
    ("value", "words", "text"),
    [
        (1, "trial,trials", "1 trial"),
        (1204, "trial,trials", "1,204 trials"),
        (0, "step", "0 steps"),
    ],
)
def test_counted(value: int, words: str, text: str) -> None:
    assert counted(value, words) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (Decimal("0.0412"), "$0.0412"), (Decimal("1234.5"), "$1,234.50")],
)
def test_money(value: Decimal | None, text: str) -> None:
    assert money(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (Decimal("0.44"), "0.4 s"), (Decimal("84.2"), "1 min 24 s")],
)
def test_duration(value: Decimal | None, text: str) -> None:
    assert duration(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"),
        (512, "512 B"),
        (1234, "1.2 kB"),
        (3_400_000, "3.4 MB"),
        (5 * 10**12, "5.0 TB"),
    ],
)
def test_data_size(value: int | None, text: str) -> None:
    assert data_size(value) == text


def test_moment_is_in_utc() -> None:
    at = datetime(2026, 11, 30, 12, 4, 5, tzinfo=timezone(timedelta(hours=2)))
    assert moment(at) == (
        '<time datetime="2026-11-30T10:04:05+00:00" title="2026-11-30 10:04:05 UTC">'
        "30 Nov 2026, 10:04</time>"
    )
    assert moment(None) == "-"
    assert "1 Jan 2026" in moment(datetime(2026, 1, 1, tzinfo=UTC))


def test_icon_is_hidden_from_screen_readers() -> None:
    html = Template('{% load ui %}{% icon "sun" %}').render(Context())
    assert html.startswith('<svg class="icon" aria-hidden="true"><use href="/static/vendor/icons')
    assert html.endswith('#sun"></use></svg>')
