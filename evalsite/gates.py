"""Gates of releases, computed from stored evidence and kept beside them.

A kept gate is a projection: it is computed anew whenever something that it rests on changes, and at
any time gives the same again. What a signature covers is computed inside the signing transaction.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import F, Q, QuerySet

from evalsite.common.formatting import counted
from evalsite.common.locks import exclusive
from evalsite.grading import grade_under
from reviews.core.gate.deciding import decide_gate
from reviews.core.gate.documents import gate_document
from reviews.core.gate.manifest import manifest_digest, manifest_of
from reviews.core.gate.model import GATE_VERSION, Gate
from reviews.models import ReleaseGate, SignOff
from reviews.selectors.gate_baseline import SignedRelease, approved_releases, baseline_of
from reviews.selectors.gate_basis import (
    GateBasis,
    GateSubject,
    Reevaluation,
    basis_at,
    basis_at_start,
    gate_subject,
    iso,
)
from reviews.selectors.gate_evidence import (
    Collected,
    DecidedSlot,
    SlotDecider,
    collected,
    ungraded,
)
from reviews.selectors.gate_sections import BaselineEvidence, tier_evidence
from reviews.selectors.manifest_rows import baseline_document, calibrations_read, manifest_parts
from reviews.services.gate_alerts import raise_alerts
from reviews.services.gate_rows import touch_gates
from reviews.services.sign_offs import keep_manifest
from traces.core.values import JsonObject
from traces.models import Release, System, Trial, Upload, UploadState
from traces.selectors.contracts import contracts_named
from traces.services.trials import ingest_locks

log = logging.getLogger("evalsite.gates")

EVERY_SECONDS = 5.0
"""While evidence of a system arrives, its gates are computed this often and no oftener."""

MOST_TRIES = 5
MOST_SWEPT = 200


@dataclass(frozen=True, slots=True)
class OtherGate:
    """The gate under other thresholds, tiers or contracts than those that count.

    `is_later` True: as it would be if an owner re-evaluated it now. False: an owner did, and this
    is what it was when its runs began. `sentence` names what differs.
    """

    gate: Gate
    sentence: str
    is_later: bool


@dataclass(frozen=True, slots=True)
class ComputedGate:
    """A gate with what it rests on. `digest` is the SHA-256 of the canonical manifest, in hex."""

    gate: Gate
    other: OtherGate | None
    manifest: JsonObject
    digest: str
    revision: int  # of the release's gate row when it was computed; 0: it has none yet
    subject: GateSubject
    basis: GateBasis
    baseline: SignedRelease | None
    slots: tuple[DecidedSlot, ...]
    n_production: int  # traces that no gate counts


def compute_gate(release_pk: int, *, now: datetime) -> ComputedGate:
    """The gate of a release on the evidence as it is.

    Outside a transaction it reads one state of the database. Inside one it reads what that one
    sees: whoever signs holds `ingest_locks` of the system and the release. Check verdicts are added
    where a contract version that the gate applies is not the one that pages decide by.
    """
    _grade(release_pk, now=now)
    with _one_view():
        return _Computing(release_pk, now).computed()


@contextmanager
def _one_view() -> Iterator[None]:
    """One state of the database for all queries, where no transaction gives one."""
    if connection.in_atomic_block:
        yield
        return
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _grade(release_pk: int, *, now: datetime) -> None:
    """Add the check verdicts that a gate and its baseline lack under the versions they apply."""
    subject = gate_subject(release_pk)
    signed = baseline_of(subject, approved_releases(subject.system_pk))
    subjects = [subject, *([gate_subject(signed.release_pk)] if signed else [])]
    for each in subjects:
        brought = collected(each)
        bases = _bases(each, brought.tasks, now)
        for contract_of in {id(b): b.contract_of for b in bases if b is not None}.values():
            _grade_under(brought, contract_of, now=now)


def _grade_under(
    brought: Collected, contract_of: Mapping[tuple[int, int], int], *, now: datetime
) -> None:
    wanted: dict[int, list[int]] = {}
    for trial in brought.trials:
        version = contract_of.get((trial.run_pk, trial.task_pk))
        if version is not None and version != brought.tasks[trial.task_pk].contract_pk:
            wanted.setdefault(version, []).append(trial.pk)
    lacking = ungraded(wanted)
    if not lacking:
        return
    versions = {pk: each for pk, each in contracts_named(lacking).items() if each.is_readable}
    if not versions:
        return
    system = System.objects.get(pk=brought.subject.system_pk)
    with transaction.atomic():
        ingest_locks(system, ())  # under which alone names of graders are made
        tasks: set[int] = set()
        for pk, each in versions.items():
            if grade_under(lacking[pk], {each.task_pk: each}, now=now).n_verdicts:
                tasks.add(each.task_pk)
        # How these trials began may show that trials of other releases began otherwise.
        others = (
            Trial.objects.filter(task__in=tasks)
            .exclude(release=brought.subject.pk)
            .values_list("release", flat=True)
            .distinct()
        )
        if tasks:
            touch_gates(others, now=now)


def _bases(
    subject: GateSubject, tasks: Iterable[int], now: datetime
) -> tuple[GateBasis, GateBasis | None]:
    """What counts, and beside it what an owner's re-evaluation would change or did change."""
    wanted = sorted(set(tasks))
    at_start = basis_at_start(subject, wanted)
    if subject.begun_at is None:
        return at_start, None
    if subject.reevaluation is None:
        later = basis_at(subject, wanted, now)
        return at_start, later if _differs(at_start, later) else None
    counting = basis_at(subject, wanted, subject.reevaluation.made_at)
    return counting, at_start if _differs(at_start, counting) else None


