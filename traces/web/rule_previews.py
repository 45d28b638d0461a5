"""What a change of rules would do to the stored paths, and proposing it."""

from __future__ import annotations

from uuid import UUID

from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb
from traces.core.rule_changes import RuleChange
from traces.core.rule_effects import RulesEffect, parse_effect
from traces.models import RulesPreview, WorkState
from traces.permissions.rules import proposal_refusal
from traces.selectors.rules import newest_approved, rules_in
from traces.services.rules import RulesError, propose_rules
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.polling import polled
from traces.web.preview_work import preview_work
from traces.web.rule_forms import ProposeForm, rule_text
from traces.web.rule_rows import (
    SHOWN_CHANGES,
    change_lines,
    change_of,
    effect_headline,
    effect_view,
)
from traces.web.shell import system_shell


@require_GET
@in_system()
def rules_preview(request: SystemRequest, preview: UUID) -> HttpResponse:
    """What a change would do to the stored paths."""
    return _answer(request, _stored(request, preview), ProposeForm())


@require_POST
@in_system(Act.CONTRIBUTE)
def rules_propose(request: SystemRequest, preview: UUID) -> HttpResponse:
    """Propose the previewed change as a version."""
    stored = _stored(request, preview)
    form = ProposeForm(request.POST)
    if not form.is_valid():
        return _answer(request, stored, form)
    try:
        version = propose_rules(
            stored, reason=form.cleaned_data["reason"], by=request.access.user, now=timezone.now()
        )
    except RulesError as error:
        return _answer(request, stored, form, error=str(error))
    return redirect("rules-version", slug=request.access.system.slug, number=version.number)


def _stored(request: SystemRequest, identity: UUID) -> RulesPreview:
    previews = RulesPreview.objects.select_related(
        "system", "base__system", "by", "proposed_as__decision"
    )
    stored = previews.filter(system=request.access.system, uuid=identity).first()
    if stored is None:
        raise Http404("There is no such preview in this system.")
    return stored


def _answer(
    request: SystemRequest, preview: RulesPreview, form: ProposeForm, *, error: str = ""
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    change = change_of(preview.change)
    lines = change_lines(change, rules_in(preview.base))
    effect = parse_effect(preview.result) if preview.result else None
    here = at.rules_preview(preview.uuid)
    may_propose = access.may(Act.CONTRIBUTE)
    refusal = access.refusal(Act.CONTRIBUTE) or proposal_refusal(preview, access.user)
    newest = newest_approved(access.system).number
    page = pages.RulesPreviewPage(
        shell=system_shell(access, section="Rules"),
        crumbs=(Crumb(access.system.name, at.tasks), Crumb("Rules", at.rules), Crumb("Preview")),
        heading=_heading(preview, effect),
        sentence=f"A change of rules version {preview.base.number}, previewed by "
        f"{preview.by.printed_name} on {time_text(preview.asked_at)}. Nothing changes before "
        "somebody else approves it.",
        changes=lines[:SHOWN_CHANGES],
        n_more_changes=max(0, len(lines) - SHOWN_CHANGES),
        work=_work(preview, effect),
        effect=effect_view(effect, change, at, is_past=_is_decided(preview)) if effect else None,
        poll_url=here if preview.is_open else "",
        refresh_url=here,
        form=form if not refusal or form.is_bound else None,
        action=f"{here}propose",
        error=error,
        why_not="" if preview.is_open else refusal,
        proposed=pages.Link(
            f"Version {preview.proposed_as.number}", at.rules_version(preview.proposed_as.number)
        )
        if preview.proposed_as
        else None,
        edit_url=_edit_url(change, at) if may_propose else "",
        again_action=at.rule_form if may_propose and not preview.is_open else "",
        again_label=_again_label(preview, access.user.pk, newest, effect),
        again_hidden=(
            pages.Hidden("what", "again"),
            pages.Hidden("preview", str(preview.uuid)),
        ),
        leave_url=at.rules,
    )
    status = 422 if form.is_bound else 200
    answer = render(request, "traces/rules_preview.html", {"page": page}, status=status)
    return polled(request, answer, is_moving=bool(page.poll_url))


def _is_decided(preview: RulesPreview) -> bool:
    """Whether somebody has decided on what was proposed of it."""
    return preview.proposed_as is not None and hasattr(preview.proposed_as, "decision")


def _heading(preview: RulesPreview, effect: RulesEffect | None) -> str:
    if effect is not None:
        return effect_headline(effect)
    if preview.state == WorkState.FAILED.value:
        return "The preview could not be worked out"
    return "What would this change do?"


def _work(preview: RulesPreview, effect: RulesEffect | None) -> pages.Work | None:
    n_total = preview.n_total
    so_far = (
        "The stored paths are being read."
        if n_total is None
        else f"{preview.n_done:,} of {counted(n_total, 'trajectory', 'trajectories')} read."
    )
    return preview_work(preview, is_known=effect is not None, what="the change", so_far=so_far)


def _edit_url(change: RuleChange, at: Addresses) -> str:
    """Where a change can be changed: the form of its one rule, or of tool kinds."""
    if len(change.put) == 1 and not change.drop and not change.kinds:
        return address(at.rule_form, {"rule": rule_text(change.put[0])})
    if change.kinds and not change.put and not change.drop:
        return address(at.rule_form, {"what": "kinds"})
    return ""


def _again_label(
    preview: RulesPreview, user_pk: int, newest: int, effect: RulesEffect | None
) -> str:
    """Why one would preview the same change again; "" for no reason."""
    if preview.proposed_as is not None:
        return ""
    if newest != preview.base.number:
        return f"Preview it on version {newest}"
    if preview.state == WorkState.FAILED.value or effect is None:
        return "Preview it again"
    return "" if preview.by_id == user_pk else "Make a preview of my own"
