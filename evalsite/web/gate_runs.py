"""The runs of a release on its gate: which count, which were left out, and who may change that."""

from __future__ import annotations

from django.urls import reverse

from evalsite.access import Act, SystemRequest
from evalsite.common.formatting import counted
from reviews.permissions.gates import ONE_OWNER
from reviews.selectors.gate_basis import GateRun as StoredRun
from reviews.selectors.gate_basis import GateSubject
from traces.web.addresses import Addresses
from traces.web.pages import Link
from traces.web.pages.gates import GateRun


def gate_runs(request: SystemRequest, subject: GateSubject) -> tuple[GateRun, ...]:
    """The runs of a release in the order in which they began."""
    return tuple(_row(request, run) for run in subject.runs)


def runs_words(subject: GateSubject, n_production: int) -> str:
    """How many runs count, and what no gate counts."""
    n_left_out = sum(run.exclusion is not None for run in subject.runs)
    words = f"{counted(len(subject.counting), 'run')} counted"
    if n_left_out:
        words += f", {n_left_out:,} left out"
    if n_production:
        words += f"; {counted(n_production, 'production trace')} in no gate"
    return words


def _row(request: SystemRequest, run: StoredRun) -> GateRun:
    at = Addresses.of(request.access.system.slug)
    kwargs = {"slug": request.access.system.slug, "run": run.uuid}
    refusal = request.access.refusal(Act.OWN)
    left = run.exclusion
    row = GateRun(
        name=run.name,
        href=at.run(run.uuid),
        begun_at=run.begun_at,
        text=_text(run),
        state=_state(run),
        leave_out=Link("Leave out", at.leave_out(run.uuid))
        if left is None and not refusal and run.is_of_tests
        else None,
        why_not=refusal,
    )
    if left is None:
        return row
    why = refusal or (ONE_OWNER if left.by_uuid == request.access.user.uuid else "")
    return GateRun(
        name=row.name,
        href=row.href,
        begun_at=row.begun_at,
        text=row.text,
        state=row.state,
        why_not=refusal,
        left_out_by=left.by,
        left_out_at=left.left_out_at,
        reason=left.reason,
        confirmed_by=left.confirmed_by,
        confirmed_reason=left.confirmed_reason,
        confirm_url="" if why or left.confirmed_by else reverse("run-confirm", kwargs=kwargs),
        why_not_confirm="" if left.confirmed_by or refusal else why,
        take_in_url="" if refusal else reverse("run-take-in", kwargs=kwargs),
    )


def _text(run: StoredRun) -> str:
    if run.declared_trials is not None:
        return f"declared, {counted(run.declared_trials, 'trial')} a task"
    return f"not declared, {counted(run.n_test, 'trial')} came"


def _state(run: StoredRun) -> str:
    if run.exclusion is not None:
        return "left-out"
    return "counts" if run.is_of_tests else "production"
