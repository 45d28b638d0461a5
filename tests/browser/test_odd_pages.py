"""Pages of a system with nothing in it, of what went wrong, and of what is not allowed."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Opener
from tests.browser.evidence import BROKEN, EMPTY, PLAIN, SAMPLE
from traces.models import Upload

pytestmark = pytest.mark.browser


@pytest.mark.parametrize(
    ("place", "heading"),
    [
        ("tasks/", "No task yet"),
        ("trials/", "No trial yet"),
        ("runs/", "No run yet"),
        ("releases/", "No release yet"),
        ("uploads/", "No upload yet"),
    ],
)
def test_a_page_with_nothing_says_what_to_do_next(
    place: str, heading: str, open_page: Opener
) -> None:
    page = open_page(f"/systems/{EMPTY}/{place}")
    expect(page.get_by_role("heading", name=heading)).to_be_visible()
    page.locator(".empty").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile(rf"/systems/{EMPTY}/uploads/new/$"))


def test_a_viewer_of_an_empty_system_is_not_sent_where_they_may_not_go(open_page: Opener) -> None:
    page = open_page(f"/systems/{EMPTY}/tasks/", who="viewer")
    expect(page.locator(".empty")).to_be_visible()
    expect(page.locator("a[href$='/uploads/new/']")).to_have_count(0)


def test_a_file_that_nobody_can_read_has_a_receipt_that_says_why(open_page: Opener) -> None:
    upload = Upload.objects.get(system__slug=BROKEN)
    page = open_page(f"/systems/{BROKEN}/uploads/{upload.uuid}/")
    expect(page.locator("h1 .tag")).to_have_text("unreadable")
    expect(page.get_by_role("alert")).not_to_be_empty()
    expect(page.locator(".page-head .sub")).to_contain_text("The bytes are stored for good")
    with page.expect_download() as raw:
        page.get_by_role("link", name="The file as it came").click()
    assert Path(raw.value.path()).read_bytes() == b"<html>502 Bad Gateway</html>"


def test_an_empty_upload_form_says_what_is_missing(open_page: Opener) -> None:
    page = open_page(f"/systems/{PLAIN}/uploads/new/", expect=("422",))
    page.locator("form[data-upload]").evaluate("form => { form.noValidate = true; }")
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.locator(".upload-error").locator("visible=true")).to_contain_text("required")
    expect(page.get_by_role("button", name="Upload", exact=True)).to_be_enabled()


@pytest.mark.parametrize("address", ["/nothing/", "/systems/nothing/tasks/"])
def test_what_is_not_there_has_a_page(address: str, open_page: Opener) -> None:
    page = open_page(address, expect=("404",))
    expect(page.get_by_role("heading", name="There is nothing here")).to_be_visible()
    page.get_by_role("link", name="To the start").click()
    expect(page.get_by_role("heading", name="Systems")).to_be_visible()


def test_a_viewer_who_may_not_upload_is_told_why(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/uploads/new/", who="viewer", expect=("403",))
    expect(page.get_by_role("heading", name="You may not do this")).to_be_visible()
    expect(page.get_by_text("Only an engineer of this system uploads evidence")).to_be_visible()


def test_a_viewer_sees_the_reason_where_the_button_would_be(open_page: Opener) -> None:
    page = open_page(f"/systems/{SAMPLE}/uploads/", who="viewer")
    expect(page.get_by_text("Only an engineer of this system uploads evidence")).to_be_visible()


def test_an_owner_makes_a_system_and_a_second_name_is_refused(open_page: Opener) -> None:
    page = open_page("/systems/new/", who="owner", expect=("422",))
    page.get_by_label("Name").fill("System of mine")
    page.get_by_role("button", name=re.compile("Create|Make")).click()
    expect(page).to_have_url(re.compile(r"/systems/system-of-mine/"))
