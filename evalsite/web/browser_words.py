"""A browser in words, read from what it says of itself. A hint for people, never a check."""

from __future__ import annotations

import re
from typing import Final

# The first that is found counts: most browsers also name those that they resemble.
_BROWSERS: Final = (
    ("Edg(?:e|A|iOS)?/", "Edge"),
    ("OPR/|Opera", "Opera"),
    ("SamsungBrowser/", "Samsung Internet"),
    ("Firefox/|FxiOS/", "Firefox"),
    ("HeadlessChrome/|Chrome/|CriOS/|Chromium/", "Chrome"),
    ("Safari/", "Safari"),
    ("curl/", "curl"),
    ("[Pp]ython", "a Python program"),
)
_PLACES: Final = (
    ("iPhone|iPad", "iOS"),
    ("Android", "Android"),
    ("Windows", "Windows"),
    ("Mac OS X|Macintosh", "macOS"),
    ("CrOS", "ChromeOS"),
    ("Linux|X11", "Linux"),
)


def browser_words(agent: str) -> str:
    """`Firefox on Linux`; what cannot be told is left out."""
    browser, place = _first(_BROWSERS, agent), _first(_PLACES, agent)
    if not browser:
        return f"a browser on {place}" if place else "an unknown browser"
    return f"{browser} on {place}" if place else browser


def _first(table: tuple[tuple[str, str], ...], agent: str) -> str:
    return next((name for pattern, name in table if re.search(pattern, agent)), "")
