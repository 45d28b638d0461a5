"""Imported human verdicts, and a reviewer's word that they are what those people said."""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.after_vouching import vouch_and_decide
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb, Pager
from reviews.permissions.vouching import NOT_A_REVIEWER
from reviews.selectors.vouching import (
    MOST_GROUPS,
    ImportedVerdict,
    VouchGroup,
    verdicts_of_group,
    vouch_groups,
)
from reviews.services.vouching import VouchDeniedError, VouchError
from traces.core.records import VerdictValue
from traces.models import Trial
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, uuid_of
from traces.web.pages.vouching import ImportedLine, VouchForm, VouchLine, VouchPage
from traces.web.rows import trial_label
from traces.web.shell import system_shell

_NO_GROUP = "There are no such imported verdicts in this system."
_NO_TRIAL = "There is no such trial in this system."
_STATES = {VerdictValue.PASS.value: "pass", VerdictValue.FAIL.value: "fail"}


@dataclass(frozen=True, slots=True)
class _Asked:
    """What an address or a form names."""

    group: tuple[int, int, int] | None = None
    trial: Trial | None = None


@require_GET
@in_system()
def vouch_list(request: SystemRequest) -> HttpResponse:
    """Imported human verdicts by person, criterion and upload, and those of a chosen one."""
    asked = _Asked(_group(request.GET.get("group", "")), _trial(request, request.GET))
    return _page(request, asked)


def _group(text: str) -> tuple[int, int, int] | None:
    parts = text.split(".")
    if len(parts) != 3 or not all(p.isascii() and p.isdigit() and len(p) < 19 for p in parts):
        return None
    first, second, third = (int(part) for part in parts)
    return first, second, third


def _trial(request: SystemRequest, sent: QueryDict) -> Trial | None:
    text = sent.get("trial", "")
    if not text:
        return None
    identity = uuid_of(text)
    found = (
        Trial.objects.select_related("task")
        .filter(system=request.access.system, uuid=identity)
        .first()
        if identity
        else None
    )
    if found is None:
        raise Http404(_NO_TRIAL)
    return found


