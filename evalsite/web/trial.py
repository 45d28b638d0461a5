"""A trial: its transcript, what it comes to and why, its verdicts and states."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from django.contrib import messages
from django.http import Http404, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET

from evalsite.access import SystemRequest, in_system
from evalsite.common import blobs
from evalsite.common.formatting import (
    bytes_text,
    count_text,
    counted,
    duration_text,
    money_text,
    time_text,
)
from evalsite.common.shell import Crumb, Pager
from evalsite.web.flag_rows import flag_note
from evalsite.web.trial_standings import StepLinks, requirement_name, standings_of
from evalsite.web.trial_verdicts import cited_steps, verdict_rows
from reviews.core.disposition import Decision, GivenVerdict, NextAction, StandingResult
from reviews.core.notices import NoticeCode, NoticedTrial, notices_on
from reviews.selectors.blinding import HIDDEN, hidden_criteria
from reviews.selectors.flags import RaisedFlag, flags_of_trial
from reviews.selectors.standings import TrialStandings, trial_standings
from traces.core.records import Disposition, TrialStatus
from traces.core.text_marks import clean_text, marked_text
from traces.models import Trial, TrialRecord, Upload
from traces.selectors.families import tasks_made_from
from traces.selectors.raw_records import raw_record
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules import rules_of
from traces.selectors.trajectories import agent_step_numbers
from traces.selectors.trial_detail import (
    RecordFacts,
    ShownDifference,
    TrialDetail,
    message_of,
    page_of_step,
    record_facts,
    record_with_additions,
    trial_detail,
)
from traces.services.uploads import stored_path
from traces.web import pages
from traces.web.addressed_notes import steps_notice
from traces.web.addresses import Addresses, address
from traces.web.asking import number_in
from traces.web.downloads import attachment
from traces.web.rows import STATES, action_words, trial_label
from traces.web.shell import system_shell
from traces.web.transcript import ShownTranscript, shown_transcript

_NAIVE_TIME = "naive-time"
# A reader warns of some things that flags and notices say too, in words of their own.
_SAID_ELSEWHERE = frozenset({_NAIVE_TIME, *(code.value for code in NoticeCode)})
_QUIET = frozenset({NoticeCode.IMPORTED_HUMAN_VERDICT})
_DECIDED_BLIND = (
    "What it comes to depends on a criterion of a blind set that you may be asked to label."
)
_RAW_IS_HIDDEN = (
    "The raw record holds what others say of this trial, which is in a blind set. Show what is "
    "hidden first, and leave its item to others."
)
LISTED_FLAGS = 6  # open ones above the transcript; the list of flags has all


@require_GET
@in_system()
def trial_page(request: SystemRequest, trial: UUID) -> HttpResponse:
    """One trial, a page of its transcript at a time."""
    system = request.access.system
    found = trial_detail(system.pk, trial, rules_pk=system.shown_rules_id)
    if found is None:
        raise Http404("There is no such trial in this system.")
    at = Addresses.of(system.slug)
    here = at.trial(found.uuid)
    if (message := number_in(request, "agent")) is not None:
        return redirect(_agent_step(found, message, at))
    rules = rules_of(system)
    asked = number_in(request, "step") or number_in(request, "from")
    standings = trial_standings(
        found.pk,
        system_pk=system.pk,
        task_pk=found.task_pk,
        status=TrialStatus(found.status),
        contract_pk=found.contract_pk,
    ).without(_hidden(request, found.pk))
    given = standings.given
    flags = [each for each in flags_of_trial(found.pk) if _is_shown(each, standings)]
    # What people say comes before what the product notices.
    open_flags = sorted((flag for flag in flags if flag.is_open), key=lambda flag: not flag.by_name)
    record = _record(found.pk, standings)
    transcript = shown_transcript(
        found.pk,
        page_of_step(found.pk, asked or 1),
        trial_url=here,
        rules=rules,
        cited=cited_steps(standings),
    )
    links = StepLinks.of(found, transcript, here)
    rows = verdict_rows(
        standings,
        links,
        at=at,
        access=request.access,
        trial=found.uuid,
        now=timezone.now(),
    )
    page = pages.TrialPage(
        shell=system_shell(request.access, section="Trials"),
        crumbs=_crumbs(system.name, found, at),
        title=found.task_title or f"Task {found.task_id}",
        sub=_sub(found, at),
        disposition=_disposition(
            standings,
            is_broken=found.status == TrialStatus.ERROR.value,
            is_standing=found.is_standing,
        ),
        standings=standings_of(
            standings,
            found,
            record,
            made=tasks_made_from(found.pk),
            access=request.access,
            links=links,
        ),
        notices=_notices(found, record, given, asked, {flag.key for flag in flags})
        + steps_notice(transcript.addressed, is_part=bool(transcript.next or transcript.previous)),
        flags=tuple(flag_note(flag, at) for flag in open_flags[:LISTED_FLAGS]),
        more_flags=_more_flags(open_flags, found, at),
        closed_flags=tuple(flag_note(flag, at) for flag in flags if not flag.is_open),
        flag_url=address(at.flag_form(found.uuid), {"step": asked}),
        cells=transcript.cells,
        tools=transcript.tools,
        steps=transcript.steps,
        n_steps=found.n_messages,
        pager=_pager(transcript, found, here),
        step_action=here,
        step_asked=asked,
        verdicts=rows.shown,
        superseded=rows.superseded,
        hidden=_hidden_criteria(standings, found, at),
        n_verdicts_waiting=0,
        state=_state(record),
        facts=_facts(found, record, at),
        raw_url=at.raw_trial(found.uuid),
        compare_url=address(at.compare(found.task_uuid), {"side": found.uuid.hex}),
        same_path=_same_path(found, at),
        previous=_neighbour(found.previous, at),
        next=_neighbour(found.next, at),
        cells_note=_cells_note(transcript),
    )
    return render(request, "traces/trial_detail.html", {"page": page})


def _hidden(request: SystemRequest, trial_pk: int) -> frozenset[str]:
    """Criteria on which the page keeps from the reader what others say."""
    access = request.access
    return hidden_criteria(access.user.pk, access.role, [trial_pk]).get(trial_pk, frozenset())


def _is_shown(flag: RaisedFlag, standings: TrialStandings) -> bool:
    """Whether a flag says nothing of a criterion that is hidden; what people wrote is shown."""
    return bool(flag.by_name) or flag.criterion not in standings.hidden


def _hidden_criteria(
    standings: TrialStandings, trial: TrialDetail, at: Addresses
) -> pages.HiddenCriteria | None:
    if not standings.hidden:
        return None
    return pages.HiddenCriteria(
        sentence=HIDDEN,
        names=standings.hidden,
        trial=str(trial.uuid),
        action=f"{at.calibration_sets}reveal",
        back=at.trial(trial.uuid),
    )


def _record(trial_pk: int, standings: TrialStandings) -> RecordFacts:
    """The trial's record, with states that were added since."""
    filled = {part for addition in standings.additions for part in addition.parts}
    if filled & {"initial_state", "final_state"}:
        return record_with_additions(trial_pk, len(standings.additions))
    return record_facts(trial_pk)