def _differs(one: GateBasis, two: GateBasis) -> bool:
    return (one.tiers, one.tier_of, one.contract_of) != (two.tiers, two.tier_of, two.contract_of)


class _Computing:
    """One gate, worked out once."""

    def __init__(self, release_pk: int, now: datetime) -> None:
        self.revision = (
            ReleaseGate.objects.filter(pk=release_pk).values_list("revision", flat=True).first()
            or 0
        )
        self.subject = gate_subject(release_pk)
        self.brought = collected(self.subject)
        self.signed = baseline_of(self.subject, approved_releases(self.subject.system_pk))
        self.baseline = _baseline(self.signed, now) if self.signed else None
        tasks = set(self.brought.tasks)
        if self.baseline is not None:
            tasks |= {each.task_pk for each in self.baseline.slots}
        self.basis, self.other_basis = _bases(self.subject, tasks, now)
        self._decided: list[tuple[Mapping[tuple[int, int], int], tuple[DecidedSlot, ...]]] = []

    def computed(self) -> ComputedGate:
        gate = self._gate(self.basis)
        slots = self._slots(self.basis)
        manifest = manifest_of(manifest_parts(self.brought, self.basis, slots, self.signed), gate)
        return ComputedGate(
            gate=gate,
            other=self._other(),
            manifest=manifest,
            digest=manifest_digest(manifest),
            revision=self.revision,
            subject=self.subject,
            basis=self.basis,
            baseline=self.signed,
            slots=slots,
            n_production=self.brought.n_production,
        )

    def _other(self) -> OtherGate | None:
        if self.other_basis is None:
            return None
        is_later = self.subject.reevaluation is None
        return OtherGate(
            gate=self._gate(self.other_basis),
            sentence=_other_sentence(self.basis, self.other_basis, is_later=is_later),
            is_later=is_later,
        )

    def _gate(self, basis: GateBasis) -> Gate:
        slots = self._slots(basis)
        keys = frozenset().union(*(each.judges for each in slots))
        read = calibrations_read(self.subject.system_pk, keys)
        evidence = tier_evidence(self.brought, basis, slots, read, self.baseline)
        return decide_gate(self.subject.name, evidence)

    def _slots(self, basis: GateBasis) -> tuple[DecidedSlot, ...]:
        for contract_of, slots in self._decided:
            if contract_of == basis.contract_of:
                return slots
        slots = SlotDecider(self.brought, basis.contract_of).slots()
        self._decided.append((basis.contract_of, slots))
        return slots


def _baseline(signed: SignedRelease, now: datetime) -> BaselineEvidence:
    subject = gate_subject(signed.release_pk)
    brought = collected(subject)
    basis, _ = _bases(subject, brought.tasks, now)
    return BaselineEvidence(signed, SlotDecider(brought, basis.contract_of).slots())


def _other_sentence(basis: GateBasis, other: GateBasis, *, is_later: bool) -> str:
    """What the other result applies that the counting one does not."""
    counting = {tier.uuid: tier for tier in basis.tiers}
    others = {tier.uuid: tier for tier in other.tiers}
    parts = [
        f"thresholds version {tier.thresholds.number} of tier {tier.name}"
        for uuid, tier in others.items()
        if uuid not in counting or counting[uuid].thresholds != tier.thresholds
    ]
    parts += [
        f"no thresholds of tier {tier.name}"
        for uuid, tier in counting.items()
        if uuid not in others
    ]
    n_tiers = sum(other.tier_of.get(task) != tier for task, tier in basis.tier_of.items())
    changed = {
        task
        for run, task in {*basis.contract_of, *other.contract_of}
        if basis.contract_of.get((run, task)) != other.contract_of.get((run, task))
    }
    if n_tiers:
        parts.append(
            f"{'another tier' if n_tiers == 1 else 'other tiers'} for {counted(n_tiers, 'task')}"
        )
    if changed:
        parts.append(f"other contract versions for {counted(len(changed), 'task')}")
    listed = ", ".join(parts[:-1]) + (" and " if len(parts) > 1 else "") + "".join(parts[-1:])
    if is_later:
        return f"Re-evaluated now, it would apply {listed}."
    return f"When its runs began, these were in force: {listed}."


# --- what is kept


def stored_document(computed: ComputedGate) -> JsonObject:
    """What is kept of a gate: `gate_document` with the other result and what both apply beside it."""
    return {
        **gate_document(computed.gate),
        "digest": computed.digest,
        "other": None if computed.other is None else _other_document(computed.other),
        "basis": _basis_document(computed),
    }


