"""Risk tiers and their thresholds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import count_text, counted, time_text
from evalsite.common.shell import Crumb, Pager
from evalsite.web.threshold_lines import change_lines, checks_off, threshold_lines
from evalsite.web.tier_words import (
    NO_TIER,
    OPERATOR,
    SECTION,
    crumbs_of,
    new_url,
    owners_words,
    retire_url,
    version_badge,
    version_note,
    why_not,
)
from reviews.core.gate.model import CheckKind, Thresholds
from reviews.core.gate.thresholds import TEMPLATES, Template, template_of, threshold_sentence
from reviews.models import RiskTier
from reviews.selectors.thresholds import (
    TierRow,
    VersionOfThresholds,
    tier_row,
    tiers_of,
    version_of,
    versions_of,
)
from reviews.selectors.tiers import NO_TIER as WITHOUT
from reviews.selectors.tiers import n_tasks_of
from reviews.services.tiers import (
    LONGEST_DESCRIPTION,
    LONGEST_NAME,
    LONGEST_REASON,
    TierDeniedError,
    TierError,
    make_tier,
    retire_tier,
)
from traces.core.text_marks import marked_text
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.pages.thresholds import (
    TemplateOffer,
    ThresholdVersionPage,
    TierCard,
    TierFormPage,
    TierListPage,
    TierPage,
)
from traces.web.shell import system_shell

_NO_VERSION = "There is no such version of thresholds in this system."
_UNREADABLE = (
    "What is stored of this version cannot be read: it was changed, or written by a newer release "
    "of this site. No gate that needs it can be computed."
)
_SHOWN = 4  # thresholds of a tier that the list says
_TOLD_FIRST = (
    CheckKind.PROHIBITED,
    CheckKind.RULE_CLEAN_RATE,
    CheckKind.OUTCOME_RATE,
    CheckKind.PASS_HAT_K,
    CheckKind.PROHIBITED_RATE,
    CheckKind.FEWEST_TRIALS,
)


class TierForm(forms.Form):
    """A new tier."""

    name = forms.CharField(
        max_length=LONGEST_NAME,
        help_text="Short, such as payments.",
        widget=forms.TextInput(attrs={"autocomplete": "off"}),
    )
    description = forms.CharField(
        label="What it is for",
        max_length=LONGEST_DESCRIPTION,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What a mistake in its tasks costs, and whom.",
    )
    template = forms.ChoiceField(
        label="Thresholds to begin with",
        required=False,
        choices=(
            *((each.key, each.name) for each in TEMPLATES),
            ("", "only what cannot be switched off"),
        ),
        help_text="You see and change each of them before they are in force.",
        error_messages={"invalid_choice": "There are no such thresholds to begin with."},
    )


class RetireForm(forms.Form):
    """Why a tier is needed no longer."""

    reason = forms.CharField(max_length=LONGEST_REASON, widget=forms.Textarea(attrs={"rows": 2}))


@require_GET
@in_system(Act.READ)
def tier_list(request: SystemRequest) -> HttpResponse:
    """The risk tiers of a system, with what is in force in each."""
    access = request.access
    at = Addresses.of(access.system.slug)
    now = timezone.now()
    tiers = tiers_of(access.system.pk, now=now)
    may = access.may(Act.OWN)
    cards = [(tier, _card(tier, at, may=may, now=now)) for tier in tiers]
    n_without = n_tasks_of(access.system.pk).get(None, 0)
    in_use = tuple(card for tier, card in cards if not tier.retired)
    page = TierListPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access),
        notices=(),
        cards=in_use,
        retired=tuple(card for tier, card in cards if tier.retired),
        offers=() if in_use else tuple(_offer(each, at, may=may) for each in TEMPLATES),
        untiered=_untiered(n_without, at) if n_without and in_use else None,
        tasks_url=at.tier_tasks,
        plan_url=at.sample_plan,
        new_url=new_url(at) if may else "",
        why_not=why_not(access),
        empty=None if in_use else _no_tier_yet(may=may),
    )
    return render(request, "reviews/tier_list.html", {"page": page})


def _untiered(n: int, at: Addresses) -> pages.Link:
    words = counted(n, "task is in no tier", "tasks are in no tier")
    return pages.Link(words, address(at.tier_tasks, {"tier": WITHOUT}))


def _no_tier_yet(*, may: bool) -> pages.Empty:
    begin = (
        "Begin with one of these three and change what does not fit."
        if may
        else "An owner of this system makes them; three to begin with stand below."
    )
    return pages.Empty(
        "No risk tier yet",
        "A risk tier says what the trials of its tasks have to show before a release may go out: "
        "its thresholds. They are set before the results. A run that begins while none are in "
        f"force is held against nothing, and its gate cannot tell. {begin}",
    )


def _offer(template: Template, at: Addresses, *, may: bool) -> TemplateOffer:
    return TemplateOffer(
        name=template.name,
        description=template.description,
        sentences=tuple(threshold_sentence(each) for each in template.thresholds.checks),
        href=address(new_url(at), {"template": template.key}) if may else "",
    )


def _card(tier: TierRow, at: Addresses, *, may: bool, now: datetime) -> TierCard:
    version = tier.in_force
    thresholds = version.thresholds if version else None
    told = _told(thresholds)
    return TierCard(
        name=pages.Link(tier.name, at.tier(tier.uuid)),
        description=tier.description,
        badges=tuple(_badges(tier)),
        in_force=version_note(tier, version, at, now=now) if version else None,
        no_version=_no_version_words(tier),
        to_come=tuple(version_note(tier, each, at, now=now) for each in tier.to_come),
        tasks=pages.Link(
            counted(tier.n_tasks, "task"), address(at.tier_tasks, {"tier": tier.uuid})
        ),
        owners=owners_words(thresholds.n_owners) if thresholds else "",
        sentences=told,
        more=_more_words(len(thresholds.checks) - len(told)) if thresholds else "",
        edit_url=at.threshold_edit(tier.uuid) if may and not tier.retired else "",
    )


def _badges(tier: TierRow) -> Iterator[pages.Badge]:
    if tier.retired:
        yield pages.Badge("retired")
    elif tier.in_force is None:
        yield pages.Badge("no thresholds in force", "unresolved")
    if tier.in_force and tier.in_force.thresholds is None:
        yield pages.Badge("cannot be read", "fail")
    if tier.to_come:
        yield pages.Badge("changes soon", "waiting")


def _no_version_words(tier: TierRow) -> str:
    if tier.in_force:
        return ""
    if tier.to_come:
        return f"None yet; the first are in force from {time_text(tier.to_come[0].in_force_from)}."
    return "None were set: no gate asks for this tier until an owner sets them."


def _told(thresholds: Thresholds | None) -> tuple[str, ...]:
    if thresholds is None:
        return ()
    by_kind = {threshold.kind: threshold for threshold in thresholds.checks}
    kinds = [kind for kind in _TOLD_FIRST if kind in by_kind][:_SHOWN]
    return tuple(threshold_sentence(by_kind[kind]) for kind in kinds)


def _more_words(n: int) -> str:
    return f"and {counted(n, 'more check')}" if n > 0 else ""


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.OWN)
def tier_new(request: SystemRequest) -> HttpResponse:
    """Make a tier; its thresholds are set on the next page."""
    access = request.access
    at = Addresses.of(access.system.slug)
    if request.method != "POST":
        template = template_of(request.GET.get("template", ""))
        initial = (
            {"name": template.name, "description": template.description, "template": template.key}
            if template
            else {"template": ""}
        )
        return _tier_form(request, TierForm(initial=initial))
    form = TierForm(request.POST)
    if form.is_valid():
        try:
            tier = make_tier(
                access.system,
                form.cleaned_data["name"],
                form.cleaned_data["description"],
                form.cleaned_data["template"],
                by=access.user,
                now=timezone.now(),
            )
        except TierDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except TierError as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request,
                f"Tier {marked_text(tier.name)} is made. Now set its thresholds: until they are in "
                "force no gate asks for it.",
            )
            return redirect(at.threshold_edit(tier.uuid))
    return _tier_form(request, form, status=422)


def _tier_form(request: SystemRequest, form: TierForm, *, status: int = 200) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    page = TierFormPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access, Crumb("New tier")),
        form=form,
        offers=tuple(_offer(each, at, may=True) for each in TEMPLATES),
        cancel_url=at.thresholds,
    )
    return render(request, "reviews/tier_form.html", {"page": page}, status=status)


@require_GET
@in_system(Act.READ)
def tier_page(request: SystemRequest, tier: UUID) -> HttpResponse:
    """One tier: what is in force, what comes, and every version before."""
    return _tier_page(request, tier_or_404(request.access, tier), RetireForm())


def tier_or_404(access: Access, uuid: UUID) -> TierRow:
    """A tier of the system. Raises `Http404` where it has none such."""
    found = tier_row(access.system.pk, uuid, now=timezone.now())
    if found is None:
        raise Http404(NO_TIER)
    return found


def _tier_page(
    request: SystemRequest, tier: TierRow, form: RetireForm, *, status: int = 200
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    now = timezone.now()
    may = access.may(Act.OWN) and tier.retired is None
    history = versions_of(tier.pk, after=number_in(request, "after"))
    thresholds = tier.in_force.thresholds if tier.in_force else None
    page = TierPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access, Crumb(tier.name)),
        name=tier.name,
        description=tier.description,
        badges=tuple(_badges(tier)),
        notices=tuple(_tier_notices(tier)),
        lines=threshold_lines(thresholds) if thresholds else (),
        off=checks_off(thresholds) if thresholds else (),
        facts=tuple(_tier_facts(tier, at)),
        reason=tier.in_force.reason if tier.in_force else "",
        history=tuple(version_note(tier, each, at, now=now) for each in history.rows),
        pager=Pager(
            next_url=address(at.tier(tier.uuid), {"after": history.next_after}, place="#history")
            if history.next_after
            else ""
        ),
        edit_url=at.threshold_edit(tier.uuid) if may else "",
        retire_url=retire_url(at, tier.uuid) if may else "",
        retire_refusal=_retire_refusal(tier),
        retire_form=form if may else None,
        plan_url=address(at.sample_plan, {"tier": tier.uuid}),
        tasks=pages.Link(
            counted(tier.n_tasks, "task"), address(at.tier_tasks, {"tier": tier.uuid})
        ),
        audit_url=address(at.audit, {"kind": "tier", "id": tier.uuid}),
        why_not=why_not(access),
        empty=None if thresholds else _nothing_in_force(tier, at, may=may),
    )
    return render(request, "reviews/tier_detail.html", {"page": page}, status=status)


def _retire_refusal(tier: TierRow) -> str:
    if tier.n_tasks:
        is_are = counted(tier.n_tasks, "task is", "tasks are")
        return f"{is_are} in this tier: put them into another one first."
    return ""


def _tier_notices(tier: TierRow) -> Iterator[pages.Notice]:
    if tier.retired:
        yield pages.Notice(
            f"Retired by {tier.retired.by_name}, {time_text(tier.retired.at)}: "
            f"{tier.retired.reason} Gates of releases whose first run began before keep it.",
            "info",
        )
    if tier.in_force and tier.in_force.thresholds is None:
        yield pages.Notice(_UNREADABLE, "error")
    for each in tier.to_come:
        yield pages.Notice(
            f"Version {each.number} is in force from {time_text(each.in_force_from)}. "
            f"{each.by_name or OPERATOR} set it: {each.reason}",
            "warning",
        )


def _tier_facts(tier: TierRow, at: Addresses) -> Iterator[pages.Fact]:
    version = tier.in_force
    if version:
        yield pages.Fact(
            "In force",
            f"version {version.number}",
            at.threshold_version(tier.uuid, version.number),
        )
        yield pages.Fact("Since", time_text(version.in_force_from))
        yield pages.Fact("Set by", version.by_name or OPERATOR)
    if version and version.thresholds:
        yield pages.Fact("Signatures", owners_words(version.thresholds.n_owners))
        if n := version.thresholds.requests_per_day:
            yield pages.Fact("Requests a day", count_text(n))
    yield pages.Fact("Made", f"{time_text(tier.made_at)}, {tier.made_by or OPERATOR}")
    if template := template_of(tier.template):
        yield pages.Fact("Began with", template.name)


def _nothing_in_force(tier: TierRow, at: Addresses, *, may: bool) -> pages.Empty:
    act = pages.Link("Set its thresholds", at.threshold_edit(tier.uuid)) if may else None
    return pages.Empty("No thresholds in force", _no_version_words(tier) or _UNREADABLE, act)


@require_GET
@in_system(Act.READ)
def threshold_version(request: SystemRequest, tier: UUID, number: int) -> HttpResponse:
    """One version of a tier's thresholds, and what it says otherwise than the one before."""
    access = request.access
    found = tier_or_404(access, tier)
    version = version_of(found.pk, number) if number < 2**31 else None
    if version is None:
        raise Http404(_NO_VERSION)
    before = version_of(found.pk, number - 1)
    at = Addresses.of(access.system.slug)
    now = timezone.now()
    may = access.may(Act.OWN) and found.retired is None
    thresholds = version.thresholds
    page = ThresholdVersionPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(
            access, Crumb(found.name, at.tier(found.uuid)), Crumb(f"Version {version.number}")
        ),
        heading=f"Version {version.number}",
        sentence=f"Thresholds of tier {found.name}, as {version.by_name or OPERATOR} set them on "
        f"{time_text(version.made_at)}.",
        badge=version_badge(found, version, now=now),
        facts=tuple(_version_facts(version)),
        reason=version.reason,
        before=pages.Link(
            f"Version {before.number}", at.threshold_version(found.uuid, before.number)
        )
        if before
        else None,
        changes=change_lines(before.thresholds, thresholds)
        if before and before.thresholds and thresholds
        else (),
        lines=threshold_lines(thresholds) if thresholds else (),
        off=checks_off(thresholds) if thresholds else (),
        notices=() if thresholds else (pages.Notice(_UNREADABLE, "error"),),
        edit_url=address(at.threshold_edit(found.uuid), {"version": version.number})
        if may and thresholds
        else "",
    )
    return render(request, "reviews/threshold_version.html", {"page": page})


def _version_facts(version: VersionOfThresholds) -> Iterator[pages.Fact]:
    yield pages.Fact("In force from", time_text(version.in_force_from))
    yield pages.Fact("Set by", version.by_name or OPERATOR)
    yield pages.Fact("Set at", time_text(version.made_at))
    if version.thresholds:
        yield pages.Fact("Signatures", owners_words(version.thresholds.n_owners))
    yield pages.Fact("Digest", version.digest)


@require_POST
@in_system(Act.OWN)
def tier_retire(request: SystemRequest, tier: UUID) -> HttpResponse:
    """Say that no gate asks for a tier any longer."""
    access = request.access
    found = tier_or_404(access, tier)
    form = RetireForm(request.POST)
    if form.is_valid():
        try:
            retire_tier(
                RiskTier.objects.get(pk=found.pk),
                reason=form.cleaned_data["reason"],
                by=access.user,
                now=timezone.now(),
            )
        except TierDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except TierError as error:
            form.add_error(None, str(error))
        else:
            messages.success(
                request,
                f"Tier {marked_text(found.name)} is retired. Releases whose first run begins from "
                "now on are not held against it.",
            )
            return redirect(Addresses.of(access.system.slug).thresholds)
    return _tier_page(request, found, form, status=422)
