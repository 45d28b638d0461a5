"""Numbers, money, times and sizes as text for people. Nothing here depends on Django or an app."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import ROUND_HALF_EVEN, Context, Decimal

NOTHING = "-"
"""Stands where nothing is known. It is never 0."""

_EXACT = Context(prec=200)
_MINUTE, _HOUR, _DAY = 60, 3600, 86400
_BYTE_UNITS = ("kB", "MB", "GB")


def count_text(n: int) -> str:
    """A whole number with commas between thousands: "12,345"."""
    return f"{n:,}"


def counted(n: int, noun: str, plural: str | None = None) -> str:
    """A count with its noun: "1 trial", "3 trials", "0 paths"."""
    return f"{count_text(n)} {noun if n == 1 else plural or noun + 's'}"


def duration_text(seconds: Decimal | None) -> str:
    """A duration: "0.4 s", "41 s", "3 min 20 s", "2 h 5 min", "3 d 4 h"; "-" when not known.

    Whole seconds from 10 s on, and at most two units: what is cut is cut off, not rounded up.
    """
    if seconds is None:
        return NOTHING
    if seconds < 0:
        return f"-{duration_text(-seconds)}"
    if seconds < 10:
        return f"{_shortest(seconds, places=1)} s"
    whole = int(seconds)
    if whole < _MINUTE:
        return f"{whole} s"
    if whole < _HOUR:
        return _two_units(whole, _MINUTE, "min", 1, "s")
    if whole < _DAY:
        return _two_units(whole, _HOUR, "h", _MINUTE, "min")
    return _two_units(whole, _DAY, "d", _HOUR, "h")


def _two_units(seconds: int, large: int, large_name: str, small: int, small_name: str) -> str:
    n_large, rest = divmod(seconds, large)
    n_small = rest // small
    text = f"{count_text(n_large)} {large_name}"
    return f"{text} {n_small} {small_name}" if n_small else text


def money_text(amount: Decimal | None) -> str:
    """An amount of US dollars: "$1.00", "$0.0123"; "-" when not known.

    Two places from one dollar on, four below it, or as many as show two digits that are not 0.
    Rounded half to even, for reading only: sums and comparisons are made on the amount.
    """
    if amount is None:
        return NOTHING
    if not amount:
        return "$0.00"
    first_digit = -amount.adjusted()
    places = 2 if first_digit <= 0 else min(max(4, first_digit + 1), 30)
    text = f"{_rounded(abs(amount), places):,f}"
    whole, _, fraction = text.partition(".")
    fraction = fraction.rstrip("0").ljust(2, "0")
    return f"{'-' if amount < 0 else ''}${whole}.{fraction}"


def bytes_text(n: int) -> str:
    """A size in decimal units: "512 B", "20.5 kB", "1.4 MB"."""
    if n < 1000:
        return f"{n} B"
    value = float(n)
    for unit in _BYTE_UNITS:
        value /= 1000
        if value < 999.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1000:.1f} TB"


def limit_text(n: int) -> str:
    """A limit in the binary units in which limits are set, where it is whole in them: "512 MiB"."""
    for factor, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= factor and n % factor == 0:
            return f"{count_text(n // factor)} {unit}"
    return bytes_text(n)


def time_text(at: datetime | None) -> str:
    """An instant in UTC, to the second: "2026-11-30 10:00:00 UTC"; "-" when not known."""
    return NOTHING if at is None else f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def relative_text(at: datetime | None, *, now: datetime) -> str:
    """How long ago, or how far ahead, an instant is: "just now", "5 min ago", "in 2 d".

    From 30 days on the date says more: "2026-11-30". "-" when the instant is not known.
    """
    if at is None:
        return NOTHING
    seconds = int((now - at).total_seconds())
    distance = abs(seconds)
    if distance < _MINUTE:
        return "just now"
    if distance >= 30 * _DAY:
        return f"{at.astimezone(UTC):%Y-%m-%d}"
    if distance < _HOUR:
        text = f"{distance // _MINUTE} min"
    elif distance < _DAY:
        text = f"{distance // _HOUR} h"
    else:
        text = f"{distance // _DAY} d"
    return f"{text} ago" if seconds > 0 else f"in {text}"


def _shortest(value: Decimal, *, places: int) -> str:
    text = f"{_rounded(value, places):f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _rounded(value: Decimal, places: int) -> Decimal:
    """Rounded half to even at so many places; as it is when it is too long for that."""
    quantum = Decimal(1).scaleb(-places)
    if value.adjusted() + places >= _EXACT.prec:
        return value
    return value.quantize(quantum, rounding=ROUND_HALF_EVEN, context=_EXACT)
