from __future__ import annotations

import uuid
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.gates import refresh_gate
from evalsite.signing import signing_page
from reviews.models import GateAlert, ReleaseGate, SignOff
from reviews.services.gate_rows import touch_gates
from tests.support.cast import PASSWORD, Cast
from tests.support.evidence import ingest, record
from tests.support.gates import refund_contract, thresholds_in_force
from tests.support.in_effect import contract_in_effect
from tests.support.visits import n_queries, root, visit
from traces.models import Release, Run, Trial, User

pytestmark = pytest.mark.django_db

HOSTILE = "<img src=x onerror=alert(1)>\u202e\x1b[31m"


def computed(cast: Cast, name: str = "1.0") -> str:
    """The gate brought up to date; the address of its page."""
    release = Release.objects.get(system=cast.system, name=name)
    touch_gates([release.pk], now=timezone.now())
    refresh_gate(release.pk, now=timezone.now())
    return f"{root(cast.system)}releases/{release.uuid}/"


def badges(page: Any) -> list[tuple[str, str]]:
    return [(c.name, c.result.label) for s in page.sections for c in s.checks]


@pytest.fixture
def waiting(cast: Cast) -> Cast:
    thresholds_in_force(cast.system, by=cast.owner, outcome_rate={"limit": "0.9"})
    ingest(cast.system, [record("a", 0), record("a", 1)])
    return cast


def test_a_gate_says_what_it_waits_for(client: Client, waiting: Cast) -> None:
    page = visit(client, waiting.viewer, f"{computed(waiting)}gate/")
    assert page.head.title == "Release 1.0 is waiting for evidence"
    assert [tab.label for tab in page.head.tabs if tab.is_current] == ["Gate"]
    assert badges(page) == [
        ("Outcome rate", "met"),
        ("Prohibited actions", "cannot tell"),
        ("Unresolved trials", "met"),
        ("Fewest trials", "met"),
        ("Every declared trial present", "does not apply"),
    ]
    outcome = page.sections[0].checks[0]
    assert (outcome.threshold, outcome.measured, outcome.counts) == (
        "≥ 90 %",
        "100.0 %",
        "2 / 2 / 2",
    )
    assert page.rules[0].endswith("before the first run began.")
    assert page.rules[1] == "The people who built this release cannot change them or sign."
    assert page.openings == (("#check-1-2", page.openings[0][1]),)
    assert page.openings[0][1].label == "Prohibited actions: cannot tell"
    assert (page.work, page.signing.state.label) == (None, "not signed")
    assert {choice.why_not for choice in page.signing.choices} == {
        "Only an owner of this system signs its releases."
    }
    assert [run.state for run in page.runs] == ["counts"]
    assert page.runs[0].leave_out is None


def test_a_gate_of_one_and_of_three_tiers_takes_the_same_queries(
    client: Client, waiting: Cast
) -> None:
    path = f"{computed(waiting)}gate/"
    client.force_login(waiting.owner)
    first = n_queries(client, path)
    for name in ("data", "drafts"):
        thresholds_in_force(waiting.system, by=waiting.owner, tier=name)
    computed(waiting)
    assert len(visit(client, waiting.owner, path).sections) == 3
    assert (first, n_queries(client, path)) == (22, 22)


def test_a_gate_without_thresholds_runs_or_a_computed_result_says_so(
    client: Client, cast: Cast
) -> None:
    ingest(cast.system, [record("a", 0)])
    path = f"{computed(cast)}gate/"
    page = visit(client, cast.owner, path)
    assert page.head.title == "Release 1.0 is waiting for evidence"
    assert page.rules[0].startswith("No thresholds were in force")
    release = Release.objects.get(system=cast.system, name="1.0")
    ReleaseGate.objects.filter(release=release).delete()
    page = visit(client, cast.viewer, path)
    assert page.empty.heading == "Nothing to show yet"
    assert (page.work.sentence, page.work.refresh_url) == (
        "The gate of this release was not computed yet.",
        "",
    )
    assert client.get(path.replace("/gate/", "/gate.json")).status_code == 404


