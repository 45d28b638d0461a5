"""Evidence that attacks its reader stays text on every page."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import pytest
from django.db.models import QuerySet

from reviews.models import (
    CalibrationSet,
    Case,
    Dispute,
    JudgeRun,
    ProbeBatch,
    Regrade,
    Rubric,
    Verdict,
)
from reviews.selectors.vouching import vouch_groups
from tests.browser.conftest import Opener, Site
from tests.browser.evidence import ATTACK, HOSTILE, HOSTILE_TASK
from traces.models import (
    ContractPreview,
    ContractProposal,
    ContractVersion,
    Release,
    Run,
    System,
    Task,
    Trial,
    Upload,
)

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

UNSEEN = re.compile("[\u202a-\u202e\u2066-\u2069\u200b\x1b]")
# What a form is filled with goes back as it is.
_SHOWN = """() => {
  const main = document.querySelector("main").cloneNode(true);
  main.querySelectorAll("textarea, input, script").forEach((one) => one.remove());
  return main.textContent;
}"""


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
        "cases": Case.objects.filter(system=system),
        "disputes": Dispute.objects.filter(system=system),
        "contracts/versions": ContractVersion.objects.filter(task__system=system),
        "contracts/previews": ContractPreview.objects.filter(system=system),
    }
    found = [
        *("/", f"{root}/uploads/new/", f"{root}/tasks/?view=table", f"{root}/overview/"),
        *(f"{root}/production/", f"{root}/cases/?state=all", f"{root}/regrades/"),
        *(f"{root}/contracts/", f"{root}/contracts/?view=proposals", f"{root}/families/"),
    ]
    found += [
        *(f"{root}/disputes/?view=groups&state=all", f"{root}/disputes/?view=list&state=all"),
        *(f"{root}/disputes/decided/", f"{root}/labelling/", f"{root}/labelling/import/"),
        *(f"{root}/judges/", f"{root}/probes/", f"{root}/judge-runs/", f"{root}/rubrics/"),
        *(f"{root}/rubrics/{one.pk}/" for one in Rubric.objects.filter(system=system)),
        *(f"{root}/vouching/?group={one.key}" for one in vouch_groups(system.pk)),
        *(f"{root}/judges/{judge}/{criterion}/" for judge, criterion in judges_of(system)),
    ]
    numbered: dict[str, QuerySet[Any]] = {
        "contracts/proposals": ContractProposal.objects.filter(system=system),
        "judge-runs": JudgeRun.objects.filter(system=system),
        "labelling": CalibrationSet.objects.filter(system=system),
        "probes": ProbeBatch.objects.filter(system=system),
        "regrades": Regrade.objects.filter(system=system),
    }
    for name, rows in numbered.items():
        found += [f"{root}/{name}/{row.number}/" for row in rows.order_by("pk")]
    attacked = Task.objects.get(system=system, task_id=HOSTILE_TASK)
    found += [
        f"{root}/contracts/tasks/{attacked.uuid}/",
        f"{root}/contracts/edit/?task={attacked.uuid}",
        f"{root}/families/?{urlencode({'family': attacked.family})}",
    ]
    for trial in Trial.objects.filter(task=attacked).order_by("pk"):
        found += [f"{root}/trials/{trial.uuid}/{form}/" for form in ("evidence", "task")]
    for name, rows in of.items():
        found += [] if "/" in name else [f"{root}/{name}/"]
        found += [f"{root}/{name}/{row.uuid}/" for row in rows.order_by("pk")]
    return found


def judges_of(system: System) -> list[tuple[int, int]]:
    """Judges with a card, by version and criterion."""
    said = Verdict.objects.filter(trial__system=system, grader_version__grader__kind="model")
    pairs = said.values_list("grader_version", "criterion").order_by("grader_version", "criterion")
    return list(pairs.distinct())


def reviewers_addresses() -> list[str]:
    """The forms of the attacked task's trials that only a reviewer opens, and what is reviewed."""
    trials = Trial.objects.filter(task__system__slug=HOSTILE, task__task_id=HOSTILE_TASK)
    root = f"/systems/{HOSTILE}"
    return [
        *(
            f"{root}/trials/{trial.uuid}/{form}/"
            for trial in trials.order_by("pk")
            for form in ("verdict", "mark")
        ),
        *(f"{root}/labelling/new/", f"{root}/labelling/2/", f"{root}/labelling/3/label/"),
        f"{root}/disputes/?view=list&state=all",
        *(
            f"{root}/disputes/{one.uuid}/"
            for one in Dispute.objects.filter(system__slug=HOSTILE).order_by("pk")
        ),
    ]


@pytest.mark.parametrize("who", ["engineer", "reviewer"])
def test_nothing_of_it_runs_on_any_page(who: str, site: Site, open_page: Opener) -> None:
    found = addresses(site) if who == "engineer" else reviewers_addresses()
    assert len(found) > (100 if who == "engineer" else 7)
    page = open_page("/", who=who)
    seen = []
    for address in found:
        answer = page.goto(address)
        if answer is None or answer.status != 200:
            seen.append(f"no page at {address}")
        if page.evaluate("window.__pwn !== undefined"):
            seen.append(f"ran on {address}")
        shown = page.evaluate(_SHOWN)
        if found_at := UNSEEN.search(shown):
            around = shown[max(0, found_at.start() - 80) : found_at.end() + 20]
            seen.append(f"unseen characters without a mark on {address}: {around!a}")
        if page.evaluate("document.querySelector('main').scrollWidth > innerWidth"):
            seen.append(f"too wide: {address}")
        strange = page.eval_on_selector_all(
            "main a[href]",
            "all => all.map((a) => a.href).filter((href) => !href.startsWith(location.origin))",
        )
        seen += [f"link to {href} on {address}" for href in strange]
    assert not seen, seen


def trial_of(page: Page, task_id: str) -> None:
    """Open the trial of a task."""
    trial = Trial.objects.get(task__system__slug=HOSTILE, task__task_id=task_id)
    page.goto(f"/systems/{HOSTILE}/trials/{trial.uuid}/")


@pytest.mark.parametrize("kind", ["trials", "cases", "contracts/tasks", "contracts/proposals"])
def test_what_people_and_contracts_say_is_shown_as_text(kind: str, open_page: Opener) -> None:
    trial = Trial.objects.get(task__system__slug=HOSTILE, task__task_id=HOSTILE_TASK, label="0")
    ends = {
        "trials": trial.uuid,
        "cases": Case.objects.get(trial=trial).uuid,
        "contracts/tasks": trial.task.uuid,
        "contracts/proposals": 2,
    }
    page = open_page(f"/systems/{HOSTILE}/{kind}/{ends[kind]}/")
    for details in page.locator("main details").all():
        details.evaluate("(one) => { one.open = true; }")
    text = page.locator("main").inner_text()
    head, tail = ATTACK.split("\u202e")
    assert head in text
    assert tail in text
    assert "U+202E" in text
    assert not UNSEEN.search(page.evaluate(_SHOWN))


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
    assert not UNSEEN.search(directions)


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