def _page(
    request: SystemRequest, asked: _Asked, *, reason: str = "", error: str = ""
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    trial = asked.trial
    groups = vouch_groups(access.system.pk, trial_pk=trial.pk if trial else None)
    chosen = next((g for g in groups if asked.group and g.key == _key(asked.group)), None)
    verdicts: tuple[ImportedVerdict, ...] = ()
    more: int | None = None
    if chosen and asked.group:
        after = number_in(request, "after") or 0
        verdicts, more = verdicts_of_group(access.system.pk, asked.group, after=after)
    page = VouchPage(
        shell=system_shell(access, section="Flags"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Flags", at.flags),
            Crumb("Imported verdicts"),
        ),
        trial=pages.Link(
            f"{trial.task.task_id}, trial {trial_label(trial.label, trial.attempt)}",
            at.trial(trial.uuid),
        )
        if trial
        else None,
        rows=tuple(_line(group, chosen, trial, at) for group in groups),
        is_cut=len(groups) == MOST_GROUPS,
        form=_form(request, chosen, trial, at, reason, error) if chosen else None,
        verdicts=tuple(_verdict(each, at) for each in verdicts),
        pager=Pager(
            "",
            address(at.vouching, {**_values(chosen, trial), "after": more})
            if chosen and more
            else "",
        ),
        empty=None if groups else _nothing(),
    )
    return render(request, "reviews/vouch_list.html", {"page": page}, status=422 if error else 200)


def _key(group: tuple[int, int, int]) -> str:
    return ".".join(str(part) for part in group)


def _values(group: VouchGroup | None, trial: Trial | None) -> dict[str, Value]:
    return {"group": group.key if group else None, "trial": trial.uuid if trial else None}


def _nothing() -> pages.Empty:
    return pages.Empty(
        heading="No imported human verdict",
        sentence="A person's verdict that arrives in a file is shown and does not count until a "
        "reviewer vouches for it. None has arrived.",
    )


def _line(
    group: VouchGroup, chosen: VouchGroup | None, trial: Trial | None, at: Addresses
) -> VouchLine:
    n_other = group.n - group.n_pass - group.n_fail
    values = [f"{group.n_pass:,} pass", f"{group.n_fail:,} fail"]
    values += [f"{n_other:,} other"] if n_other else []
    words = f"{counted(group.n, 'verdict')} on {counted(group.n_trials, 'trial')}"
    is_waiting = group.n_waiting > 0
    return VouchLine(
        key=group.key,
        grader=f"{group.grader} {group.version}".strip(),
        criterion=group.criterion_name,
        upload=pages.Link(group.upload_name, at.upload(group.upload_uuid)),
        uploaded=f"by {group.uploader}" if group.uploader else "by the operator",
        at=group.received_at,
        counts=f"{words}: {', '.join(values)}",
        state=pages.Badge("waits", "waiting") if is_waiting else pages.Badge("vouched for", "pass"),
        note=_note(group),
        href=address(at.vouching, _values(group, trial), place="#chosen"),
        is_chosen=chosen is not None and chosen.key == group.key,
        is_waiting=is_waiting,
    )


def _note(group: VouchGroup) -> str:
    if group.vouched_at is None:
        return ""
    some = f"{group.n_vouched:,} of {group.n:,}, " if group.n_waiting else ""
    return f"{some}{group.vouched_by}, {time_text(group.vouched_at)}"


def _form(
    request: SystemRequest,
    group: VouchGroup,
    trial: Trial | None,
    at: Addresses,
    reason: str,
    error: str,
) -> VouchForm:
    of = "this trial" if trial else counted(group.n_waiting, "verdict")
    return VouchForm(
        action=at.vouch,
        key=group.key if group.n_waiting else "",
        trial=str(trial.uuid) if trial else "",
        heading=f"Vouch for {of} of {group.grader}"
        if group.n_waiting
        else f"Verdicts of {group.grader}",
        reason=reason,
        error=error,
        why_not="" if request.access.may(Act.REVIEW) else NOT_A_REVIEWER,
    )


def _verdict(each: ImportedVerdict, at: Addresses) -> ImportedLine:
    return ImportedLine(
        trial=pages.Link(f"{each.task_id}, trial {each.label}", at.trial(each.trial_uuid)),
        release=each.release or NO_RELEASE,
        value=pages.Badge(each.value, _STATES.get(each.value, "unresolved")),
        raw_word=each.raw_word if each.raw_word != each.value else "",
        rationale=each.rationale,
        is_cut=each.is_cut,
        vouched=f"{each.vouched_by}: {each.reason}" if each.vouched_by else "",
        at=each.vouched_at,
    )


@require_POST
@in_system(Act.REVIEW)
def vouch_for(request: SystemRequest) -> HttpResponse:
    """Vouch for one person's verdicts on a criterion out of one upload, or of one trial of it."""
    access = request.access
    at = Addresses.of(access.system.slug)
    asked = _Asked(_group(request.POST.get("group", "")), _trial(request, request.POST))
    known = vouch_groups(access.system.pk, trial_pk=asked.trial.pk if asked.trial else None)
    group = next((g for g in known if asked.group and g.key == _key(asked.group)), None)
    if group is None or asked.group is None:
        raise Http404(_NO_GROUP)
    reason = request.POST.get("reason", "")
    try:
        n_trials = vouch_and_decide(
            access.system,
            asked.group,
            trial=asked.trial,
            reason=reason,
            by=access.user,
            now=timezone.now(),
        )
    except VouchDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except VouchError as error:
        return _page(request, asked, reason=reason, error=str(error))
    messages.success(
        request,
        f"You vouched for them: they count now, and {counted(n_trials, 'trial')} "
        f"{'is' if n_trials == 1 else 'are'} decided anew.",
    )
    return redirect(address(at.vouching, _values(group, asked.trial)))
