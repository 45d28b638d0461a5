"""A task made of a trial that failed or that nothing decides, with a contract to propose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django import forms
from django.contrib import messages
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.http import Http404, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from evalsite.access import Act, SystemRequest, in_system
from evalsite.common import blobs
from evalsite.common.shell import Crumb
from evalsite.web.flag_rows import disposition_badge, trial_link
from evalsite.web.trial_standings import requirement_name
from reviews.core.disposition import StandingResult
from reviews.selectors.flags import FlaggableTrial, flaggable_trial
from reviews.selectors.standings import trial_standings
from reviews.services.contracts import ContractFindingsError, ContractsError, draft_contracts
from traces.core.canonical import nfc
from traces.core.contracts.documents import UnreadableTextError, chunks_of, document_of
from traces.core.contracts.drafting import HINTS, draft_from_trial, draft_of
from traces.core.contracts.writing import contract_text
from traces.core.records import Disposition, TrialStatus
from traces.core.shown_json import shown_json
from traces.core.strict_json import StrictJsonError, loads_text
from traces.core.text_marks import clean_text
from traces.core.trajectory import Actor
from traces.core.values import Json, JsonObject
from traces.models import ContractPreview, Split, Task, Trial
from traces.permissions.families import tasks_refusal
from traces.selectors.families import splits_of_family, tasks_made_from
from traces.selectors.trial_evidence import trial_evidence
from traces.services.families import (
    LONGEST_REASON,
    SPLIT_WORDS,
    FamilyDeniedError,
    FamilyError,
)
from traces.services.new_tasks import (
    LONGEST_FAMILY,
    LONGEST_ID,
    LONGEST_TITLE,
    NOT_OPEN,
    make_task,
)
from traces.tasks import hint_contract_preview
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.new_task import NewTaskPage, TextFinding
from traces.web.rows import trial_label
from traces.web.shell import system_shell

_NO_TRIAL = "There is no such trial in this system."
LONGEST_TEXT = 256 * 1024  # characters of a contract's text
LONGEST_INPUT = 64 * 1024
LONGEST_FACTS = 64 * 1024
_REQUIRING = frozenset({"outcome", "required", "prohibited", "budget", "semantic", "external"})
NAMED_CRITERIA = 6  # in the reason that the form begins with
_NO_OBJECT = 'Facts are a JSON object, such as {"order": "A-1"}.'
_OPEN = (Disposition.FAIL, Disposition.UNRESOLVED)


class FactsField(forms.CharField):
    """Starting facts as a JSON object."""

    def clean(self, value: object) -> JsonObject:
        """The object; {} for an empty text."""
        text = str(super().clean(value)).strip()
        if not text:
            return {}
        try:
            facts = loads_text(text)
        except StrictJsonError as error:
            raise ValidationError(f"{_NO_OBJECT} {error.sentence}") from error
        if not isinstance(facts, dict):
            raise ValidationError(_NO_OBJECT)
        return facts


class NewTaskForm(forms.Form):
    """What the new task is, and what decides it."""

    task_id = forms.CharField(label="Task id", max_length=LONGEST_ID)
    title = forms.CharField(required=False, max_length=LONGEST_TITLE)
    family = forms.CharField(
        required=False,
        max_length=LONGEST_FAMILY,
        help_text="Tasks that resemble each other; a family stays in one split.",
    )
    split = forms.ChoiceField(
        choices=[("", "no split yet"), *((each.value, SPLIT_WORDS[each.value]) for each in Split)],
        required=False,
        error_messages={"invalid_choice": "A split is tuning, held out or regression."},
    )
    input = forms.CharField(
        required=False,
        max_length=LONGEST_INPUT,
        widget=forms.Textarea(attrs={"rows": 4}),
        help_text="What the user says first, as in the trial.",
    )
    facts = FactsField(
        required=False,
        max_length=LONGEST_FACTS,
        widget=forms.Textarea(attrs={"rows": 3, "spellcheck": "false", "class": "mono"}),
        help_text="Starting facts as a JSON object, the same in every trial of the new task.",
    )
    reason = forms.CharField(
        max_length=LONGEST_REASON,
        widget=forms.Textarea(attrs={"rows": 2}),
        help_text="What went wrong in the trial, and what the task is to show.",
    )
    text = forms.CharField(
        label="Contract",
        required=False,
        max_length=LONGEST_TEXT,
        strip=False,
        widget=forms.Textarea(attrs={"rows": 18, "spellcheck": "false", "class": "mono"}),
    )


@dataclass(frozen=True, slots=True)
class _Origin:
    """What the form is prefilled with, and where the contract's text comes from."""

    values: Mapping[str, str]
    contract_note: str


