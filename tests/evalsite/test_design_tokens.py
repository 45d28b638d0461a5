"""Text keeps a contrast of at least 4.5 to 1 in both themes (WCAG 2.2, 1.4.3)."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

CSS = Path(__file__).resolve().parents[2] / "static" / "css"
TOKEN = re.compile(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)")
TOKENS = {
    name: (light, dark) for name, light, dark in TOKEN.findall((CSS / "tokens.css").read_text())
}
TOOLS = tuple(f"tool-{number}" for number in range(12))
PLACES = ("bg", "surface", "sunken", "hover")
STATES = ("pass", "fail", "open", "harness")

Rgb = tuple[float, float, float]


def rgb_of(colour: str) -> Rgb:
    red, green, blue = (int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))
    return red, green, blue


def luminance(colour: Rgb) -> float:
    """Relative luminance by WCAG 2.2."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: Rgb, other: Rgb) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def mix(one: Rgb, other: Rgb, share: float) -> Rgb:
    """`share` of one colour over the other: close to color-mix in oklab for small shares."""
    red, green, blue = (a * share + b * (1 - share) for a, b in zip(one, other, strict=True))
    return red, green, blue


def pairs(theme: int) -> Iterator[tuple[str, Rgb, Rgb]]:
    """Every text and ground that stand together on a page of this theme."""
    colours = {name: rgb_of(both[theme]) for name, both in TOKENS.items()}

    def pair(text: str, ground: str) -> tuple[str, Rgb, Rgb]:
        return f"{text} on {ground}", colours[text], colours[ground]

    for ground in PLACES:
        yield pair("text", ground)
        yield pair("muted", ground)
        yield pair("accent", ground)
    for state in STATES:
        yield pair(state, "surface")
        yield pair(state, "sunken")
        yield pair(state, "hover")
        yield pair(state, f"{state}-soft")
        yield pair("text", f"{state}-soft")
        yield pair("muted", f"{state}-soft")
    yield pair("accent", "accent-soft")
    yield pair("text", "accent-soft")
    yield pair("muted", "accent-soft")
    yield pair("inverse", "accent")
    yield pair("inverse", "accent-strong")
    yield pair("bg", "text")
    for tool in TOOLS:
        yield pair("surface", tool)
        yield pair(tool, "surface")
        tint = mix(colours[tool], colours["surface"], 0.08)
        yield f"{tool} on its tint", colours[tool], tint
    for share in (0.06, 0.18, 0.30):
        deep = mix(colours["accent"], colours["surface"], share)
        yield f"text on the grid at {share}", colours["text"], deep


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_text_contrast_is_at_least_4_5(theme: int) -> None:
    low = {name: round(contrast(*both), 2) for name, *both in pairs(theme)}
    assert {name: ratio for name, ratio in low.items() if ratio < 4.5} == {}


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_edges_of_controls_have_a_contrast_of_3(theme: int) -> None:
    colours = {name: rgb_of(both[theme]) for name, both in TOKENS.items()}
    assert contrast(colours["control"], colours["surface"]) >= 3


def test_contrast_of_known_pairs() -> None:
    assert round(contrast(rgb_of("#000000"), rgb_of("#ffffff")), 2) == 21
    assert round(contrast(rgb_of("#777777"), rgb_of("#ffffff")), 2) == 4.48


def test_colours_are_named_in_the_tokens_only() -> None:
    others = [p for p in CSS.glob("*.css") if p.name != "tokens.css"]
    found = {p.name: re.findall(r"#[0-9a-f]{3,8}\b", p.read_text()) for p in others}
    assert {name: hits for name, hits in found.items() if hits} == {}