def _agent_step(trial: TrialDetail, message: int, at: Addresses) -> str:
    """The address of the agent's n-th message."""
    numbers = agent_step_numbers(trial.pk)
    if not 1 <= message <= len(numbers):
        raise Http404("The agent sent fewer messages than that.")
    return at.step(trial.uuid, numbers[message - 1])


def _crumbs(system_name: str, trial: TrialDetail, at: Addresses) -> tuple[Crumb, ...]:
    return (
        Crumb(system_name, at.tasks),
        Crumb("Tasks", at.tasks),
        Crumb(trial.task_id, at.task(trial.task_uuid)),
        Crumb(f"trial {trial_label(trial.label, trial.attempt)}"),
    )


def _sub(trial: TrialDetail, at: Addresses) -> tuple[pages.Link, ...]:
    items = [
        pages.Link(f"Release {trial.release_name or NO_RELEASE}", at.release(trial.release_uuid)),
        pages.Link(f"run {trial.run_name}", at.run(trial.run_uuid)),
        pages.Link(counted(trial.n_messages, "step")),
        pages.Link(counted(trial.n_tool_calls, "tool call")),
    ]
    if trial.n_rejected:
        items.append(pages.Link(f"{count_text(trial.n_rejected)} rejected"))
    if trial.seconds is not None:
        items.append(pages.Link(duration_text(trial.seconds)))
    if trial.cost_usd is not None:
        items.append(pages.Link(money_text(trial.cost_usd)))
    return tuple(items)


def _disposition(found: TrialStandings, *, is_broken: bool, is_standing: bool) -> pages.Disposition:
    decision = found.decision
    if found.is_decision_hidden:
        return pages.Disposition(
            value="hidden", sentence=_DECIDED_BLIND, next_actions=tuple(_waiting(found))
        )
    actions = _waiting(found) or [action_words(action.value) for action in decision.actions]
    if is_broken and not is_standing:
        actions = []  # it was run again
    return pages.Disposition(
        value=STATES[Disposition(decision.disposition.value)],
        sentence=_decision_words(decision, is_broken=is_broken),
        next_actions=tuple(action[0].upper() + action[1:] for action in actions),
        note="" if found.contract else "The task has no contract: the imported criteria decide.",
    )


