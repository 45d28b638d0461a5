"""The form that makes a calibration set, with what qualifies for it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fractions import Fraction
from typing import Final
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone

from evalsite.access import Act, SystemRequest
from evalsite.common.formatting import counted
from evalsite.common.shell import Crumb, Option
from evalsite.web.calibration_set_words import SECTION, STRATUM_HELP, crumbs_of
from reviews.core.calibration import DEFAULT_LIMITS
from reviews.core.estimators import clean_trials_needed
from reviews.core.sampling import Stratum, suggested_shares
from reviews.models import CalibrationSet, Sampling
from reviews.selectors.calibration_candidates import (
    CandidateFilter,
    LabelCriterion,
    Qualifying,
    criteria_to_label,
    qualifying_trials,
)
from reviews.services.calibration_sets import (
    LONGEST_NAME,
    LONGEST_REASON,
    MOST_ITEMS,
    CalibrationSetDeniedError,
    CalibrationSetError,
    SetWish,
    make_set,
)
from traces.core.text_marks import clean_text, marked_text
from traces.models import Member, Release, Role, System
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses
from traces.web.asking import uuid_of
from traces.web.pages.calibration_sets import SetFormPage, StratumLine
from traces.web.shell import system_shell

MOST_FAMILIES = 20
_STANDARD_N = DEFAULT_LIMITS.min_items
N_FAILING = clean_trials_needed(float(DEFAULT_LIMITS.false_pass))
N_PASSING = clean_trials_needed(float(DEFAULT_LIMITS.false_fail))
_IDENTITY = re.compile(
    r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}"
)


class NewSetForm(forms.Form):
    """How trials are drawn, and why."""

    name = forms.CharField(max_length=LONGEST_NAME)
    sampling = forms.ChoiceField(
        label="How trials are chosen",
        choices=[
            (Sampling.RANDOM.value, "Random: each trial as likely as any other"),
            (Sampling.STRATIFIED.value, "Stratified: so many of each kind, families in turn"),
            (Sampling.CHOSEN.value, "Chosen by hand: the trials listed below"),
        ],
        widget=forms.RadioSelect,
        error_messages={"required": "Say how trials are chosen."},
    )
    n = forms.IntegerField(
        label="Trials of a random set", required=False, min_value=1, max_value=MOST_ITEMS
    )
    trials = forms.CharField(
        label="Trials chosen by hand",
        required=False,
        max_length=200_000,
        strip=False,  # lines are named by their numbers
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
        help_text="One a line: the id of the trial, or the address of its page.",
    )
    reason = forms.CharField(
        label="Why",
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="Whoever labels and whoever reads the judge's card will see it.",
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        for stratum in Stratum:
            self.fields[_wanted_name(stratum)] = forms.IntegerField(
                label=stratum.value.capitalize(), required=False, min_value=0, max_value=MOST_ITEMS
            )

    def clean_trials(self) -> tuple[UUID, ...]:
        """The ids that the lines hold, each once."""
        found: dict[UUID, None] = {}
        for number, line in enumerate(str(self.cleaned_data["trials"]).splitlines(), start=1):
            if not line.strip():
                continue
            match = _IDENTITY.search(line)
            if match is None:
                raise forms.ValidationError(f"Line {number:,} names no trial.")
            found[UUID(match[0])] = None
        return tuple(found)

    def clean(self) -> None:
        """A random set says how many, a stratified one of what, one chosen by hand which."""
        match self.cleaned_data.get("sampling"):
            case Sampling.RANDOM.value if not self.cleaned_data.get("n"):
                self._missing("n", "Say how many trials.")
            case Sampling.STRATIFIED.value if not any(self.wanted.values()):
                self.add_error(None, "Say how many trials of each kind.")
            case Sampling.CHOSEN.value if not self.cleaned_data.get("trials"):
                self._missing("trials", "List the trials.")

    def _missing(self, name: str, sentence: str) -> None:
        if name not in self.errors:
            self.add_error(name, sentence)

    @property
    def wanted(self) -> dict[Stratum, int]:
        """How many of each stratum."""
        return {each: self.cleaned_data.get(_wanted_name(each)) or 0 for each in Stratum}

    @property
    def wanted_fields(self) -> list[forms.BoundField]:
        """The fields of the strata, in their order."""
        return [self[_wanted_name(each)] for each in Stratum]


_ENVIRONMENTS: Final = {
    "": "tests and production",
    "test": "tests only",
    "production": "production only",
}


def _wanted_name(stratum: Stratum) -> str:
    return f"wanted_{stratum.name.lower()}"


@dataclass(frozen=True, slots=True)
class _Choice:
    """What the upper part of the form asks for."""

    criteria: tuple[LabelCriterion, ...]
    criterion: LabelCriterion | None
    asked: str
    release: Release | None
    family: str
    environment: str  # test | production; "" takes both


def set_form_page(request: SystemRequest) -> HttpResponse:
    """The form, and what a form that is sent makes."""
    choice = _choice(request)
    if request.method != "POST":
        return _page(request, choice, None)
    form = NewSetForm(request.POST)
    if form.is_valid():
        try:
            made = make_set(
                request.access.system,
                _wish(form, choice),
                by=request.access.user,
                now=timezone.now(),
            )
        except CalibrationSetDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except CalibrationSetError as error:
            form.add_error(None, str(error))
        else:
            _tell(request, made)
            at = Addresses.of(request.access.system.slug)
            return redirect(at.calibration_set(made.number))
    return _page(request, choice, form)


def _tell(request: SystemRequest, made: CalibrationSet) -> None:
    n = made.items.count()
    messages.success(
        request,
        f"Set {made.number} holds {counted(n, 'trial')}, to be labelled by two people each.",
    )


def _wish(form: NewSetForm, choice: _Choice) -> SetWish:
    if choice.criterion is None:
        raise CalibrationSetError("Choose what is to be labelled; it may have changed since.")
    given = form.cleaned_data
    return SetWish(
        name=given["name"],
        reason=given["reason"],
        criterion=choice.criterion.name,
        criterion_digest=choice.criterion.digest,
        sampling=Sampling(given["sampling"]),
        n=given["n"] or 0,
        wanted=form.wanted,
        trials=given["trials"],
        release=choice.release,
        family=choice.family,
        environment=choice.environment,
    )


def _choice(request: SystemRequest) -> _Choice:
    """What is asked for; without a criterion the first one."""
    asked = request.POST if request.method == "POST" else request.GET
    system = request.access.system
    criteria = criteria_to_label(system.pk)
    key = asked.get("criterion", "")
    found = next((each for each in criteria if each.key == key), None)
    if not key and criteria:
        found = criteria[0]
    environment = asked.get("environment", "")
    return _Choice(
        criteria,
        found,
        key,
        _release(system, asked.get("release", "")),
        clean_text(asked.get("family", ""))[:200],
        environment if environment in _ENVIRONMENTS else "",
    )


def _release(system: System, text: str) -> Release | None:
    if not text:
        return None
    identity = uuid_of(text)
    found = Release.objects.filter(system=system, uuid=identity).first() if identity else None
    if found is None:
        raise Http404("There is no such release in this system.")
    return found


def _page(request: SystemRequest, choice: _Choice, sent: NewSetForm | None) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    found = _qualifying(access.system, choice)
    counts = found.n_by_stratum
    page = SetFormPage(
        shell=system_shell(access, section=SECTION),
        crumbs=crumbs_of(access.system, Crumb("New set")),
        criteria=tuple(
            Option(each.key, criterion_words(each), each is choice.criterion)
            for each in choice.criteria
        ),
        releases=_releases(access.system, choice.release),
        families=_families(access.system, choice.family),
        environments=tuple(
            Option(value, words, value == choice.environment)
            for value, words in _ENVIRONMENTS.items()
        ),
        look_url=at.new_calibration_set,
        question=choice.criterion.question if choice.criterion else "",
        strata=tuple(
            StratumLine(each.value, STRATUM_HELP[each], counts.get(each, 0)) for each in Stratum
        ),
        families_found=tuple(sorted(found.n_by_family.items())[:MOST_FAMILIES]),
        more_families=max(0, len(found.n_by_family) - MOST_FAMILIES),
        n_found=len(found.candidates),
        advice=_advice(found),
        notices=_notices(access.system, choice),
        form=sent or NewSetForm(initial=_initial(request, choice, found)),
        hidden=_hidden(choice),
        action=at.new_calibration_set,
        cancel_url=at.calibration_sets,
        why_not=access.refusal(Act.REVIEW),
        empty=None if choice.criteria else _nothing(at),
    )
    status = 422 if sent is not None else 200
    return render(request, "reviews/calibration_set_form.html", {"page": page}, status=status)


def _qualifying(system: System, choice: _Choice) -> Qualifying:
    if choice.criterion is None:
        return Qualifying((), frozenset())
    release = choice.release.pk if choice.release else None
    return qualifying_trials(
        CandidateFilter(
            system,
            choice.criterion,
            release_pk=release,
            family=choice.family,
            environment=choice.environment,
        )
    )


def criterion_words(criterion: LabelCriterion) -> str:
    """A criterion as a choice names it."""
    version = f" {criterion.rubric_version}" if criterion.rubric_version else ""
    where = (
        f"contracts of {counted(criterion.n_tasks, 'task')}"
        if criterion.n_tasks
        else "from files, without a contract"
    )
    return f"{marked_text(criterion.name)}{marked_text(version)} ({where})"


def _releases(system: System, chosen: Release | None) -> tuple[Option, ...]:
    rows = Release.objects.filter(system=system).order_by("-created_at", "-pk")[:200]
    return (
        Option("", "all releases", chosen is None),
        *(Option(str(row.uuid), row.name or NO_RELEASE, row == chosen) for row in rows),
    )


def _families(system: System, chosen: str) -> tuple[Option, ...]:
    names = (
        system.tasks.exclude(family="")
        .values_list("family", flat=True)
        .distinct()
        .order_by("family")
    )
    return (
        Option("", "all families", not chosen),
        *(Option(name, name, name == chosen) for name in names[:200]),
    )


def _advice(found: Qualifying) -> tuple[str, ...]:
    limits = DEFAULT_LIMITS
    said = [
        f"A judge is calibrated on at least {limits.min_items} items that two people labelled.",
        (
            f"With no false pass among them, {N_FAILING} failing items are needed for a bound of "
            f"{_percent(limits.false_pass)}; with no false fail, {N_PASSING} passing ones for "
            f"{_percent(limits.false_fail)}. Each mistake of the judge needs more."
        ),
        (
            "Agreement and kappa are read on random sets only: a stratified one is no picture of what "
            "the judge meets."
        ),
    ]
    n, n_failing = len(found.candidates), found.n_by_stratum.get(Stratum.CLEAR_FAILURE, 0)
    if n:
        expected = round(min(_STANDARD_N, n) * n_failing / n)
        said.append(
            f"{n_failing:,} of the {counted(n, 'trial')} that qualify "
            f"{'is a clear failure' if n_failing == 1 else 'are clear failures'}: a random set of "
            f"{min(_STANDARD_N, n)} holds about {expected} of them."
        )
    return tuple(said)


def _percent(share: Fraction) -> str:
    return f"{float(share) * 100:g} %"


def _notices(system: System, choice: _Choice) -> tuple[pages.Notice, ...]:
    said = list(reviewer_notices(system))
    if choice.asked and choice.criterion is None:
        said.append(
            pages.Notice(
                "That criterion is asked by nothing any more; choose what is asked now.", "warning"
            )
        )
    return tuple(said)


def reviewer_notices(system: System) -> tuple[pages.Notice, ...]:
    """What is to be said where a system has too few reviewers. One query."""
    n = Member.objects.filter(system=system, role=Role.REVIEWER.value, user__is_active=True).count()
    if n >= DEFAULT_LIMITS.min_people:
        return ()
    has = "has one" if n else "has none"
    return (
        pages.Notice(
            f"Calibration needs two reviewers, and a third where they differ; this system {has}. "
            "Until then its judges stay exploratory.",
            "warning",
        ),
    )


def _initial(request: SystemRequest, choice: _Choice, found: Qualifying) -> dict[str, str | int]:
    shares = suggested_shares(_STANDARD_N, found.n_by_stratum, n_failures=N_FAILING)
    asked = request.GET.get("sampling", "")
    trials = request.GET.getlist("trial")[:MOST_ITEMS]
    kind = Sampling.CHOSEN.value if trials else Sampling.RANDOM.value
    return {
        "name": choice.criterion.name[:150] if choice.criterion else "",
        "sampling": asked if asked in set(Sampling) else kind,
        "n": min(_STANDARD_N, len(found.candidates)) or _STANDARD_N,
        "trials": "\n".join(trials),
        "reason": request.GET.get("reason", "")[:200],
        **{_wanted_name(each): n for each, n in shares.items()},
    }


def _hidden(choice: _Choice) -> tuple[pages.Hidden, ...]:
    return (
        pages.Hidden("criterion", choice.criterion.key if choice.criterion else ""),
        pages.Hidden("release", str(choice.release.uuid) if choice.release else ""),
        pages.Hidden("family", choice.family),
        pages.Hidden("environment", choice.environment),
    )


def _nothing(at: Addresses) -> pages.Empty:
    return pages.Empty(
        heading="Nothing to label yet",
        sentence="A set is about a rubric or an external criterion of a contract in effect, or about "
        "a criterion of verdicts that came in files. Trials of split tuning are never labelled.",
        act=pages.Link("Contracts", at.contracts),
    )