def test_new_evidence_is_said_and_polled_until_the_gate_is_there(
    client: Client, waiting: Cast
) -> None:
    path = f"{computed(waiting)}gate/"
    release = Release.objects.get(system=waiting.system, name="1.0")
    touch_gates([release.pk], now=timezone.now())
    page = visit(client, waiting.owner, path)
    assert page.work.sentence.startswith("Evidence, thresholds or contracts changed;")
    assert page.work.poll_url == path
    assert client.post(f"{path}refresh").status_code == 302
    computed(waiting)
    answer = client.get(path, headers={"HX-Request": "true"})
    assert answer.context["page"].work.show_url == path
    assert "HX-Request" in answer["Vary"]
    ReleaseGate.objects.filter(release=release).update(failure="It could not be computed.")
    page = visit(client, waiting.owner, path)
    assert (page.work.level, page.work.poll_url) == ("error", "")


def test_the_evidence_behind_a_check_is_a_page(client: Client, waiting: Cast) -> None:
    path = computed(waiting)
    page = visit(client, waiting.viewer, f"{path}gate/")
    check = page.sections[0].checks[1]
    found = visit(client, waiting.viewer, check.evidence.href)
    assert found.check.name == "Prohibited actions"
    assert [row.label for row in found.rows] == ["0", "1"]
    assert [link.label for link in found.lists] == [
        "With a prohibited attempt",
        "All trials of the release",
    ]
    assert len(found.others) == 4
    other = check.evidence.href.replace("prohibited", "cost_p95")
    assert client.get(other).status_code == 404
    assert client.get(f"{path}gate/checks/{uuid.uuid4()}/prohibited/").status_code == 404


def test_names_from_outside_are_marked_on_every_page_of_a_gate(client: Client, cast: Cast) -> None:
    name = "<b>x</b>\u202e"
    thresholds_in_force(cast.system, by=cast.owner, tier=name, outcome_rate={"limit": "0.9"})
    ingest(cast.system, [record("<i>t</i>\u202e", 0)], release=name)
    path = computed(cast, name)
    gate = visit(client, cast.owner, f"{path}gate/")
    places = ("gate/", "gate/report/", "signatures/", "sign/", "")
    for address in (
        *(f"{path}{place}" for place in places),
        gate.sections[0].checks[0].evidence.href,
    ):
        answer = client.get(address)
        assert answer.status_code == 200, address
        text = answer.content.decode()
        assert "<b>x" not in text, address
        assert "<i>t" not in text, address
        assert "\u202e" not in text, address


def test_the_report_holds_everything(client: Client, waiting: Cast) -> None:
    page = visit(client, waiting.viewer, f"{computed(waiting)}gate/report/")
    assert page.changed == "No value changed since it was first entered."
    assert len(page.sections[0].checks) == 5
    assert [fact.name for fact in page.facts] == [
        "Release",
        "Release id",
        "Evidence",
        "Checks",
        "First run began",
        "Digest of the evidence, SHA-256",
        "Computed",
        "Compared with",
    ]


def test_a_run_is_left_out_and_taken_in_again(client: Client, waiting: Cast) -> None:
    path = f"{computed(waiting)}gate/"
    run = visit(client, waiting.owner, path).runs[0]
    form = run.leave_out.href
    assert client.get(form).status_code == 200
    answer = client.post(form, {"reason": " "})
    assert answer.status_code == 422
    assert client.post(form, {"reason": "The fixture was broken."}).status_code == 302
    computed(waiting)
    run = visit(client, waiting.owner, path).runs[0]
    assert (run.state, run.reason) == ("left-out", "The fixture was broken.")
    assert run.why_not_confirm.startswith("You left this run out yourself")
    assert client.post(form, {"reason": "Again."}).status_code == 422
    confirm = form.removesuffix("/") + "/confirm"
    assert client.post(confirm, {"reason": "Yes."}).status_code == 422
    assert client.post(run.take_in_url, {"reason": "It counts."}).status_code == 302
    client.force_login(waiting.engineer)
    assert client.post(form, {"reason": "x"}).status_code == 403
    assert client.get(form).status_code == 403


