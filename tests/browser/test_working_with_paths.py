"""A rule from a difference, an accepted path, and what the next release does with it.

By keyboard alone, by the people whose acts they are.
"""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Site
from tests.browser.evidence import PATHS
from tests.browser.keyboard import press, tab_to, write
from tests.support.evidence import ingest, record
from traces.models import Release, Task

pytestmark = pytest.mark.browser

LOOK, BAGS = ("get_booking", {"id": "B-7"}), ("add_bags", {"id": "B-7", "n": 2})
SUM = ("calculate", {"expression": "2 * 600"})


def test_a_rule_is_made_and_a_path_accepted_and_the_next_release_measured_by_it(
    site: Site, open_page: Opener
) -> None:
    task = Task.objects.get(system__slug=PATHS, task_id="bags")
    task_url = reverse("task-detail", kwargs={"slug": PATHS, "task": task.uuid})

    # The engineer compares the two spellings and says that they are the same.
    page = open_page(f"{task_url}?level=exact")
    expect(page.locator(".aligned tbody tr")).to_have_count(2)
    for number in (0, 1):
        page.locator("[data-pick]").nth(number).focus()
        page.keyboard.press("Space")
    page.keyboard.press("c")
    page.wait_for_url(re.compile(r"/compare/"))
    press(page, ".make-rule")
    page.wait_for_url(re.compile(r"/rules/edit/"))
    expect(page.locator(".rule-tool")).to_contain_text("calculate")
    tab_to(page, "input[name=kind]")
    while page.evaluate("document.activeElement.value") != "arithmetic":
        page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    write(page, "#id_reason", "Two spellings of one sum ask for the same number.")
    press(page, ".rule-form button[type=submit]")

    # The preview says what will happen; the change is proposed.
    page.wait_for_url(re.compile(r"/rules/previews/"))
    expect(page.locator("h1")).to_contain_text("2 paths become 1")
    expect(page.locator("#rules-preview")).to_contain_text("all 1200")
    write(page, "#id_reason", "The calculator's spelling is free.")
    press(page, "#rules-preview form button[type=submit]")
    page.wait_for_url(re.compile(r"/rules/versions/2/"))
    expect(page.locator("#rules-version")).to_contain_text("You proposed this version")
    version_url = page.url

    # Somebody else approves it; the pages follow when it is worked out.
    reviewer = open_page(version_url, who="reviewer")
    write(reviewer, "#id_reason", "Right: both come to 1200.")
    press(reviewer, "button[value=approved]")
    expect(reviewer.locator("h1 .tag")).to_have_text("in force")
    page.goto(f"{task_url}?level=equivalent")
    expect(page.locator(".aligned tbody tr")).to_have_count(1)
    expect(page.locator(".merges")).to_contain_text("2 spellings")

    # The path is accepted, with a reason.
    press(page, ".aligned a[href*='/accept/']")
    page.wait_for_url(re.compile(r"/accept/"))
    write(page, "#id_reason", "Looks first, then books.")
    press(page, "form.panel button[type=submit]")
    page.wait_for_url(re.compile(r"/accepted/"))
    expect(page.locator(".register")).to_contain_text("Accepted 1")
    expect(page.locator(".register")).to_contain_text("3 passing trials")

    # The next release takes it in a third spelling, and passes by a path that nobody has seen.
    ingest(
        site.system(PATHS),
        [record("bags", 0, calls=[LOOK, SUM, BAGS]), record("bags", 1, calls=[LOOK, BAGS])],
        release="2.0",
    )
    release = Release.objects.get(system__slug=PATHS, name="2.0")
    page.goto(reverse("release-detail", kwargs={"slug": PATHS, "release": release.uuid}))
    expect(page.locator("main")).to_contain_text("1 task passes by a path that no one has seen")
    page.goto(f"{task_url}?level=equivalent&release={release.uuid}")
    rows = page.locator(".aligned tbody tr")
    expect(rows).to_have_count(2)
    expect(rows.filter(has_text="accepted")).to_have_count(1)
    expect(rows.filter(has_text="new in 2.0")).to_have_count(1)


def test_the_views_of_a_task_lead_to_each_other(open_page: Opener) -> None:
    task = Task.objects.get(system__slug=PATHS, task_id="bags")
    page = open_page(reverse("task-detail", kwargs={"slug": PATHS, "task": task.uuid}))
    current = page.locator(".tabs a[aria-current]")
    for view in ("Diagnostics", "Paths", "Tree", "Diagnostics", "Accepted paths", "Tree", "Paths"):
        page.locator(".tabs").get_by_role("link", name=view, exact=True).click()
        expect(current).to_have_text(view)
