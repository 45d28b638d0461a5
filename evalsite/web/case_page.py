"""One case: why it waits, what was voted, and the way to do each next action."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from django.utils import timezone

from evalsite.access import Access, Act, SystemRequest
from evalsite.common.formatting import money_text, time_text
from evalsite.common.shell import Crumb, Option
from evalsite.web.case_filters import SPLITS, CaseFilters
from evalsite.web.case_forms import CaseForms, DueForm
from evalsite.web.case_history import HiddenFromPerson, moments_of, told_events
from evalsite.web.case_reasons import TrialReasons, reasons_of
from evalsite.web.case_words import ACTIONS, about_of, due_of, today_of
from reviews.core.disposition import NextAction, Standing, StandingResult, applies_to
from reviews.models import CaseEventKind, CaseState
from reviews.permissions.cases import (
    assignee_refusal,
    open_refusal,
    taking_up_refusal,
    workers_of,
)
from reviews.permissions.marks import NOT_A_REVIEWER as NOT_A_MARKER
from reviews.permissions.verdicts import verdict_refusal
from reviews.selectors.adjudicating import dispute_on
from reviews.selectors.blinding import HIDDEN, hidden_criteria
from reviews.selectors.case_history import HistoryEvent, case_history
from reviews.selectors.cases import ListedCase, Worker, neighbours_of
from reviews.selectors.marks import held_marks
from reviews.selectors.verdict_cards import VerdictCard, verdict_cards
from traces.core.records import Disposition, VerdictValue
from traces.models import EvidenceAddition, Role, Trial
from traces.permissions.additions import NOT_AN_ENGINEER
from traces.selectors.releases import NO_RELEASE
from traces.web import pages
from traces.web.addresses import Addresses, address
from traces.web.pages.cases import (
    CaseAct,
    CaseMark,
    CasePage,
    CaseReason,
    CaseStep,
    CaseVote,
)
from traces.web.rows import STATES, action_words, trial_label
from traces.web.shell import system_shell

MOST_VOTES = 12  # on one requirement
SHOWN_RATIONALE = 300  # characters
VERDICT_STATES = {
    VerdictValue.PASS: "pass",
    VerdictValue.FAIL: "fail",
    VerdictValue.UNKNOWN: "unresolved",
    VerdictValue.ERROR: "harness-error",
}
_ONLY_ENGINEERS_EDIT = "Only an engineer of this system proposes contracts."
_ONLY_ENGINEERS_UPLOAD = "Only an engineer of this system uploads verdicts."


def case_page(
    request: SystemRequest,
    case: ListedCase,
    filters: CaseFilters,
    forms: CaseForms | None = None,
) -> CasePage:
    """The page of a case, in a constant number of queries."""
    access, now = request.access, timezone.now()
    at, today = Addresses.of(access.system.slug), today_of(now)
    reasons = reasons_of([case.trial_pk])[case.trial_pk]
    hidden = _hidden(case, reasons, access)
    cards = {
        card.given.id: card
        for card in verdict_cards(case.trial_pk)
        if card.given.criterion not in hidden.criteria
    }
    events = told_events(case_history(case.pk), hidden)
    before, after = neighbours_of(case, filters.chosen)
    forms = forms or CaseForms()
    if not forms.due.is_bound:
        forms.due = DueForm(auto_id="id_due_%s", initial={"due_on": case.due_on})
    query = filters.query()
    refusal = access.refusal(Act.WORK) or open_refusal(case.state)
    is_open = case.state is CaseState.OPEN
    shown = _reasons(case, reasons, cards, at, hidden) if case.next_actions else ()
    me = access.user
    own_refusal = refusal or assignee_refusal(access.role, me.printed_name, case.next_actions)
    trial = Trial.objects.select_related("task").get(pk=case.trial_pk)
    grading = _grading_refusal(case, trial, access)
    return CasePage(
        shell=system_shell(access, section="Cases"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Cases", f"{at.cases}{query}"),
            Crumb(_title(case)),
        ),
        title=_title(case),
        state=pages.Badge("hidden") if hidden.is_decision else _state(case),
        sub=_sub(case),
        trial_url=at.trial(case.trial_uuid),
        step_url=_step_url(shown),
        task_url=at.task_from(case.trial_uuid)
        if access.may(Act.CONTRIBUTE) and case.disposition != Disposition.PASS
        else "",
        previous_url=f"{at.case(before)}{query}" if before else "",
        next_url=f"{at.case(after)}{query}" if after else "",
        is_open=is_open,
        closed_words=_closed_words(case, events),
        hidden=_hidden_note(hidden, case, at, f"{at.case(case.uuid)}{query}"),
        closed_at=case.closed_at,
        reasons=shown,
        no_reason=_no_reason(case, reasons),
        steps=tuple(
            _step(action, case, reasons, access, at, forms, events, query, grading)
            for action in case.next_actions
        ),
        facts=_facts(case, trial, reasons, at),
        history=moments_of(case, events, today=today),
        assignee="you" if case.assignee_pk == me.pk else case.assignee_name,
        due=due_of(case.due_on, today, is_waiting=is_open),
        workers=_workers(case, filters.workers),
        seen=str(case.assignee_uuid or ""),
        assign_url=f"{at.case_act(case.uuid, 'assign')}{query}",
        take_button=not own_refusal and case.assignee_pk != me.pk,
        assign_errors=forms.assign_errors,
        due_form=forms.due,
        due_url=f"{at.case_act(case.uuid, 'due')}{query}",
        comment_form=forms.comment,
        comment_url=f"{at.case_act(case.uuid, 'comment')}{query}",
        aside_form=forms.aside,
        aside_url=f"{at.case_act(case.uuid, 'set-aside')}{query}",
        work_why_not=refusal,
        take_up_url=f"{at.case_act(case.uuid, 'take-up')}{query}"
        if not taking_up_refusal(case.state)
        else "",
        take_up_why_not=access.refusal(Act.WORK),
        additions=_additions(case),
        marks=_marks(case, at),
    )


def _hidden(case: ListedCase, reasons: TrialReasons, access: Access) -> HiddenFromPerson:
    """What the page keeps from a reviewer who may be asked for a blind label on the trial."""
    found = hidden_criteria(access.user.pk, access.role, [case.trial_pk])
    criteria = found.get(case.trial_pk, frozenset())
    mandatory = [s for s in reasons.standings if s.requirement.mandatory]
    is_told = case.disposition == Disposition.HARNESS_ERROR.value or any(
        s.result is StandingResult.FAIL and s.requirement.criterion not in criteria
        for s in mandatory
    )
    is_decision = any(s.requirement.criterion in criteria for s in mandatory) and not is_told
    return HiddenFromPerson(criteria, is_decision=is_decision)


def _hidden_note(
    hidden: HiddenFromPerson, case: ListedCase, at: Addresses, back: str
) -> pages.HiddenCriteria | None:
    if not hidden.criteria:
        return None
    return pages.HiddenCriteria(
        sentence=HIDDEN,
        names=tuple(sorted(hidden.criteria)),
        trial=str(case.trial_uuid),
        action=f"{at.calibration_sets}reveal",
        back=back,
    )


_GRADED = frozenset({NextAction.GRADE, NextAction.CALIBRATE_JUDGE})


def _grading_refusal(case: ListedCase, trial: Trial, access: Access) -> str:
    """Why the person gives no verdict on the trial; asked where a verdict would settle it."""
    return "" if _GRADED.isdisjoint(case.next_actions) else verdict_refusal(trial, access.user)


def _title(case: ListedCase) -> str:
    return f"{case.task_id} · trial {trial_label(case.label, case.attempt)}"


def _sub(case: ListedCase) -> tuple[str, ...]:
    split = SPLITS.get(case.split, case.split)
    parts = (case.task_title, case.release_name or NO_RELEASE, case.family, split)
    return tuple(part for part in parts if part)


def _state(case: ListedCase) -> pages.Badge:
    if case.state is CaseState.SET_ASIDE:
        return pages.Badge("set aside")
    disposition = Disposition(case.disposition)
    return pages.Badge(disposition.value.replace("_", " "), STATES[disposition])


def _closed_words(case: ListedCase, events: Sequence[HistoryEvent]) -> str:
    if case.state is CaseState.OPEN:
        return ""
    wanted = {CaseState.CLOSED: CaseEventKind.CLOSED, CaseState.SET_ASIDE: CaseEventKind.SET_ASIDE}
    kind = wanted[case.state]
    last = next((e for e in reversed(events) if e.kind is kind), None)
    if last is None:
        return "The case waits no longer."
    return last.text if kind is CaseEventKind.CLOSED else f"{last.by_name}: {last.text}"


def _no_reason(case: ListedCase, reasons: TrialReasons) -> str:
    if not case.next_actions or reasons.open:
        return ""
    if case.disposition == Disposition.HARNESS_ERROR.value:
        return reasons.decision.sentence
    if reasons.missing:
        return _lacks(reasons)
    return f"{reasons.decision.sentence} A trial passes only by what is required of it."


def _reasons(
    case: ListedCase,
    reasons: TrialReasons,
    cards: Mapping[str, VerdictCard],
    at: Addresses,
    hidden: HiddenFromPerson,
) -> tuple[CaseReason, ...]:
    if case.disposition == Disposition.HARNESS_ERROR.value:
        return ()
    found = [
        CaseReason(name, HIDDEN, "hidden")
        if (name := standing.requirement.criterion) in hidden.criteria
        else _reason(standing, case, reasons, cards, at)
        for standing in reasons.open
    ]
    if reasons.missing and found:
        repair = action_words(NextAction.REPAIR_EVIDENCE.value)
        found.append(CaseReason("", _lacks(reasons), repair))
    return tuple(found)


def _lacks(reasons: TrialReasons) -> str:
    names = ", ".join(reasons.missing)
    return f"The contract declares evidence that was not recorded: {names}."


def _reason(
    standing: Standing,
    case: ListedCase,
    reasons: TrialReasons,
    cards: Mapping[str, VerdictCard],
    at: Addresses,
) -> CaseReason:
    requirement, action = standing.requirement, standing.action
    assert action is not None
    given = [v for v in reasons.verdicts if applies_to(v, requirement)]
    faults = reasons.seen.faults if requirement.has_faulty_fixture else ()
    return CaseReason(
        criterion=requirement.criterion,
        sentence=" ".join((standing.sentence, *faults)),
        action=action_words(action.value),
        votes=tuple(_vote(cards[v.id], case, at) for v in given[:MOST_VOTES] if v.id in cards),
    )


def _vote(card: VerdictCard, case: ListedCase, at: Addresses) -> CaseVote:
    given = card.given
    return CaseVote(
        who=card.by_name or given.grader,
        kind=given.kind.value,
        value=VERDICT_STATES[given.value],
        word=given.value.value,
        note="" if given.counts else "does not count",
        rationale=_beginning(card.rationale),
        steps=tuple(
            pages.Link(f"step {step:,}", at.step(case.trial_uuid, step))
            for step in given.cited_steps[:MOST_VOTES]
            if step > 0
        ),
    )


def _beginning(text: str) -> str:
    return text if len(text) <= SHOWN_RATIONALE else f"{text[:SHOWN_RATIONALE]}…"


def _step_url(reasons: Sequence[CaseReason]) -> str:
    """The first step that a verdict on an open requirement cites."""
    cited = (step.href for each in reasons for vote in each.votes for step in vote.steps)
    return next(cited, "")


def _step(
    action: NextAction,
    case: ListedCase,
    reasons: TrialReasons,
    access: Access,
    at: Addresses,
    forms: CaseForms,
    events: Sequence[HistoryEvent],
    query: str,
    grading: str,
) -> CaseStep:
    words = ACTIONS[action]
    about = about_of(action, reasons.standings)
    is_asking = action is NextAction.RERUN_TRIAL and case.state is CaseState.OPEN
    return CaseStep(
        name=words.name,
        worked_by=action.worked_by.value,
        sentence=words.sentence,
        about=about,
        acts=tuple(_acts(action, case, about, access, at, grading)),
        is_first=action is case.next_actions[0],
        form=forms.rerun if is_asking else None,
        form_action=f"{at.case_act(case.uuid, 'rerun')}{query}" if is_asking else "",
        form_button="Ask for a rerun" if is_asking else "",
        form_why_not=access.refusal(Act.WORK) if is_asking else "",
        asked=_asked(case, events) if action is NextAction.RERUN_TRIAL else "",
    )


def _asked(case: ListedCase, events: Sequence[HistoryEvent]) -> str:
    """Who asked for a rerun last since the case opened; "" where nobody did."""
    asks = [e for e in events if e.kind is CaseEventKind.RERUN_ASKED and e.at >= case.opened_at]
    return f"{asks[-1].by_name} asked for it at {time_text(asks[-1].at)}." if asks else ""


def _acts(
    action: NextAction,
    case: ListedCase,
    about: Sequence[str],
    access: Access,
    at: Addresses,
    grading: str,
) -> list[CaseAct]:
    criterion = about[0] if about else ""
    is_reviewer, is_engineer = access.role is Role.REVIEWER, access.role is Role.ENGINEER
    mark = CaseAct(
        "Mark what is at fault",
        address(at.mark_form(case.trial_uuid), {"criterion": criterion, "case": case.uuid}),
        why_not="" if is_reviewer else NOT_A_MARKER,
        is_primary=is_reviewer,
    )
    editor = CaseAct(
        "Open the contract editor",
        address(at.contract_form, {"task": case.task_uuid}),
        why_not="" if is_engineer else _ONLY_ENGINEERS_EDIT,
        is_primary=is_engineer,
    )
    grade = CaseAct(
        f"Give a verdict on {criterion}" if criterion else "Give a verdict",
        address(at.verdict_form(case.trial_uuid), {"criterion": criterion, "case": case.uuid}),
        why_not=grading,
        is_primary=True,
    )
    verdicts = CaseAct("See all verdicts", f"{at.trial(case.trial_uuid)}#verdicts")
    match action:
        case NextAction.REPAIR_EVIDENCE:
            href = address(at.evidence_form(case.trial_uuid), {"case": case.uuid})
            refusal = "" if is_engineer else NOT_AN_ENGINEER
            return [CaseAct("Add evidence", href, refusal, is_primary=True)]
        case NextAction.FIX_FIXTURE | NextAction.CLARIFY_CONTRACT:
            return [editor, mark]
        case NextAction.GRADE:
            return [grade]
        case NextAction.ADJUDICATE:
            dispute = dispute_on(case.trial_pk, criterion)
            if dispute is None:
                return [verdicts]
            words = "Decide the dispute" if is_reviewer else "Open the dispute"
            return [CaseAct(words, at.dispute(dispute), is_primary=is_reviewer), verdicts]
        case NextAction.CALIBRATE_JUDGE:
            return [grade, verdicts]
        case NextAction.RERUN_JUDGE:
            refusal = "" if is_engineer else _ONLY_ENGINEERS_UPLOAD
            return [CaseAct("Upload a verdict", at.new_upload, refusal), verdicts]
        case NextAction.RERUN_TRIAL:
            return []


def _facts(
    case: ListedCase, trial: Trial, reasons: TrialReasons, at: Addresses
) -> tuple[pages.Fact, ...]:
    label = trial_label(case.label, case.attempt)
    contract = reasons.contract
    facts = [
        pages.Fact("Trial", label, at.trial(case.trial_uuid)),
        pages.Fact("Task", case.task_id, at.task(case.task_uuid)),
        pages.Fact("Release", case.release_name or NO_RELEASE, at.release(case.release_uuid)),
        pages.Fact(
            "Contract",
            f"version {contract.number}" if contract else "none in effect",
            at.contract_of(case.task_uuid),
        ),
        pages.Fact("Status", trial.status),
        pages.Fact("Environment", trial.environment),
        pages.Fact("Steps", f"{trial.n_messages:,}"),
    ]
    optional = (
        ("Error", trial.error[:SHOWN_RATIONALE]),
        ("Ended because", trial.termination),
        ("Started", time_text(trial.started_at) if trial.started_at else ""),
        ("Cost", money_text(trial.cost_usd) if trial.cost_usd is not None else ""),
    )
    return (*facts, *(pages.Fact(name, value) for name, value in optional if value))


def _workers(case: ListedCase, workers: Sequence[Worker]) -> tuple[Option, ...]:
    """Nobody, and the members who work one of the next actions."""
    wanted = workers_of(case.next_actions)
    people = [
        Option(str(w.uuid), f"{w.name} ({w.role.value})", is_selected=w.pk == case.assignee_pk)
        for w in workers
        if w.role.value in wanted or w.pk == case.assignee_pk
    ]
    return (Option("", "nobody", is_selected=case.assignee_pk is None), *people)


def _additions(case: ListedCase) -> tuple[pages.Fact, ...]:
    rows = (
        EvidenceAddition.objects.select_related("by")
        .filter(trial=case.trial_pk)
        .order_by("order")
        .only("order", "parts", "source", "added_at", "by")
    )
    return tuple(
        pages.Fact(
            ", ".join(part.replace("_", " ") for part in row.parts),
            f"from {row.source}, by {row.by.printed_name}, {time_text(row.added_at)}",
        )
        for row in rows
    )


def _marks(case: ListedCase, at: Addresses) -> tuple[CaseMark, ...]:
    return tuple(
        CaseMark(
            criterion=mark.criterion,
            word=mark.mark.value,
            reason=mark.reason,
            by=mark.by_name,
            at=mark.marked_at,
            withdraw_url=address(at.mark_form(case.trial_uuid), {"case": case.uuid}),
        )
        for mark in held_marks(case.task_pk)
    )
