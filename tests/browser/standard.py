"""What every page is held to: nothing that axe finds, and no way to scroll sideways."""

from __future__ import annotations

from typing import TYPE_CHECKING

from axe_playwright_python.sync_playwright import Axe

if TYPE_CHECKING:
    from playwright.sync_api import Page

# What axe calls a best practice is a matter of taste, the rest is WCAG 2.2 A and AA.
AXE = {
    "runOnly": {
        "type": "tag",
        "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    },
    "resultTypes": ["violations"],
}

WIDTHS = (1440, 390)


def faults(page: Page) -> list[str]:
    """What axe finds, in words."""
    found = Axe().run(page, options=AXE).response["violations"]
    return [
        f"{fault['id']}: {node['target']} {node['failureSummary']}"
        for fault in found
        for node in fault["nodes"]
    ]


def set_theme(page: Page, theme: str) -> None:
    page.evaluate(
        """async (theme) => {
          document.documentElement.dataset.theme = theme;
          await Promise.allSettled(document.getAnimations().map((animation) => animation.finished));
        }""",
        theme,
    )


def is_too_wide(page: Page) -> bool:
    wide: bool = page.evaluate(
        "document.documentElement.scrollWidth > document.documentElement.clientWidth"
    )
    return wide


def assert_holds(page: Page) -> None:
    """The page as it stands fits and is clean at both widths; it is left at the first."""
    for width in reversed(WIDTHS):
        page.set_viewport_size({"width": width, "height": 900})
        assert not is_too_wide(page), f"sideways overflow at {width}: {page.url}"
        found = faults(page)
        assert not found, f"{page.url} at {width}: {found}"
