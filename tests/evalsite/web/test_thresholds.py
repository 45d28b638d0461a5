from __future__ import annotations

from datetime import UTC, datetime
from fractions import Fraction
from typing import Any
from uuid import uuid4

import pytest
from django.test import Client
from django.utils import timezone

from evalsite.models import AuditEvent
from reviews.core.gate.model import CheckKind, Threshold, Thresholds
from reviews.core.gate.thresholds import template_of
from reviews.models import RiskTier, ThresholdSet, TierAssignment, TierRetirement
from reviews.permissions.thresholds import NOT_AN_OWNER
from reviews.services.thresholds import make_threshold_set
from reviews.services.tiers import assign_tier, make_tier
from tests.support.cast import Cast
from tests.support.evidence import ingest, record
from tests.support.visits import n_queries, root, visit
from traces.models import Task

pytestmark = pytest.mark.django_db

HOSTILE = "<b>pay</b>\u202e{{ 7 }}"


def levels(key: str = "customer_data") -> Thresholds:
    template = template_of(key)
    assert template is not None
    return template.thresholds


def tier_of(cast: Cast, name: str = "payments", **more: Any) -> RiskTier:
    values = {"by": cast.owner, "now": timezone.now()} | more
    return make_tier(cast.system, name, "Money moves.", "payments", **values)


def made(cast: Cast, tier: RiskTier, thresholds: Thresholds | None = None, seen: int = 0) -> None:
    make_threshold_set(
        tier,
        thresholds or levels(),
        reason="As promised.",
        in_force_from=None,
        by=cast.owner,
        now=timezone.now(),
        seen_number=seen,
    )


def fields(**changed: Any) -> dict[str, Any]:
    """A form that sets the always-on checks and an outcome rate."""
    return {
        "on": ["outcome_rate"],
        "outcome_rate.limit": "95 %",
        "outcome_rate.by": "estimate",
        "prohibited.limit": "0",
        "unresolved.limit": "3",
        "fewest_trials.limit": "1,200",
        "n_owners": "2",
        "requests_per_day": "10,000",
        "reason": "The finance team asked.",
        "when": "now",
        "seen": "0",
        "act": "set",
    } | changed


