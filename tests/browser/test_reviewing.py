"""A blind set made, labelled by two people who differ once and settled by a third, and disputes
decided; by keyboard alone, and what comes of it on the trial and in the figures.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest
from django.urls import reverse
from playwright.sync_api import expect

from evalsite.sample_loader import DEMO_ROLES
from reviews.models import Adjudication, CalibrationSet, Label, Revelation
from tests.browser.conftest import Opener
from tests.browser.evidence import bring_into_effect
from tests.browser.keyboard import move_to, press, tab_to, write
from tests.browser.standard import assert_holds
from tests.support.evidence import ingest, record, verdict
from traces.models import Release, Role, System, Trial, User
from traces.services.people import create_system, set_member

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

SLUG = "reviewing"
REVIEWERS = ("reviewer", "ruth", "sam")
CONTRACT: Any = {
    "task": "answer",
    "semantic": [{"rubric": "truthful", "version": "r1", "question": "Is what it says true?"}],
}
HOLD_MS = 14_000
"""By then a decision that could be taken back is final."""


def judged(number: int) -> dict[str, Any]:
    """A trial on which two judges disagree; one cites a step that is there, one also others."""
    sides = [
        {
            **verdict(word, criterion="truthful", grader=f"{name} judge", kind="model"),
            "evidence": [{"step": step} for step in steps],
            "rationale": f"{name} rationale",
        }
        for name, word, steps in (("Mild", "pass", (2,)), ("Strict", "fail", (2, 4)))
    ]
    return record("answer", number, verdicts=sides)


def system_of(slug: str) -> System:
    """A system with the people of the demo."""
    system = create_system("Reviewing", slug=slug, by=User.objects.get(username="owner"))
    for role in DEMO_ROLES:
        set_member(system, User.objects.get(username=role.value), role)
    return system


def system_to_review() -> System:
    """Two releases of two trials each, which wait for judges that people bear out."""
    system = system_of(SLUG)
    for name in REVIEWERS[1:]:
        person = User.objects.create_user(username=name, first_name=name.capitalize())
        set_member(system, person, Role.REVIEWER)
    ingest(system, [judged(0), judged(1)], release="1.0")
    ingest(system, [judged(2), judged(3)], release="2.0")
    bring_into_effect(system, CONTRACT)
    return system


def trial(number: int) -> Trial:
    return Trial.objects.get(system__slug=SLUG, label=str(number))


def on_trial(page: Page) -> int:
    """The trial whose item is at hand."""
    return int(page.locator(".label-item dl.facts dt:text-is('Trial') + dd").inner_text())


def assert_blind(page: Page) -> None:
    """Nothing of what judges or people say is on the page, in whatever is folded away as well."""
    everything = page.locator("html").inner_html()
    for words in ("Mild", "Strict", "rationale", "As it is.", "That is wrong."):
        assert words not in everything


def say(page: Page, key: str, reason: str) -> None:
    """Choose, and write the reason."""
    page.keyboard.press(key)
    page.keyboard.press("r")
    page.keyboard.type(reason)


def until_final(page: Page) -> None:
    """Wait until what was submitted can no longer be taken back, and open the page again."""
    expect(page.locator(".undo-bar")).to_have_count(0, timeout=HOLD_MS)
    page.reload()


def test_two_label_a_third_settles_and_disputes_are_decided(open_page: Opener) -> None:
    system = system_to_review()
    page = open_page(reverse("calibration-set-list", kwargs={"slug": SLUG}), who="reviewer")
    make_the_set(page)
    first_labels_with_second_thoughts(page)
    second_differs_on_one(open_page(label_path(), who="ruth"))
    assert not CalibrationSet.objects.get(system=system).completed_at
    third_settles(open_page(label_path(), who="sam"))
    the_set_tells_what_people_said(page)
    the_effect_is_seen(page)
    disputes_are_decided(page)


def label_path() -> str:
    return reverse("label-page", kwargs={"slug": SLUG, "number": 1})


def make_the_set(page: Page) -> None:
    """All trials of the first release go into a random set."""
    page.keyboard.press("n")
    page.wait_for_url(re.compile(r"/labelling/new/"))
    tab_to(page, "#look-release")
    page.keyboard.type("1.0")
    page.wait_for_url(re.compile(r"release="))
    expect(page.locator("aside h2").first).to_have_text("2 trials qualify")
    assert_holds(page)
    write(page, "#id_name", "Truthful answers")
    tab_to(page, "input[name=sampling]")
    page.keyboard.press("Space")
    write(page, "#id_n", "2")
    write(page, "#id_reason", "The judges disagree.")
    press(page, "form.panel button[type=submit]")
    page.wait_for_url(re.compile(r"/labelling/1/$"))
    expect(page.locator("h1")).to_contain_text("1. Truthful answers")
    expect(page.locator("table.set-items tbody tr")).to_have_count(2)
    assert_holds(page)


def first_labels_with_second_thoughts(page: Page) -> None:
    """A draft outlives a reload, a label is taken back once, and then both items are labelled."""
    page.keyboard.press("l")
    page.wait_for_url(re.compile(r"/label/"))
    assert_blind(page)
    assert_holds(page)
    expect(page.locator(".page-head .sub")).to_contain_text("0 of 2 by you")
    first = on_trial(page)
    say(page, "1", "As it is.")
    expect(page.locator("[data-draft-state]")).to_contain_text("Draft kept")
    page.reload()
    expect(page.locator("#decision-reason")).to_have_value("As it is.")
    expect(page.locator("input[name=decision][value=pass]")).to_be_checked()

    page.keyboard.press("j")
    page.keyboard.press("c")
    cited = page.locator("#decision-steps").input_value()
    assert cited == "1"
    page.keyboard.press("Control+Enter")
    expect(page.locator(".undo-bar")).to_contain_text("pass on task answer")
    assert on_trial(page) != first
    assert_holds(page)
    page.keyboard.press("z")
    expect(page.locator(".undo-bar")).to_have_count(0)
    assert on_trial(page) == first
    expect(page.locator("#decision-reason")).to_have_value("As it is.")
    expect(page.locator("#decision-steps")).to_have_value("1")
    assert not Label.objects.filter(item__set__system__slug=SLUG).exists()

    page.keyboard.press("Control+Enter")
    expect(page.locator(".undo-bar")).to_have_count(1)
    say(page, "1", "As it is.")
    page.keyboard.press("Control+Enter")
    expect(page.locator("h2", has_text="Nothing is left for you")).to_be_visible()
    until_final(page)
    expect(page.locator(".page-head .sub")).to_contain_text("2 of 2 by you")


def second_differs_on_one(page: Page) -> None:
    for _ in range(2):
        assert_blind(page)
        at = on_trial(page)
        say(page, *(("2", "That is wrong.") if at else ("1", "As it is.")))
        page.keyboard.press("Control+Enter")
        expect(page.locator(".undo-bar", has_text=f"trial {at}")).to_be_visible()
    until_final(page)
    expect(page.locator(".page-head .sub")).to_contain_text("set: 1 of 2")


def third_settles(page: Page) -> None:
    """Only the item on which the others differ is offered, and not what they said."""
    assert on_trial(page) == 1
    assert_blind(page)
    say(page, "2", "That is wrong.")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".undo-bar")).to_contain_text("fail on task answer, trial 1")
    until_final(page)
    expect(page.locator("h2", has_text="Nothing is left to label")).to_be_visible()
    assert_holds(page)
    page.keyboard.press("v")
    page.wait_for_url(re.compile(r"/trials/"))
    expect(page.locator("main")).to_contain_text("Strict rationale")
    seen = Revelation.objects.filter(trial=trial(1)).values_list("by__username", flat=True)
    assert sorted(seen) == sorted(REVIEWERS)


def the_set_tells_what_people_said(page: Page) -> None:
    page.goto(reverse("calibration-set", kwargs={"slug": SLUG, "number": 1}))
    expect(page.locator("h1 .tag")).to_have_text("complete")
    row = page.locator("table.set-items tbody tr", has_text="trial 1")
    expect(row.locator("td .tag").first).to_have_text("fail")
    for words in ("Ruth", "Sam", "That is wrong.", "third"):
        expect(row.locator(".set-labels")).to_contain_text(words)
    assert_holds(page)


def the_effect_is_seen(page: Page) -> None:
    """On both trials, and in the figures of their release; judges stay exploratory."""
    for number, value in ((0, "pass"), (1, "fail")):
        page.goto(reverse("trial-detail", kwargs={"slug": SLUG, "trial": trial(number).uuid}))
        expect(page.locator("#disposition header .tag")).to_have_text(value)
    decision = Adjudication.objects.get(trial=trial(1))
    assert (decision.ruling, decision.by.username) == ("fail", "sam")
    expect(page.locator("main")).to_contain_text("Sam")
    release = Release.objects.get(system__slug=SLUG, name="1.0")
    page.goto(reverse("release-detail", kwargs={"slug": SLUG, "release": release.uuid}))
    expect(page.locator("tbody tr", has_text="default")).to_contain_text("1 / 2 / 2")
    page.goto(reverse("overview", kwargs={"slug": SLUG}) + f"?release={release.uuid}")
    row = page.locator("tr", has_text="truthful").first
    expect(row.locator("td")).to_have_text(["semantic", "1", "2", "0", "50.0%"])
    page.goto(reverse("judge-list", kwargs={"slug": SLUG}))
    assert_holds(page)
    press(page, "table.judges .judge-name a")
    page.wait_for_url(re.compile(r"/judges/\d+/\d+/"))
    expect(page.locator("main")).to_contain_text("too few to tell")
    assert_holds(page)


def disputes_are_decided(page: Page) -> None:
    """The two disputes of the other release, one after the other from their list."""
    page.goto(reverse("dispute-list", kwargs={"slug": SLUG}) + "?view=list")
    assert_holds(page)
    move_to(page, "answer · trial 2")
    page.keyboard.press("Enter")
    page.wait_for_url(re.compile(r"/disputes/[0-9a-f-]{36}/"))
    first = page.url
    page.keyboard.press("e")
    expect(page.locator("[data-step='2']")).to_be_focused()
    page.keyboard.press("c")
    page.keyboard.press("e")
    expect(page.locator("[data-step='4']")).to_be_focused()
    page.keyboard.press("c")
    expect(page.locator("#decision-steps")).to_have_value("2, 4")
    say(page, "1", "Step 4 bears it out.")
    expect(page.locator("#dispute-effect")).to_contain_text("If it is pass")
    expect(page.locator("#dispute-effect")).to_contain_text("becomes")
    assert_holds(page)
    page.keyboard.press("Control+Enter")
    expect(page.locator(".undo-bar")).to_contain_text("Pass on truthful, task answer, trial 2")
    assert page.url != first
    say(page, "2", "Step 4 says another thing.")
    expect(page.locator("#dispute-effect")).to_contain_text("If it is fail")
    page.keyboard.press("Control+Enter")
    expect(page.locator(".undo-bar", has_text="trial 3")).to_be_visible()
    until_final(page)

    for number, value in ((2, "pass"), (3, "fail")):
        page.goto(reverse("trial-detail", kwargs={"slug": SLUG, "trial": trial(number).uuid}))
        expect(page.locator("#disposition header .tag")).to_have_text(value)
    page.goto(reverse("decided-disputes", kwargs={"slug": SLUG}))
    expect(page.locator("main")).to_contain_text("Step 4 says another thing.")
    assert_holds(page)


def test_labels_need_no_script(open_page: Opener) -> None:
    system = system_of("plainly-reviewing")
    ingest(system, [judged(0), judged(1)], release="1.0")
    bring_into_effect(system, CONTRACT)
    new = reverse("calibration-set-new", kwargs={"slug": system.slug})
    page = open_page(new, who="reviewer", width=390, scripts=False)
    page.fill("#id_name", "Truthful answers")
    page.check("input[name=sampling][value=random]")
    page.fill("#id_n", "2")
    page.fill("#id_reason", "The judges disagree.")
    page.click("form.panel button[type=submit]")
    page.click(".page-head a[href$='/label/']")
    assert_blind(page)
    first = on_trial(page)
    page.check("input[name=decision][value=fail]", force=True)
    page.fill("#decision-reason", "That is wrong.")
    page.click("text=Save the draft")
    expect(page.locator("#decision-reason")).to_have_value("That is wrong.")
    page.click("[data-decide]")
    expect(page.locator(".messages")).to_contain_text("Your label is kept.")
    assert on_trial(page) != first
    label = Label.objects.get(item__set__system=system)
    assert (label.value, label.reason, label.by.username if label.by else "") == (
        "fail",
        "That is wrong.",
        "reviewer",
    )
