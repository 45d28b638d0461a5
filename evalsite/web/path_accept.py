"""The form that accepts the path of a passing trial, at a level, with the reason."""

from __future__ import annotations

from uuid import UUID

from django import forms
from django.contrib import messages
from django.http import Http404, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common.formatting import counted
from evalsite.common.shell import Choice, Crumb
from evalsite.web.accepted import ReasonForm, level_words, path_members
from reviews.core.accepted_paths import Refusal, RefusalCode, accepted_name, refusal_of_path
from reviews.selectors.accepted import (
    Candidate,
    CandidatePath,
    candidate_of,
    flagged_on_path,
    members_of_path,
)
from reviews.services.accepted_paths import AcceptanceError, accept_path
from traces.core.paths import PathLevel
from traces.models import Task
from traces.selectors.path_layout import path_layout
from traces.selectors.paths import key_name
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules import rules_of
from traces.web import aligned, pages
from traces.web.addresses import Addresses, address
from traces.web.asking import uuid_of
from traces.web.levels import LEVEL_HELP, LEVEL_NAMES, ChosenLevel, path_switches
from traces.web.pages.accepted import AcceptPage, LevelChoice
from traces.web.rows import trial_label
from traces.web.shell import system_shell
from traces.web.tool_names import tool_looks


class AcceptForm(ReasonForm):
    """The level at which a path is accepted, and why."""

    level = forms.ChoiceField(
        choices=[(level.value, LEVEL_NAMES[level]) for level in PathLevel],
        error_messages={"required": "Choose a level."},
    )


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def path_accept(request: SystemRequest, task: UUID) -> HttpResponse:
    """Accept a path with a level and a reason."""
    system = request.access.system
    asked: QueryDict = request.POST if request.method == "POST" else request.GET
    found = Task.objects.filter(system=system, uuid=task).first()
    trial = uuid_of(asked.get("trial", ""))
    candidate = candidate_of(found, system, trial) if found and trial else None
    if found is None or candidate is None:
        raise Http404("There is no such trial of this task.")
    at = Addresses.of(system.slug)
    chosen = ChosenLevel.of(asked, default=PathLevel.SEQUENCE)
    form = AcceptForm(request.POST if request.method == "POST" else None)
    if form.is_valid():
        try:
            path = accept_path(
                found,
                trial=candidate.uuid,
                level=chosen.level,
                messages=chosen.messages,
                reason=form.cleaned_data["reason"],
                by=request.access.user,
                now=timezone.now(),
            )
        except AcceptanceError as error:
            form.add_error(None, str(error))
        else:
            messages.success(request, f"The path is accepted, as {accepted_name([path.number])}.")
            return redirect(at.register(found.uuid))
    page = _page(request, found, candidate, chosen, form, at)
    return render(
        request, "reviews/path_accept.html", {"page": page}, status=422 if form.is_bound else 200
    )


def _page(
    request: SystemRequest,
    task: Task,
    candidate: Candidate,
    chosen: ChosenLevel,
    form: AcceptForm,
    at: Addresses,
) -> AcceptPage:
    system = request.access.system
    rules = rules_of(system)
    members = members_of_path(
        task.pk, system.shown_rules_id, path_key=chosen.key, key=candidate.keys[chosen.key]
    )
    layout = path_layout(
        (path_members(candidate.trajectory, members),),
        (),
        level=chosen.level,
        messages=chosen.messages,
        rules=rules,
        task_id=task.task_id,
    )
    looks = tool_looks(layout.tools, rules)
    here, href = at.accept(task.uuid), at.trial(candidate.uuid)
    refusals = _refusals(candidate, messages=chosen.messages)
    flags, flags_more = _flags(task, system.shown_rules_id, candidate, chosen, at)
    label = trial_label(candidate.label, candidate.attempt)
    return AcceptPage(
        shell=system_shell(request.access, section="Tasks"),
        crumbs=(
            Crumb(system.name, at.tasks),
            Crumb("Tasks", at.tasks),
            Crumb(task.task_id, at.task(task.uuid)),
            Crumb("Accepted paths", at.register(task.uuid)),
            Crumb("Accept"),
        ),
        task_id=task.task_id,
        title=task.title,
        trial=pages.Link(f"trial {label}", href),
        hidden=(
            pages.Hidden("trial", str(candidate.uuid)),
            *([pages.Hidden("messages", "1")] if chosen.messages else []),
        ),
        words=f"of {candidate.release_name or NO_RELEASE}",
        level=level_words(chosen.level, messages=chosen.messages),
        cells=aligned.path_cells(layout.rows[0], looks, trial=href),
        tools=tuple(look.key for look in looks.values()),
        note=aligned.layout_note(layout),
        refusal=_sentence(refusals[chosen.level]) if all(refusals.values()) else "",
        notices=_notices(candidate, chosen, refusals, is_bound=form.is_bound),
        flags=flags,
        flags_more=flags_more,
        form=form,
        levels=tuple(_choice(candidate, level, chosen, refusals) for level in PathLevel),
        messages=_switch(candidate, chosen, here),
        action=here,
        cancel_url=address(at.task(task.uuid), chosen.values),
    )


