"""A release with its gate as it is kept, and the head that its pages share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import Http404

from evalsite.access import SystemRequest
from evalsite.common.shell import Choice, Crumb
from evalsite.signing import SigningView, signing_view
from evalsite.web.gate_rows import GateView
from evalsite.web.gate_words import (
    GATES,
    NOT_COMPUTED,
    SIGN_OFFS,
    gate_sentence,
    gate_title,
    instant_of,
    mark_badges,
    release_label,
)
from reviews.core.gate.documents import parse_gate
from reviews.core.gate.model import Gate
from reviews.core.gate.states import Mark, SignOffState
from reviews.models import ReleaseGate
from traces.models import Release, Trial
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of
from traces.web.pages.gates import GateHead
from traces.web.rows import trial_label

NO_RELEASE = "There is no such release in this system."
GATE, EVIDENCE, SIGNATURES = "Gate", "Evidence", "Signatures"


@dataclass(frozen=True, slots=True)
class OtherFound:
    """The gate under other thresholds, tiers or contracts, as it is kept."""

    gate: Gate
    sentence: str
    is_later: bool


@dataclass(frozen=True, slots=True)
class Reevaluated:
    """The re-evaluation that a gate rests on."""

    by: str
    made_at: datetime | None
    reason: str


@dataclass(frozen=True, slots=True)
class GateFound:
    """A release with the gate that is kept of it; `gate` None: it was never computed."""

    release: Release
    row: ReleaseGate | None
    gate: Gate | None
    other: OtherFound | None
    begun_at: datetime | None  # its first counting run
    reevaluated: Reevaluated | None
    baseline: UUID | None  # the release that its regression check compares with
    baseline_name: str
    n_production: int

    @property
    def label(self) -> str:
        """The release's name."""
        return release_label(self.release.name)

    @property
    def is_current(self) -> bool:
        """Whether nothing was touched since it was computed."""
        return self.row is not None and self.row.is_current


def gate_found(request: SystemRequest, release: UUID) -> GateFound:
    """The release of that address with its gate, in one query. Raises `Http404` without it."""
    found = (
        Release.objects.select_related("gate")
        .filter(system=request.access.system, uuid=release)
        .first()
    )
    if found is None:
        raise Http404(NO_RELEASE)
    return gate_of(found)


def gate_of(release: Release) -> GateFound:
    """A release that was read with its gate."""
    row: ReleaseGate | None = getattr(release, "gate", None)
    document = row.document if row is not None and isinstance(row.document, dict) else None
    basis = _part(document, "basis")
    baseline = _part(basis, "baseline")
    return GateFound(
        release=release,
        row=row,
        gate=parse_gate(document) if document is not None else None,
        other=_other(_part(document, "other")),
        begun_at=instant_of(_text(basis, "first_run_begun_at")),
        reevaluated=_reevaluated(_part(basis, "reevaluation")),
        baseline=uuid_of(_text(baseline, "release_uuid") or _text(baseline, "uuid")),
        baseline_name=_text(baseline, "release"),
        n_production=_count(basis, "n_production"),
    )


def _part(document: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    found = document.get(name) if document else None
    return found if isinstance(found, dict) else None


def _text(document: dict[str, Any] | None, name: str) -> str:
    found = document.get(name) if document else None
    return found if isinstance(found, str) else ""


def _count(document: dict[str, Any] | None, name: str) -> int:
    found = document.get(name) if document else None
    return found if isinstance(found, int) else 0


def _other(document: dict[str, Any] | None) -> OtherFound | None:
    if document is None:
        return None
    return OtherFound(
        gate=parse_gate(document.get("gate")),
        sentence=_text(document, "sentence"),
        is_later=document.get("is_later") is True,
    )


def _reevaluated(document: dict[str, Any] | None) -> Reevaluated | None:
    if document is None:
        return None
    return Reevaluated(
        by=_text(document, "by"),
        made_at=instant_of(_text(document, "made_at")),
        reason=_text(document, "reason"),
    )


def signing_of(request: SystemRequest, found: GateFound, *, now: datetime) -> SigningView:
    """The signatures on the release, and what the person may do about them."""
    return signing_view(found.release, request.access.user, now=now)


def gate_head(
    request: SystemRequest, found: GateFound, signing: SigningView, *, tab: str
) -> GateHead:
    """The head of a page of the release's gate."""
    system = request.access.system
    at = Addresses.of(system.slug)
    gate = found.gate
    last = Crumb(found.label) if tab == GATE else Crumb(found.label, at.gate(found.release.uuid))
    return GateHead(
        crumbs=(
            Crumb(system.name, at.tasks),
            Crumb("Releases", at.releases),
            last,
            *(() if tab == GATE else (Crumb(tab),)),
        ),
        release=found.label,
        title=_title(found, signing),
        sentence=gate_sentence(found.label, gate) if gate else "",
        tabs=release_tabs(at, found.release.uuid, current=tab),
        state=GATES[gate.state] if gate else NOT_COMPUTED,
        sign_off=SIGN_OFFS[signing.state],
        marks=mark_badges(signing.marks),
    )


_SAID = {
    SignOffState.APPROVED: "approved",
    SignOffState.WAIVER: "approved with a waiver",
    SignOffState.REJECTED: "rejected",
}


def _title(found: GateFound, signing: SigningView) -> str:
    title = gate_title(found.label, found.gate)
    said = _SAID.get(signing.state)
    if said is None or signing.marks:
        return title
    return f"{title}, and {said}"


def release_tabs(at: Addresses, release: UUID, *, current: str) -> tuple[Choice, ...]:
    """The views of a release."""
    places = (
        (GATE, at.gate(release), "Thresholds held against the evidence, and the sign-off."),
        (EVIDENCE, at.release(release), "Its runs, its version record, and how it compares."),
        (SIGNATURES, at.signatures(release), "Every signature on it, void ones too."),
    )
    return tuple(
        Choice(label, href, is_current=label == current, help=words)
        for label, href, words in places
    )


def gate_view(
    request: SystemRequest, found: GateFound, *, n_details: int = 12, n_trials: int = 8
) -> GateView:
    """What the rows of the gate need, in one query."""
    gate = found.gate
    first = (
        trial
        for section in (gate.sections if gate else ())
        for check in section.checks
        for trial in check.trials[:n_trials]
    )
    return GateView(
        at=Addresses.of(request.access.system.slug),
        release=found.release.uuid,
        begun_at=found.begun_at,
        trial_names=trial_names(request.access.system.pk, first),
        n_details=n_details,
        n_trials=n_trials,
    )


def trial_names(system_pk: int, uuids: Iterable[str]) -> dict[str, str]:
    """What links to trials say: "t-12, trial 3", in one query."""
    wanted = sorted({each for each in uuids if uuid_of(each)})
    rows = Trial.objects.filter(system=system_pk, uuid__in=wanted).values_list(
        "uuid", "task__task_id", "label", "attempt"
    )
    return {
        str(uuid): f"{task}, trial {trial_label(label, attempt)}"
        for uuid, task, label, attempt in rows
    }


def is_stale(signing: SigningView) -> bool:
    """Whether the signature is over other evidence."""
    return Mark.STALE in signing.marks
