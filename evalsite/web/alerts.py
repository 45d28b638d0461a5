"""Prohibited actions that block a release."""

from __future__ import annotations

from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb
from reviews.models import GateAlert
from reviews.selectors.alerts import alert_counts, listed_alerts
from reviews.services.gate_acts import GateActDeniedError, GateActError, note_alert_seen
from traces.core.text_marks import clean_text
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in, pager_of
from traces.web.pages.gates import AlertListPage, AlertRow
from traces.web.rows import trial_label
from traces.web.shell import system_shell

_ALL = "all"


@require_GET
@in_system(Act.READ)
def alert_list(request: SystemRequest) -> HttpResponse:
    """The alerts of a system: those that wait for an owner, or all of them."""
    return render(request, "reviews/alert_list.html", {"page": _page(request)})


def _page(request: SystemRequest, *, refused: UUID | None = None, why: str = "") -> AlertListPage:
    access = request.access
    at = Addresses.of(access.system.slug)
    is_open = request.GET.get("show") != _ALL
    found = listed_alerts(
        access.system.pk,
        is_open=is_open,
        after=number_in(request, "after"),
        before=number_in(request, "before"),
    )
    n_open, n_all = alert_counts(access.system.pk)
    values = {"show": "" if is_open else _ALL}
    return AlertListPage(
        shell=system_shell(access, section="Releases"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Releases", at.releases),
            Crumb("Alerts"),
        ),
        sentence="A trial that did something prohibited, where the thresholds of its tier do not "
        "allow it. It blocks the release, and every page says so until an owner has noted it.",
        views=(
            Choice("Not noted", at.alerts, is_current=is_open, count=n_open),
            Choice("All", address(at.alerts, {"show": _ALL}), is_current=not is_open, count=n_all),
        ),
        rows=tuple(
            _row(request, alert, at, error=why if alert.uuid == refused else "")
            for alert in found.rows
        ),
        why_not=access.refusal(Act.OWN),
        pager=pager_of(found, at.alerts, values),
        empty=None if found.rows else _empty(n_all, at),
    )


def _empty(n_all: int, at: Addresses) -> pages.Empty:
    if n_all:
        return pages.Empty(
            heading="No alert waits",
            sentence=f"{counted(n_all, 'alert')} of this system: an owner has noted all of them.",
            act=pages.Link("All alerts", address(at.alerts, {"show": _ALL})),
        )
    return pages.Empty(
        heading="No alert",
        sentence="No trial did anything that the thresholds of its tier do not allow.",
    )


def _row(request: SystemRequest, alert: GateAlert, at: Addresses, *, error: str) -> AlertRow:
    seen = getattr(alert, "seen", None)
    trial, release = alert.trial, alert.release
    kwargs = {"slug": request.access.system.slug, "alert": alert.uuid}
    may = request.access.may(Act.OWN) and seen is None
    return AlertRow(
        id=f"alert-{alert.pk}",
        harm=alert.harm,
        task=pages.Link(trial.task.task_id, at.task(trial.task.uuid)),
        trial=pages.Link(trial_label(trial.label, trial.attempt), at.trial(trial.uuid)),
        release=pages.Link(release.label, at.release(release.uuid)),
        gate_url=at.gate(release.uuid),
        tier=alert.tier_name,
        raised_at=alert.raised_at,
        seen_by=seen.by.printed_name if seen else "",
        seen_at=seen.seen_at if seen else None,
        note=seen.note if seen else "",
        seen_url=reverse("alert-seen", kwargs=kwargs) if may else "",
        error=error,
        typed=clean_text(request.POST.get("note", "")) if error else "",
    )


@require_POST
@in_system(Act.OWN)
def alert_seen(request: SystemRequest, alert: UUID) -> HttpResponse:
    """Note that an alert is known."""
    row = GateAlert.objects.filter(system=request.access.system, uuid=alert).first()
    if row is None:
        raise Http404("There is no such alert in this system.")
    try:
        note_alert_seen(
            row, note=request.POST.get("note", ""), by=request.access.user, now=timezone.now()
        )
    except GateActDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except GateActError as error:
        page = _page(request, refused=alert, why=str(error))
        return render(request, "reviews/alert_list.html", {"page": page}, status=422)
    messages.success(request, "Noted. The alert stays in the list, and at the gate.")
    return redirect(Addresses.of(request.access.system.slug).alerts)
