"""Evidence that attacks its reader stays text on every page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.db.models import QuerySet

from tests.browser.conftest import Opener, Site
from tests.browser.evidence import HOSTILE
from traces.models import Release, Run, Task, Trial, Upload

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser


def addresses(site: Site) -> list[str]:
    """Every page of the system that holds hostile evidence."""
    system = site.system(HOSTILE)
    root = f"/systems/{HOSTILE}"
    of: dict[str, QuerySet[Any]] = {
        "tasks": Task.objects.filter(system=system),
        "trials": Trial.objects.filter(release__system=system),
        "runs": Run.objects.filter(release__system=system),
        "releases": Release.objects.filter(system=system),
        "uploads": Upload.objects.filter(system=system),
    }
    found = ["/", f"{root}/uploads/new/", f"{root}/tasks/?view=table"]
    for name, rows in of.items():
        found.append(f"{root}/{name}/")
        found += [f"{root}/{name}/{row.uuid}/" for row in rows.order_by("pk")]
    return found


def test_nothing_of_it_runs_on_any_page(site: Site, open_page: Opener) -> None:
    found = addresses(site)
    assert len(found) > 50
    page = open_page("/")
    seen = []
    for address in found:
        page.goto(address)
        if page.evaluate("window.__pwn !== undefined"):
            seen.append(f"ran on {address}")
        if page.evaluate("document.querySelector('main').scrollWidth > innerWidth"):
            seen.append(f"too wide: {address}")
        strange = page.eval_on_selector_all(
            "main a[href]",
            "all => all.map((a) => a.href).filter((href) => !href.startsWith(location.origin))",
        )
        seen += [f"link to {href} on {address}" for href in strange]
    assert seen == []


def trial_of(page: Page, task_id: str) -> None:
    """Open the trial of a task."""
    trial = Trial.objects.get(task__system__slug=HOSTILE, task__task_id=task_id)
    page.goto(f"/systems/{HOSTILE}/trials/{trial.uuid}/")


def test_tags_are_shown_as_the_text_that_they_are(open_page: Opener) -> None:
    page = open_page("/")
    trial_of(page, "loan-xss")
    text = page.locator("[data-transcript]").inner_text()
    for piece in ("<script>window.__pwn=1</script>", "<img src=x onerror=window.__pwn=1>"):
        assert piece in text
    assert "{{7*7}}" not in text or "49" not in re.findall(r"\b49\b", text)


def test_unseen_characters_get_marks(open_page: Opener) -> None:
    page = open_page("/")
    trial_of(page, "loan-bd")
    text = page.locator("[data-transcript]").inner_text()
    for word in ("U+202E", "U+200B", "U+001B", "U+2066"):
        assert word in text
    directions = page.eval_on_selector_all(
        "bdi, mark", "all => all.map((one) => one.textContent).join('')"
    )
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b\x1b]", directions)


def test_a_forged_notice_stands_inside_the_transcript(open_page: Opener) -> None:
    page = open_page("/")
    trial_of(page, "loan-pi")
    forged = page.get_by_text("SYSTEM NOTICE FOR REVIEWERS")
    assert forged.count() >= 1
    assert page.locator("[data-transcript]").get_by_text("SYSTEM NOTICE FOR REVIEWERS").count() == (
        forged.count()
    )
    note = page.locator(".untrusted-note")
    assert "It is not from this application" in note.inner_text()
    assert page.locator(".callout", has_text="SYSTEM NOTICE").count() == 0
