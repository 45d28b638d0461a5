"""Gates computed from stored evidence, by what was in force when their runs began."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.db import connection
from django.utils import timezone

from evalsite import gates
from evalsite.gates import (
    MOST_TRIES,
    Refreshed,
    is_outdated,
    refresh_gate,
    seconds_to_wait,
    stale_gates,
    stored_document,
)
from evalsite.pipeline import declare_run
from evalsite.tasks import compute_gate_by_hint
from reviews.core.gate.documents import parse_gate
from reviews.core.gate.manifest import difference_of, manifest_digest
from reviews.core.gate.model import CheckKind
from reviews.core.gate.states import GateState, Meaning
from reviews.models import (
    EvidenceManifest,
    GateAlert,
    ReleaseGate,
    RunExclusion,
    SignOff,
    SignOffVoid,
)
from reviews.services.gate_acts import (
    GateActDeniedError,
    GateActError,
    confirm_exclusion,
    leave_out_run,
    note_alert_seen,
    reevaluate,
    take_run_in,
)
from tests.support.cast import Cast, person
from tests.support.evidence import ingest, receive, record, verdict
from tests.support.gates import (
    approved_contract,
    gate_of,
    refund,
    refund_contract,
    results,
    thresholds_in_force,
)
from traces.models import Release, Role, Run, Task, Trial, UploadJob, UploadState
from traces.services.families import change_split
from traces.services.people import create_system, set_member
from traces.services.work import tasks_named

pytestmark = pytest.mark.django_db

CASES = Path(__file__).resolve().parents[1] / "data" / "cases"


def _now() -> datetime:
    return timezone.now()


def _with_contracts(cast: Cast, *task_ids: str) -> None:
    """Contracts of tasks that were approved a day ago."""
    tasks_named(cast.system, task_ids)
    for task_id in task_ids:
        text = refund_contract(task_id)
        approved_contract(cast.system, text, by=cast.engineer, at=_now() - timedelta(days=1))


def _release(cast: Cast, name: str = "1.0") -> Release:
    return Release.objects.get(system=cast.system, name=name)


@pytest.fixture
def ready(cast: Cast) -> Cast:
    """Two tasks with contracts and thresholds in force, two clean trials each."""
    thresholds_in_force(cast.system, by=cast.owner, outcome_rate={"limit": "0.9"})
    _with_contracts(cast, "t1", "t2")
    ingest(cast.system, [refund(task, trial) for task in ("t1", "t2") for trial in (0, 1)])
    return cast


class TestComputed:
    def test_a_gate_is_ready_where_all_is_met(self, ready: Cast) -> None:
        computed = gate_of(ready.system)
        assert computed.gate.state is GateState.READY
        assert results(computed) == {
            "outcome_rate": "met",
            "prohibited": "met",
            "unresolved": "met",
            "fewest_trials": "met",
            "declared": "does_not_apply",
        }
        assert computed.other is None
        assert computed.digest == manifest_digest(computed.manifest)
        assert gate_of(ready.system).manifest == computed.manifest
        assert parse_gate(stored_document(computed)) == computed.gate

    def test_one_more_failing_trial_is_another_manifest_that_names_it(self, ready: Cast) -> None:
        before = gate_of(ready.system)
        ingest(ready.system, [refund("t1", 7, amount="400.0")])
        after = gate_of(ready.system)
        assert after.gate.state is GateState.BLOCKED
        found = [each.sentence for each in difference_of(before.manifest, after.manifest)]
        assert [sentence for sentence in found if "figures differ" not in sentence] == [
            "The gate was ready and is blocked now.",
            "Prohibited of tier payments: met before, not met now.",
            "Trial 7 of task t1: new.",
            (
                "2 verdicts: new (pass of state check on db of trial 7 of task t1; "
                "fail of contract checks on big-refund of trial 7 of task t1)."
            ),
        ]

    def test_the_order_of_arrival_changes_nothing(self, cast: Cast) -> None:
        records = [refund("t1", n, amount=amount) for n, amount in enumerate(("20.0", "300.0"))]
        found = []
        for name, order in (("One", records), ("Two", records[::-1])):
            system = create_system(name, by=cast.owner)
            thresholds_in_force(system, by=cast.owner)
            tasks_named(system, ["t1"])
            approved_contract(
                system, refund_contract("t1"), by=cast.engineer, at=_now() - timedelta(days=1)
            )
            for each in order:
                ingest(system, [each])
            found.append(gate_of(system))
        one, two = found
        assert [check.counts for check in one.gate.sections[0].checks] == [
            check.counts for check in two.gate.sections[0].checks
        ]
        assert results(one) == results(two)
        assert one.gate.state is two.gate.state is GateState.BLOCKED

    def test_a_release_without_a_counting_run_waits(self, cast: Cast) -> None:
        thresholds_in_force(cast.system, by=cast.owner)
        ingest(cast.system, [record(environment="production")])
        computed = gate_of(cast.system)
        assert (computed.gate.state, len(computed.gate.sections)) == (GateState.WAITING, 1)
        assert computed.n_production == 0  # of runs that count

    def test_faults_tuning_and_production_stand_apart(self, cast: Cast) -> None:
        thresholds_in_force(cast.system, by=cast.owner, recovery_rate={"limit": "1"})
        ingest(
            cast.system,
            [
                record("t1", 0),
                record("t1", 1, environment="production"),
                record("t1", 2, fault={"kind": "timeout", "step": 1}),
                record("t2", 0),
            ],
        )
        tuned = Task.objects.get(system=cast.system, task_id="t2")
        change_split(
            cast.system,
            split="tuning",
            reason="Used for prompts.",
            by=cast.engineer,
            now=_now(),
            task=tuned,
        )
        computed = gate_of(cast.system)
        assert computed.n_production == 1
        assert [
            (each.slot.task, each.slot.label, each.slot.is_counted, each.slot.has_fault)
            for each in computed.slots
        ] == [("t1", "0", True, False), ("t1", "2", False, True), ("t2", "0", False, False)]
        by_kind = {c.threshold.kind: c.measured for c in computed.gate.sections[0].checks}
        assert by_kind[CheckKind.FEWEST_TRIALS] == 1

    def test_declared_trials_that_never_came_are_missing(self, cast: Cast) -> None:
        thresholds_in_force(cast.system, by=cast.owner)
        release = Release.objects.create(system=cast.system, name="1.0")
        declare_run(release, "n", trials=2, task_ids=["t1", "t2"], by=cast.engineer, now=_now())
        ingest(cast.system, [record("t1", 0)], run="n")
        computed = gate_of(cast.system)
        assert [(s.slot.task, s.slot.label, s.slot.value) for s in computed.slots] == [
            ("t1", "0", "pass"),
            ("t1", "", "missing"),
            ("t2", "", "missing"),
            ("t2", "", "missing"),
        ]
        assert results(computed)["declared"] == "cannot_tell"

    def test_what_was_added_fills_a_cost_that_was_not_recorded(self, ready: Cast) -> None:
        from evalsite.after_review import add_evidence_to
        from traces.core.additions import parse_addition

        addition, findings = parse_addition({"cost_usd": 0.5})
        assert not findings, findings
        trial = Trial.objects.order_by("pk")[0]
        add_evidence_to(
            trial, addition, source="bill", reason="It was not kept.", by=ready.engineer, now=_now()
        )
        costs = {str(each.slot.cost) for each in gate_of(ready.system).slots}
        assert costs == {"0.5", "None"}

    @pytest.mark.parametrize("n", [1, 3])
    def test_the_queries_do_not_grow_with_trials(
        self, cast: Cast, n: int, django_assert_num_queries: Any
    ) -> None:
        thresholds_in_force(cast.system, by=cast.owner)
        _with_contracts(cast, *(f"t{i}" for i in range(n)))
        ingest(cast.system, [refund(f"t{i}", 0) for i in range(n)])
        release = _release(cast)
        with django_assert_num_queries(42):
            gates.compute_gate(release.pk, now=_now())


class TestInForce:
    def test_thresholds_made_after_the_run_apply_once_an_owner_says_so(self, cast: Cast) -> None:
        ingest(cast.system, [record("t1", 0)])
        thresholds_in_force(cast.system, by=cast.owner, since=_now())
        before = gate_of(cast.system)
        assert before.gate.state is GateState.WAITING
        assert [section.threshold_set for section in before.gate.sections] == [None]
        assert before.other is not None
        assert (before.other.is_later, before.other.sentence) == (
            True,
            (
                "Re-evaluated now, it would apply thresholds version 1 of tier payments "
                "and another tier for 1 task."
            ),
        )
        release = _release(cast)
        reevaluate(release, reason="The bar is set.", by=cast.owner, now=_now())
        after = gate_of(cast.system)
        assert [section.tier for section in after.gate.sections] == ["payments"]
        assert after.gate == before.other.gate
        assert after.other is not None
        assert (after.other.is_later, after.other.gate) == (False, before.gate)
        assert before.manifest["reevaluation"] is None
        assert after.manifest["reevaluation"] is not None

    def test_a_contract_approved_after_the_run_counts_once_an_owner_says_so(
        self, ready: Cast
    ) -> None:
        version = approved_contract(
            ready.system,
            refund_contract("t1", limit="10.0"),
            by=ready.engineer,
            at=_now(),
            in_effect=False,
        )
        before = gate_of(ready.system)
        assert before.gate.state is GateState.READY
        assert before.other is not None
        assert before.other.gate.state is GateState.BLOCKED
        assert before.other.sentence == (
            "Re-evaluated now, it would apply other contract versions for 1 task."
        )
        assert {s.slot.contract for s in before.slots if s.slot.task == "t1"} == {1}
        reevaluate(_release(ready), reason="It was too lax.", by=ready.owner, now=_now())
        after = gate_of(ready.system)
        assert after.gate.state is GateState.BLOCKED
        assert {s.slot.contract for s in after.slots if s.slot.task == "t1"} == {version.number}
        assert after.other is not None
        assert after.other.gate == before.gate

    def test_without_a_contract_in_force_imported_criteria_decide(self, cast: Cast) -> None:
        thresholds_in_force(cast.system, by=cast.owner)
        ingest(cast.system, [refund("t1", 0), refund("t1", 1, verdicts=[verdict("fail")])])
        approved_contract(
            cast.system, refund_contract("t1"), by=cast.engineer, at=_now() + timedelta(days=1)
        )
        computed = gate_of(cast.system)
        assert [(s.slot.contract, s.slot.value) for s in computed.slots] == [
            (0, "pass"),
            (0, "fail"),
        ]
        assert results(computed)["prohibited"] == "cannot_tell"

    def test_each_run_applies_the_contracts_of_its_own_beginning(self, ready: Cast) -> None:
        approved_contract(
            ready.system, refund_contract("t1", limit="10.0"), by=ready.engineer, at=_now()
        )
        ingest(ready.system, [refund("t1", 0)], run="later")
        found = {
            (s.slot.label, s.slot.run == str(Run.objects.get(name="later").uuid)): s.slot.contract
            for s in gate_of(ready.system).slots
            if s.slot.task == "t1"
        }
        assert found == {("0", False): 1, ("1", False): 1, ("0", True): 2}

    def test_a_task_in_no_tier_is_a_section_that_waits(self, ready: Cast) -> None:
        other = create_system("Two tiers", by=ready.owner)
        alone = tasks_named(other, ["t1", "t2"])["t1"]
        thresholds_in_force(other, by=ready.owner, task=alone)
        ingest(other, [record("t1", 0), record("t2", 0)])
        computed = gate_of(other)
        assert [(s.tier, s.n_slots, s.state) for s in computed.gate.sections] == [
            ("payments", 1, GateState.WAITING),
            ("", 1, GateState.WAITING),
        ]

    def test_an_empty_tier_is_never_ready(self, ready: Cast) -> None:
        task = tasks_named(ready.system, ["elsewhere"])["elsewhere"]
        thresholds_in_force(ready.system, by=ready.owner, tier="drafting", task=task)
        computed = gate_of(ready.system)
        assert [(s.tier, s.state) for s in computed.gate.sections] == [
            ("payments", GateState.READY),
            ("drafting", GateState.WAITING),
        ]
        assert computed.gate.state is GateState.WAITING


class TestLeftOut:
    def test_a_run_left_out_counts_not_and_needs_a_second_owner(self, ready: Cast) -> None:
        release = _release(ready)
        declare_run(release, "bad", trials=1, task_ids=["t1"], by=ready.engineer, now=_now())
        ingest(ready.system, [refund("t1", 0, amount="400.0")], run="bad")
        assert gate_of(ready.system).gate.state is GateState.BLOCKED
        bad = Run.objects.get(name="bad")
        left = leave_out_run(bad, reason="Wrong build.", by=ready.owner, now=_now())
        alone = gate_of(ready.system)
        assert results(alone) == {**results(alone), "prohibited": "met", "declared": "not_met"}
        with pytest.raises(GateActError, match="another owner confirms it"):
            confirm_exclusion(bad, reason="Yes.", by=ready.owner, now=_now())
        second = person("second owner")
        set_member(ready.system, second, Role.OWNER)
        confirm_exclusion(bad, reason="I looked.", by=second, now=_now())
        confirmed = gate_of(ready.system)
        assert results(confirmed)["declared"] != "not_met"
        assert confirmed.gate.state is GateState.READY
        with pytest.raises(GateActError, match="confirmed it at"):
            confirm_exclusion(bad, reason="Again.", by=second, now=_now())
        with pytest.raises(GateActError, match="left out already"):
            leave_out_run(bad, reason="Again.", by=ready.owner, now=_now())
        take_run_in(bad, reason="It was right.", by=ready.owner, now=_now())
        assert gate_of(ready.system).gate.state is GateState.BLOCKED
        with pytest.raises(GateActError, match="nothing has to be taken in"):
            take_run_in(bad, reason="Again.", by=ready.owner, now=_now())
        assert RunExclusion.objects.get() == left

    def test_owners_alone_decide_what_counts_and_say_why(self, ready: Cast) -> None:
        run, release = Run.objects.get(), _release(ready)
        for user in (ready.engineer, ready.reviewer, ready.viewer, ready.outsider):
            with pytest.raises(GateActDeniedError, match="Only an owner"):
                leave_out_run(run, reason="x", by=user, now=_now())
            with pytest.raises(GateActDeniedError, match="Only an owner"):
                take_run_in(run, reason="x", by=user, now=_now())
            with pytest.raises(GateActDeniedError, match="Only an owner"):
                confirm_exclusion(run, reason="x", by=user, now=_now())
            with pytest.raises(GateActDeniedError, match="Only an owner"):
                reevaluate(release, reason="x", by=user, now=_now())
        with pytest.raises(GateActError, match="Say why"):
            leave_out_run(run, reason=" \u200b ", by=ready.owner, now=_now())
        with pytest.raises(GateActError, match="Say why"):
            reevaluate(release, reason="", by=ready.owner, now=_now())
        with pytest.raises(GateActError, match="not left out"):
            confirm_exclusion(run, reason="x", by=ready.owner, now=_now())
        assert RunExclusion.objects.count() == 0

    def test_a_release_whose_runs_have_not_begun_is_not_re_evaluated(self, cast: Cast) -> None:
        release = Release.objects.create(system=cast.system, name="1.0")
        with pytest.raises(GateActError, match="No run of this release counts yet"):
            reevaluate(release, reason="x", by=cast.owner, now=_now())


class TestKept:
    def test_a_gate_is_kept_until_something_changes(self, ready: Cast) -> None:
        release = _release(ready)
        assert is_outdated(release.pk)
        assert refresh_gate(release.pk, now=_now()) is Refreshed.DONE
        row = ReleaseGate.objects.get(release=release)
        computed = gate_of(ready.system)
        assert (row.state, row.digest, row.is_current, row.document) == (
            "ready",
            computed.digest,
            True,
            stored_document(computed),
        )
        assert refresh_gate(release.pk, now=_now()) is Refreshed.CURRENT
        ingest(ready.system, [refund("t1", 5, amount="400.0")])
        assert is_outdated(release.pk)
        compute_gate_by_hint(release.pk)
        row.refresh_from_db()
        assert (row.state, row.is_current) == ("blocked", True)

    def test_one_hint_is_sent_while_a_gate_is_out_of_date(
        self, ready: Cast, django_capture_on_commit_callbacks: Any
    ) -> None:
        release = _release(ready)
        refresh_gate(release.pk, now=_now())
        with django_capture_on_commit_callbacks() as callbacks:
            ingest(ready.system, [refund("t1", 5)])
            ingest(ready.system, [refund("t1", 6)])
        assert len(callbacks) == 1

    def test_of_two_workers_one_gives_way(self, ready: Cast) -> None:
        release = _release(ready)
        with psycopg.connect(_dsn(), autocommit=True) as other:
            other.execute(
                "SELECT pg_advisory_lock(hashtextextended(%s, %s))", ["evalsite.gate", release.pk]
            )
            assert refresh_gate(release.pk, now=_now()) is Refreshed.BUSY
            other.execute("SELECT pg_advisory_unlock_all()")
        assert refresh_gate(release.pk, now=_now()) is Refreshed.DONE

    def test_what_cannot_be_computed_is_tried_a_few_times_and_says_so(
        self, ready: Cast, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        release = _release(ready)
        with monkeypatch.context() as patch:
            patch.delattr(gates, "manifest_of")
            for _ in range(MOST_TRIES):
                assert refresh_gate(release.pk, now=_now()) is Refreshed.FAILED
        row = ReleaseGate.objects.get(release=release)
        assert (row.n_tries, row.state) == (MOST_TRIES, "")
        assert row.failure == (
            "It could not be computed (NameError). The log of the worker names the cause."
        )
        later = _now() + timedelta(minutes=5)
        assert stale_gates(now=later, older_than_seconds=15) == []
        ingest(ready.system, [refund("t1", 5)])
        assert stale_gates(now=later, older_than_seconds=15) == [release.pk]
        assert refresh_gate(release.pk, now=_now()) is Refreshed.DONE
        assert stale_gates(now=later, older_than_seconds=15) == []

    def test_releases_that_are_older_than_gates_get_theirs(self, ready: Cast) -> None:
        release = _release(ready)
        ReleaseGate.objects.all().delete()
        assert stale_gates(now=_now(), older_than_seconds=15) == [release.pk]
        assert ReleaseGate.objects.get().release_id == release.pk

    def test_a_gate_waits_while_evidence_arrives(self, ready: Cast) -> None:
        release, now = _release(ready), _now()
        assert seconds_to_wait(release.pk, now=now) == 0.0
        refresh_gate(release.pk, now=now)
        assert seconds_to_wait(release.pk, now=now) == 0.0
        upload = receive(ready.system, b"")
        UploadJob.objects.filter(upload=upload).update(state=UploadState.PROCESSING.value)
        assert seconds_to_wait(release.pk, now=now + timedelta(seconds=2)) == 3.0
        assert seconds_to_wait(release.pk, now=now + timedelta(seconds=6)) == 0.0

    def test_evidence_without_a_version_marks_no_gate(self, cast: Cast) -> None:
        ingest(cast.system, [record("t1", 0)], release=None)
        assert ReleaseGate.objects.count() == 0

    def test_a_prohibited_action_raises_one_alert(self, ready: Cast) -> None:
        release = _release(ready)
        ingest(ready.system, [refund("t1", 5, amount="400.0")])
        refresh_gate(release.pk, now=_now())
        ingest(ready.system, [refund("t2", 5)])
        refresh_gate(release.pk, now=_now())
        alert = GateAlert.objects.get()
        assert (alert.harm, alert.tier_name, alert.trial.label) == ("money", "payments", "5")
        with pytest.raises(GateActDeniedError, match="Only an owner"):
            note_alert_seen(alert, note="Known.", by=ready.engineer, now=_now())
        seen = note_alert_seen(alert, note="Known.", by=ready.owner, now=_now())
        assert note_alert_seen(alert, note="Twice.", by=ready.owner, now=_now()) == seen


def _approved(cast: Cast, release: Release) -> SignOff:
    computed = gates.compute_gate(release.pk, now=_now())
    manifest = EvidenceManifest.objects.create(digest=computed.digest, content=b"")
    return SignOff.objects.create(
        system=cast.system,
        release=release,
        manifest=manifest,
        revision=computed.revision,
        meaning=Meaning.APPROVED.value,
        by=cast.owner,
        printed_name="Owner",
        role="owner",
        signed_at=_now(),
        intended_use="Refunds.",
        scope="All.",
        expires_on=(_now() + timedelta(days=30)).date(),
        n_needed=1,
        key_id="k",
        envelope="{}",
    )


class TestBaseline:
    def test_it_is_the_last_signed_release_beside_this_one(self, ready: Cast) -> None:
        first = _release(ready)
        assert gate_of(ready.system).baseline is None
        signed = _approved(ready, first)
        ingest(ready.system, [refund("t1", 0)], release="2.0")
        second = _release(ready, "2.0")
        found = gate_of(ready.system, "2.0")
        assert found.baseline is not None
        assert found.manifest["baseline"] == {
            "release": "1.0",
            "uuid": str(first.uuid),
            "sign_off": str(signed.uuid),
            "digest": signed.manifest.digest,
        }
        # Its own approval was made without one, and later ones change nothing of that.
        _approved(ready, second)
        assert gate_of(ready.system, "1.0").baseline is None
        assert gate_of(ready.system, "1.0").digest == signed.manifest.digest
        SignOffVoid.objects.create(sign_off=signed, reason="x", by=ready.owner, voided_at=_now())
        assert gate_of(ready.system, "2.0").baseline is None

    def test_evidence_of_a_signed_release_marks_the_gates_compared_with_it(
        self, ready: Cast
    ) -> None:
        ingest(ready.system, [refund("t1", 0)], release="2.0")
        second = _release(ready, "2.0")
        refresh_gate(second.pk, now=_now())
        ingest(ready.system, [refund("t1", 5)])
        assert not is_outdated(second.pk)
        _approved(ready, _release(ready))
        ingest(ready.system, [refund("t1", 6)])
        assert is_outdated(second.pk)


class TestCases:
    def _gate(self, cast: Cast, file: str, release: str, **checks: Any) -> dict[str, str]:
        thresholds_in_force(cast.system, by=cast.owner, **checks)
        ingest(cast.system, (CASES / file).read_bytes(), release=None)
        return results(gate_of(cast.system, release))

    def test_a_rate_exactly_at_its_threshold_meets_it(self, cast: Cast) -> None:
        found = self._gate(
            cast,
            "threshold-rounding--exactly-at.jsonl",
            "1.4.0",
            outcome_rate={"limit": "0.95"},
        )
        assert found["outcome_rate"] == "met"

    def test_a_rate_below_its_threshold_does_not_round_up(self, cast: Cast) -> None:
        found = self._gate(
            cast, "threshold-rounding--rounds-up.jsonl", "1.4.0", outcome_rate={"limit": "0.95"}
        )
        assert found["outcome_rate"] == "not_met"

    def test_tasks_are_averaged_not_pooled(self, cast: Cast) -> None:
        found = self._gate(
            cast,
            "average-of-averages--uneven-groups.jsonl",
            "1.4.0",
            pass_hat_k={"limit": "0.5", "k": 1, "of": "outcome"},
        )
        assert found["pass_hat_k"] == "met"

    def test_a_task_with_too_few_trials_leaves_pass_hat_k_open(self, cast: Cast) -> None:
        found = self._gate(
            cast,
            "pass-k-small-n--uneven.jsonl",
            "1.4.0",
            pass_hat_k={"limit": "0.1", "k": 4, "of": "outcome"},
        )
        assert found["pass_hat_k"] == "cannot_tell"

    def test_a_release_counts_its_own_trials_alone(self, cast: Cast) -> None:
        found = self._gate(cast, "stale-or-mixed-results--two-versions.jsonl", "1.4.0")
        assert found["fewest_trials"] == "met"
        assert len(gate_of(cast.system, "1.4.0").slots) == 3

    def test_evidence_without_a_version_has_no_gate(self, cast: Cast) -> None:
        ingest(
            cast.system,
            (CASES / "stale-or-mixed-results--no-version.jsonl").read_bytes(),
            release=None,
        )
        assert Trial.objects.filter(system=cast.system).count() == 2
        assert ReleaseGate.objects.count() == 0


def _dsn() -> str:
    found = connection.get_connection_params()
    return psycopg.conninfo.make_conninfo(
        "", **{k: found[k] for k in ("dbname", "user", "password", "host", "port") if k in found}
    )
