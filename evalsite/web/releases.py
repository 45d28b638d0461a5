"""The releases of a system, each with its gate and its sign-off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.http import HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common.shell import Crumb
from evalsite.signing_views import GateNow, standing_of
from evalsite.web.gate_words import GATES, NOT_COMPUTED, SIGN_OFFS, mark_badges
from reviews.core.gate.states import GateState
from reviews.models import ReleaseGate, SignOff
from traces.selectors.releases import ReleaseRow, release_rows
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import number_in, pager_of
from traces.web.releases import detail_words, left_out_words
from traces.web.shell import system_shell

_NO_GATE = pages.Badge("no gate")
_NOT_SIGNED = pages.Badge("not signed")


@require_GET
@in_system()
def release_list(request: SystemRequest) -> HttpResponse:
    """The releases of a system, newest first."""
    system = request.access.system
    at = Addresses.of(system.slug)
    found = release_rows(
        system.pk, after=number_in(request, "after"), before=number_in(request, "before")
    )
    words = left_out_words(found.rows)
    standings = release_standings([row.pk for row in found.rows], now=timezone.now())
    page = pages.ReleaseListPage(
        shell=system_shell(request.access, section="Releases"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Releases")),
        rows=tuple(_row(row, at, standings[row.pk]) for row in found.rows),
        notices=(pages.Notice(f"{words}."),) if words else (),
        pager=pager_of(found, at.releases, {}),
        empty=None
        if found.rows
        else pages.Empty(
            heading="No release yet",
            sentence="A release is made when evidence names it. Upload trials of one.",
            act=pages.Link("Upload traces", at.new_upload),
        ),
    )
    return render(request, "traces/release_list.html", {"page": page})


@dataclass(frozen=True, slots=True)
class ReleaseStanding:
    """What a release's gate and its signatures come to, as badges."""

    gate: pages.Badge
    sign_off: pages.Badge
    marks: tuple[pages.Badge, ...] = ()


def release_standings(release_pks: Sequence[int], *, now: datetime) -> dict[int, ReleaseStanding]:
    """Gate and sign-off of each of some releases, in two queries."""
    gates = {
        row.pk: row
        for row in ReleaseGate.objects.filter(pk__in=release_pks).defer("document", "failure")
    }
    signed: dict[int, list[SignOff]] = {pk: [] for pk in release_pks}
    rows = (
        SignOff.objects.filter(release__in=release_pks)
        .select_related("by", "manifest", "void__by")
        .defer("manifest__content", "envelope")
        .order_by("pk")
    )
    for row in rows:
        signed[row.release_id].append(row)
    return {pk: _standing(gates.get(pk), signed[pk], now) for pk in release_pks}


def _standing(row: ReleaseGate | None, rows: list[SignOff], now: datetime) -> ReleaseStanding:
    if row is None:
        return ReleaseStanding(_NO_GATE, _NOT_SIGNED)
    gate = GATES[GateState(row.state)] if row.state else NOT_COMPUTED
    if not rows:
        return ReleaseStanding(gate, _NOT_SIGNED)
    known = GateNow(None, row.digest if row.is_current else None, row.revision)
    standing = standing_of(rows, known, now=now)
    return ReleaseStanding(gate, SIGN_OFFS[standing.state], mark_badges(standing.marks))


def _row(row: ReleaseRow, at: Addresses, standing: ReleaseStanding) -> pages.ReleaseRow:
    return pages.ReleaseRow(
        name=row.label,
        href=at.release(row.uuid),
        detail=detail_words(row),
        n_runs=row.n_runs,
        n_tasks=row.n_tasks,
        n_error=row.n_error,
        counts=pages.Counts(row.n_pass, row.n_graded, row.n_run),
        created_at=row.created_at,
        gate_url=at.gate(row.uuid),
        gate=standing.gate,
        sign_off=standing.sign_off,
        marks=standing.marks,
    )
