"""The gate of a release: its page, its report for paper, and the evidence behind each check."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from django.contrib import messages
from django.db import transaction
from django.http import Http404, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.cache import patch_vary_headers
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.hints import hint_gates
from evalsite.signing import SigningView
from evalsite.web.gate_check import check_page
from evalsite.web.gate_found import (
    GATE,
    GateFound,
    gate_found,
    gate_head,
    gate_view,
    signing_of,
)
from evalsite.web.gate_other import other_gate
from evalsite.web.gate_rows import gate_sections
from evalsite.web.gate_runs import gate_runs, runs_words
from evalsite.web.gate_since import gate_since
from evalsite.web.gate_words import open_check_badges, results_words, rules_words
from evalsite.web.gate_work import NOTHING, gate_todo, waiting_work
from evalsite.web.sign_words import signature_row, signing_part
from reviews.core.gate.documents import gate_document
from reviews.selectors.gate_basis import GateSubject, gate_subject
from reviews.selectors.gate_changes import ChangedValues, changed_values
from reviews.services.gate_rows import touch_gates
from traces.core.text_marks import clean_text
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.pages.gates import GatePage, GateReportPage, GateWork, SigningPart
from traces.web.shell import system_shell

NOT_COMPUTED = "The gate of this release was not computed yet."


@require_GET
@in_system(Act.READ)
def gate_page(request: SystemRequest, release: UUID) -> HttpResponse:
    """The gate of a release: what is asked, what was found, what is left to do, and the sign-off."""
    found = gate_found(request, release)
    now = timezone.now()
    signing = signing_of(request, found, now=now)
    subject = gate_subject(found.release.pk)
    answer = render(
        request, "reviews/gate_detail.html", {"page": _page(request, found, signing, subject)}
    )
    patch_vary_headers(answer, ["HX-Request"])
    return answer


def refused_gate_page(request: SystemRequest, release: UUID, sentence: str) -> HttpResponse:
    """The gate with the sentence why something was not done, and what was typed for it."""
    found = gate_found(request, release)
    signing = signing_of(request, found, now=timezone.now())
    page = _page(request, found, signing, gate_subject(found.release.pk))
    refusal = pages.Notice(sentence, level="error")
    page = replace(
        page,
        notices=(refusal, *page.notices),
        refused_url=request.path,
        refused_reason=clean_text(request.POST.get("reason", "")),
    )
    return render(request, "reviews/gate_detail.html", {"page": page}, status=422)


def _page(
    request: SystemRequest, found: GateFound, signing: SigningView, subject: GateSubject
) -> GatePage:
    system = request.access.system
    at = Addresses.of(system.slug)
    gate = found.gate
    runs = gate_runs(request, subject)
    todo = gate_todo(found, waiting_work(system.pk, found.release.pk), runs, at) if gate else ()
    sections = gate_sections(gate, gate_view(request, found)) if gate else ()
    part = signing_part(request, found, signing)
    return GatePage(
        shell=system_shell(request.access, section="Releases"),
        head=gate_head(request, found, signing, tab=GATE),
        openings=tuple(
            (f"#{row}", badge) for row, badge in (open_check_badges(gate) if gate else ())
        ),
        rules=rules_words(gate, found.begun_at) if gate else (),
        work=_work(request, found),
        notices=_notices(found),
        digest=found.row.digest if found.row else "",
        computed_at=found.row.computed_at if found.row else None,
        sections=sections,
        todo=todo,
        todo_words=NOTHING if gate and not todo else "",
        signing=part,
        since=gate_since(request, found) if gate else None,
        runs=runs,
        runs_words=runs_words(subject, found.n_production),
        report_url=at.gate_report(found.release.uuid),
        json_url=reverse("gate-json", kwargs={"slug": system.slug, "release": found.release.uuid}),
        attestation=_attestation(part),
        other=other_gate(request, found) if gate else None,
        empty=None if gate and sections else _empty(found, at),
        figures=_figures(found, subject),
    )


def _attestation(part: SigningPart) -> pages.Link | None:
    newest = next(iter(part.signatures), None)
    return pages.Link("Attestation", newest.attestation_url) if newest else None


def _figures(found: GateFound, subject: GateSubject) -> str:
    sections = found.gate.sections if found.gate else ()
    return (
        f"{counted(len(subject.counting), 'run')}, "
        f"{counted(sum(each.n_slots for each in sections), 'trial')}, "
        f"{counted(sum(each.n_tasks for each in sections), 'task')}"
    )


def _work(request: SystemRequest, found: GateFound) -> GateWork | None:
    """Whether the gate that is shown is the one of the evidence as it is."""
    slug = request.access.system.slug
    here = Addresses.of(slug).gate(found.release.uuid)
    if found.release.is_unversioned or (found.is_current and not (found.row and found.row.failure)):
        is_poll = request.headers.get("HX-Request") == "true"
        return (
            GateWork("The gate was computed anew.", "success", "", show_url=here)
            if is_poll
            else None
        )
    kwargs = {"slug": slug, "release": found.release.uuid}
    may = request.access.may(Act.RECOMPUTE)
    refresh = reverse("gate-refresh", kwargs=kwargs) if may else ""
    if found.row is None:
        return GateWork(NOT_COMPUTED, "info", "", refresh)
    if found.row.failure:
        return GateWork(
            f"The gate could not be computed on the newest evidence. {found.row.failure}",
            "error",
            "",
            refresh,
        )
    shown = (
        f"What is shown is of {time_text(found.row.computed_at)}."
        if found.row.computed_at
        else "It is shown here as soon as it is there."
    )
    return GateWork(
        f"Evidence, thresholds or contracts changed; the gate is being computed anew. {shown}",
        "info",
        here,
        refresh,
    )


def _notices(found: GateFound) -> tuple[pages.Notice, ...]:
    notices = []
    if found.reevaluated is not None:
        made = found.reevaluated
        notices.append(
            pages.Notice(
                f"{made.by} re-evaluated this gate on {time_text(made.made_at)}: thresholds, tiers "
                f"and contracts of then count, not those of when its runs began. {made.reason}"
            )
        )
    return tuple(notices)


def _empty(found: GateFound, at: Addresses) -> pages.Empty:
    if found.release.is_unversioned:
        return pages.Empty(
            heading="No gate",
            sentence="This evidence names no release, so there is nothing that could go out. "
            "Upload it again with the release's name.",
            act=pages.Link("Releases", at.releases),
        )
    if found.gate is None:
        return pages.Empty(
            heading="Nothing to show yet",
            sentence="The gate is computed from thresholds and evidence in the background. "
            "Load this page again in a moment.",
        )
    return pages.Empty(
        heading="No run counts yet",
        sentence="A gate holds trials against thresholds. Declare a run of this release, or upload "
        "its trials; the thresholds that are in force when the first run begins are the ones that "
        "count.",
        act=pages.Link("Thresholds", at.thresholds),
    )


@require_POST
@in_system(Act.RECOMPUTE)
def gate_refresh(request: SystemRequest, release: UUID) -> HttpResponse:
    """Have the gate computed anew."""
    found = gate_found(request, release)
    if found.release.is_unversioned:
        raise Http404("This release has no gate.")
    if not found.is_current or (found.row and found.row.failure):
        with transaction.atomic():
            touch_gates([found.release.pk], now=timezone.now())
        hint_gates([found.release.pk])
        messages.success(request, "The gate is being computed anew.")
    else:
        messages.info(request, "The gate is of the newest evidence already.")
    return redirect(Addresses.of(request.access.system.slug).gate(release))


@require_GET
@in_system(Act.READ)
def gate_json(request: SystemRequest, release: UUID) -> HttpResponse:
    """The gate as it is kept, as a file."""
    found = gate_found(request, release)
    if found.gate is None or found.row is None:
        raise Http404(NOT_COMPUTED)
    answer = JsonResponse(
        {
            "release": found.release.name,
            "release_uuid": str(found.release.uuid),
            "computed_at": found.row.computed_at,
            "is_current": found.is_current,
            **(found.row.document or gate_document(found.gate)),
        }
    )
    answer["Content-Disposition"] = 'attachment; filename="gate.json"'
    return answer


@require_GET
@in_system(Act.READ)
def gate_check(request: SystemRequest, release: UUID, tier: UUID, kind: str) -> HttpResponse:
    """The trials that a check rests on."""
    found = gate_found(request, release)
    signing = signing_of(request, found, now=timezone.now())
    page = check_page(request, found, signing, tier=tier, kind=kind)
    if page is None:
        raise Http404("This gate has no such check.")
    return render(request, "reviews/gate_check.html", {"page": page})


@require_GET
@in_system(Act.READ)
def gate_report(request: SystemRequest, release: UUID) -> HttpResponse:
    """Everything of the gate and its signatures, made for paper."""
    found = gate_found(request, release)
    now = timezone.now()
    signing = signing_of(request, found, now=now)
    subject = gate_subject(found.release.pk)
    at = Addresses.of(request.access.system.slug)
    gate = found.gate
    changed = changed_values(found.release.pk)
    view = gate_view(request, found, n_details=10_000, n_trials=20)
    page = GateReportPage(
        shell=system_shell(request.access, section="Releases"),
        head=gate_head(request, found, signing, tab="Report"),
        system=request.access.system.name,
        rules=rules_words(gate, found.begun_at) if gate else (),
        facts=_report_facts(found, subject),
        notices=_report_notices(found),
        sections=gate_sections(gate, view) if gate else (),
        signatures=tuple(signature_row(request, found, line) for line in signing.signatures),
        runs=gate_runs(request, subject),
        other=other_gate(request, found) if gate else None,
        changed=_changed_words(changed),
        changes=_changed_facts(changed),
        printed_by=request.access.user.printed_name,
        printed_at=now,
        back_url=at.gate(release),
    )
    return render(request, "reviews/gate_report.html", {"page": page})


def _report_notices(found: GateFound) -> tuple[pages.Notice, ...]:
    stale = (
        ()
        if found.is_current
        else (
            pages.Notice(
                "Something changed since this gate was computed: it is being computed anew.",
                level="warning",
            ),
        )
    )
    return (*stale, *_notices(found))


def _report_facts(found: GateFound, subject: GateSubject) -> tuple[pages.Fact, ...]:
    row = found.row
    facts = [
        pages.Fact("Release", found.label),
        pages.Fact("Release id", str(found.release.uuid)),
        pages.Fact("Evidence", _figures(found, subject)),
        pages.Fact("First run began", time_text(found.begun_at)),
        pages.Fact("Digest of the evidence, SHA-256", row.digest if row and row.digest else "none"),
        pages.Fact("Computed", time_text(row.computed_at) if row else "not yet"),
        pages.Fact("Compared with", found.baseline_name or "no signed release"),
    ]
    if found.gate:
        facts.insert(3, pages.Fact("Checks", results_words(found.gate)))
    return tuple(facts)


def _changed_words(changed: ChangedValues) -> str:
    n = changed.total
    if not n:
        return "No value changed since it was first entered."
    return f"{counted(n, 'value')} changed since first entry."


def _changed_facts(changed: ChangedValues) -> tuple[pages.Fact, ...]:
    return (
        pages.Fact("Verdicts that people corrected", f"{changed.n_corrections:,}"),
        pages.Fact("Adjudications decided again", f"{changed.n_adjudications:,}"),
        pages.Fact("Evidence added to trials", f"{changed.n_additions:,}"),
        pages.Fact("Trials with an earlier attempt", f"{changed.n_attempts:,}"),
        pages.Fact("Runs left out", f"{changed.n_left_out:,}"),
    )