@require_http_methods(["GET", "HEAD", "POST"])
@in_system(Act.CONTRIBUTE)
def task_from_trial(request: SystemRequest, trial: UUID) -> HttpResponse:
    """Make a task of a trial; its contract goes to a preview, ready to be proposed."""
    access = request.access
    found = flaggable_trial(access.system.pk, trial)
    if found is None:
        raise Http404(_NO_TRIAL)
    rows = Trial.objects.select_related("task__contract", "task_version")
    stored = rows.get(pk=found.pk)
    if request.method != "POST":
        origin = _origin(stored)
        return _shown(request, found, stored, NewTaskForm(initial=dict(origin.values)), origin)
    form = NewTaskForm(request.POST)
    findings: tuple[TextFinding, ...] = ()
    if form.is_valid():
        try:
            return redirect(_made(request, stored, form.cleaned_data))
        except FamilyDeniedError as error:
            raise PermissionDenied(str(error)) from error
        except ContractFindingsError as error:
            findings = tuple(
                TextFinding(each.place, clean_text(each.sentence)) for each in error.findings
            )
        except (FamilyError, ContractsError) as error:
            form.add_error(None, str(error))
    return _shown(request, found, stored, form, None, findings, status=422)


def _made(request: SystemRequest, trial: Trial, values: Mapping[str, Any]) -> str:
    """Make the task and the draft of its contract, both or neither. Returns where to go on."""
    access = request.access
    at = Addresses.of(access.system.slug)
    now = timezone.now()
    text, requires = _text_of(values)
    with transaction.atomic():
        task, _ = make_task(
            trial,
            **{name: values[name] for name in ("task_id", "title", "family", "split", "reason")},
            input=values["input"].strip() or None,
            facts=values["facts"],
            by=access.user,
            now=now,
        )
        preview = None
        if requires:
            preview = _drafted_before(request, task, text) or draft_contracts(
                access.system, text, by=access.user, now=now
            )
    if preview is None:
        messages.success(
            request, f"Task {task.task_id} is made. Say now what a trial of it requires."
        )
        return address(at.contract_form, {"task": task.uuid})
    hint_contract_preview(preview.pk)
    messages.success(
        request, f"Task {task.task_id} is made. Propose its contract when the preview is done."
    )
    return at.contract_preview(preview.uuid)


def _drafted_before(request: SystemRequest, task: Task, text: str) -> ContractPreview | None:
    """The draft that the same form made a moment ago, where it was sent twice."""
    rows = ContractPreview.objects.filter(
        system=request.access.system, by=request.access.user, texts__has_key=task.task_id
    )
    newest = rows.order_by("-pk").first()
    return newest if newest and newest.texts == {task.task_id: text} else None


def _text_of(values: Mapping[str, Any]) -> tuple[str, bool]:
    """The contract's text with the form's own fields in it, and whether it requires anything.

    A text that cannot be read stays as it is: whoever reads it says what is wrong.
    """
    text: str = values["text"].replace("\r\n", "\n")
    if not text.strip():
        return "", False
    document = _document(text)
    if document is None:
        return text, True
    own: JsonObject = {
        "task": nfc(values["task_id"].strip()),
        "title": values["title"].strip(),
        "family": values["family"].strip(),
        "split": values["split"],
        "input": values["input"].replace("\r\n", "\n").strip(),
        "facts": values["facts"],
    }
    wanted: JsonObject = {name: value for name, value in own.items() if value not in ("", {})}
    same = {name: document[name] for name in own if name in document} == wanted
    requires = bool(document.keys() & _REQUIRING)
    if same:
        return text, requires
    kept = {name: value for name, value in document.items() if name not in own}
    return contract_text({**wanted, **kept}), requires


def _document(text: str) -> JsonObject | None:
    """The document of a text that holds exactly one; None for any other."""
    try:
        chunks = chunks_of(text)
    except UnreadableTextError:
        return None
    if len(chunks) != 1:
        return None
    document = document_of(chunks[0])
    return document.value if document.is_whole and isinstance(document.value, dict) else None


def _origin(trial: Trial) -> _Origin:
    """A task like the trial's own, with the trial's facts and first message."""
    task = trial.task
    recorded = next(iter(trial_evidence([trial.pk]))).recorded
    first = next((step for step in recorded.steps if step.actor is Actor.USER), None)
    said = "\n".join(part.text for part in first.parts) if first else ""
    splits = [each for each in splits_of_family(task.system_id, task.family) if each]
    split = splits[0] if len(splits) == 1 else task.split or Split.TUNING.value
    task_id = _free_id(trial)
    base, note = _base_contract(trial)
    draft = draft_from_trial(
        task_id,
        input=clean_text(said)[:LONGEST_INPUT] or None,
        facts=recorded.facts or {},
        initial_state=recorded.initial_state,
        family=task.family,
        split=split,
        contract=base,
    )
    if task.title:
        draft.setdefault("title", task.title)
    text = contract_text(draft)
    facts = draft.get("facts") or {}
    return _Origin(
        values={
            "task_id": task_id,
            "title": task.title,
            "family": task.family,
            "split": split,
            "input": _plain(draft.get("input")),
            "facts": clean_text(shown_json(facts)) if facts else "",
            "reason": _why(trial),
            "text": text if draft.keys() & _REQUIRING else text + HINTS,
        },
        contract_note=note,
    )