def _waiting(found: TrialStandings) -> list[str]:
    """What waits for each next action and why, requirements with the same reason together."""
    decision = found.decision
    words: list[str] = []
    for action in decision.actions:
        act = action_words(action.value)
        if action is NextAction.REPAIR_EVIDENCE and found.missing_evidence:
            names = ", ".join(found.missing_evidence)
            words.append(f"{act}. The contract asks for what was not recorded: {names}.")
        by_reason: dict[str, list[str]] = {}
        for standing in decision.standings:
            if standing.requirement.mandatory and standing.action is action:
                name = marked_text(requirement_name(standing.requirement))
                by_reason.setdefault(standing.sentence, []).append(name)
        words += (f"{act} {', '.join(names)}. {why}" for why, names in by_reason.items())
    return words


def _decision_words(decision: Decision, *, is_broken: bool) -> str:
    """Why, with the requirements that failed by their class."""
    by_class = [
        (
            name.value,
            [
                marked_text(requirement_name(standing.requirement))
                for standing in decision.standings
                if standing.requirement.mandatory
                and standing.result is StandingResult.FAIL
                and standing.requirement.criterion_class is name
                and (standing.requirement.is_prohibition or not is_broken)
            ],
        )
        for name in decision.failed_classes
    ]
    if not by_class:
        return decision.sentence
    failed = "; ".join(f"{', '.join(names)} ({name})" for name, names in by_class)
    return f"{f'{decision.sentence} ' if is_broken else ''}Failed: {failed}."


def _more_flags(
    open_flags: Sequence[RaisedFlag], trial: TrialDetail, at: Addresses
) -> pages.Link | None:
    n_more = len(open_flags) - LISTED_FLAGS
    if n_more <= 0:
        return None
    words = f"{counted(n_more, 'more open flag')} on this trial"
    return pages.Link(words, address(at.flags, {"trial": trial.uuid}))


def _notices(
    trial: TrialDetail,
    record: RecordFacts,
    given: Sequence[GivenVerdict],
    asked: int | None,
    flagged: set[UUID],
) -> tuple[pages.Notice, ...]:
    """What is odd about the trial, but what its flags say already."""
    noticed = NoticedTrial(
        status=TrialStatus(trial.status),
        n_steps=trial.n_messages,
        n_agent_steps=trial.n_agent_steps,
    )
    notices = [
        pages.Notice(
            clean_text(notice.sentence),
            level="info" if notice.code in _QUIET else "warning",
            place=notice.criterion,
        )
        for notice in notices_on(noticed, given)
        if UUID(bytes=notice.key) not in flagged
    ]
    if trial.status == TrialStatus.ERROR.value:
        error = trial.error or "the record does not say how"
        notices.insert(0, pages.Notice(f"The harness broke: {error}", level="error"))
    if not trial.is_standing:
        notices.insert(0, pages.Notice("A later attempt stands for this trial."))
    if record.fault:
        notices.append(pages.Notice(f"A fault was injected: {record.fault}"))
    notices += [
        pages.Notice(each.sentence, place=each.place)
        for each in record.warnings
        if each.code not in _SAID_ELSEWHERE
    ]
    if asked is not None and asked > trial.n_messages:
        sentence = f"There is no step {count_text(asked)}; the transcript has "
        notices.append(
            pages.Notice(f"{sentence}{counted(trial.n_messages, 'step')}.", level="warning")
        )
    return tuple(notices)


def _pager(page: ShownTranscript, trial: TrialDetail, here: str) -> Pager:
    if page.previous is None and page.next is None:
        return Pager()
    words = (
        f"steps {count_text(page.first)} to {count_text(page.last)} "
        f"of {count_text(trial.n_messages)}"
    )
    return Pager(
        previous_url="" if page.previous is None else f"{here}?from={page.previous}",
        next_url="" if page.next is None else f"{here}?from={page.next}",
        words=words,
    )


def _cells_note(page: ShownTranscript) -> str:
    if page.previous is None and page.next is None:
        return ""
    return f"The agent's steps from {count_text(page.first)} to {count_text(page.last)}."


def _state(record: RecordFacts) -> pages.StateDifference | None:
    if not record.recorded_states:
        return None
    source = record.state_source
    found = record.changed
    if found is None:
        missing = "initial" if "initial_state" not in record.recorded_states else "final"
        sentence = f"The {missing} state was not recorded, so nobody can say what changed."
        return pages.StateDifference(sentence, source=source)
    sentence = _changes_sentence(found)
    if record.against_expected is not None:
        n = record.against_expected.n_differences
        sentence += (
            " The final state is the one that the record expects."
            if not n
            else f" It differs from the state that the record expects in {counted(n, 'place')}."
        )
    return pages.StateDifference(
        sentence,
        changes=tuple(
            pages.StateChange(change.kind, change.path, change.before, change.after)
            for change in found.changes
        ),
        n_more=found.n_differences - len(found.changes),
        source=source,
    )


