"""Flags: the list, one flag with its closing, and flagging a trial."""

from __future__ import annotations

import re
from collections.abc import Sequence
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods

from evalsite.access import Access, Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb, Option
from evalsite.web.flag_rows import (
    WHY,
    disposition_badge,
    flag_note,
    flag_row,
    other_flag,
    trial_link,
)
from reviews.core.notices import NoticedTrial, notices_on
from reviews.models import Flag, FlagCode
from reviews.permissions.flags import brought_evidence, closing_refusal
from reviews.selectors.flags import (
    PAGE_FLAGS,
    CodeTotal,
    FlagDetail,
    FlagFilter,
    ListedFlag,
    OpenFlags,
    flag_totals,
    flag_with_trial,
    flaggable_trial,
    flags_of_trial,
    listed_flags,
    next_open_flag,
    open_flags_beside,
)
from reviews.selectors.verdict_cards import VerdictCard, verdict_cards
from reviews.services.flags import (
    LONGEST_REASON,
    NOT_OF_TRIAL,
    FlagDeniedError,
    FlagError,
    close_flags,
    closed_sentence,
    flag_trial,
)
from traces.core.records import VerdictValue
from traces.models import Role, Task, Trial
from traces.selectors.releases import release_names
from traces.web import pages
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in, pager_of, uuid_of
from traces.web.rows import trial_label
from traces.web.shell import system_shell

LISTED_VERDICTS = 12
SHOWN_RATIONALE = 400  # characters
MOST_STEPS = 20  # links to cited steps of one flag
_STATES = {"open": True, "closed": False, "all": None}
_NO_OTHERS = OpenFlags((), 0)
_NO_FLAG = "There is no such flag in this system."
_NO_TRIAL = "There is no such trial in this system."
_STEP = re.compile(r"\bsteps?\s+#?([0-9]{1,9})\b", re.IGNORECASE)
_VERDICT_STATES = {
    VerdictValue.PASS: "pass",
    VerdictValue.FAIL: "fail",
    VerdictValue.UNKNOWN: "unresolved",
    VerdictValue.ERROR: "harness-error",
}


