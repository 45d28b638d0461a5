"""A person gives a verdict on one criterion of a trial, or corrects one of their own."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.after_review import verdict_and_decide
from evalsite.common.formatting import time_text
from evalsite.common.shell import Crumb
from evalsite.web.flag_rows import disposition_badge, trial_link
from evalsite.web.trial_standings import StepLinks, requirement_name, verdict_words
from reviews.core.disposition import StandingResult
from reviews.models import Case, Verdict
from reviews.permissions.verdicts import verdict_refusal
from reviews.selectors.blinding import HIDDEN, hidden_criteria
from reviews.selectors.flags import FlaggableTrial, flaggable_trial
from reviews.selectors.gradable import Gradable, gradable_criteria
from reviews.selectors.standings import StandingDetail, TrialStandings, trial_standings
from reviews.selectors.verdict_cards import VerdictCard
from reviews.services.person_verdicts import (
    LONGEST_REASON,
    PEOPLE_SAY,
    VerdictDeniedError,
    VerdictError,
    basis_words,
)
from traces.core.records import TrialStatus, VerdictValue
from traces.core.text_marks import clean_text, marked_text
from traces.models import Trial
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of
from traces.web.pages.verdicts import CriterionChoice, VerdictFormPage
from traces.web.shell import system_shell

_NO_TRIAL = "There is no such trial in this system."
_NO_VERDICT = "There is no such verdict of yours on this trial; give a new one."
_LABELS = {
    VerdictValue.PASS: "Pass: it holds",
    VerdictValue.FAIL: "Fail: it does not hold",
    VerdictValue.UNKNOWN: "Unknown: the evidence does not tell",
}
_STANDS = {
    StandingResult.PASS: pages.Badge("pass", "pass"),
    StandingResult.FAIL: pages.Badge("fail", "fail"),
    StandingResult.OPEN: pages.Badge("open", "unresolved"),
}


class StepsField(forms.CharField):
    """Numbers of steps, as people write them: "2, 5 7"."""

    def clean(self, value: object) -> tuple[int, ...]:
        """The numbers, in the order given."""
        text = super().clean(value)
        words = str(text).replace(",", " ").split()
        for word in words:
            if not (word.isascii() and word.isdigit() and len(word) < 10):
                raise ValidationError(f"{word[:40]!r} is no number of a step; write them as 2, 5.")
        return tuple(int(word) for word in words)


class VerdictForm(forms.Form):
    """What one criterion of a trial comes to."""

    criterion = forms.CharField(
        max_length=512, strip=False, error_messages={"required": "Choose a criterion."}
    )
    corrects = forms.CharField(required=False, max_length=20)
    seen = forms.CharField(required=False, max_length=60)
    value = forms.ChoiceField(
        label="What it comes to",
        choices=[(value.value, _LABELS[value]) for value in PEOPLE_SAY],
        widget=forms.RadioSelect,
        error_messages={
            "required": "Say pass, fail or unknown.",
            "invalid_choice": "A person says pass, fail or unknown.",
        },
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What in the transcript or the state shows it.",
    )
    steps = StepsField(
        label="Steps that show it",
        required=False,
        max_length=400,
        help_text="Numbers of steps, such as 2, 5.",
        widget=forms.TextInput(attrs={"inputmode": "numeric", "autocomplete": "off"}),
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.REVIEW)
def verdict_form(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Give a verdict on one criterion of a trial; the trial is decided anew."""
    access = request.access
    found = flaggable_trial(access.system.pk, trial)
    if found is None:
        raise Http404(_NO_TRIAL)
    stored = Trial.objects.select_related("task").get(pk=found.pk)
    is_sent = request.method == "POST"
    form = VerdictForm(request.POST if is_sent else None)
    if is_sent and form.is_valid():
        try:
            row = verdict_and_decide(
                stored,
                criterion=form.cleaned_data["criterion"],
                value=VerdictValue(form.cleaned_data["value"]),
                reason=form.cleaned_data["reason"],
                steps=form.cleaned_data["steps"],
                by=access.user,
                now=timezone.now(),
                corrects=_corrected(stored, form.cleaned_data["corrects"]),
                seen=form.cleaned_data["seen"],
            )
        except VerdictDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except VerdictError as error:
            form.add_error(None, str(error))
        else:
            name = marked_text(clean_text(form.cleaned_data["criterion"]))
            messages.success(request, f"Your verdict on {name} is kept: {row.value}.")
            return redirect(_back(request, found))
    page = _page(request, found, stored, form)
    return render(
        request, "reviews/verdict_form.html", {"page": page}, status=422 if is_sent else 200
    )


def _corrected(trial: Trial, text: str) -> Verdict | None:
    """The verdict that the form corrects; None for a first one."""
    if not text:
        return None
    found = None
    if text.isascii() and text.isdigit() and len(text) < 19:
        rows = Verdict.objects.select_related("criterion").exclude(by=None)
        found = rows.filter(trial=trial, pk=int(text)).first()
    if found is None:
        raise VerdictError(_NO_VERDICT)
    return found


def _back(request: SystemRequest, found: FlaggableTrial) -> str:
    """The case that the form was opened from, else the trial."""
    at = Addresses.of(request.access.system.slug)
    wanted = uuid_of(request.GET.get("case", ""))
    if wanted and Case.objects.filter(trial=found.pk, uuid=wanted).exists():
        return at.case(wanted)
    return at.trial(found.trial.uuid)


