"""What holds for every template, script and style sheet, whatever it shows."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STATIC = ROOT / "static"
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((STATIC / "js").glob("*.js"))
SPRITE = (STATIC / "vendor" / "icons.svg").read_text()


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_keeps_to_the_content_security_policy(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"\sstyle=|<style|javascript:|\son[a-z]+=", text) == []
    assert [tag for tag in re.findall(r"<script[^>]*>", text) if "src=" not in tag] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_a_template_escapes_everything(path: Path) -> None:
    assert re.findall(r"\|safe\b|autoescape|safeseq|mark_safe", path.read_text()) == []


@pytest.mark.parametrize("path", TEMPLATES, ids=name_of)
def test_what_a_template_names_exists(path: Path) -> None:
    text = path.read_text()
    files = re.findall(r"{% static '([^']+)' %}", text)
    includes = re.findall(r'{% (?:include|extends) "([^"]+)"', text)
    icons = re.findall(r'{% icon "([^"]+)"', text)
    assert [name for name in files if not (STATIC / name).is_file()] == []
    assert [name for name in includes if not (ROOT / "templates" / name).is_file()] == []
    assert [name for name in icons if f'<symbol id="{name}"' not in SPRITE] == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_builds_no_markup_from_text(path: Path) -> None:
    text = path.read_text()
    assert re.findall(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(", text) == []


@pytest.mark.parametrize("path", SCRIPTS, ids=name_of)
def test_a_script_is_loaded_by_some_template(path: Path) -> None:
    wanted = f"js/{path.name}"
    assert [name_of(template) for template in TEMPLATES if wanted in template.read_text()] != []


def test_every_style_sheet_stands_in_a_layer() -> None:
    sheets = sorted((STATIC / "css").glob("*.css"))
    outside = {
        sheet.name: re.sub(r"/\*.*?\*/", "", sheet.read_text(), flags=re.DOTALL).strip()
        for sheet in sheets
    }
    assert [name for name, text in outside.items() if not text.startswith("@layer ")] == []
