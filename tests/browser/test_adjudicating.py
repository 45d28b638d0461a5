"""A dispute decided by keyboard alone: cited, its effect read, taken back, decided, corrected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import expect

from evalsite.sample_loader import DEMO_ROLES
from reviews.models import Adjudication, Dispute, ReviewDraft
from tests.browser.conftest import Opener, Site
from tests.browser.evidence import bring_into_effect
from tests.support.evidence import ingest, record, verdict
from tests.support.processes import wait_for
from traces.models import System, Trial, TrialDisposition, User
from traces.services.people import create_system, set_member

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

CONTRACT: Any = {
    "task": "t1",
    "semantic": [{"rubric": "truthful", "version": "r1", "question": "Is what it says true?"}],
}


def disputed_system(slug: str, n: int) -> System:
    """A system with disputes on one rubric, and the people of the demo as members."""
    system = create_system(f"System {slug}", slug=slug, by=User.objects.get(username="owner"))
    for role in DEMO_ROLES:
        set_member(system, User.objects.get(username=role.value), role)
    sides = [
        {
            **verdict(word, criterion="truthful", grader=f"Judge {word}", kind="model"),
            "evidence": [{"step": 4}, {"step": 9}],
            "rationale": f"It is a {word}.",
        }
        for word in ("pass", "fail")
    ]
    ingest(system, [record("t1", number, verdicts=sides) for number in range(n)])
    bring_into_effect(system, CONTRACT)
    return system


def path_of(system: System, label: str) -> str:
    found = Dispute.objects.get(system=system, trial__label=label)
    return f"/systems/{system.slug}/disputes/{found.uuid}/"


def value_of(system: System, label: str) -> str:
    return TrialDisposition.objects.get(trial__system=system, trial__label=label).value


def test_a_dispute_is_decided_by_keyboard_and_taken_back_in_time(
    site: Site, open_page: Opener
) -> None:
    system = disputed_system("disputed", 2)
    first, second = path_of(system, "0"), path_of(system, "1")
    page = open_page(first, who="reviewer")
    expect(page.locator(".dispute-transcript")).to_contain_text("cited by Judge pass (pass)")
    expect(page.locator(".cited-steps", has_text="does not exist")).to_be_visible()

    page.keyboard.press("e")
    expect(page.locator("[data-step='4']")).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("#decision-steps")).to_have_value("4")
    page.keyboard.press("2")
    expect(page.locator("#dispute-effect")).to_contain_text("fail (semantic)")
    page.keyboard.press("r")
    page.keyboard.type("Nothing bears it out.")
    expect(page.locator("[data-draft-state]")).to_contain_text("Draft kept")
    # These words may still be about the draft before the last key.
    wait_for(
        lambda: ReviewDraft.objects.filter(system=system, reason="Nothing bears it out.").exists(),
        seconds=30,
        what="the whole draft",
    )
    page.reload()
    expect(page.locator("#decision-reason")).to_have_value("Nothing bears it out.")

    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**{second}")
    expect(page.locator(".undo-bar")).to_contain_text("Fail on truthful, task t1, trial 0")
    page.keyboard.press("z")
    page.wait_for_url(f"**{first}")
    expect(page.locator("#decision-reason")).to_have_value("Nothing bears it out.")
    assert not Adjudication.objects.filter(system=system).exists()

    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**{second}")
    page.keyboard.press("k")
    page.wait_for_url(f"**{first}")
    expect(page.locator(".undo-bar")).to_have_count(0, timeout=12_000)
    page.reload()
    expect(page.locator(".page-head .tag")).to_have_text("decided: fail")
    assert value_of(system, "0") == "fail"
    assert Adjudication.objects.get(system=system).cited_steps == [4]
    assert not ReviewDraft.objects.filter(system=system).exists()

    # A correction names the earlier decision; both stay.
    page.keyboard.press("1")
    page.keyboard.press("r")
    page.keyboard.type("Step 4 does bear it out.")
    page.keyboard.press("j")  # typed, not a key
    page.keyboard.press("Control+Enter")
    page.wait_for_url(f"**{second}")
    page.keyboard.press("s")
    page.keyboard.type("I wrote to its author.")
    page.keyboard.press("Enter")
    expect(page.locator(".messages")).to_contain_text("Skipped")
    assert_settled(site, page, first)
    assert value_of(system, "0") == "pass"


def assert_settled(site: Site, page: Page, path: str) -> None:
    """The correction is final by the page that is opened after its time."""
    page.goto(site.url + path)
    expect(page.locator(".undo-bar")).to_have_count(0, timeout=12_000)
    page.reload()
    expect(page.locator(".page-head .tag")).to_have_text("decided: pass")
    expect(page.locator(".ruling").nth(1)).to_contain_text("corrected by a later decision")


def test_the_page_fits_and_decides_without_scripts(open_page: Opener) -> None:
    system = disputed_system("plainly-disputed", 1)
    page = open_page(path_of(system, "0"), who="reviewer", width=390, scripts=False)
    page.check("input[name=decision][value=pass]", force=True)
    page.fill("#decision-reason", "It is borne out.")
    page.click("button[name=then]")
    expect(page.locator("#dispute-effect")).to_contain_text("This trial")
    expect(page.locator("#decision-reason")).to_have_value("It is borne out.")
    page.click("[data-decide]")
    expect(page.locator(".messages")).to_contain_text("Decided: pass.")
    assert value_of(system, "0") == "pass"
    assert Trial.objects.filter(system=system).count() == 1


@pytest.mark.parametrize("width", [1280, 1440, 390])
def test_the_page_does_not_scroll_sideways(open_page: Opener, width: int) -> None:
    slug = f"wide-{width}"
    system = disputed_system(slug, 1)
    page = open_page(path_of(system, "0"), who="reviewer", width=width)
    page.keyboard.press("2")
    expect(page.locator("#dispute-effect")).to_contain_text("If it is fail")
    wide = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert page.evaluate(wide) <= 0
