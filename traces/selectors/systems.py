"""Systems and releases, found by what people call them."""

from __future__ import annotations

from collections.abc import Sequence

from traces.core.canonical import nfc
from traces.models import Release, System


def system_named(name: str) -> System | None:
    """The system of that address, else the one of that name; None without one."""
    systems = System.objects.select_related("shown_rules")
    return systems.filter(slug=name).first() or systems.filter(name=name).order_by("pk").first()


def releases_named(system: System, names: Sequence[str]) -> tuple[list[Release], list[str]]:
    """The releases of those names, each once, in the order given; and the names of none."""
    wanted = list(dict.fromkeys(map(nfc, names)))
    rows = {row.name: row for row in Release.objects.filter(system=system, name__in=wanted)}
    return [rows[name] for name in wanted if name in rows], [n for n in wanted if n not in rows]
