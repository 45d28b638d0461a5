"""Everything works with links and form posts alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.evidence import PLAIN, SAMPLE, walk_records
from tests.support.evidence import jsonl

pytestmark = pytest.mark.browser


def test_upload_levels_and_compare_need_no_script(open_page: Opener, tmp_path: Path) -> None:
    file = tmp_path / "plain.jsonl"
    file.write_bytes(jsonl(walk_records()))
    page = open_page(f"/systems/{PLAIN}/uploads/new/", scripts=False)
    page.locator("input[type=file]").set_input_files(file)
    page.get_by_label("Release").fill("3.0")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}/$"))
    for _ in range(50):
        if "done" in page.locator("h1").inner_text():
            break
        page.wait_for_timeout(100)
        page.reload()
    expect(page.locator(".ledger")).to_contain_text("7")

    page.goto(f"/systems/{PLAIN}/tasks/")
    page.get_by_label("Release").select_option(label="3.0")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"release="))
    tile = page.locator(".task-tile", has_text="refund")
    page.locator("summary", has_text="More").locator("visible=true").first.click()
    page.get_by_role("link", name=re.compile("^Tool set")).click()
    expect(page).to_have_url(re.compile(r"level=tool_set"))
    expect(tile.locator("b")).to_have_text("2")
    tile.click()
    page.locator("[data-pick]").nth(0).check()
    page.locator("[data-pick]").nth(1).check()
    page.get_by_role("button", name="Compare two").click()
    expect(page.locator(".compare-row.first")).to_have_count(1)
    page.locator(".compare-sides select").nth(1).select_option(index=0)
    page.get_by_role("button", name="Show").click()
    expect(page).to_have_url(re.compile(r"/compare/"))

    page.locator(".compare-side a").first.click()


def test_steps_verdicts_and_sign_out_need_no_script(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/trials/", scripts=False)
    page.locator("tbody th a").first.click()
    page.get_by_label("Go to step").fill("3")
    page.get_by_role("button", name="Go", exact=True).click()
    expect(page).to_have_url(re.compile(r"step=3"))
    page.locator("#step-3 .step-number").click()
    expect(page).to_have_url(re.compile(r"#step-3$"))
    page.get_by_role("button", name="Sign out").locator("visible=true").click()
    expect(page).to_have_url(re.compile(r"/sign-in/"))
