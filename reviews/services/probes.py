"""Probes: copies of passing trials made for judges, and what judges say of them."""

from __future__ import annotations

import logging
import secrets
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from random import Random

from django.db import transaction
from django.db.models import Max

from evalsite.common import blobs
from evalsite.common.audit import AuditedObject, record
from evalsite.common.formatting import counted
from reviews.core.probe_copies import CannotCopyError, ProbeCopy, ProbeOriginal, copy_of
from reviews.core.probes import KIND_NAMES, ProbeKind, change_document
from reviews.models import Criterion, JudgeRun, Probe, ProbeBatch, ProbeVerdict
from reviews.permissions.flags import role_in
from reviews.permissions.probes import probe_refusal
from reviews.selectors.calibration_candidates import LabelCriterion, criteria_to_label
from reviews.selectors.probes import PassingTrial, passing_trials
from reviews.selectors.votes import given_verdicts
from reviews.services.verdicts import StoredVerdict, VerdictOutcome, grader_versions
from traces.core.records import Finding, ParsedVerdict, VerdictValue
from traces.core.text_marks import clean_text, count_marks
from traces.core.values import JsonObject
from traces.models import System, User
from traces.selectors.rules import rules_of
from traces.selectors.trial_evidence import TrialEvidenceRows, trial_evidence

log = logging.getLogger("evalsite.probes")

LONGEST_REASON = 4_000  # characters
MOST_TRIALS = 50  # of one batch
MOST_STEPS = 40_000  # of all its trials together

NO_CRITERION = "This system has no such criterion; it may have changed since."
NO_TRIAL = (
    "No trial passes on this criterion: completed ones that stand and pass, of tasks that are asked "
    "for it now and are not of split tuning."
)


class ProbeError(Exception):
    """A refusal, with its sentence for people."""


class ProbeDeniedError(ProbeError):
    """Somebody who may not do that."""


@dataclass(frozen=True, slots=True)
class BatchWish:
    """What somebody wants of a new batch. `n` trials are drawn where none are named."""

    criterion: str
    criterion_digest: uuid.UUID | None
    kinds: frozenset[ProbeKind]  # an unchanged copy is always made beside them
    reason: str
    n: int = 0
    trials: tuple[uuid.UUID, ...] = ()
    may_fall: bool = False  # the criterion asks for brevity: padded copies may fail it


@dataclass(frozen=True, slots=True)
class _Copied:
    """What became of one trial."""

    trial_pk: int
    evidence_order: int
    copies: tuple[ProbeCopy, ...]  # the unchanged one first
    not_made: tuple[tuple[ProbeKind, str], ...]


@transaction.atomic
def make_batch(
    system: System, wish: BatchWish, *, by: User, now: datetime, seed: int | None = None
) -> ProbeBatch:
    """Make copies of passing trials, each changed in one kind, in a drawn order.

    Without `seed` one is drawn; it is kept. A trial that a kind cannot be made of goes without, and its
    unchanged copy says why. Raises `ProbeDeniedError` for who is no engineer or reviewer, and
    `ProbeError` for a missing reason, no kind but the unchanged one, a criterion that nothing asks
    for, trials that do not pass or are too long together, and where no kind can be made of any.
    """
    if refusal := probe_refusal(role_in(system.pk, by)):
        raise ProbeDeniedError(refusal)
    reason = _reason(wish.reason)
    kinds = [kind for kind in ProbeKind if kind in wish.kinds or kind is ProbeKind.CONTROL]
    if len(kinds) == 1:
        raise ProbeError("Choose at least one kind of change; unchanged copies come by themselves.")
    criterion = _criterion(system, wish)
    drawn_seed = secrets.randbits(62) if seed is None else seed
    chosen = _chosen(system, wish, criterion, drawn_seed)
    copied = list(_copied(system, criterion, chosen, kinds, drawn_seed))
    if not any(len(each.copies) > 1 for each in copied):
        raise ProbeError(_nothing_made(copied))
    # The system's lock gives the number; copies take time and are made before.
    System.objects.select_for_update(no_key=True).get(pk=system.pk)
    batch = ProbeBatch.objects.create(
        system=system,
        number=1 + (ProbeBatch.objects.filter(system=system).aggregate(n=Max("number"))["n"] or 0),
        criterion=Criterion.objects.get_or_create(system=system, name=criterion.name)[0],
        criterion_digest=criterion.digest,
        rubric_version=criterion.rubric_version,
        question=criterion.question,
        may_fall=wish.may_fall,
        seed=drawn_seed,
        reason=reason,
        by=by,
        made_at=now,
    )
    probes = list(_probes(batch, copied))
    Random(drawn_seed).shuffle(probes)  # noqa: S311 - a draw that can be made again
    for position, probe in enumerate(probes, start=1):
        probe.position = position
    Probe.objects.bulk_create(probes, batch_size=50)
    record(
        "probes.made",
        system_pk=system.pk,
        by_pk=by.pk,
        at=now,
        obj=AuditedObject("probe_batch", str(batch.number), f"Batch {batch.number} of probes"),
        after={"criterion": criterion.name, "n_probes": len(probes), "seed": drawn_seed},
        reason=reason,
        rows=[("reviews_probebatch", batch.pk)],
    )
    log.info(
        "probes made",
        extra={"system": system.slug, "batch": batch.number, "probes": len(probes), "user": by.pk},
    )
    return batch


