"""The vendored browser libraries are what vendor.json says, with their licences."""

import json
from hashlib import sha256
from pathlib import Path

from plotly.offline import get_plotlyjs_version

VENDOR = Path(__file__).resolve().parents[2] / "static" / "vendor"
LISTING = json.loads((VENDOR / "vendor.json").read_text())


def test_each_vendored_file_has_the_listed_checksum() -> None:
    found = {
        entry["file"]: sha256((VENDOR / entry["file"]).read_bytes()).hexdigest()
        for entry in LISTING
    }
    assert found == {entry["file"]: entry["sha256"] for entry in LISTING}


def test_every_file_in_the_folder_is_listed() -> None:
    licences = {entry["licence_file"] for entry in LISTING}
    listed = {entry["file"] for entry in LISTING} | licences | {"vendor.json"}
    found = {str(path.relative_to(VENDOR)) for path in VENDOR.rglob("*") if path.is_file()}
    assert found == listed


def test_each_licence_is_free_and_beside_its_file() -> None:
    assert {entry["licence"] for entry in LISTING} == {"OFL-1.1", "ISC", "MIT"}
    assert all((VENDOR / entry["licence_file"]).stat().st_size > 500 for entry in LISTING)


def test_plotly_fits_the_python_package() -> None:
    versions = {entry["version"] for entry in LISTING if entry["name"] == "plotly.js"}
    assert versions == {get_plotlyjs_version()}


def test_vendored_scripts_hold_no_eval_and_no_remote_map() -> None:
    script = (VENDOR / "plotly.js").read_text()
    assert "new Function(" not in script
    assert "sourceMappingURL" not in script
