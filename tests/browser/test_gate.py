"""A gate walked by its owner, from what blocks it to a signature that is verified and grows stale.

And the same pages refused to those who built the release.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.core.management import call_command
from django.urls import reverse
from django.utils import timezone
from playwright.sync_api import Page, expect

from evalsite.gates import refresh_gate
from evalsite.sample_gates import PAYMENTS
from reviews.models import RiskTier
from tests.browser.conftest import Opener, Site
from tests.browser.evidence import DESK
from tests.browser.standard import assert_holds
from tests.support.evidence import ingest, record
from traces.models import Release, System, User

pytestmark = pytest.mark.browser

PASSWORD = "amber-cedar-grove-1"  # noqa: S105 - of this test's owner
BLOCKED, READY = "desk-2.0", "desk-2.2"


def gate_path(name: str) -> str:
    release = Release.objects.get(system__slug=DESK, name=name)
    return reverse("gate", kwargs={"slug": DESK, "release": release.uuid})


def test_an_owner_signs_a_ready_release_and_later_evidence_makes_it_stale(
    open_page: Opener, site: Site, tmp_path: Path
) -> None:
    owner = User.objects.get(username="owner")
    owner.set_password(PASSWORD)
    owner.save()
    # Thresholds first, then a gate that they block, and the evidence that blocks it.
    tier = RiskTier.objects.get(system__slug=DESK, name=PAYMENTS)
    page = open_page(
        reverse("tier", kwargs={"slug": DESK, "tier": tier.uuid}),
        who="owner",
        expect=("403",),
    )
    expect(page.locator("main h1")).to_contain_text(PAYMENTS)
    page.goto(gate_path(BLOCKED))
    expect(page.locator("main h1")).to_have_text(f"Release {BLOCKED} is blocked")
    expect(page.locator(".alert-bar")).to_be_visible()
    expect(page.get_by_role("button", name="Approve release")).to_be_disabled()
    assert_holds(page)
    page.locator(".gate-todo a", has_text="Look at the trials").first.click()
    page.wait_for_url(re.compile(r"/gate/checks/"))
    expect(page.locator("table tbody tr").first).to_be_visible()
    assert_holds(page)

    page.goto(gate_path(READY))
    expect(page.locator("main h1")).to_have_text(f"Release {READY} is ready")
    page.get_by_role("link", name="Approve release", exact=True).click()
    _fill(page, password="wrong")
    expect(page.locator("main [role=alert]").first).to_contain_text("The password is wrong.")
    expect(page.locator("#id_intended_use")).to_have_value("Refunds in chat.")
    assert_holds(page)
    _fill(page, password=PASSWORD)
    page.wait_for_url(re.compile(r"/gate/$"))
    expect(page.locator(".messages")).to_contain_text("Your approval is signed.")
    expect(page.locator("#sign-off h2")).to_contain_text("approved")

    with page.expect_download() as waiting:
        page.locator("#sign-off .signature a", has_text="Attestation").click()
    file = tmp_path / "signature.intoto.json"
    waiting.value.save_as(file)
    call_command("verify", str(file))

    system = System.objects.get(slug=DESK)
    ingest(system, [record("refund_damaged_item", 99)], release=READY)
    refresh_gate(Release.objects.get(system=system, name=READY).pk, now=timezone.now())
    page.reload()
    expect(page.locator("#sign-off h2")).to_contain_text("stale")
    expect(page.locator(".callout", has_text="Changed since it was signed")).to_be_visible()
    for path in ("../signatures/", "report/"):
        page.goto(f"{gate_path(READY)}{path}")
        assert_holds(page)


def _fill(page: Page, *, password: str) -> None:
    page.locator("#id_intended_use").fill("Refunds in chat.")
    page.locator("#id_scope").fill("All customers.")
    page.locator("#id_expires_on").fill("2999-12-31")
    page.locator("#id_password").fill(password)
    page.get_by_role("button", name="Sign the approval").click()


@pytest.mark.parametrize("who", ["engineer", "reviewer"])
def test_who_built_or_reviewed_it_reads_why_they_do_not_sign(open_page: Opener, who: str) -> None:
    page = open_page(gate_path(BLOCKED), who=who, expect=("403",), width=390)
    for name in ("Approve release", "Approve with waiver", "Reject"):
        expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    expect(page.locator("#why-not-sign")).to_contain_text("Only an owner of this system signs")
    assert_holds(page)
    answer = page.goto(f"{gate_path(BLOCKED)}../sign/")
    assert answer is not None
    assert answer.status == 403
    expect(page.locator("main")).to_contain_text("Only an owner of this system does that.")