def _other_document(other: OtherGate) -> JsonObject:
    return {
        "is_later": other.is_later,
        "sentence": other.sentence,
        "gate": gate_document(other.gate),
    }


def _basis_document(computed: ComputedGate) -> JsonObject:
    subject, baseline = computed.subject, computed.baseline
    made = subject.reevaluation
    return {
        "first_run_begun_at": iso(subject.begun_at) if subject.begun_at else None,
        "instant": iso(computed.basis.instant) if computed.basis.instant else None,
        "reevaluation": None if made is None else _reevaluation_document(made),
        "baseline": None if baseline is None else baseline_document(baseline),
        "n_production": computed.n_production,
    }


def _reevaluation_document(made: Reevaluation) -> JsonObject:
    return {
        "uuid": str(made.uuid),
        "number": made.number,
        "made_at": iso(made.made_at),
        "by": made.by,
        "reason": made.reason,
    }


class Refreshed(StrEnum):
    """What became of an attempt to bring a kept gate up to date."""

    DONE = "done"
    CURRENT = "current"  # nothing to do
    BUSY = "busy"  # another worker is at it, and looks again when it is done
    FAILED = "failed"


def refresh_gate(release_pk: int, *, now: datetime) -> Refreshed:
    """Compute the gate of a release where it is out of date, keep it, and raise alerts.

    Safe to call again at any time, and at once from two workers. What fails is noted in the row;
    a database that goes away is raised.
    """
    with exclusive("evalsite.gate", release_pk) as is_mine:
        if not is_mine:
            return Refreshed.BUSY
        row = ReleaseGate.objects.filter(pk=release_pk).first()
        if row is None or (row.is_current and row.version == GATE_VERSION):
            return Refreshed.CURRENT
        ReleaseGate.objects.filter(pk=release_pk).update(n_tries=F("n_tries") + 1)
        try:
            _keep(compute_gate(release_pk, now=now), now)
        except (OperationalError, InterfaceError):
            raise
        except Exception as error:
            log.exception("gate not computed", extra={"release": release_pk})
            ReleaseGate.objects.filter(pk=release_pk).update(
                failure=f"It could not be computed ({type(error).__name__}). "
                "The log of the worker names the cause."
            )
            return Refreshed.FAILED
        return Refreshed.DONE


@transaction.atomic
def _keep(computed: ComputedGate, now: datetime) -> None:
    release_pk = computed.subject.pk
    n_kept = ReleaseGate.objects.filter(
        pk=release_pk, computed_revision__lte=computed.revision
    ).update(
        computed_revision=computed.revision,
        computed_at=now,
        state=computed.gate.state.value,
        sentence=computed.gate.sentence,
        digest=computed.digest,
        document=stored_document(computed),
        version=GATE_VERSION,
        n_tries=0,
        failure="",
    )
    if SignOff.objects.filter(release=release_pk).exists():
        # So that pages of a stale signature say what changed.
        keep_manifest(computed.manifest, computed.digest)
    n_alerts = raise_alerts(
        computed.subject, computed.basis, computed.gate, computed.slots, now=now
    )
    log.info(
        "gate computed",
        extra={
            "release": release_pk,
            "state": computed.gate.state.value,
            "kept": bool(n_kept),
            "alerts": n_alerts,
        },
    )


def seconds_to_wait(release_pk: int, *, now: datetime) -> float:
    """How long to leave a gate alone that was computed a moment ago while evidence arrives."""
    computed_at = (
        ReleaseGate.objects.filter(pk=release_pk).values_list("computed_at", flat=True).first()
    )
    if computed_at is None:
        return 0.0
    left = EVERY_SECONDS - (now - computed_at).total_seconds()
    if left <= 0:
        return 0.0
    arriving = Upload.objects.filter(
        system__releases=release_pk, job__state=UploadState.PROCESSING.value
    )
    return left if arriving.exists() else 0.0


def is_outdated(release_pk: int) -> bool:
    """Whether a gate has to be computed anew."""
    return _outdated().filter(pk=release_pk).exists()


def _outdated() -> QuerySet[ReleaseGate]:
    return ReleaseGate.objects.filter(
        ~Q(revision=F("computed_revision")) | ~Q(version=GATE_VERSION), n_tries__lt=MOST_TRIES
    )


def stale_gates(*, now: datetime, older_than_seconds: float) -> list[int]:
    """Releases whose gate is out of date for a while: a hint was lost, or a worker died.

    Releases whose evidence is older than gates get theirs here.
    """
    limit = now - timedelta(seconds=older_than_seconds)
    without = (
        Release.objects.filter(gate=None, is_unversioned=False, runs__isnull=False)
        .order_by("pk")
        .distinct()
    )
    new = list(without.values_list("pk", flat=True)[:MOST_SWEPT])
    if new:
        with transaction.atomic():
            touch_gates(new, now=now)
    stale = _outdated().filter(touched_at__lt=limit).order_by("touched_at", "pk")
    return sorted({*new, *stale.values_list("pk", flat=True)[:MOST_SWEPT]})
