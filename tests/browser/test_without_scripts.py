"""Everything works with links and form posts alone."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.evidence import CONTRACTS, PLAIN, SAMPLE, WORKED, walk_records
from tests.support.evidence import jsonl
from traces.models import Task

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


def test_a_contract_is_mended_and_proposed_without_script(open_page: Opener) -> None:
    task = Task.objects.get(system__slug=CONTRACTS, task_id="answer")
    editor = reverse("contract-form", kwargs={"slug": CONTRACTS})
    page = open_page(f"{editor}?task={task.uuid}", scripts=False, expect=("422",))
    text = "task: answer\nsemantic:\n  - {rubrik: truthful}\n"
    page.get_by_label("Contract").fill(text)
    page.get_by_role("button", name="Preview").click()
    expect(page.locator(".findings")).to_contain_text("Line 3")
    expect(page.get_by_label("Contract")).to_have_value(text)
    page.locator(".findings a").first.click()
    expect(page).to_have_url(re.compile(r"#line-3$"))
    expect(page.locator("#line-3")).to_be_in_viewport()
    page.get_by_label("Contract").fill(text.replace("rubrik", "rubric"))
    page.get_by_role("button", name="Preview").click()
    page.wait_for_url(re.compile(r"/contracts/previews/"))
    for _ in range(50):
        if page.get_by_role("button", name="Propose").count():
            break
        page.wait_for_timeout(100)
        page.reload()
    page.locator("#id_reason").fill("Only a person can tell.")
    page.get_by_role("button", name="Propose").click()
    page.wait_for_url(re.compile(r"/contracts/proposals/\d+/"))
    expect(page.locator("h1 .tag")).to_have_text("waits for a decision")
    page.locator("form[action$='/withdraw'] textarea").fill("It was to be seen alone.")
    page.get_by_role("button", name="Withdraw").click()
    expect(page.locator("h1 .tag")).to_have_text("withdrawn")


def test_cases_are_found_and_worked_without_script(open_page: Opener) -> None:
    page = open_page(reverse("case-list", kwargs={"slug": WORKED}), who="reviewer", scripts=False)
    page.get_by_label("Task", exact=True).fill("answer")
    page.get_by_label("Worked by").select_option(label="reviewer's work")
    page.get_by_role("button", name="Apply").click()
    expect(page).to_have_url(re.compile(r"q=answer"))
    rows = page.locator("table.cases tbody tr")
    expect(rows).to_have_count(1)
    rows.get_by_role("checkbox").check()
    page.get_by_role("button", name="Assign to me").click()
    expect(page.locator(".messages")).to_contain_text("1 case is yours now.")
    expect(page).to_have_url(re.compile(r"q=answer"))
    rows.locator("th a").click()
    page.get_by_label("Comment").fill("I ask the desk.")
    page.get_by_role("button", name="Comment", exact=True).click()
    expect(page.locator(".case-history")).to_contain_text("I ask the desk.")
    page.locator("summary", has_text="Set it aside").click()
    page.locator("details textarea").fill("The desk is closed today.")
    page.get_by_role("button", name="Set aside", exact=True).click()
    expect(page.locator(".callout", has_text="Set aside")).to_be_visible()
    page.get_by_role("button", name="Take it up again").click()
    expect(page.locator(".case-history")).to_contain_text("took the case up again")