class TestList:
    def test_without_tiers_it_explains_and_offers_templates(
        self, cast: Cast, client: Client
    ) -> None:
        at = f"{root(cast.system)}thresholds/"
        page = visit(client, cast.owner, at)
        assert page.empty.heading == "No risk tier yet"
        assert [offer.href for offer in page.offers] == [
            f"{at}new/?template=drafting",
            f"{at}new/?template=customer_data",
            f"{at}new/?template=payments",
        ]
        page = visit(client, cast.engineer, at)
        assert (page.new_url, page.why_not) == ("", NOT_AN_OWNER)
        assert [offer.href for offer in page.offers] == ["", "", ""]

    def test_it_names_what_is_in_force_and_who_set_it(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        ingest(cast.system, [record("t1", 0), record("t2", 0)])
        made(cast, tier)
        assign_tier(
            cast.system, Task.objects.get(task_id="t1"), tier, "It pays.",
            by=cast.owner, now=timezone.now(),
        )  # fmt: skip
        page = visit(client, cast.viewer, f"{root(cast.system)}thresholds/")
        (card,) = page.cards
        assert (card.name.label, card.tasks.label, card.owners, card.edit_url) == (
            "payments",
            "1 task",
            "one owner signs",
            "",
        )
        assert (card.in_force.name.label, card.in_force.by, card.in_force.reason) == (
            "Version 1",
            "owner",
            "As promised.",
        )
        assert page.untiered.label == "1 task is in no tier"
        assert page.empty is None

    def test_queries_do_not_grow(self, cast: Cast, client: Client) -> None:
        at = f"{root(cast.system)}thresholds/"
        made(cast, tier_of(cast))
        client.force_login(cast.owner)
        one = n_queries(client, at)
        for name in ("drafting", "data"):
            made(cast, tier_of(cast, name))
        assert (one, n_queries(client, at)) == (8, 8)

    def test_hostile_names_are_marked(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast, HOSTILE)
        made(cast, tier)
        client.force_login(cast.viewer)
        for path in ("", f"{tier.uuid}/", f"{tier.uuid}/versions/1/", "tasks/", "plan/"):
            answer = client.get(f"{root(cast.system)}thresholds/{path}")
            assert answer.status_code == 200
            assert b"<b>pay</b>" not in answer.content
            assert "\u202e".encode() not in answer.content or b"U+202E" in answer.content


class TestNewAndRetired:
    def test_an_owner_makes_a_tier_and_goes_on_to_its_thresholds(
        self, cast: Cast, client: Client
    ) -> None:
        at = f"{root(cast.system)}thresholds/new/"
        page = visit(client, cast.owner, at, template="payments")
        assert page.form.initial["name"] == "Payments"
        answer = client.post(
            at, {"name": "payments", "description": "Money moves.", "template": "payments"}
        )
        tier = RiskTier.objects.get()
        assert answer["Location"] == f"{root(cast.system)}thresholds/{tier.uuid}/edit/"
        assert (tier.name, tier.template, tier.made_by) == ("payments", "payments", cast.owner)
        event = AuditEvent.objects.get(act="tier.made")
        assert (event.object_id, event.actor, event.source) == (str(tier.uuid), cast.owner, "page")

    def test_wrong_fields_come_back_with_sentences(self, cast: Cast, client: Client) -> None:
        at = f"{root(cast.system)}thresholds/new/"
        client.force_login(cast.owner)
        answer = client.post(at, {"name": "", "description": "x", "template": "nonsense"})
        assert answer.status_code == 422
        assert set(answer.context["page"].form.errors) == {"name", "template"}
        tier_of(cast)
        answer = client.post(at, {"name": "Payments", "description": "x", "template": ""})
        assert answer.status_code == 422
        assert "There is a tier of that name already." in answer.content.decode()

    def test_a_tier_with_tasks_is_not_retired(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        ingest(cast.system, [record("t1", 0)])
        assign_tier(cast.system, None, tier, "All pay.", by=cast.owner, now=timezone.now())
        at = f"{root(cast.system)}thresholds/{tier.uuid}/"
        page = visit(client, cast.owner, at)
        assert page.retire_refusal == ("1 task is in this tier: put them into another one first.")
        answer = client.post(f"{at}retire", {"reason": "Not needed."})
        assert answer.status_code == 422
        assert TierRetirement.objects.count() == 0
        assign_tier(cast.system, None, None, "None.", by=cast.owner, now=timezone.now())
        answer = client.post(f"{at}retire", {"reason": "Not needed."})
        assert answer["Location"] == f"{root(cast.system)}thresholds/"
        page = visit(client, cast.owner, f"{root(cast.system)}thresholds/")
        assert ([card.name.label for card in page.retired], page.cards) == (["payments"], ())
        page = visit(client, cast.owner, at)
        assert (page.edit_url, page.retire_form) == ("", None)


class TestEditor:
    def edit(self, cast: Cast, tier: RiskTier) -> str:
        return f"{root(cast.system)}thresholds/{tier.uuid}/edit/"

    def test_it_begins_with_the_template_of_the_tier(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        page = visit(client, cast.owner, self.edit(cast, tier))
        rows = {row.kind: row for _, group in page.groups for row in group}
        assert list(rows) == [kind.value for kind in CheckKind]
        assert [field.value for field in rows["outcome_rate"].fields] == ["95"]
        assert rows["outcome_rate"].decided_by.value == "bound"
        assert [field.value for field in rows["cost_p95"].fields] == ["0.40"]
        assert [field.value for field in rows["prohibited_rate"].fields] == ["0.5"]
        assert [kind for kind, row in rows.items() if row.always_on] == [
            "prohibited",
            "unresolved",
            "fewest_trials",
            "declared",
        ]
        assert rows["declared"].sentence.startswith("Every trial that a run declared")

    def test_thresholds_are_put_in_force(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        answer = client.post(self.edit(cast, tier), fields())
        assert answer["Location"] == f"{root(cast.system)}thresholds/{tier.uuid}/versions/1/"
        row = ThresholdSet.objects.get()
        assert row.document == {
            "version": 1,
            "n_owners": 2,
            "requests_per_day": 10000,
            "checks": [
                {"kind": "outcome_rate", "limit": "0.95", "decided_by": "estimate"},
                {"kind": "prohibited", "limit": 0},
                {"kind": "unresolved", "limit": 3},
                {"kind": "fewest_trials", "limit": 1200},
                {"kind": "declared"},
            ],
        }
        assert (row.by, row.reason, row.in_force_from) == (
            cast.owner,
            "The finance team asked.",
            row.made_at,
        )
        event = AuditEvent.objects.get(act="threshold_set.made")
        assert (event.object_label, event.reason) == ("tier payments, version 1", row.reason)

    def test_every_field_is_read(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        sent = fields(
            on=["pass_hat_k", "cost_p95", "judge_calibration", "regression", "prohibited_rate"],
            harm=["money", "data", "none"],
            harm_most=["0", "2", ""],
            **{
                "pass_hat_k.limit": "60",
                "pass_hat_k.k": "5",
                "pass_hat_k.of": "outcome",
                "cost_p95.limit": "$0.40",
                "judge_calibration.false_pass": "5",
                "judge_calibration.false_fail": "10",
                "judge_calibration.min_items": "60",
                "judge_calibration.min_people": "3",
                "regression.limit": "2.5 points",
                "prohibited_rate.limit": "0.5",
                "prohibited_rate.by": "bound",
            },
        )
        assert client.post(self.edit(cast, tier), sent).status_code == 302
        checks = {check["kind"]: check for check in ThresholdSet.objects.get().document["checks"]}
        assert checks == {
            "pass_hat_k": {"kind": "pass_hat_k", "limit": "0.6", "k": 5, "of": "outcome"},
            "prohibited": {"kind": "prohibited", "limit": 0, "by_harm": {"money": 0, "data": 2}},
            "prohibited_rate": {
                "kind": "prohibited_rate",
                "limit": "0.005",
                "decided_by": "bound",
            },
            "cost_p95": {"kind": "cost_p95", "limit": "0.4"},
            "unresolved": {"kind": "unresolved", "limit": 3},
            "judge_calibration": {
                "kind": "judge_calibration",
                "false_pass": "0.05",
                "false_fail": "0.1",
                "min_items": 60,
                "min_people": 3,
            },
            "regression": {"kind": "regression", "limit": "0.025"},
            "fewest_trials": {"kind": "fewest_trials", "limit": 1200},
            "declared": {"kind": "declared"},
        }

    @pytest.mark.parametrize(
        ("changed", "sentence"),
        [
            ({"outcome_rate.limit": "101"}, "Outcome rate: Write percent from 0 to 100"),
            ({"outcome_rate.limit": "<b>"}, "Outcome rate: Write percent from 0 to 100"),
            ({"outcome_rate.limit": "1e400"}, "Outcome rate: Write percent from 0 to 100"),
            (
                {"outcome_rate.limit": "100", "outcome_rate.by": "bound"},
                "Outcome rate: No number of trials brings a bound to 100 %",
            ),
            ({"outcome_rate.by": "mood"}, "Outcome rate: A check is decided by its"),
            ({"unresolved.limit": "-1"}, "Unresolved trials: Write a whole number"),
            ({"fewest_trials.limit": "0"}, "Fewest trials: This is a whole number from 1"),
            ({"on": ["cost_p95"], "cost_p95.limit": "free"}, "Write US dollars"),
            ({"n_owners": "3"}, "One owner or two have to sign"),
            ({"requests_per_day": "many"}, "Write a whole number"),
            ({"harm": ["money"], "harm_most": ["x"]}, "Prohibited actions: Write a whole number"),
            ({"reason": " "}, "Say why"),
            ({"reason": "\u200b"}, "A reason is missing."),
            ({"reason": "x" * 2_001}, "A reason has at most 2,000 characters."),
            ({"when": "later", "since": "soon"}, "Write a date and a time"),
            ({"when": "later", "since": "0001-01-01T00:00+23:59"}, "Write a date and a time"),
            ({"when": "later", "since": "2020-01-01T00:00"}, "That time has passed."),
            (
                {"on": ["judge_calibration"], "judge_calibration.false_pass": "20",
                 "judge_calibration.false_fail": "10", "judge_calibration.min_items": "50",
                 "judge_calibration.min_people": "2"},
                "at most at the site&#x27;s own limit of 10 %",
            ),
        ],
    )  # fmt: skip
    def test_what_is_wrong_stands_at_its_field(
        self, cast: Cast, client: Client, changed: dict[str, Any], sentence: str
    ) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        answer = client.post(self.edit(cast, tier), fields(**changed))
        assert answer.status_code == 422
        assert sentence in answer.content.decode()
        assert ThresholdSet.objects.count() == 0

    def test_a_later_time_is_read_as_utc(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        client.post(self.edit(cast, tier), fields(when="later", since="2099-12-24T09:00"))
        assert ThresholdSet.objects.get().in_force_from == datetime(2099, 12, 24, 9, tzinfo=UTC)
        page = visit(client, cast.owner, f"{root(cast.system)}thresholds/{tier.uuid}/")
        assert page.empty.heading == "No thresholds in force"
        assert [notice.level for notice in page.notices] == ["warning"]

    def test_a_version_that_came_meanwhile_is_a_conflict_that_keeps_what_was_typed(
        self, cast: Cast, client: Client
    ) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        made(cast, tier)
        answer = client.post(self.edit(cast, tier), fields())
        page = answer.context["page"]
        assert (answer.status_code, page.seen) == (409, 1)
        assert page.reason.value == "The finance team asked."
        assert ThresholdSet.objects.count() == 1
        assert client.post(self.edit(cast, tier), fields(seen="1")).status_code == 302
        assert client.post(self.edit(cast, tier), fields(seen="2")).status_code == 422
        assert ThresholdSet.objects.count() == 2

    def test_a_preview_changes_nothing_and_says_what_would_be_otherwise(
        self, cast: Cast, client: Client
    ) -> None:
        tier = tier_of(cast)
        made(cast, tier, Thresholds(tuple(c for c in levels("drafting").checks)))
        assign_tier(cast.system, None, tier, "All.", by=cast.owner, now=timezone.now())
        ingest(cast.system, [record(f"t{n}", 0) for n in range(3)], release="1.0")
        client.force_login(cast.owner)
        answer = client.post(self.edit(cast, tier), fields(act="preview", seen="1", reason=""))
        assert answer.status_code == 200
        preview = answer.context["page"].preview
        (release,) = preview.releases
        assert release.release.label == "1.0"
        changed = {check.name: (check.was, check.would_be) for check in release.checks}
        assert changed["Fewest tasks"] == ("cannot tell", "not asked")
        assert "Outcome rate" not in changed
        assert release.n_same.endswith("come out the same")
        assert ThresholdSet.objects.count() == 1
        wrong = client.post(
            self.edit(cast, tier), fields(act="preview", **{"outcome_rate.limit": "x"})
        )
        assert (wrong.status_code, wrong.context["page"].preview) == (422, None)

    def test_a_preview_of_a_release_before_the_tier_names_what_would_not_be_met(
        self, cast: Cast, client: Client
    ) -> None:
        ingest(cast.system, [record(f"t{n}", 0) for n in range(3)], release="1.0")
        tier = tier_of(cast)
        assign_tier(cast.system, None, tier, "All.", by=cast.owner, now=timezone.now())
        client.force_login(cast.owner)
        answer = client.post(self.edit(cast, tier), fields(act="preview"))
        (release,) = answer.context["page"].preview.releases
        assert {(check.was, check.would_be) for check in release.checks} == {
            ("not asked", "cannot tell")
        }
        assert release.n_same.startswith("No thresholds of this tier were in force for it; ")

    def test_a_preview_without_releases_says_so(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        client.force_login(cast.owner)
        answer = client.post(self.edit(cast, tier), fields(act="preview"))
        assert answer.context["page"].preview.sentence == (
            "There is no past release with a run that counts: nothing to compare."
        )

    def test_only_owners_reach_it_and_only_in_their_system(
        self, cast: Cast, client: Client
    ) -> None:
        tier = tier_of(cast)
        for user in (cast.engineer, cast.reviewer, cast.viewer):
            client.force_login(user)
            assert client.get(self.edit(cast, tier)).status_code == 403
            assert client.post(self.edit(cast, tier), fields()).status_code == 403
        client.force_login(cast.owner)
        foreign = make_tier(cast.other_system, "T", "T.", "", by=cast.outsider, now=timezone.now())
        for uuid in (foreign.uuid, uuid4()):
            at = f"{root(cast.system)}thresholds/{uuid}/"
            for path in ("", "edit/", "versions/1/"):
                assert client.get(at + path).status_code == 404
            assert client.post(f"{at}edit/", {}).status_code == 404
            assert client.post(f"{at}retire", {}).status_code == 404
        assert ThresholdSet.objects.count() == 0


class TestVersion:
    def test_it_shows_what_is_otherwise(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        first = levels("drafting")
        made(cast, tier, first)
        second = Thresholds(
            (Threshold(CheckKind.OUTCOME_RATE, Fraction(9, 10)), *first.checks[1:]), n_owners=2
        )
        made(cast, tier, second, seen=1)
        at = f"{root(cast.system)}thresholds/{tier.uuid}/versions/"
        page = visit(client, cast.engineer, f"{at}2/")
        assert [(change.name, change.was[:14], change.is_now[:14]) for change in page.changes] == [
            ("Outcome rate", "At least 85 % ", "At least 90 % "),
            ("Owners who sign", "1 owner", "2 owners"),
        ]
        assert (page.badge.label, page.before.label, page.edit_url) == (
            "in force",
            "Version 1",
            "",
        )
        page = visit(client, cast.owner, f"{at}1/")
        assert (page.badge.label, page.before, page.changes) == ("replaced", None, ())
        assert page.edit_url == f"{root(cast.system)}thresholds/{tier.uuid}/edit/?version=1"
        for number in (3, 2**31, 10**30):
            assert client.get(f"{at}{number}/").status_code == 404

    def test_one_that_cannot_be_read_says_so(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        now = timezone.now()
        ThresholdSet.objects.create(
            tier=tier, number=1, document={"checks": 3}, digest="0" * 64, reason="x",
            made_at=now, in_force_from=now,
        )  # fmt: skip
        for path in (f"{tier.uuid}/", f"{tier.uuid}/versions/1/", f"{tier.uuid}/edit/", ""):
            client.force_login(cast.owner)
            assert client.get(f"{root(cast.system)}thresholds/{path}").status_code == 200


class TestTasks:
    def test_a_task_a_family_and_the_rest_are_moved(self, cast: Cast, client: Client) -> None:
        ingest(cast.system, [record(f"t{n}", 0, family="refunds") for n in range(3)])
        Task.objects.filter(task_id__in=["t0", "t1"]).update(family="refunds")
        tier = tier_of(cast)
        at = f"{root(cast.system)}thresholds/tasks/"
        task = Task.objects.get(task_id="t2")
        page = visit(client, cast.owner, at, what="task", task=str(task.uuid))
        assert page.form.heading == "Put task t2 into another tier"
        send = {"tier": str(tier.uuid), "reason": "It pays."}
        client.post(f"{at}move", send | {"what": "task", "task": str(task.uuid)})
        client.post(f"{at}move", send | {"what": "family", "of": "refunds"})
        assert TierAssignment.objects.filter(tier=tier).count() == 3
        client.post(f"{at}move", send | {"what": "system", "tier": ""})
        answer = client.post(f"{at}move", send | {"what": "system"})
        assert answer["Location"] == at
        events = AuditEvent.objects.filter(system=cast.system, act__contains="tier")
        assert [event.act for event in events.order_by("seq")] == [
            "tier.made",
            "task.tier_moved",
            "family.tier_moved",
            "system.tier_set",
        ]
        page = visit(client, cast.viewer, at)
        assert [(row.task.label, row.tier.label, row.is_own) for row in page.rows] == [
            ("t0", "payments", True),
            ("t1", "payments", True),
            ("t2", "payments", True),
        ]
        assert [move.what.label for move in page.history] == [
            "all other tasks",
            "task t1",
            "task t0",
            "task t2",
        ]
        assert (page.why_not, page.rows[0].move_url) == (NOT_AN_OWNER, "")

    def test_filters_and_pages_take_as_many_queries(self, cast: Cast, client: Client) -> None:
        ingest(cast.system, [record("t1", 0)])
        tier = tier_of(cast)
        at = f"{root(cast.system)}thresholds/tasks/"
        client.force_login(cast.owner)
        one = n_queries(client, at)
        ingest(cast.system, [record(f"x{n}", 0) for n in range(3)])
        assert (one, n_queries(client, at)) == (10, 10)
        page = visit(client, cast.owner, at, q="x1")
        assert ([row.task.label for row in page.rows], page.total) == (["x1"], "1 task")
        page = visit(client, cast.owner, at, tier=str(tier.uuid))
        assert page.empty.heading == "No task is like that"
        assert visit(client, cast.owner, at, tier="none").total == "4 tasks"
        assert visit(client, cast.owner, at, tier="nonsense", after="x").total == "4 tasks"

    def test_what_is_not_there_is_404_and_wrong_forms_are_422(
        self, cast: Cast, client: Client
    ) -> None:
        ingest(cast.system, [record("t1", 0)])
        ingest(cast.other_system, [record("t1", 0)], by=cast.outsider)
        tier = tier_of(cast)
        foreign_task = Task.objects.get(system=cast.other_system)
        foreign = make_tier(cast.other_system, "T", "T.", "", by=cast.outsider, now=timezone.now())
        at = f"{root(cast.system)}thresholds/tasks/move"
        client.force_login(cast.owner)
        mine = str(Task.objects.get(system=cast.system).uuid)
        for sent in (
            {},
            {"what": "task", "task": str(foreign_task.uuid)},
            {"what": "task", "task": "nonsense"},
            {"what": "family", "of": "no such"},
            {"what": "task", "task": mine, "tier": str(foreign.uuid)},
            {"what": "task", "task": mine, "tier": "nonsense"},
        ):
            assert client.post(at, sent).status_code == 404, sent
        wrong = client.post(at, {"what": "task", "task": mine, "tier": str(tier.uuid)})
        assert wrong.status_code == 422
        same = client.post(at, {"what": "task", "task": mine, "tier": "", "reason": "Why."})
        assert same.status_code == 422
        assert "already" in same.content.decode()
        client.force_login(cast.engineer)
        assert client.post(at, {"what": "task", "task": mine}).status_code == 403
        assert TierAssignment.objects.count() == 0


class TestPlan:
    def test_it_says_how_many_trials_a_bound_needs(self, cast: Cast, client: Client) -> None:
        at = f"{root(cast.system)}thresholds/plan/"
        page = visit(client, cast.viewer, at, bound="1.5", clean="198", requests="10000")
        assert page.answers[0] == (
            "A bound of 1.5 % takes 199 clean trials; 198 are there, so 1 more clean trial would "
            "bring it there."
        )
        assert "At 10,000 requests a day, 1.5 % means up to 150 a day." in page.answers
        yours = [row.cells for row in page.tables[0].rows if row.is_yours]
        assert yours == [("1.5 %", "199", "up to 150 a day")]

    def test_a_tier_fills_it_in(self, cast: Cast, client: Client) -> None:
        tier = tier_of(cast)
        made(cast, tier, levels("payments"))
        page = visit(
            client, cast.viewer, f"{root(cast.system)}thresholds/plan/", tier=str(tier.uuid)
        )
        assert {field.name: field.value for field in page.fields} == {
            "bound": "0.5",
            "clean": "0",
            "violations": "0",
            "requests": "",
            "times": "5",
            "day": "60",
            "trials": "5",
            "rate": "95",
            "expected": "",
        }

    @pytest.mark.parametrize(
        ("field", "value"),
        [
            ("bound", "0"),
            ("bound", "100"),
            ("bound", "<b>"),
            ("times", "0"),
            ("times", "1001"),
            ("trials", "99999999999999"),
            ("day", "101"),
            ("clean", "-1"),
            ("requests", "1e9"),
            ("rate", "100"),
            ("violations", "101"),
        ],
    )
    def test_nonsense_is_named(self, cast: Cast, client: Client, field: str, value: str) -> None:
        client.force_login(cast.viewer)
        answer = client.get(f"{root(cast.system)}thresholds/plan/", {field: value})
        page = answer.context["page"]
        assert (answer.status_code, page.answers, len(page.errors)) == (422, (), 1)

    def test_large_numbers_are_worked_out_soon(self, cast: Cast, client: Client) -> None:
        client.force_login(cast.viewer)
        answer = client.get(
            f"{root(cast.system)}thresholds/plan/",
            {
                "bound": "0.01", "clean": "999999", "violations": "100",
                "requests": "1000000000", "times": "1000", "trials": "1000", "day": "99.9999",
                "rate": "95", "expected": "95.1",
            },
        )  # fmt: skip
        assert answer.status_code == 200
        assert answer.context["page"].tables[2].notes == ("and 989 more lines",)
