"""Cases worked to their end, and a task made of a failure.

By keyboard alone, by the people whose acts they are.
"""

from __future__ import annotations

import json
import re

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.evidence import CASEWORK, state_of
from tests.browser.keyboard import move_to, press, tab_to, write
from traces.models import Task, Trial

pytestmark = pytest.mark.browser


def test_an_engineer_adds_what_is_missing_and_the_case_closes(open_page: Opener) -> None:
    page = open_page(reverse("task-list", kwargs={"slug": CASEWORK}), expect=("422",))
    press(page, ".side nav a[href$='/cases/']")
    page.wait_for_url(re.compile(r"/cases/$"))

    # By keys to the case, and it becomes the engineer's own.
    move_to(page, "cancel · trial 0")
    page.keyboard.press("m")
    expect(page.locator(".messages")).to_contain_text("1 case is yours now.")
    row = page.locator("table.cases tbody tr", has_text="cancel · trial 0")
    expect(row.locator(".case-who")).to_contain_text("you")
    expect(row.locator("th a")).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/cases/[0-9a-f-]{36}/"))
    expect(page.locator(".case-reasons")).to_contain_text("outcome")

    write(page, "#id_comment_comment", "The state stands in the log of the desk.")
    press(page, "form[action*='/comment'] button")
    history = page.locator(".case-history")
    expect(history).to_contain_text("The state stands in the log of the desk.")

    # The missing state is added; a state that is none is refused with its place.
    press(page, ".case-steps li[data-first] a.btn.primary")
    page.wait_for_url(re.compile(r"/evidence/"))
    expect(page.locator(".parts tr", has_text="final_state")).to_contain_text("missing")
    write(page, "#id_evidence", '{"end_state": {}}')
    write(page, "#id_source", "log of the desk")
    write(page, "#id_reason", "The harness did not record it.")
    press(page, "form.panel button[type=submit]")
    expect(page.locator(".finding-list")).to_contain_text("end_state")
    tab_to(page, "#id_evidence")
    page.keyboard.press("Control+a")
    page.keyboard.insert_text(json.dumps({"final_state": state_of("cancelled")}))
    press(page, "form.panel button[type=submit]")

    # The case closes by itself and says what closed it.
    page.wait_for_url(re.compile(r"/cases/[0-9a-f-]{36}/"))
    expect(page.locator(".callout", has_text="Closed")).to_contain_text("pass")
    closed = history.locator("li[data-kind=closed]")
    expect(closed).to_contain_text("The case closed by itself.")
    expect(closed).to_contain_text("Just before: evidence was added: final state.")
    expect(history.locator("li[data-kind=evidence]")).to_contain_text("final state")
    page.keyboard.press("t")
    page.wait_for_url(re.compile(r"/trials/"))
    expect(page.locator("#disposition header .tag")).to_have_text("pass")
    expect(page.locator("#added-evidence")).to_contain_text("log of the desk")


def test_a_reviewer_gives_the_verdict_and_the_case_closes(open_page: Opener) -> None:
    page = open_page(reverse("case-list", kwargs={"slug": CASEWORK}), who="reviewer")
    move_to(page, "answer · trial 0")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/cases/[0-9a-f-]{36}/"))
    page.keyboard.press("m")
    expect(page.locator(".case-history")).to_contain_text("took the case")
    press(page, ".case-steps li[data-first] a.btn.primary")
    page.wait_for_url(re.compile(r"/verdict/"))
    tab_to(page, "input[name=value]")
    page.keyboard.press("Space")
    write(page, "#id_reason", "It says what the user asked for.")
    write(page, "#id_steps", "2")
    press(page, "form.panel button[type=submit]")

    page.wait_for_url(re.compile(r"/cases/[0-9a-f-]{36}/"))
    expect(page.locator(".callout", has_text="Closed")).to_contain_text("pass")
    history = page.locator(".case-history")
    expect(history.locator("li[data-kind=verdict]")).to_contain_text("said pass on truthful")
    expect(history.locator("li[data-kind=closed]")).to_contain_text("The case closed by itself.")
    page.goto(reverse("case-list", kwargs={"slug": CASEWORK}))
    expect(page.locator("main")).not_to_contain_text("answer · trial 0")


def test_a_failed_trial_becomes_a_task_in_two_clicks(open_page: Opener) -> None:
    trial = Trial.objects.get(task__system__slug=CASEWORK, task__task_id="cancel", label="1")
    trial_url = reverse("trial-detail", kwargs={"slug": CASEWORK, "trial": trial.uuid})
    page = open_page(trial_url)
    press(page, "#disposition .acts a[href$='/task/']")
    page.wait_for_url(re.compile(r"/task/$"))
    expect(page.locator("#id_task_id")).to_have_value("cancel-from-1")
    expect(page.locator("#id_text")).to_have_value(re.compile(r"looked-up"))
    press(page, "form.new-task button[type=submit]")

    # Its contract is ready to be proposed, and the task says where it comes from.
    page.wait_for_url(re.compile(r"/contracts/previews/"))
    expect(page.locator(".messages")).to_contain_text("Task cancel-from-1 is made.")
    task = Task.objects.get(system__slug=CASEWORK, task_id="cancel-from-1")
    page.goto(reverse("task-detail", kwargs={"slug": CASEWORK, "task": task.uuid}))
    press(page, f".page-head a[href='{trial_url}']")
    page.wait_for_url(re.compile(re.escape(trial_url)))
    expect(page.locator("#disposition")).to_contain_text("Became task cancel-from-1")