def _switch(candidate: Candidate, chosen: ChosenLevel, here: str) -> tuple[Choice, ...]:
    return path_switches(
        chosen, href=lambda level: address(here, {"trial": candidate.uuid, **level})
    ).messages


def _refusals(candidate: Candidate, *, messages: bool) -> dict[PathLevel, Refusal | None]:
    return {
        level: refusal_of_path(candidate.path(level, messages=messages).facts)
        for level in PathLevel
    }


def _is_one_reason(refusals: dict[PathLevel, Refusal | None]) -> bool:
    """Whether one sentence says for all levels why not; of flags only their number differs."""
    reasons = {
        each.code if each and each.code is RefusalCode.FLAGGED else _sentence(each)
        for each in refusals.values()
    }
    return len(reasons) == 1


def _sentence(refusal: Refusal | None) -> str:
    return refusal.sentence if refusal else ""


def _flags(
    task: Task, rules_pk: int | None, candidate: Candidate, chosen: ChosenLevel, at: Addresses
) -> tuple[tuple[pages.Link, ...], pages.Link | None]:
    """The open flags of each trial that keeps the path back, and those of the task if it is many."""
    facts = candidate.path(chosen.level, messages=chosen.messages).facts
    refusal = refusal_of_path(facts)
    if refusal is None or refusal.code is not RefusalCode.FLAGGED:
        return (), None
    trials = flagged_on_path(task.pk, rules_pk, path_key=chosen.key, key=candidate.keys[chosen.key])
    links = tuple(
        pages.Link(
            f"Open flags of trial {trial_label(trial.label, trial.attempt)} "
            f"of {trial.release_name or NO_RELEASE}",
            address(at.flags, {"trial": trial.uuid}),
        )
        for trial in trials
    )
    n_more = facts.n_flagged - len(trials)
    if n_more <= 0:
        return links, None
    return links, pages.Link(
        f"and of {counted(n_more, 'more trial')}: flags of all passing trials of the task",
        address(at.flags, {"task": task.uuid, "passing": "1"}),
    )


def _choice(
    candidate: Candidate,
    level: PathLevel,
    chosen: ChosenLevel,
    refusals: dict[PathLevel, Refusal | None],
) -> LevelChoice:
    """A level, with why not, which the page says once where it is the same for all."""
    path = candidate.path(level, messages=chosen.messages)
    refusal = refusals[level]
    return LevelChoice(
        value=level.value,
        label=LEVEL_NAMES[level],
        help=LEVEL_HELP[level],
        words=_words(path),
        refusal="" if _is_one_reason(refusals) else _sentence(refusal),
        is_refused=refusal is not None,
        is_selected=level is chosen.level and refusal is None,
    )


def _words(path: CandidatePath) -> str:
    trials = counted(path.n_trials, "passing trial")
    return f"{trials} of {counted(path.n_releases, 'release')}"


def _notices(
    candidate: Candidate,
    chosen: ChosenLevel,
    refusals: dict[PathLevel, Refusal | None],
    *,
    is_bound: bool,
) -> tuple[pages.Notice, ...]:
    """Why not at this level, which a form that was sent says itself; and what to know before.

    Why at no level is not among them: the page says it for itself, first.
    """
    path = candidate.path(chosen.level, messages=chosen.messages)
    refusal = None if is_bound or all(refusals.values()) else refusals[chosen.level]
    notices = [pages.Notice(refusal.sentence, level="warning")] if refusal else []
    wider = [
        number
        for number, column in candidate.covering
        if column != key_name(chosen.level, messages=chosen.messages)
    ]
    if wider:
        verb = "covers" if len(wider) == 1 else "cover"
        notices.append(pages.Notice(f"{accepted_name(wider)} {verb} this trial already."))
    if path.n_failed:
        notices.append(
            pages.Notice(
                f"{counted(path.n_failed, 'trial')} on this path failed: the steps alone do not "
                "tell why the others passed.",
                level="warning",
            )
        )
    return tuple(notices)
