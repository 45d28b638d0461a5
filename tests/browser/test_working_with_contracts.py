"""A contract from its first mistake to the trials that it decides.

By keyboard alone, by the people whose acts they are.
"""

from __future__ import annotations

import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import Opener, Site
from tests.browser.evidence import CONTRACTS
from tests.browser.keyboard import move_to, press, tab_to, write
from traces.models import Task, Trial

pytestmark = pytest.mark.browser

TEXT = """\
task: cancel
title: Cancel an order
facts: {order: A-1}
outcome:
  - changes: {/orders/A-1/status: cancelled}
required:
  - {id: looked-up, cal: get_order, before: cancel_order}
"""
MENDED = "  - {id: looked-up, call: get_order, before: cancel_order}"


def test_a_contract_is_mended_previewed_proposed_approved_and_decides(
    site: Site, open_page: Opener
) -> None:
    trials = {
        trial.label: reverse("trial-detail", kwargs={"slug": CONTRACTS, "trial": trial.uuid})
        for trial in Trial.objects.filter(task__system__slug=CONTRACTS, task__task_id="cancel")
    }

    # The engineer writes the contract of a task that has none, with a mistake in line 7.
    page = open_page(reverse("contract-list", kwargs={"slug": CONTRACTS}), expect=("422",))
    move_to(page, "cancel")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/contracts/tasks/"))
    expect(page.get_by_role("heading", name="No contract yet")).to_be_visible()
    press(page, "main a[href*='/contracts/edit/']")
    page.wait_for_url(re.compile(r"/contracts/edit/"))
    tab_to(page, "textarea[name=text]")
    expect(page.locator("textarea[name=text]")).to_have_value(re.compile(r"^task: cancel\n"))
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(TEXT)
    press(page, ".contract-form button[type=submit]")

    # The mistake is named at its line and field, and the way there is one key.
    finding = page.locator(".findings li", has_text="Do you mean `call`?")
    expect(finding).to_contain_text("Line 7, column 21")
    expect(finding.locator("code")).to_have_text("required[0].cal")
    expect(page.locator(".editor-gutter li[data-wrong]")).to_have_text("7")
    expect(page.locator(".code-lines li[data-wrong]")).to_contain_text("cal: get_order")
    press(page, ".findings a[data-line]")
    expect(page.locator("textarea[name=text]")).to_be_focused()
    page.keyboard.press("Home")
    page.keyboard.press("Shift+End")
    page.keyboard.insert_text(MENDED)

    # The preview waits for a worker, and then says what would change.
    with site.worker.held_back():
        press(page, ".contract-form button[type=submit]")
        page.wait_for_url(re.compile(r"/contracts/previews/"))
        expect(page.locator("#rules-moving")).to_contain_text("It waits for a worker")
    expect(page.locator("h1")).to_have_text("3 of 4 trials would be decided otherwise")
    effect = page.locator(".effect-tasks")
    expect(effect).to_contain_text("cancel")
    write(page, "#id_reason", "An order is looked at before it is cancelled.")
    press(page, "form[action$='/propose'] button[type=submit]")
    page.wait_for_url(re.compile(r"/contracts/proposals/\d+/"))
    expect(page.locator("main")).to_contain_text("You proposed")
    proposal = page.url
    page.goto(trials["2"])
    expect(page.locator("#disposition")).to_contain_text("unresolved")

    # Somebody else approves it; the stored trials are graded, and the page follows.
    reviewer = open_page(proposal, who="reviewer")
    write(reviewer, "#id_reason", "Right: that is what the handbook asks for.")
    with site.worker.held_back():
        press(reviewer, "button[value=approved]")
        expect(reviewer.locator("h1 .tag")).to_have_text("waiting for a worker")
    expect(reviewer.locator("h1 .tag")).to_have_text("came into effect")
    press(reviewer, "main a[href*='/regrades/']")
    reviewer.wait_for_url(re.compile(r"/regrades/\d+/$"))
    expect(reviewer.locator("h1 .tag")).to_have_text("done")
    expect(reviewer.locator(".effect-tasks")).to_contain_text("cancel")

    # The contract decides the trials: one passes, one fails and says where, one cannot be told.
    page.goto(trials["2"])
    expect(page.locator("#disposition header .tag")).to_have_text("pass")
    expect(page.locator("#requirements header")).to_contain_text("contract version 1")
    page.goto(trials["1"])
    expect(page.locator("#disposition header .tag")).to_have_text("fail")
    expect(page.locator("#requirements .wrong-fields")).to_contain_text("/orders/A-1/status")
    page.goto(trials["0"])
    expect(page.locator("#disposition header .tag")).to_have_text("unresolved")
    expect(page.locator("#disposition")).to_contain_text("Repair evidence final state")
    task = Task.objects.get(system__slug=CONTRACTS, task_id="cancel")
    page.goto(reverse("contract-detail", kwargs={"slug": CONTRACTS, "task": task.uuid}))
    expect(page.locator("h1")).to_contain_text("Cancel an order")
    expect(page.locator("main")).to_contain_text("Version 1 decides the trials of this task")
