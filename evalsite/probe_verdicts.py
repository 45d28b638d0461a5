"""Verdicts on probes, which come in by the same door as all others and are kept apart from them.

A probe is named by its blind name, the `external_id` and `task_id` of its record in the bundle. A
verdict on it never becomes a verdict on a trial and never waits for one; a trial record that bears
the name of a probe is refused, so that no probe enters a figure of the agent.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from evalsite.after_calibration import calibrations_and_decide
from reviews.models import Criterion, Probe, ProbeVerdict
from reviews.services.probes import IncomingProbeVerdict, store_probe_verdicts
from reviews.services.verdicts import StoredVerdict
from traces.core.records import Finding, GraderKind, ParsedVerdict, ParsedVerdicts
from traces.core.text_marks import clean_text, marked_text
from traces.models import System, Upload
from traces.services.packing import PackedItem, PackedTrial

IS_A_PROBE = Finding(
    code="is-a-probe",
    place="external_id",
    sentence="This record bears the name of a probe: a copy of a trial, changed to try judges with. "
    "It is no trial. Send what a judge says of it as verdicts alone, with the same external_id.",
)


@dataclass(frozen=True, slots=True)
class NamedProbe:
    """A probe that a record names, with the criterion that judges are tried on with it."""

    pk: int
    criterion: str
    rubric_version: str


@dataclass(frozen=True, slots=True)
class ProbeRecord:
    """What became of a verdict record that names a probe."""

    stored: tuple[StoredVerdict, ...]
    refusals: tuple[Finding, ...]  # verdicts that a probe takes none of


Named = dict[int, NamedProbe]
"""Probes by the identity of the items that name them."""


def named_probes(system: System, items: Sequence[PackedItem]) -> Named:
    """The items that name a probe of the system. One query, and none where no name could be one."""
    names = {id(item): borne for item in items if (borne := _names_of(item))}
    if not names:
        return {}
    found = {
        identity: NamedProbe(pk, criterion, version)
        for identity, pk, criterion, version in Probe.objects.filter(
            batch__system=system, uuid__in={name for each in names.values() for name in each}
        ).values_list("uuid", "pk", "batch__criterion__name", "batch__rubric_version")
    }
    return {item: found[name] for item, each in names.items() for name in each if name in found}


def _names_of(item: PackedItem) -> tuple[uuid.UUID, ...]:
    """The blind names that a record may bear. Verdicts name what they are of as for trials."""
    match item.content:
        case PackedTrial(trial=trial):
            texts = (trial.external_id, trial.key.task_id)
        case ParsedVerdicts(key=key, external_id=external_id):
            texts = (external_id or (key.task_id if key else ""), "")
        case _:
            return ()
    return tuple(name for text in texts if (name := _name(text)))


def _name(text: str) -> uuid.UUID | None:
    if len(text) not in (32, 36):
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        return None


def take_probe_verdicts(
    upload: Upload, items: Sequence[PackedItem], named: Named, *, now: datetime
) -> dict[int, ProbeRecord]:
    """Store the verdicts of the records that name probes. What came of each, by its item."""
    incoming: list[IncomingProbeVerdict] = []
    owners: list[int] = []
    refused: dict[int, list[Finding]] = {}
    for item in items:
        if not isinstance(item.content, ParsedVerdicts):
            continue
        probe = named[id(item)]
        for verdict in item.content.verdicts:
            if refusal := _refusal(verdict, probe):
                refused.setdefault(id(item), []).append(refusal)
                continue
            owners.append(id(item))
            incoming.append(
                IncomingProbeVerdict(
                    probe.pk, verdict, upload_pk=upload.pk, line=item.source.number
                )
            )
    stored: dict[int, list[StoredVerdict]] = {}
    results = store_probe_verdicts(upload.system, incoming, now=now)
    for owner, result in zip(owners, results, strict=True):
        stored.setdefault(owner, []).append(result)
    return {
        id(item): ProbeRecord(tuple(stored.get(id(item), ())), tuple(refused.get(id(item), ())))
        for item in items
    }


def _refusal(verdict: ParsedVerdict, probe: NamedProbe) -> Finding | None:
    """Why a probe does not take a verdict: only judges are tried, on the batch's criterion."""
    if verdict.kind is not GraderKind.MODEL:
        sentence = "Probes are for judges: only verdicts of kind model are taken on one."
        return Finding("probe-not-a-judge", "verdicts", sentence)
    if verdict.criterion != probe.criterion:
        sentence = (
            f"This probe tries judges on {marked_text(probe.criterion)!r}, not on "
            f"{marked_text(verdict.criterion)!r}."
        )
        return Finding("probe-other-criterion", "verdicts", clean_text(sentence))
    answered = verdict.extra.get("rubric_version")
    if isinstance(answered, bool) or not isinstance(answered, str | int | float | Decimal):
        return None
    if probe.rubric_version and str(answered) not in ("", probe.rubric_version):
        sentence = (
            f"This probe tries judges on version {marked_text(probe.rubric_version)} of the rubric,"
            f" not on version {marked_text(str(answered))[:200]}."
        )
        return Finding("probe-other-rubric", "verdicts", clean_text(sentence))
    return None


def follow_probe_verdicts(upload: Upload, *, now: datetime) -> None:
    """Read the calibrations that the verdicts of an upload on probes may change.

    After the upload's own transactions, since it takes the locks of all releases. Safe to call
    again: what an earlier try of the job stored counts too.
    """
    probed = ProbeVerdict.objects.filter(upload=upload).values_list(
        "probe__batch__criterion", "probe__batch__criterion_digest"
    )
    follow_criteria(upload.system, set(probed.distinct()), now=now)


def follow_criteria(
    system: System, criteria: Iterable[tuple[int, uuid.UUID | None]], *, now: datetime
) -> None:
    """Read the calibrations on criteria, by the ids of their rows and their digests, anew."""
    for pk, digest in sorted(criteria, key=str):
        calibrations_and_decide(system, Criterion.objects.get(pk=pk), digest, now=now)