def test_a_reason_that_is_refused_stays_where_it_was_typed(client: Client, waiting: Cast) -> None:
    path = f"{root(waiting.system)}runs/{Run.objects.get(release__name='1.0').uuid}/"
    client.force_login(waiting.owner)
    client.post(f"{path}leave-out/", {"reason": "It ran against a broken harness."})
    typed = f"<b>{'too long' * 300}"

    answer = client.post(f"{path}take-in", {"reason": typed})

    assert answer.status_code == 422
    text = answer.content.decode()
    assert f'value="&lt;b&gt;{"too long" * 300}"' in text
    assert text.count("too long" * 300) == 1


def test_the_name_of_a_run_is_marked_where_an_act_on_it_is_told(
    client: Client, waiting: Cast
) -> None:
    run = Run.objects.get(release__name="1.0")
    Run.objects.filter(pk=run.pk).update(name="night\u202e")
    client.force_login(waiting.owner)
    for act in ("leave-out/", "take-in"):
        path = f"{root(waiting.system)}runs/{run.uuid}/{act}"
        answer = client.post(path, {"reason": "It ran twice."}, follow=True)
        assert "\u202e" not in answer.content.decode(), act


def test_the_name_of_the_person_is_marked_in_the_menu(client: Client, waiting: Cast) -> None:
    User.objects.filter(pk=waiting.owner.pk).update(first_name="<i>Ana</i>\u202e")
    client.force_login(waiting.owner)
    text = client.get(f"{computed(waiting)}gate/").content.decode()
    assert "&lt;i&gt;Ana" in text
    assert "\u202e" not in text


def test_releases_are_listed_with_their_gate(client: Client, waiting: Cast) -> None:
    computed(waiting)
    client.force_login(waiting.viewer)
    path = f"{root(waiting.system)}releases/"
    first = n_queries(client, path)
    for name in ("1.1", "1.2"):
        ingest(waiting.system, [record("a", 0)], release=name)
    page = visit(client, waiting.viewer, path)
    assert [(row.gate.label, row.sign_off.label) for row in page.rows] == [
        ("not computed", "not signed"),
        ("not computed", "not signed"),
        ("waiting for evidence", "not signed"),
    ]
    assert n_queries(client, path) == first == 7


def test_an_alert_stands_on_every_page_until_an_owner_notes_it(
    client: Client, waiting: Cast
) -> None:
    computed(waiting)
    trial = Trial.objects.filter(release__system=waiting.system).first()
    assert trial is not None
    alert = GateAlert.objects.create(
        system=waiting.system,
        release=trial.release,
        trial=trial,
        harm=HOSTILE,
        tier_name="payments",
        raised_at=timezone.now(),
    )
    page = visit(client, waiting.viewer, f"{root(waiting.system)}tasks/")
    assert page.shell.alert.sentence == (
        "A prohibited action blocks a release. No owner has noted it yet."
    )
    listed = visit(client, waiting.viewer, page.shell.alert.href)
    assert [(row.tier, row.seen_url) for row in listed.rows] == [("payments", "")]
    assert listed.why_not == "Only an owner of this system does that."
    seen = f"{root(waiting.system)}alerts/{alert.uuid}/seen"
    assert client.post(seen, {"note": "x"}).status_code == 403
    client.force_login(waiting.owner)
    assert client.post(seen, {"note": " "}).status_code == 422
    refused = client.post(seen, {"note": "<b>" + "x" * 2_000})
    assert (refused.status_code, refused.context["page"].rows[0].typed) == (
        422,
        "<b>" + "x" * 2_000,
    )
    assert f'value="&lt;b&gt;{"x" * 2_000}"' in refused.content.decode()
    assert client.post(seen, {"note": "The tool is off."}).status_code == 302
    assert visit(client, waiting.viewer, f"{root(waiting.system)}tasks/").shell.alert is None
    listed = visit(client, waiting.viewer, f"{root(waiting.system)}alerts/?show=all")
    assert [(row.note, row.seen_by) for row in listed.rows] == [("The tool is off.", "owner")]
    assert visit(client, waiting.owner, f"{root(waiting.system)}alerts/").empty.heading == (
        "No alert waits"
    )