class FlagForm(forms.Form):
    """Why a trial is flagged."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 4, "autofocus": True}),
        help_text="What looks wrong, and at which step. Write “step 7” and it becomes a link.",
    )


class ChosenFlagsField(forms.TypedMultipleChoiceField):
    """Flags by their addresses, from the boxes of a page; which of them there are says the view."""

    def __init__(self) -> None:
        super().__init__(
            coerce=UUID, required=False, error_messages={"invalid_choice": NOT_OF_TRIAL}
        )

    def valid_value(self, value: str) -> bool:
        """Whether it spells an address at all."""
        return uuid_of(value) is not None

    def validate(self, value: list[str]) -> None:
        """No more than a page lists."""
        super().validate(value)
        if len(value) > PAGE_FLAGS:
            raise ValidationError(f"At most {PAGE_FLAGS} other flags are closed at once.")


class ClosingForm(forms.Form):
    """Why a flag needs no further look, and which others of its trial need none either."""

    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text="What you looked at, and why the trial needs no further look.",
    )
    also = ChosenFlagsField()


@require_GET
@in_system()
def flag_list(request: SystemRequest) -> HttpResponse:
    """The flags of a system, newest first."""
    system = request.access.system
    at = Addresses.of(system.slug)
    releases = release_names(system.pk)
    release_uuid = uuid_of(request.GET.get("release", ""))
    release = next((each for each in releases if each.uuid == release_uuid), None)
    word = request.GET.get("why", "")
    code = FlagCode(word) if word in set(FlagCode) else None
    state = request.GET.get("state", "open")
    state = state if state in _STATES else "open"
    passing_only = request.GET.get("passing") == "1"
    task_uuid = uuid_of(request.GET.get("task", ""))
    task = Task.objects.filter(system=system, uuid=task_uuid).first() if task_uuid else None
    trial_uuid = uuid_of(request.GET.get("trial", ""))
    trial = Trial.objects.filter(system=system, uuid=trial_uuid).first() if trial_uuid else None
    chosen = FlagFilter(
        system.pk,
        is_open=_STATES[state],
        code=code,
        # What does not exist has no flags.
        release_pk=release.pk if release else (0 if request.GET.get("release") else None),
        task_pk=task.pk if task else (0 if request.GET.get("task") else None),
        trial_pk=trial.pk if trial else (0 if request.GET.get("trial") else None),
        passing_only=passing_only,
    )
    found = listed_flags(
        chosen, after=number_in(request, "after"), before=number_in(request, "before")
    )
    totals = flag_totals(chosen)
    values: dict[str, Value] = {
        "why": code.value if code else None,
        "release": release.uuid if release else None,
        "passing": "1" if passing_only else None,
        "task": task.uuid if task else None,
        "trial": trial.uuid if trial else None,
    }
    kept: dict[str, Value] = {**values, "state": state if state != "open" else None}
    is_filtered = any(values.values())
    page = pages.FlagListPage(
        shell=system_shell(request.access, section="Flags"),
        crumbs=(Crumb(system.name, at.tasks), Crumb("Flags")),
        states=_states(totals, code, state, at, values),
        action=at.flags,
        hidden=tuple(
            pages.Hidden(name, str(kept[name]))
            for name in ("state", "task", "trial")
            if kept[name] is not None
        ),
        reasons=_reasons(totals, code, state),
        releases=(
            Option("", "All releases", is_selected=release is None),
            *(Option(str(r.uuid), r.label, is_selected=r is release) for r in releases),
        ),
        passing_only=passing_only,
        task=pages.Link(task.task_id, at.task(task.uuid)) if task else None,
        trial=_link(trial, at) if trial else None,
        clear_url=address(at.flags, {"state": kept["state"]}) if is_filtered else "",
        rows=tuple(flag_row(each, at) for each in found.rows),
        pager=pager_of(found, at.flags, kept),
        vouching_url=at.vouching,
        empty=None if found.rows else _nothing(at, state, is_filtered=is_filtered),
    )
    return render(request, "reviews/flag_list.html", {"page": page})


def _link(trial: Trial, at: Addresses) -> pages.Link:
    return pages.Link(trial_label(trial.label, trial.attempt), at.trial(trial.uuid))


def _n(total: CodeTotal, state: str) -> int:
    match state:
        case "open":
            return total.n_open
        case "closed":
            return total.n_closed
        case _:
            return total.n_open + total.n_closed


def _states(
    totals: Sequence[CodeTotal],
    code: FlagCode | None,
    state: str,
    at: Addresses,
    values: dict[str, Value],
) -> tuple[Choice, ...]:
    return tuple(
        Choice(
            name.capitalize(),
            address(at.flags, {**values, "state": name if name != "open" else None}),
            is_current=name == state,
            count=sum(_n(total, name) for total in totals if code in (None, total.code)),
        )
        for name in _STATES
    )


def _reasons(totals: Sequence[CodeTotal], code: FlagCode | None, state: str) -> tuple[Option, ...]:
    return (
        Option("", "Any reason", is_selected=code is None),
        *(
            Option(
                total.code.value,
                f"{WHY[total.code]} ({_n(total, state):,})",
                is_selected=total.code is code,
            )
            for total in totals
        ),
    )


def _nothing(at: Addresses, state: str, *, is_filtered: bool) -> pages.Empty:
    if is_filtered:
        return pages.Empty(
            heading="No flag is like that",
            sentence="Take a filter away, or look at closed flags too.",
            act=pages.Link("All flags", address(at.flags, {"state": "all"})),
        )
    if state == "closed":
        return pages.Empty(
            heading="No closed flag",
            sentence="A flag that somebody closed stays here with the reason.",
        )
    return pages.Empty(
        heading="No open flag" if state == "open" else "No flag yet",
        sentence="Nothing waits for a second look. Anyone flags a trial on its page; the product "
        "flags what contradicts itself.",
        act=pages.Link("All trials", at.trials),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_system()
def flag_detail(request: SystemRequest, flag: UUID) -> HttpResponse:
    """One flag; POST closes it with a reason, and those of its trial that are chosen."""
    access = request.access
    found = flag_with_trial(access.system.pk, flag)
    if found is None:
        raise Http404(_NO_FLAG)
    form = ClosingForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and (form.is_valid() or not found.flag.is_open):
        try:
            closings = close_flags(
                _chosen_flags(access.system.pk, {flag, *form.cleaned_data.get("also", ())}),
                reason=form.cleaned_data.get("reason", ""),
                by=access.user,
                now=timezone.now(),
            )
        except FlagDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except FlagError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, _closed_words(found, len(closings)))
            return redirect(Addresses.of(access.system.slug).flag(flag))
    page = _flag_page(request, found, form)
    return render(
        request, "reviews/flag_detail.html", {"page": page}, status=422 if form.is_bound else 200
    )


def _chosen_flags(system_pk: int, identities: set[UUID]) -> list[Flag]:
    flags = list(Flag.objects.filter(system=system_pk, uuid__in=identities))
    if len(flags) != len(identities):
        raise FlagError(NOT_OF_TRIAL)
    return flags


def _closed_words(found: FlagDetail, n_closed: int) -> str:
    closed = "The flag is closed." if n_closed == 1 else f"{n_closed} flags are closed."
    n_left = sum(flag.is_open for flag in flags_of_trial(found.trial_pk))
    if not n_left:
        return f"{closed} The trial has no other open flag."
    return f"{closed} The trial has {counted(n_left, 'more open flag')}."


def _flag_page(request: SystemRequest, found: FlagDetail, form: ClosingForm) -> pages.FlagPage:
    access = request.access
    at = Addresses.of(access.system.slug)
    cards = verdict_cards(found.trial_pk)
    cited = _cited(found, cards)
    flag, trial = found.flag, found.trial
    first = sorted(cards, key=lambda card: card.given.criterion != flag.criterion)
    next_open = next_open_flag(access.system.pk, after=flag.pk)
    is_own = flag.by_pk == access.user.pk
    refusal, others = _closing(access, found)
    chosen = set(form["also"].value() or ())
    return pages.FlagPage(
        shell=system_shell(access, section="Flags"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Flags", at.flags),
            Crumb(f"{trial.task_id}, trial {trial_label(trial.label, trial.attempt)}"),
        ),
        row=flag_row(ListedFlag(flag, trial), at),
        vouching_url=address(at.vouching, {"trial": trial.uuid})
        if flag.code is FlagCode.IMPORTED_HUMAN_VERDICT
        else "",
        steps=tuple(
            pages.Link(f"step {step:,}", at.step(trial.uuid, step))
            for step in cited
            if 1 <= step <= found.n_steps
        ),
        missing_steps=tuple(step for step in cited if not 1 <= step <= found.n_steps),
        verdicts=tuple(_verdict(card, flag.criterion) for card in first[:LISTED_VERDICTS]),
        n_more_verdicts=max(len(cards) - LISTED_VERDICTS, 0),
        form=form,
        action=at.flag(flag.uuid),
        act="Withdraw the flag" if is_own else "Close the flag",
        why_not=refusal,
        others=tuple(
            other_flag(each, at, is_chosen=str(each.uuid) in chosen) for each in others.rows
        ),
        more_others=pages.Link(
            counted(others.n_more, "more open flag"), address(at.flags, {"trial": trial.uuid})
        )
        if others.n_more
        else None,
        next_url=at.flag(next_open) if next_open else "",
    )


def _closing(access: Access, found: FlagDetail) -> tuple[str, OpenFlags]:
    """Why the person may not close a flag, and the others of its trial that they may close too."""
    flag, role, user = found.flag, access.role, access.user
    if flag.closed_at is not None:
        return closed_sentence(flag.closed_by, flag.closed_at), _NO_OTHERS
    has_brought = role is Role.REVIEWER and brought_evidence(found.release_pk, user)
    refused, of_others = (
        closing_refusal(role, is_own=is_own, has_brought=has_brought)
        for is_own in (flag.by_pk == user.pk, False)
    )
    if refused:
        return refused, _NO_OTHERS
    return "", open_flags_beside(found, by_pk=user.pk if of_others else None)


def _cited(found: FlagDetail, cards: Sequence[VerdictCard]) -> tuple[int, ...]:
    """The steps that a flag is about: those of its notice, or those that a person names."""
    if found.flag.code is FlagCode.PERSON:
        named = [int(number) for number in _STEP.findall(found.flag.reason)]
        return tuple(dict.fromkeys(n for n in named if 1 <= n <= found.n_steps))[:MOST_STEPS]
    facts = NoticedTrial(found.status, found.n_steps, found.n_agent_steps)
    for notice in notices_on(facts, [card.given for card in cards]):
        if notice.key == found.flag.key.bytes:
            return notice.steps[:MOST_STEPS]
    return ()


def _verdict(card: VerdictCard, flagged: str) -> pages.ShortVerdict:
    given = card.given
    notes = [
        *([] if given.mandatory else ["not mandatory"]),
        *([] if given.counts else ["does not count"]),
    ]
    return pages.ShortVerdict(
        criterion=given.criterion,
        value=_VERDICT_STATES[given.value],
        word=given.value.value,
        grader=card.by_name or given.grader,
        note=", ".join(notes),
        rationale=_beginning(card.rationale) if given.criterion == flagged else "",
    )


def _beginning(text: str) -> str:
    return text if len(text) <= SHOWN_RATIONALE else f"{text[:SHOWN_RATIONALE]}…"


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.FLAG)
def flag_new(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Flag a trial with a reason."""
    access = request.access
    found = flaggable_trial(access.system.pk, trial)
    if found is None:
        raise Http404(_NO_TRIAL)
    at = Addresses.of(access.system.slug)
    step = number_in(request, "step")
    form = FlagForm(
        request.POST if request.method == "POST" else None,
        initial={"reason": f"Step {step}: " if step else ""},
    )
    if form.is_valid():
        try:
            flag_trial(
                Trial.objects.get(pk=found.pk),
                reason=form.cleaned_data["reason"],
                by=access.user,
                now=timezone.now(),
            )
        except FlagDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except FlagError as error:
            form.add_error("reason", str(error))
        else:
            messages.success(request, "The trial is flagged. A reviewer closes the flag.")
            return redirect(at.trial(trial))
    label = trial_link(found.trial, at)
    page = pages.FlagFormPage(
        shell=system_shell(access, section="Flags"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb(found.trial.task_id, at.task(found.trial.task_uuid)),
            Crumb(f"trial {label.label}", label.href),
            Crumb("Flag"),
        ),
        trial=label,
        disposition=disposition_badge(found.trial),
        form=form,
        action=at.flag_form(trial),
        flags=tuple(flag_note(flag, at) for flag in flags_of_trial(found.pk) if flag.is_open),
    )
    return render(
        request, "reviews/flag_form.html", {"page": page}, status=422 if form.is_bound else 200
    )
