"""Fetches the browser libraries with npm, builds what is built, and writes static/vendor.

Node is needed here only: the product neither builds nor runs with it.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCES = ("package.json", "package-lock.json", "plotly_entry.js")

ICONS = (
    "arrow-down",
    "arrow-left-right",
    "arrow-up",
    "check",
    "chevron-down",
    "chevron-right",
    "chevrons-up-down",
    "clipboard-copy",
    "download",
    "file-text",
    "info",
    "link",
    "menu",
    "moon",
    "route",
    "search",
    "sun",
    "triangle-alert",
    "upload",
    "x",
)

# Plotly sets a few style attributes as text, which a Content-Security-Policy without
# 'unsafe-inline' forbids; the same through the CSSOM is allowed.
STYLE_ATTRIBUTE = re.compile(r"\.attr\('style',\s*([^()]+)\)")
STYLE_BY_CSSOM = r".each(function() { this.style.cssText = \1; })"
STYLE_SOURCES = (
    "components/colorbar/draw.js",
    "lib/supports_pixelated_image.js",
    "traces/heatmap/plot.js",
)


@dataclass(frozen=True, slots=True)
class Vendored:
    """One vendored file, as static/vendor/vendor.json lists it."""

    name: str
    version: str
    file: str
    sha256: str
    licence: str
    licence_file: str


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def fetch(workshop: Path) -> None:
    """Installs the locked packages into `workshop`; their scripts do not run."""
    for name in SOURCES:
        shutil.copy(HERE / name, workshop / name)
    command = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    subprocess.run(command, cwd=workshop, check=True, stdout=subprocess.DEVNULL)


def build(workshop: Path, target: Path) -> tuple[Vendored, ...]:
    """Writes every vendored file to `target` and returns what vendor.json says of them."""
    packages = workshop / "node_modules"
    licences = target / "licences"
    licences.mkdir(parents=True, exist_ok=True)
    listing = (
        _font(packages, target, "inter", "inter-latin-wght-normal.woff2"),
        _font(packages, target, "jetbrains-mono", "jetbrains-mono-latin-wght-normal.woff2"),
        _icons(packages, target),
        *_plotly(workshop, packages, target),
    )
    text = json.dumps([asdict(entry) for entry in listing], indent=2)
    (target / "vendor.json").write_text(text + "\n")
    return listing


def _entry(package: Path, target: Path, file: str, licence_file: str) -> Vendored:
    about = json.loads((package / "package.json").read_text())
    return Vendored(
        name=about["name"],
        version=about["version"],
        file=file,
        sha256=sha256_of(target / file),
        licence=about["license"],
        licence_file=licence_file,
    )


def _font(packages: Path, target: Path, font: str, file: str) -> Vendored:
    package = packages / "@fontsource-variable" / font
    licence_file = f"licences/{font}.txt"
    shutil.copy(package / "files" / file, target / file)
    shutil.copy(package / "LICENSE", target / licence_file)
    return _entry(package, target, file, licence_file)


def _icons(packages: Path, target: Path) -> Vendored:
    package = packages / "lucide-static"
    symbols = "".join(
        f'<symbol id="{name}" viewBox="0 0 24 24">{_drawing(package, name)}</symbol>\n'
        for name in ICONS
    )
    sprite = f'<svg xmlns="http://www.w3.org/2000/svg">\n{symbols}</svg>\n'
    (target / "icons.svg").write_text(sprite)
    shutil.copy(package / "LICENSE", target / "licences" / "lucide.txt")
    return _entry(package, target, "icons.svg", "licences/lucide.txt")


def _drawing(package: Path, name: str) -> str:
    text = (package / "icons" / f"{name}.svg").read_text()
    inner = text[text.index(">", text.index("<svg")) + 1 : text.rindex("</svg>")]
    return " ".join(inner.split())


def _plotly(workshop: Path, packages: Path, target: Path) -> tuple[Vendored, ...]:
    package = packages / "plotly.js"
    for name in STYLE_SOURCES:
        source = package / "src" / name
        changed, n_changes = STYLE_ATTRIBUTE.subn(STYLE_BY_CSSOM, source.read_text())
        if n_changes == 0:
            raise ValueError(f"{name} no longer sets a style attribute: drop it from the list")
        source.write_text(changed)
    used = _bundle(workshop, target / "plotly.js")
    (target / "plotly.css").write_text(plotly_css((package / "build" / "plotcss.js").read_text()))
    (target / "licences" / "plotly.txt").write_text(_licences(packages, used))
    return tuple(
        _entry(package, target, file, "licences/plotly.txt") for file in ("plotly.js", "plotly.css")
    )


def _bundle(workshop: Path, bundle: Path) -> tuple[str, ...]:
    """Builds the bundle and returns the names of the packages that went into it."""
    out = workshop / "out"
    command = [
        "node_modules/.bin/esbuild",
        "plotly_entry.js",
        "--bundle",
        "--minify",
        "--format=iife",
        "--global-name=Plotly",
        "--target=es2020",
        "--charset=ascii",
        "--legal-comments=none",
        "--define:global=window",
        "--define:define.amd=false",
        "--alias:stream=stream-browserify",
        f"--outfile={out / 'plotly.js'}",
        f"--metafile={out / 'meta.json'}",
        "--log-level=error",
    ]
    out.mkdir(exist_ok=True)
    subprocess.run(command, cwd=workshop, check=True)
    # The style sheet that esbuild leaves beside it belongs to maps, which are not drawn.
    shutil.copy(out / "plotly.js", bundle)
    inputs = json.loads((out / "meta.json").read_text())["outputs"]
    paths = next(o["inputs"] for name, o in inputs.items() if name.endswith("plotly.js"))
    return tuple(sorted({_package_of(path) for path in paths if "node_modules/" in path}))


def _package_of(path: str) -> str:
    parts = path.rpartition("node_modules/")[2].split("/")
    return "/".join(parts[:2]) if parts[0].startswith("@") else parts[0]


def plotly_css(source: str) -> str:
    """The style rules that Plotly would add by script, which the policy forbids, as a file."""
    rules = re.findall(r'^ {4}("[^"]*"|[XY]): ("(?:[^"\\]|\\.)*"),?$', source, re.MULTILINE)
    lines = []
    for quoted, body in rules:
        selector = quoted.strip('"').replace("X", ".js-plotly-plot .plotly")
        selector = selector.replace("Y", ".plotly-notifier")
        lines.append(f"{selector} {{ {json.loads(body)} }}")
    return "\n".join(lines) + "\n"


def _licences(packages: Path, used: Iterable[str]) -> str:
    texts = []
    for name in used:
        folder = packages / name
        about = json.loads((folder / "package.json").read_text())
        files = sorted(
            file for file in folder.iterdir() if re.match(r"(?i)licen[cs]e|copying", file.name)
        )
        body = files[0].read_text() if files else f"Licence: {about.get('license', 'not stated')}"
        texts.append(f"{name} {about['version']}\n\n{body.strip()}\n")
    return ("\n" + "-" * 80 + "\n\n").join(texts)