def _plain(value: Json) -> str:
    return value if isinstance(value, str) else ""


def _base_contract(trial: Trial) -> tuple[JsonObject | None, str]:
    """The document that the new contract starts from, and where it comes from."""
    contract = trial.task.contract
    if contract is not None:
        note = f"From contract version {contract.number} of task {trial.task.task_id}."
        return _document(contract.text), note
    definition = blobs.unpack(bytes(trial.task_version.definition))
    draft = draft_of(trial.task.task_id, definition if isinstance(definition, dict) else None)
    document = _document(draft)
    if document is not None and document.keys() & _REQUIRING:
        return document, f"Drafted from the definition of task {trial.task.task_id}."
    return None, (
        f"Task {trial.task.task_id} has no contract to start from. Say what is required, or leave "
        "it for later: the editor opens next."
    )


def _free_id(trial: Trial) -> str:
    """An id that no task of the system has yet."""
    label = trial_label(trial.label, trial.attempt).replace(", attempt ", "-")
    stem = clean_text(f"{trial.task.task_id[:200]}-from-{label[:100]}")
    taken = set(
        Task.objects.filter(system=trial.system_id, task_id__startswith=stem).values_list(
            "task_id", flat=True
        )
    )
    number = 2
    name = stem
    while name in taken:
        name = f"{stem}-{number}"
        number += 1
    return name


def _why(trial: Trial) -> str:
    """The reason that the form begins with: what failed, else what is open."""
    standings = trial_standings(
        trial.pk,
        system_pk=trial.system_id,
        task_pk=trial.task_id,
        status=TrialStatus(trial.status),
        contract_pk=trial.task.contract_id,
    )
    is_fail = standings.decision.disposition is Disposition.FAIL
    wanted = StandingResult.FAIL if is_fail else StandingResult.OPEN
    names = [
        requirement_name(each.standing.requirement)
        for each in standings.details
        if each.standing.requirement.mandatory and each.standing.result is wanted
    ]
    label = trial_label(trial.label, trial.attempt)
    said = "failed" if is_fail else "is not decided"
    listed = f": {', '.join(names[:NAMED_CRITERIA])}" if names else ""
    return clean_text(f"Trial {label} of task {trial.task.task_id} {said}{listed}.")


def _shown(
    request: SystemRequest,
    found: FlaggableTrial,
    trial: Trial,
    form: NewTaskForm,
    origin: _Origin | None,
    findings: tuple[TextFinding, ...] = (),
    *,
    status: int = 200,
) -> HttpResponse:
    access = request.access
    at = Addresses.of(access.system.slug)
    label = trial_link(found.trial, at)
    is_open = found.trial.disposition in _OPEN
    page = NewTaskPage(
        shell=system_shell(access, section="Tasks"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb(found.trial.task_id, at.task(found.trial.task_uuid)),
            Crumb(f"trial {label.label}", label.href),
            Crumb("New task"),
        ),
        trial=label,
        disposition=disposition_badge(found.trial),
        form=form,
        split_note=_split_note(trial.task.system_id, form),
        contract_note=origin.contract_note if origin else "",
        findings=findings,
        made=tuple(
            pages.Link(each.task_id, at.task(each.uuid)) for each in tasks_made_from(trial.pk)
        ),
        action=at.task_from(trial.uuid),
        back=at.trial(trial.uuid),
        why_not=tasks_refusal(trial.system_id, access.user) or ("" if is_open else NOT_OPEN),
    )
    return render(request, "traces/task_from_trial.html", {"page": page}, status=status)


def _split_note(system_pk: int, form: NewTaskForm) -> str:
    """Why the split cannot be chosen for the family of the form; "" where it can."""
    family = clean_text(str(form["family"].value() or "")).strip()[:LONGEST_FAMILY]
    splits = [SPLIT_WORDS[each] for each in splits_of_family(system_pk, family) if each]
    if not splits:
        return ""
    if len(splits) > 1:
        return "The tasks of this family are in several splits; put the family into one first."
    return f"The family is in split {splits[0]} and stays together; its split is changed for all."