def _reason(text: str) -> str:
    cleaned = clean_text(text).replace("\r\n", "\n").strip()
    if count_marks(cleaned) >= len("".join(cleaned.split())):
        raise ProbeError("Say why these probes are made.")
    if len(cleaned) > LONGEST_REASON:
        raise ProbeError(f"A reason has at most {LONGEST_REASON:,} characters.")
    return cleaned


def _criterion(system: System, wish: BatchWish) -> LabelCriterion:
    for each in criteria_to_label(system.pk):
        if each.name == wish.criterion and each.digest == wish.criterion_digest:
            return each
    raise ProbeError(NO_CRITERION)


def _chosen(
    system: System, wish: BatchWish, criterion: LabelCriterion, seed: int
) -> list[PassingTrial]:
    wanted = tuple(dict.fromkeys(wish.trials))
    n_wanted = len(wanted) or wish.n
    if not 1 <= n_wanted <= MOST_TRIALS:
        raise ProbeError(f"A batch is of 1 to {MOST_TRIALS} trials.")
    found = passing_trials(system, criterion, trials=wanted or None)
    if wanted and (others := set(wanted) - {trial.uuid for trial in found}):
        raise ProbeError(_others_words(others))
    if not found:
        raise ProbeError(NO_TRIAL)
    if wanted:
        if sum(trial.n_messages for trial in found) > MOST_STEPS:
            raise ProbeError(f"A batch is of trials with at most {MOST_STEPS:,} steps together.")
        return list(found)
    return _drawn(list(found), wish.n, seed)


def _drawn(found: list[PassingTrial], n: int, seed: int) -> list[PassingTrial]:
    """`n` of them, fewer where they would be too long together."""
    Random(seed).shuffle(found)  # noqa: S311 - a draw that can be made again
    drawn: list[PassingTrial] = []
    n_steps = 0
    for trial in found:
        if len(drawn) < n and n_steps + trial.n_messages <= MOST_STEPS:
            drawn.append(trial)
            n_steps += trial.n_messages
    if not drawn:
        raise ProbeError(f"A batch is of trials with at most {MOST_STEPS:,} steps together.")
    return drawn


_SHOWN = 5


def _others_words(others: set[uuid.UUID]) -> str:
    named = ", ".join(sorted(map(str, others))[:_SHOWN])
    more = f" and {len(others) - _SHOWN:,} more" if len(others) > _SHOWN else ""
    return (
        f"{counted(len(others), 'trial')} of those you chose cannot be used, since probes are made "
        f"of trials that pass on this criterion: {named}{more}."
    )


def _copied(
    system: System,
    criterion: LabelCriterion,
    chosen: Sequence[PassingTrial],
    kinds: Sequence[ProbeKind],
    seed: int,
) -> Iterator[_Copied]:
    rules = rules_of(system)
    pks = [trial.pk for trial in chosen]
    cited = _cited(pks, criterion.name)
    for rows in trial_evidence(pks, rules.rejection):
        order = rows.evidence_order
        original = ProbeOriginal(
            rows.evidence(order), rules.kind_of, cited.get(rows.trial_pk, frozenset())
        )
        yield _copies(rows, original, kinds, (seed << 40) + rows.trial_pk)


def _copies(
    rows: TrialEvidenceRows, original: ProbeOriginal, kinds: Sequence[ProbeKind], seed: int
) -> _Copied:
    copies: list[ProbeCopy] = []
    not_made: list[tuple[ProbeKind, str]] = []
    for kind in kinds:
        try:
            copies.append(copy_of(original, kind, seed=seed))
        except CannotCopyError as error:
            not_made.append((kind, str(error)))
    return _Copied(rows.trial_pk, rows.evidence_order, tuple(copies), tuple(not_made))


