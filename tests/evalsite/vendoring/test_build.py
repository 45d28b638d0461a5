"""The build of static/vendor, with a stand-in for esbuild and for the fetched packages."""

import json
from pathlib import Path

import pytest

from evalsite.vendoring.build import ICONS, STYLE_SOURCES, build, plotly_css

ESBUILD = """#!/bin/sh
cat node_modules/plotly.js/src/*/*.js node_modules/plotly.js/src/*/*/*.js > out/plotly.js
echo '{"outputs": {"out/plotly.js": {"inputs": {"entry.js": {},
 "node_modules/plotly.js/src/a.js": {}, "node_modules/@plotly/d3/d3.js": {}}}}}' > out/meta.json
"""


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture
def workshop(tmp_path: Path) -> Path:
    packages = tmp_path / "node_modules"
    versions = {
        "@fontsource-variable/inter": "5.0.0",
        "@fontsource-variable/jetbrains-mono": "5.0.0",
        "lucide-static": "1.0.0",
        "plotly.js": "4.1.1",
        "@plotly/d3": "3.8.0",
    }
    for name, version in versions.items():
        about = {"name": name, "version": version, "license": "MIT"}
        write(packages / name / "package.json", json.dumps(about))
        if name != "@plotly/d3":
            write(packages / name / "LICENSE", f"licence of {name}")
    for font in ("inter", "jetbrains-mono"):
        file = (
            packages / "@fontsource-variable" / font / "files" / f"{font}-latin-wght-normal.woff2"
        )
        write(file, "font")
    for icon in ICONS:
        drawing = '<!-- c -->\n<svg\n class="x">\n <path\n d="M0 0"/>\n</svg>'
        write(packages / "lucide-static" / "icons" / f"{icon}.svg", drawing)
    for source in STYLE_SOURCES:
        write(packages / "plotly.js" / "src" / source, "image.attr('style', STYLE);\n")
    write(packages / "plotly.js" / "build" / "plotcss.js", '    "X a": "color:red;",\n')
    esbuild = packages / ".bin" / "esbuild"
    write(esbuild, ESBUILD)
    esbuild.chmod(0o755)
    return tmp_path


def test_build_lists_what_it_wrote(workshop: Path) -> None:
    target = workshop / "built"
    listing = build(workshop, target)
    assert [(entry.file, entry.name, entry.version) for entry in listing] == [
        ("inter-latin-wght-normal.woff2", "@fontsource-variable/inter", "5.0.0"),
        ("jetbrains-mono-latin-wght-normal.woff2", "@fontsource-variable/jetbrains-mono", "5.0.0"),
        ("icons.svg", "lucide-static", "1.0.0"),
        ("plotly.js", "plotly.js", "4.1.1"),
        ("plotly.css", "plotly.js", "4.1.1"),
    ]
    assert len(json.loads((target / "vendor.json").read_text())) == 5
    assert '<symbol id="sun" viewBox="0 0 24 24"><path d="M0 0"/></symbol>' in (
        (target / "icons.svg").read_text()
    )


def test_build_sets_styles_in_the_way_that_the_policy_allows(workshop: Path) -> None:
    build(workshop, workshop / "built")
    script = (workshop / "built" / "plotly.js").read_text()
    assert script.splitlines() == ["image.each(function() { this.style.cssText = STYLE; });"] * 3


def test_build_collects_the_licence_of_every_bundled_package(workshop: Path) -> None:
    build(workshop, workshop / "built")
    text = (workshop / "built" / "licences" / "plotly.txt").read_text()
    assert "@plotly/d3 3.8.0\n\nLicence: MIT" in text
    assert "plotly.js 4.1.1\n\nlicence of plotly.js" in text


def test_build_stops_when_a_patched_source_no_longer_needs_it(workshop: Path) -> None:
    write(workshop / "node_modules" / "plotly.js" / "src" / STYLE_SOURCES[0], "nothing here\n")
    with pytest.raises(ValueError, match="no longer sets a style attribute"):
        build(workshop, workshop / "built")


def test_plotly_css_of_its_rules() -> None:
    source = (
        "var rules = {\n"
        '    "X [data-title]:after": "content:attr(data-title);",\n'
        '    Y: "font-family:\\"Open Sans\\";",\n'
        '    "Y p": "margin:0;"\n'
        "};\n"
    )
    assert plotly_css(source) == (
        ".js-plotly-plot .plotly [data-title]:after { content:attr(data-title); }\n"
        '.plotly-notifier { font-family:"Open Sans"; }\n'
        ".plotly-notifier p { margin:0; }\n"
    )
