"""Getting about by keyboard alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page


def tab_to(page: Page, selector: str) -> None:
    """Press Tab until the element has the focus."""
    for _ in range(120):
        page.keyboard.press("Tab")
        if page.evaluate("(wanted) => document.activeElement.matches(wanted)", selector):
            return
    pytest.fail(f"Tab does not reach {selector}")


def press(page: Page, selector: str, key: str = "Enter") -> None:
    """Go to the element by Tab, and press a key on it."""
    tab_to(page, selector)
    page.keyboard.press(key)


def write(page: Page, selector: str, text: str) -> None:
    """Go to the field by Tab, and type into it."""
    tab_to(page, selector)
    page.keyboard.type(text)


def move_to(page: Page, text: str) -> None:
    """Press j until the entry of the page's list that holds the text has the focus."""
    for _ in range(60):
        page.keyboard.press("j")
        if text in page.evaluate("document.activeElement.textContent"):
            return
    pytest.fail(f"j does not reach {text}")