def _cited(trial_pks: Sequence[int], criterion: str) -> dict[int, frozenset[int]]:
    """The steps that passing verdicts on the criterion name."""
    return {
        pk: frozenset(
            step
            for verdict in given
            if verdict.criterion == criterion and verdict.value is VerdictValue.PASS
            for step in verdict.cited_steps
        )
        for pk, given in given_verdicts(trial_pks).items()
    }


def _nothing_made(copied: Sequence[_Copied]) -> str:
    why = dict.fromkeys(reason for each in copied for reason in each.not_made)
    told = " ".join(f"{KIND_NAMES[kind].capitalize()}: {sentence}" for kind, sentence in why)
    return f"No changed copy can be made of these trials. {told}"


def _probes(batch: ProbeBatch, copied: Sequence[_Copied]) -> Iterator[Probe]:
    for each in copied:
        for copy in each.copies:
            change = change_document(copy.change, evidence_order=each.evidence_order)
            if copy.kind is ProbeKind.CONTROL and each.not_made:
                change["not_made"] = [
                    {"kind": kind.value, "sentence": sentence} for kind, sentence in each.not_made
                ]
            name = uuid.uuid4()
            yield Probe(
                uuid=name,
                batch=batch,
                trial_id=each.trial_pk,
                kind=copy.kind.value,
                record=blobs.pack(_named(copy.record, name)),
                change=change,
            )


def _named(record: JsonObject, name: uuid.UUID) -> JsonObject:
    """The record under the probe's blind name. It names no agent, run or release."""
    return {"external_id": str(name), "task_id": str(name), "trial": 1, **record}


# --- what judges say of them


@dataclass(frozen=True, slots=True)
class IncomingProbeVerdict:
    """A verdict on a probe, by the door that it came through."""

    probe_pk: int
    verdict: ParsedVerdict
    upload_pk: int | None = None
    line: int | None = None
    run: JudgeRun | None = None


def store_probe_verdicts(
    system: System, incoming: Sequence[IncomingProbeVerdict], *, now: datetime
) -> list[StoredVerdict]:
    """Store what is new. Other content under one identity is refused and the first stays.

    The caller holds the lock that keeps other writers of the system's verdicts away, and sees to
    the calibrations of the judges afterwards.
    """
    if not incoming:
        return []
    named = {(v.kind.value, v.grader, v.grader_version) for v in (one.verdict for one in incoming)}
    versions = grader_versions(system, named)
    known = {
        (probe, version, key): digest
        for probe, version, key, digest in ProbeVerdict.objects.filter(
            probe__in={one.probe_pk for one in incoming}
        ).values_list("probe_id", "grader_version_id", "key", "digest")
    }
    results: list[StoredVerdict] = []
    fresh: list[ProbeVerdict] = []
    for one in incoming:
        verdict = one.verdict
        version = versions[verdict.kind.value, verdict.grader, verdict.grader_version]
        identity = (one.probe_pk, version, verdict.key)
        digest = uuid.UUID(bytes=verdict.digest)
        if (earlier := known.get(identity)) is None:
            known[identity] = digest
            fresh.append(_row(one, version, digest, now))
            results.append(StoredVerdict(VerdictOutcome.NEW))
        elif earlier == digest:
            results.append(StoredVerdict(VerdictOutcome.DUPLICATE))
        else:
            results.append(StoredVerdict(VerdictOutcome.CONFLICT, _other_content(verdict)))
    ProbeVerdict.objects.bulk_create(fresh)
    return results


def _other_content(verdict: ParsedVerdict) -> Finding:
    judge = f"{verdict.grader} {verdict.grader_version}".strip()
    return Finding(
        code="verdict-conflict",
        place="verdicts",
        sentence=clean_text(
            f"{judge} has already given another verdict on this probe under the same identity; the "
            "first stays. Give the verdict an id of its own to add it."
        ),
    )


def _row(one: IncomingProbeVerdict, version: int, digest: uuid.UUID, now: datetime) -> ProbeVerdict:
    verdict = one.verdict
    extra = dict(verdict.extra)
    if verdict.cited_steps:
        extra.setdefault("evidence", [{"step": step} for step in verdict.cited_steps])
    return ProbeVerdict(
        probe_id=one.probe_pk,
        grader_version_id=version,
        value=verdict.value.value,
        raw_word=clean_text(verdict.raw_word),
        score=verdict.score,
        rationale=clean_text(verdict.rationale),
        extra=blobs.dumps(extra) if extra else "",
        key=verdict.key,
        digest=digest,
        upload_id=one.upload_pk,
        line=one.line,
        run=one.run,
        given_at=now,
    )
