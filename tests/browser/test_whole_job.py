"""From signing in to the cited step, the way a person does it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Site
from tests.browser.evidence import KEYBOARD, PLAIN, SAMPLE, WALK, walk_records
from tests.browser.keyboard import tab_to
from tests.support.cast import PASSWORD
from tests.support.evidence import jsonl

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
BAD_LINE = b'{"task_id": "refund", "trial": \n'


@pytest.fixture
def trials_file(tmp_path: Path) -> Path:
    """Seven good records, and a broken one as the third line."""
    lines = jsonl(walk_records()).splitlines(keepends=True)
    path = tmp_path / "trials.jsonl"
    path.write_bytes(b"".join([*lines[:2], BAD_LINE, *lines[2:]]))
    return path


def ledger(page: Page) -> dict[str, str]:
    """The numbers of a receipt."""
    pairs: list[list[str]] = page.eval_on_selector_all(
        ".ledger > div", "all => all.map((one) => [...one.children].map((e) => e.textContent))"
    )
    return {name.strip(): number.strip() for name, number in pairs}


def drop(page: Page, selector: str, name: str, content: str) -> None:
    """Drop a file on an element, as the browser does when a person does."""
    transfer = page.evaluate_handle(
        """([name, content]) => {
          const transfer = new DataTransfer();
          transfer.items.add(new File([content], name));
          return transfer;
        }""",
        [name, content],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event(selector, event, {"dataTransfer": transfer})


def test_an_engineer_goes_from_a_file_to_the_cited_step(
    site: Site, open_page: Opener, trials_file: Path
) -> None:
    page = open_page("/", who=None)
    expect(page).to_have_url(re.compile(r"/sign-in/\?next=/$"))
    page.get_by_role("button", name="Engineer").click()
    page.get_by_role("link", name=f"System {WALK}", exact=True).first.click()
    expect(page.get_by_role("heading", name="No task yet")).to_be_visible()

    # Upload: what is sent is acknowledged and waits; the receipt then fills by itself.
    page.goto(f"/systems/{WALK}/uploads/new/")
    with page.expect_file_chooser() as chooser:
        page.get_by_text("Drop files here, or choose them").click()
    chooser.value.set_files(trials_file)
    expect(page.locator("[data-file-list]")).to_contain_text("trials.jsonl")
    page.get_by_label("Release").fill("2.0")
    with site.worker.held_back():
        page.get_by_role("button", name="Upload", exact=True).click()
        page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}/$"))
        expect(page.get_by_text("waiting for a worker")).to_be_visible()
    expect(page.locator("h1 .tag")).to_have_text("done, not all taken")
    assert ledger(page) == {
        "received": "8",
        "stored": "7",
        "duplicate": "0",
        "conflict": "0",
        "refused": "1",
    }
    refused = page.locator("tr", has=page.locator(".tag", has_text="refused"))
    expect(refused.locator("th")).to_have_text("3")
    expect(refused.locator(".why")).to_contain_text("cut short")
    with page.expect_download() as raw:
        refused.get_by_role("link", name="raw").click()
    assert Path(raw.value.path()).read_bytes().strip() == BAD_LINE.strip()

    # Tasks: as grid, as table, filtered.
    page.locator(".landed a").first.click()
    page.goto(f"/systems/{WALK}/tasks/")
    tile = page.locator(".task-tile", has_text="refund")
    expect(tile.locator("b")).to_have_text("3")
    page.get_by_role("link", name="Table", exact=True).click()
    expect(page.locator("[data-moves] tbody tr")).to_have_count(2)
    page.get_by_role("link", name="Grid", exact=True).click()
    expect(page.locator(".task-tile")).to_have_count(2)
    page.get_by_placeholder("id or title").fill("refu")
    page.get_by_placeholder("id or title").press("Enter")
    expect(page.locator(".task-tile")).to_have_count(1)
    expect(page).to_have_url(re.compile(r"q=refu"))

    # Levels: the count changes, the address keeps the level, and back goes back.
    page.locator("main summary", has_text="More").click()
    page.get_by_role("link", name=re.compile("^Tool set")).click()
    expect(page).to_have_url(re.compile(r"level=tool_set"))
    expect(tile.locator("b")).to_have_text("2")
    page.go_back()
    expect(page).not_to_have_url(re.compile(r"level=tool_set"))
    expect(tile.locator("b")).to_have_text("3")
    page.go_forward()
    expect(tile.locator("b")).to_have_text("2")
    tile.click()

    # The task: paths, the one that failed laid over, two chosen by keyboard and compared.
    expect(page.locator(".aligned tbody tr").first).to_contain_text("Path A")
    page.get_by_role("link", name=re.compile("^Exact")).click()
    expect(page).to_have_url(re.compile(r"level=exact"))
    expect(page.locator(".aligned tbody tr")).to_have_count(3)
    page.locator("[data-pick]").nth(0).focus()
    page.keyboard.press("Space")
    page.locator("[data-pick]").nth(1).focus()
    page.keyboard.press("Space")
    expect(page.get_by_role("button", name="Compare A with B")).to_be_enabled()
    page.keyboard.press("c")
    page.wait_for_url(re.compile(r"/compare/"))
    expect(page.locator(".page-head .sub")).to_contain_text("part at step 4")
    expect(page.locator(".compare-row.first")).to_have_count(1)
    expect(page.locator(".compare-row.first mark")).to_have_text(["20", "15"])

    # The trial and the step that its verdict cites.
    page.go_back()
    page.locator("#trials tbody th a").first.click()
    page.get_by_role("link", name=re.compile("step 4")).last.click()
    expect(page).to_have_url(re.compile(r"#step-4$"))
    expect(page.locator("#step-4")).to_be_focused()
    expect(page.locator("#step-4")).to_contain_text("refund_order")
    with page.expect_download() as record:
        page.get_by_role("link", name="Raw record").click()
    assert json.loads(Path(record.value.path()).read_bytes())["task_id"] == "refund"

    page.get_by_role("button", name="Sign out").locator("visible=true").click()
    expect(page).to_have_url(re.compile(r"/sign-in/"))
    page.goto(f"/systems/{WALK}/tasks/")
    expect(page).to_have_url(re.compile(r"/sign-in/\?next="))


def test_a_password_signs_in_and_a_wrong_one_says_so(open_page: Opener) -> None:
    page = open_page(f"/systems/{PLAIN}/runs/", who=None, expect=("422",))
    page.get_by_label("Username").fill("anna")
    page.get_by_label("Password").fill("wrong")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("The name or the password is wrong")
    page.get_by_label("Password").fill(PASSWORD)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(rf"/systems/{PLAIN}/runs/$"))


def test_a_dropped_file_is_uploaded_and_the_same_again_is_a_duplicate(open_page: Opener) -> None:
    page = open_page(f"/systems/{PLAIN}/uploads/new/")
    content = jsonl(walk_records()).decode()
    drop(page, "[data-drop-zone]", "dropped.jsonl", content)
    expect(page.locator("[data-file-list]")).to_contain_text("dropped.jsonl")
    page.get_by_label("Release").fill("1.0")
    page.get_by_role("button", name="Upload", exact=True).click()
    page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}/$"))
    expect(page.locator("h1 .tag")).to_have_text("done")
    numbers = ledger(page)
    assert (numbers["received"], numbers["stored"], numbers["duplicate"]) == ("7", "0", "7")


def test_the_whole_job_needs_no_mouse(open_page: Opener, trials_file: Path) -> None:
    page = open_page("/", who=None)
    tab_to(page, "button[value=engineer]")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", name="Systems")).to_be_visible()
    page.goto(f"/systems/{KEYBOARD}/uploads/new/")
    tab_to(page, "input[type=file]")
    with page.expect_file_chooser() as chooser:
        page.keyboard.press("Enter")
    chooser.value.set_files(trials_file)
    tab_to(page, "input[name=release]")
    page.keyboard.type("2.0")
    tab_to(page, "button[type=submit]")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/uploads/[0-9a-f-]{36}/$"))
    expect(page.locator("h1 .tag")).to_have_text("done, not all taken")

    page.goto(f"/systems/{KEYBOARD}/tasks/")
    page.keyboard.press("/")
    expect(page.get_by_placeholder("id or title")).to_be_focused()
    page.keyboard.type("refund")
    page.keyboard.press("Enter")
    expect(page.locator(".task-tile")).to_have_count(1)
    page.keyboard.press("Escape")
    page.keyboard.press("j")
    expect(page.locator(".task-tile")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/tasks/[0-9a-f-]{36}/"))

    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Compare the two chosen")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_be_hidden()
    for _ in range(2):
        tab_to(page, "[data-pick]:not(:checked)")
        page.keyboard.press("Space")
    page.keyboard.press("c")
    page.wait_for_url(re.compile(r"/compare/"))
    page.keyboard.press("d")
    expect(page).to_have_url(re.compile(r"#"))
    expect(page.locator(".compare-row.first")).to_be_in_viewport()


def test_keys_move_through_a_transcript(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/trials/?disposition=fail")
    page.locator("tbody th a").first.click()
    page.wait_for_url(re.compile(r"/trials/[0-9a-f-]{36}/"))
    current = page.locator("[data-step][data-current]")
    page.keyboard.press("j")
    first = current.get_attribute("id")
    page.keyboard.press("j")
    second = current.get_attribute("id")
    page.keyboard.press("k")
    assert first != second
    assert current.get_attribute("id") == first

    page.keyboard.press("a")
    expect(page.locator("[data-agent-only]")).to_have_attribute("aria-pressed", "true")
    expect(page.locator("[data-step][data-actor=user]").first).to_be_hidden()
    page.keyboard.press("a")
    expect(page.locator("[data-step][data-actor=user]").first).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("reservation")
    expect(page.locator("[data-find-count]")).to_contain_text("found")
    page.keyboard.press("Enter")
    expect(page.locator("[data-find-count]")).to_contain_text("1 of")
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.type("5")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"step=5"))
    expect(page.locator("#step-5")).to_be_focused()
    assert sheet_of(page) >= {"j", "k", "e", "a", "g", "/", "?", "r"}


def test_the_next_error_is_one_key_away(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/tasks/")
    address = page.evaluate(_FIRST_TRIAL_WITH_AN_ERROR)
    page.goto(address)
    page.keyboard.press("e")
    expect(page.locator("[data-step][data-current][data-error]")).to_have_count(1)


# Trials one after the other, until one holds a rejected attempt.
_FIRST_TRIAL_WITH_AN_ERROR = """async () => {
  const parse = (text) => new DOMParser().parseFromString(text, "text/html");
  const get = async (address) => parse(await (await fetch(address)).text());
  const list = await get("/systems/tau2-airline/trials/");
  for (const link of list.querySelectorAll("tbody th a")) {
    const trial = await get(link.getAttribute("href"));
    if (trial.querySelector("[data-step][data-error]")) return link.getAttribute("href");
  }
}"""


def sheet_of(page: Page) -> set[str]:
    """The keys that the sheet lists."""
    page.locator("h1").click()
    page.keyboard.press("?")
    caps: list[str] = page.locator("[data-keys-list] kbd").all_text_contents()
    page.keyboard.press("Escape")
    return set(caps)


def test_keys_can_be_switched_off_and_stay_off(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/tasks/")
    page.keyboard.press("?")
    page.get_by_role("checkbox").locator("visible=true").uncheck()
    page.keyboard.press("Escape")
    page.reload()
    page.keyboard.press("j")
    tag: Any = page.evaluate("document.activeElement.tagName")
    assert tag == "BODY"


def test_a_theme_is_remembered(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/runs/")
    page.locator("[data-set-theme=dark]").locator("visible=true").click()
    page.goto(f"/systems/{SAMPLE}/releases/")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


def test_without_a_choice_the_theme_is_that_of_the_browser(open_page: Opener) -> None:
    shades = {
        open_page(f"/systems/{SAMPLE}/runs/", scheme=scheme).evaluate(
            "getComputedStyle(document.body).backgroundColor"
        )
        for scheme in SCHEMES
    }
    assert shades == {"rgb(246, 246, 243)", "rgb(18, 19, 21)"}
