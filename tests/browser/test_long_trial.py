"""A trial of 6,000 messages opens fast, and each of its steps can be reached."""

from __future__ import annotations

import re
import time

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.evidence import LONG
from traces.models import Trial

pytestmark = pytest.mark.browser


def test_it_opens_in_three_seconds_and_says_how_long_it_is(open_page: Opener) -> None:
    trial = Trial.objects.get(task__system__slug=LONG)
    page = open_page("/")
    begun = time.monotonic()
    page.goto(f"/systems/{LONG}/trials/{trial.uuid}/")
    expect(page.locator("#step-1")).to_be_visible()
    assert time.monotonic() - begun < 3
    expect(page.locator(".page-head .sub")).to_contain_text("6,000 steps")
    expect(page.locator(".page-head .sub")).to_contain_text("2,000 tool calls")


def test_its_last_step_is_reached_by_link_by_number_and_by_verdict(open_page: Opener) -> None:
    trial = Trial.objects.get(task__system__slug=LONG)
    address = f"/systems/{LONG}/trials/{trial.uuid}/"
    page = open_page(f"{address}?step=6000#step-6000")
    expect(page.locator("#step-6000")).to_be_in_viewport()
    expect(page.locator("#step-6000")).to_contain_text("answer 1999")

    page.goto(address)
    page.keyboard.press("g")
    page.keyboard.type("5998")
    page.keyboard.press("Enter")
    expect(page.locator("#step-5998")).to_be_focused()
    expect(page.locator("#step-5998")).to_contain_text("Question 1999")

    page.goto(address)
    page.get_by_role("link", name=re.compile("step 6,?000")).last.click()
    expect(page.locator("#step-6000")).to_be_in_viewport()


def test_keys_go_over_the_edge_of_a_page_of_steps(open_page: Opener) -> None:
    trial = Trial.objects.get(task__system__slug=LONG)
    page = open_page(f"/systems/{LONG}/trials/{trial.uuid}/")
    before = page.url
    last = page.locator("[data-step]").last
    last.click()
    page.keyboard.press("j")
    expect(page).not_to_have_url(before)
    expect(page.locator("#step-1")).to_have_count(0)