def _page(
    request: SystemRequest, found: FlaggableTrial, trial: Trial, form: VerdictForm
) -> VerdictFormPage:
    access = request.access
    at = Addresses.of(access.system.slug)
    here = at.trial(trial.uuid)
    standings = trial_standings(
        trial.pk,
        system_pk=trial.system_id,
        task_pk=trial.task_id,
        status=TrialStatus(trial.status),
        contract_pk=trial.task.contract_id,
    ).without(hidden_criteria(access.user.pk, access.role, [trial.pk]).get(trial.pk, ()))
    criteria = gradable_criteria(trial)
    own = _own_verdicts(standings, criteria, access.user.pk)
    sent = request.POST if form.is_bound else request.GET
    asked = sent.get("criterion", "")
    chosen = asked if asked in criteria else ""
    corrected = own.get(chosen)
    details = {detail.criterion: detail for detail in standings.details}
    links = StepLinks(here, trial.n_messages, 0, 0)
    listed = [criteria[chosen]] if corrected else list(criteria.values())
    label = trial_link(found.trial, at)
    values = {"case": request.GET.get("case", "")}
    if corrected and not form.is_bound:
        form.initial = {
            "value": corrected.given.value.value,
            "steps": ", ".join(str(step) for step in corrected.given.cited_steps),
        }
    return VerdictFormPage(
        shell=system_shell(access, section="Trials"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb(found.trial.task_id, at.task(found.trial.task_uuid)),
            Crumb(f"trial {label.label}", label.href),
            Crumb("Verdict"),
        ),
        heading="Correct your verdict" if corrected else "Give a verdict",
        trial=label,
        contract=pages.Link(
            f"version {standings.contract.number}", at.contract_version(standings.contract.identity)
        )
        if standings.contract
        else None,
        disposition=pages.Badge("hidden")
        if standings.is_decision_hidden
        else disposition_badge(found.trial),
        choices=tuple(
            _choice(
                each, details.get(each.criterion), own, links, is_chosen=each.criterion == chosen
            )
            if each.criterion not in standings.hidden
            else _hidden_choice(each, is_chosen=each.criterion == chosen)
            for each in listed
        ),
        other=pages.Link("Another criterion", address(at.verdict_form(trial.uuid), values))
        if corrected and len(criteria) > 1
        else None,
        corrects=corrected.given.id if corrected else "",
        seen=basis_words(trial.task.contract_id, len(standings.additions)),
        n_steps=trial.n_messages,
        form=form,
        action=address(at.verdict_form(trial.uuid), values),
        act="Keep the correction" if corrected else "Give the verdict",
        back=_back(request, found),
        why_not=verdict_refusal(trial, access.user),
    )


def _own_verdicts(
    standings: TrialStandings, criteria: dict[str, Gradable], user_pk: int
) -> dict[str, VerdictCard]:
    """The person's verdicts that vote now, by criterion: each can only be corrected."""
    corrected = {card.given.corrects for card in standings.cards}
    found: dict[str, VerdictCard] = {}
    for card in standings.cards:
        given = card.given
        if card.by_pk != user_pk or given.id in corrected or given.criterion not in criteria:
            continue
        digest = UUID(bytes=given.criterion_digest) if given.criterion_digest else None
        contract = int(given.contract) if given.contract else None
        is_of_now = criteria[given.criterion].takes(contract, digest)
        is_settled = given.value is not VerdictValue.UNKNOWN  # gives way to no later one
        if is_of_now and (is_settled or given.evidence_order >= len(standings.additions)):
            found[given.criterion] = card
    return found


_LEAVES = f"{HIDDEN} A verdict that you give here leaves its item to others."


def _hidden_choice(criterion: Gradable, *, is_chosen: bool) -> CriterionChoice:
    """A criterion on which the person may be asked for a blind label: nothing is said of it."""
    return CriterionChoice(
        value=criterion.criterion,
        label=criterion.criterion,
        notes=criterion.criterion_class.value,
        question=criterion.question,
        standing=pages.Badge("hidden"),
        rule=_LEAVES,
        voters="",
        steps=(),
        own="",
        is_chosen=is_chosen,
    )


def _choice(
    criterion: Gradable,
    detail: StandingDetail | None,
    own: dict[str, VerdictCard],
    links: StepLinks,
    *,
    is_chosen: bool,
) -> CriterionChoice:
    notes = [criterion.criterion_class.value]
    notes += [] if criterion.mandatory else ["not mandatory"]
    mine = own.get(criterion.criterion)
    voters = detail.voters if detail else ()
    cited = sorted({step for card in voters if card is not mine for step in card.given.cited_steps})
    return CriterionChoice(
        value=criterion.criterion,
        label=requirement_name(detail.standing.requirement) if detail else criterion.criterion,
        notes=", ".join(notes),
        question=criterion.question,
        standing=_STANDS[detail.standing.result] if detail else pages.Badge("reported only"),
        rule=detail.standing.sentence if detail else "It is reported and decides nothing.",
        voters="; ".join(verdict_words(card) for card in voters),
        steps=links.links(cited),
        own=f"You said {mine.given.value.value} at {time_text(mine.created_at)}." if mine else "",
        is_chosen=is_chosen,
    )