def _changes_sentence(found: ShownDifference) -> str:
    collections = (
        f" in {counted(found.n_collections, 'collection')}, {counted(found.n_records, 'record')}"
        if found.n_collections
        else ""
    )
    if not found.n_differences:
        return f"No difference{collections}."
    return f"{counted(found.n_differences, 'difference')}{collections}."


def _facts(trial: TrialDetail, record: RecordFacts, at: Addresses) -> tuple[pages.Fact, ...]:
    facts = [
        pages.Fact("Trial", trial_label(trial.label, trial.attempt)),
        pages.Fact("Task", f"{trial.task_id}, version {trial.task_version}"),
        pages.Fact("Status", trial.status),
        pages.Fact("Environment", trial.environment),
        *(pages.Fact(f"Agent {name}", value) for name, value in record.agent),
    ]
    optional = (
        ("Ended because", trial.termination),
        ("Started", time_text(trial.started_at) if trial.started_at else ""),
        ("Ended", time_text(trial.ended_at) if trial.ended_at else ""),
        ("Input tokens", "" if trial.input_tokens is None else count_text(trial.input_tokens)),
        ("Output tokens", "" if trial.output_tokens is None else count_text(trial.output_tokens)),
        ("Times without a zone", _naive_times(record)),
        ("Id at its source", trial.external_id),
    )
    facts += [pages.Fact(name, value) for name, value in optional if value]
    facts += [
        pages.Fact(
            "Upload", f"{trial.upload_name}, record {trial.line}", at.upload(trial.upload_uuid)
        ),
        pages.Fact("Size", bytes_text(record.length)),
        pages.Fact("Digest", trial.digest.hex),
        pages.Fact("Id", str(trial.uuid)),
    ]
    return tuple(facts)


def _naive_times(record: RecordFacts) -> str:
    places = [each.place for each in record.warnings if each.code == _NAIVE_TIME]
    return f"{', '.join(places)}: read as UTC" if places else ""


def _same_path(trial: TrialDetail, at: Addresses) -> pages.Link | None:
    if not trial.n_same_path:
        return None
    words = counted(trial.n_same_path, "other passing trial")
    return pages.Link(
        f"same path as {words}", address(at.task(trial.task_uuid), {"level": "exact"})
    )


def _neighbour(found: tuple[UUID, str] | None, at: Addresses) -> pages.Link | None:
    return None if found is None else pages.Link(f"trial {found[1]}", at.trial(found[0]))


def _stored_trial(request: SystemRequest, identity: UUID) -> Trial:
    trial = Trial.objects.filter(system=request.access.system, uuid=identity).first()
    if trial is None:
        raise Http404("There is no such trial in this system.")
    return trial


@require_GET
@in_system()
def trial_raw(request: SystemRequest, trial: UUID) -> HttpResponseBase:
    """The record of a trial as it came, out of the stored upload.

    It holds verdicts: a reviewer who may be asked for a blind label on the trial asks first.
    """
    stored = _stored_trial(request, trial)
    if _hidden(request, stored.pk):
        messages.warning(request, _RAW_IS_HIDDEN)
        here = Addresses.of(request.access.system.slug).trial(stored.uuid)
        return redirect(f"{here}#hidden-criteria")
    record = TrialRecord.objects.only("source_member", "source_offset", "source_length").get(
        pk=stored.pk
    )
    path = stored_path(Upload.objects.get(pk=stored.upload_id))
    if not path.is_file():
        raise Http404("The bytes of this upload are gone from the disk.")
    return attachment(
        raw_record(
            path,
            member=record.source_member,
            offset=record.source_offset,
            length=record.source_length,
        ),
        file_name=f"trial-{stored.uuid}.json",
    )


@require_GET
@in_system()
def step_content(request: SystemRequest, trial: UUID, step: int) -> HttpResponseBase:
    """The whole content of a step, or the arguments of one of its calls, as plain text."""
    stored = _stored_trial(request, trial)
    message = message_of(stored.pk, step) if step <= stored.n_messages else None
    if message is None:
        raise Http404("There is no such step in this trial.")
    call = number_in(request, "call")
    if call is not None:
        calls = message.get("tool_calls")
        if not isinstance(calls, list) or call >= len(calls):
            raise Http404("There is no such call in this step.")
        content: object = calls[call]
    else:
        content = message.get("content")
    text = content if isinstance(content, str) else blobs.dumps(content)
    return attachment(
        [clean_text(text).encode()],
        file_name=f"trial-{stored.uuid}-step-{step}.txt",
        content_type="text/plain; charset=utf-8",
    )