def test_public_keys_are_shown(client: Client, cast: Cast) -> None:
    page = visit(client, cast.viewer, "/signing-keys/")
    assert [row.is_current for row in page.rows] == [True]
    assert page.rows[0].pem.startswith("-----BEGIN PUBLIC KEY-----")


@pytest.mark.django_db(transaction=True)
class TestSigning:
    """Signing by the page, with the password."""

    def _ready(self, cast: Cast) -> str:
        thresholds_in_force(cast.system, by=cast.owner)
        ingest(cast.system, [record("a", 0)])
        contract_in_effect(cast.system, refund_contract("a"), by=cast.engineer)
        return computed(cast)

    def test_an_owner_rejects_and_declares_it_void(self, client: Client, cast: Cast) -> None:
        path = self._ready(cast)
        form = f"{path}sign/?meaning=rejected"
        page = visit(client, cast.owner, form)
        assert [choice.value for choice in page.meanings] == [
            "approved",
            "approved_with_waiver",
            "rejected",
        ]
        words = {"reason": "It pays twice.", "next_action": "Mend the tool."}
        wrong = client.post(form, {**words, "password": "wrong", "seen_digest": page.digest})
        assert wrong.status_code == 403
        assert wrong.context["page"].refusal == "The password is wrong."
        assert "It pays twice." in wrong.content.decode()
        assert 'wrong"' not in wrong.content.decode()
        changed = client.post(form, {**words, "password": PASSWORD, "seen_digest": "0" * 64})
        assert changed.status_code == 409
        assert changed.context["page"].digest_before == "0" * 64
        lacking = client.post(
            form, {"reason": "x", "password": PASSWORD, "seen_digest": page.digest}
        )
        assert lacking.status_code == 422
        done = client.post(form, {**words, "password": PASSWORD, "seen_digest": page.digest})
        assert done.status_code == 302
        row = SignOff.objects.get()
        listed = visit(client, cast.viewer, f"{path}signatures/")
        assert [each.meaning.label for each in listed.rows] == ["rejected"]
        shown = visit(client, cast.viewer, f"{path}signatures/{row.uuid}/")
        assert shown.signature.digest == page.digest
        assert shown.signature.void_url == ""
        file = client.get(f"{path}signatures/{row.uuid}/attestation.json")
        assert file["Content-Type"] == "application/json"
        assert file["Content-Disposition"] == (
            f'attachment; filename="1.0-{str(row.uuid)[:8]}.intoto.json"'
        )
        void = f"{path}signatures/{row.uuid}/void"
        assert client.post(void, {}).status_code == 403
        client.force_login(cast.owner)
        bad = client.post(void, {"reason": "By mistake.", "password": "no"})
        assert (bad.status_code, bad.context["page"].void_text) == (403, "By mistake.")
        good = client.post(void, {"reason": "By mistake.", "password": PASSWORD})
        assert good.status_code == 302
        listed = visit(client, cast.viewer, f"{path}signatures/")
        assert [each.void_reason for each in listed.rows] == ["By mistake."]

    def test_who_may_not_sign_is_told_why(self, client: Client, cast: Cast) -> None:
        path = self._ready(cast)
        for person in (cast.engineer, cast.reviewer, cast.viewer):
            client.force_login(person)
            assert client.get(f"{path}sign/").status_code == 403
        client.force_login(cast.outsider)
        assert client.get(f"{path}sign/").status_code == 404
        release = Release.objects.get(system=cast.system, name="1.0")
        ready = signing_page(release, cast.owner, now=timezone.now())
        approve = visit(client, cast.owner, f"{path}sign/?meaning=approved")
        assert approve.why_not == (
            "Only a gate that is ready can be approved; this one is waiting for evidence."
        )
        answer = client.post(
            f"{path}sign/?meaning=approved",
            {
                "intended_use": "x",
                "scope": "x",
                "expires_on": "2999-01-01",
                "password": PASSWORD,
                "seen_digest": ready.digest,
            },
        )
        assert answer.status_code == 409
        assert SignOff.objects.count() == 0
