"""The page of a dispute, made of its evidence, its verdicts and what this person may do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from uuid import UUID

from django.http import Http404

from evalsite.access import Access, Act, SystemRequest
from evalsite.after_adjudication import ruling_of
from evalsite.common.formatting import counted, time_text
from evalsite.common.shell import Crumb, Pager
from evalsite.web.adjudicate_cards import (
    DisputeLinks,
    SpokenVerdicts,
    asked_card,
    cited_words,
    missing_words,
    ruling_rows,
    spoken_verdicts,
)
from evalsite.web.adjudicate_effect import DECISIONS, dispute_effect_of
from evalsite.web.dispute_filters import DisputeFilters
from evalsite.web.dispute_words import KINDS, RULING_STATES, RULINGS, effect_sentence
from evalsite.web.trial_standings import requirement_name, standings_of
from evalsite.web.trial_verdicts import VerdictRowMaker
from reviews.core.disposition import AdjudicationRuling, Mark, Requirement, RequirementSource
from reviews.core.requirements import FIXTURE
from reviews.models import Adjudication, Criterion, DisputeState, DraftPurpose, ReviewDraft
from reviews.permissions.adjudications import NOT_A_REVIEWER, PARTY_ONLY, MayDecide, may_decide
from reviews.permissions.marks import marking_refusal
from reviews.selectors.adjudicating import DisputeBasis, awaited_label, basis_of_standings
from reviews.selectors.blinding import HIDDEN, hidden_criteria, is_hidden
from reviews.selectors.disputes import (
    ListedDispute,
    dispute_of,
    next_dispute_after,
    previous_dispute_before,
    standing_in_list,
)
from reviews.selectors.marks import written_by
from reviews.selectors.review_drafts import SubmittedDrafts, draft_on, submitted_drafts
from reviews.selectors.standings import StandingDetail, TrialStandings, trial_standings
from reviews.services.adjudications import (
    NO_DISPUTE,
    awaits_words,
    conflict_of,
    head_of,
)
from reviews.services.review_drafts import DraftPlace
from traces.core.records import CriterionClass, TrialStatus
from traces.core.text_marks import clean_text, marked_text
from traces.models import Role, Trial
from traces.selectors.releases import NO_RELEASE
from traces.selectors.rules import rules_of
from traces.selectors.trial_detail import (
    TrialDetail,
    page_of_step,
    record_facts,
    trial_detail,
)
from traces.web import pages
from traces.web.addressed_notes import steps_notice
from traces.web.addresses import Addresses, Value, address
from traces.web.asking import number_in
from traces.web.pages.adjudications import (
    DisputeDetailPage,
    EffectPart,
    OtherStanding,
    RefusedDecision,
)
from traces.web.pages.deciding import DecisionBar, DecisionChoice, HeldDecision
from traces.web.pages.standings import RequirementRow
from traces.web.pages.tasks import Hidden
from traces.web.rows import trial_label
from traces.web.shell import system_shell
from traces.web.transcript import ShownTranscript, shown_transcript

NO_DISPUTE_HERE = "There is no such dispute in this system."
LONGEST_HEADING = 160  # characters of a rubric's question that heads the page
MOST_CITED = 40
MOST_OTHERS = 60
_KEYS = {
    AdjudicationRuling.PASS: "1",
    AdjudicationRuling.FAIL: "2",
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: "3",
    AdjudicationRuling.RUBRIC_UNCLEAR: "4",
    Mark.DEFECTIVE: "5",
    Mark.AMBIGUOUS: "6",
}
_HELP = {
    AdjudicationRuling.INSUFFICIENT_EVIDENCE: "Open until evidence is added.",
    AdjudicationRuling.RUBRIC_UNCLEAR: "Open until the rubric says more; asks for a clearer text.",
    Mark.DEFECTIVE: "The check or rubric decides wrongly: open for all trials of the task.",
    Mark.AMBIGUOUS: "Nobody can tell what the check asks: open for all trials of the task.",
}


@dataclass(frozen=True, slots=True)
class Written:
    """What a person has written: in a draft, or in a form that was refused."""

    decision: str = ""
    reason: str = ""
    steps: str = ""
    errors: tuple[str, ...] = ()
    saved: str = ""
    notices: tuple[pages.Notice, ...] = ()


@dataclass
class OpenDispute:
    """A dispute as one request reads it."""

    request: SystemRequest
    listed: ListedDispute
    now: datetime
    written: Written | None = field(default=None)

    @classmethod
    def of(cls, request: SystemRequest, dispute: UUID, *, now: datetime) -> OpenDispute:
        """The dispute of that address in the system. Raises `Http404`."""
        listed = dispute_of(request.access.system.pk, dispute)
        if listed is None:
            raise Http404(NO_DISPUTE_HERE)
        return cls(request, listed, now)

    @property
    def access(self) -> Access:
        return self.request.access

    @cached_property
    def at(self) -> Addresses:
        return Addresses.of(self.access.system.slug)

    @cached_property
    def filters(self) -> DisputeFilters:
        return DisputeFilters.of(self.request)

    @cached_property
    def trial(self) -> Trial:
        return Trial.objects.select_related("task__system").get(pk=self.listed.trial_pk)

    @cached_property
    def criterion(self) -> str:
        """Its whole name, which the list may have cut."""
        return self.listed.criterion

    @cached_property
    def detail(self) -> TrialDetail:
        system = self.access.system
        found = trial_detail(system.pk, self.listed.trial_uuid, rules_pk=system.shown_rules_id)
        if found is None:
            raise Http404(NO_DISPUTE_HERE)
        return found

    @cached_property
    def standings(self) -> TrialStandings:
        detail = self.detail
        return trial_standings(
            detail.pk,
            system_pk=self.access.system.pk,
            task_pk=detail.task_pk,
            status=TrialStatus(detail.status),
            contract_pk=detail.contract_pk,
        )

    @cached_property
    def basis(self) -> DisputeBasis:
        return basis_of_standings(self.standings, self.criterion)

    @cached_property
    def submitted(self) -> SubmittedDrafts:
        if not self.access.may(Act.REVIEW):
            return SubmittedDrafts((), ())
        system, user = self.access.system, self.access.user
        return submitted_drafts(DraftPurpose.ADJUDICATE, system_pk=system.pk, by=user)

    @cached_property
    def head(self) -> Adjudication | None:
        return head_of(self.basis)

    @cached_property
    def allowed(self) -> MayDecide:
        return may_decide(self.trial, self.criterion, self.access.user)

    @cached_property
    def may_see_effects(self) -> bool:
        """What others say stays hidden from who may still label it blind."""
        access = self.access
        return not self.allowed.why_not and not is_hidden(
            access.user.pk, access.role, self.listed.trial_pk, self.criterion
        )

    def place(self) -> DraftPlace:
        """What a draft of this person on it is about."""
        system = self.access.system
        criterion, _ = Criterion.objects.get_or_create(system=system, name=self.criterion)
        return DraftPlace(DraftPurpose.ADJUDICATE, self.access.user, system, self.trial, criterion)

    def url(self, **more: Value) -> str:
        """The page, within the list that it is read in."""
        return address(self.at.dispute(self.listed.uuid), {**self.filters.values, **more})

    def act_url(self, act: str) -> str:
        """Of an act on it: decide, draft, undo, skip, effect."""
        return address(f"{self.at.dispute(self.listed.uuid)}{act}", self.filters.values)

    @cached_property
    def next_url(self) -> str:
        """The dispute that comes after it in the list; "" for the last one."""
        found = next_dispute_after(self.filters.chosen, self.listed.place)
        return address(self.at.dispute(found), self.filters.values) if found else ""

    @cached_property
    def previous_url(self) -> str:
        """The dispute that comes before it in the list; "" for the first one."""
        found = previous_dispute_before(self.filters.chosen, self.listed.place)
        return address(self.at.dispute(found), self.filters.values) if found else ""


def dispute_detail_page(one: OpenDispute) -> DisputeDetailPage:
    """The page of a dispute, in a constant number of queries."""
    listed, access, at = one.listed, one.access, one.at
    detail, found = one.detail, one.standings
    kept = hidden_criteria(access.user.pk, access.role, [detail.pk]).get(detail.pk, frozenset())
    hides = one.criterion in kept
    requirement = _requirement(found, one)
    links, transcript, spoken = _evidence(one, detail, found, requirement, is_hidden=hides)
    rows = _requirement_rows(found, detail, access, links)
    own = rows.get(one.criterion)
    asked = asked_card(
        found, one.criterion, one.basis.rubric_version, system_pk=access.system.pk, at=at
    )
    waits = awaited_label(detail.pk, one.criterion)
    refusal = _refusal(one, awaits_words(waits) if waits else "")
    written = one.written or _drafted(one)
    bar = None if refusal else _bar(one, written, detail)
    progress = _progress(one)
    cited = sorted({step for step, _ in spoken.citations})
    return DisputeDetailPage(
        shell=system_shell(access, section="Disputes"),
        crumbs=(
            Crumb(access.system.name, at.tasks),
            Crumb("Disputes", one.filters.list_url(at)),
            Crumb(progress),
        ),
        heading=_heading(one, asked.question),
        sub=tuple(_sub(one, detail, requirement)),
        sentences=() if hides else tuple(_sentences(one)),
        state=_state(one, is_hidden=hides),
        progress=progress,
        previous_url=one.previous_url,
        next_url=one.next_url,
        trial_url=at.trial(detail.uuid),
        case=pages.Link("Case", at.case(found.case)) if found.case else None,
        asked=asked,
        others=tuple(_others(rows, one.criterion, kept)),
        own=own,
        steps=transcript.steps,
        n_steps=detail.n_messages,
        cited_words=cited_words(spoken.citations, detail.n_messages),
        missing_words=missing_words(spoken.citations, detail.n_messages),
        cited_links=tuple(_cited_links(spoken, detail.n_messages, links)),
        next_cited_url=next((links.href(step) for step in cited if step > transcript.last), ""),
        pager=_pager(one, transcript, detail.n_messages),
        step_action=at.dispute(listed.uuid),
        step_hidden=tuple(
            Hidden(name, str(value)) for name, value in one.filters.values.items() if value
        ),
        step_asked=number_in(one.request, "step"),
        verdicts=spoken.speaking,
        silent=spoken.silent,
        rulings=()
        if hides
        else ruling_rows(
            (each for each in found.rulings if each.given.criterion == one.criterion),
            requirement,
            links,
        ),
        hidden=HIDDEN if hides else "",
        reveal_url=one.url() if hides else "",
        set_link=pages.Link(
            f"calibration set {waits.set.number}", at.calibration_set(waits.set.number)
        )
        if waits
        else None,
        notices=(*_notices(one, detail, transcript, spoken), *written.notices),
        bar=bar,
        read_only=refusal,
        effect=effect_part(one, written.decision) if bar else None,
        fixture_url=address(at.mark_form(detail.uuid), {"criterion": FIXTURE}),
        held=_held_decisions(one),
        refused=_refused(one),
    )


def _requirement(found: TrialStandings, one: OpenDispute) -> Requirement:
    """The requirement that the criterion is, or the criterion by its name alone."""
    detail = next((each for each in found.details if each.criterion == one.criterion), None)
    if detail is not None:
        return detail.standing.requirement
    return Requirement(
        one.criterion, one.listed.criterion_class, RequirementSource.IMPORTED, mandatory=False
    )


def _evidence(
    one: OpenDispute,
    detail: TrialDetail,
    found: TrialStandings,
    requirement: Requirement,
    *,
    is_hidden: bool,
) -> tuple[DisputeLinks, ShownTranscript, SpokenVerdicts]:
    """A page of the transcript with the cited steps marked, and the verdicts."""
    here = one.at.dispute(one.listed.uuid)
    asked = number_in(one.request, "step") or number_in(one.request, "from")
    unplaced = DisputeLinks(here, detail.n_messages, 0, 0, one.filters.query())
    nothing = SpokenVerdicts((), (), 0, ())
    rows = VerdictRowMaker.of(
        found, unplaced, at=one.at, access=one.access, trial=detail.uuid, now=one.now
    )
    spoken = (
        nothing if is_hidden else spoken_verdicts(found, one.criterion, requirement, unplaced, rows)
    )
    existing = [step for step, _ in spoken.citations if 1 <= step <= detail.n_messages]
    place = asked or min(existing, default=1)
    transcript = shown_transcript(
        detail.pk,
        page_of_step(detail.pk, place),
        trial_url=one.at.trial(detail.uuid),
        rules=rules_of(one.access.system),
        cited=spoken.citations,
    )
    links = DisputeLinks(
        here, detail.n_messages, transcript.first, transcript.last, one.filters.query()
    )
    if not is_hidden:
        spoken = spoken_verdicts(found, one.criterion, requirement, links, rows)
    return links, transcript, spoken


def _requirement_rows(
    found: TrialStandings, detail: TrialDetail, access: Access, links: DisputeLinks
) -> dict[str, RequirementRow]:
    """The requirements of the trial as rows, by criterion."""
    made = standings_of(found, detail, record_facts(detail.pk), made=(), access=access, links=links)
    rows = [row for group in made.groups for row in group.rows]
    ordered = _in_order(found.details)
    return {each.criterion: row for each, row in zip(ordered, rows, strict=True)}


def _in_order(details: Sequence[StandingDetail]) -> list[StandingDetail]:
    """As the groups of `standings_of` have them: by class, else in their order."""
    order = list(CriterionClass)
    return sorted(details, key=lambda d: order.index(d.standing.requirement.criterion_class))


def _others(
    rows: dict[str, RequirementRow], criterion: str, kept: Iterable[str]
) -> Iterator[OtherStanding]:
    hidden = set(kept)
    shown = [item for item in rows.items() if item[0] != criterion]
    for name, row in shown[:MOST_OTHERS]:
        if name in hidden:
            yield OtherStanding(row.name, pages.Badge("hidden"), "in a blind set")
            continue
        note = ", ".join(row.notes)
        yield OtherStanding(row.name, pages.Badge(row.word, row.value), note)


def _refusal(one: OpenDispute, waits: str) -> str:
    """Why this person decides nothing here; "" when they may decide something."""
    if not one.access.may(Act.REVIEW):
        return NOT_A_REVIEWER
    if one.allowed.why_not:
        return one.allowed.why_not
    if waits:
        return waits
    is_over = one.listed.state is DisputeState.OVER
    return NO_DISPUTE if is_over and one.basis.head_pk is None else ""


def _drafted(one: OpenDispute) -> Written:
    """What the person's draft holds, and what changed since it was written."""
    if not one.access.may(Act.REVIEW):
        return Written()
    draft = draft_on(
        DraftPurpose.ADJUDICATE,
        trial_pk=one.listed.trial_pk,
        criterion=one.criterion,
        by=one.access.user,
    )
    if draft is None:
        return Written()
    notices = []
    if draft.refusal:
        sentence = f"What you submitted is not kept. {draft.refusal}"
        notices.append(pages.Notice(sentence, level="error"))
    elif draft.seen and (changed := conflict_of(one.basis, one.head, draft.seen)):
        notices.append(pages.Notice(changed, level="warning"))
    if draft.held_until is not None:
        notices.append(pages.Notice("You submitted this. Take it back to change it."))
    return Written(
        decision=draft.decision,
        reason=draft.reason,
        steps=", ".join(str(step) for step in draft.steps),
        saved=f"Draft of {time_text(draft.saved_at)}",
        notices=tuple(notices),
    )


def _bar(one: OpenDispute, written: Written, detail: TrialDetail) -> DecisionBar:
    correction = one.basis.head_pk is not None
    return DecisionBar(
        action=one.act_url("decide"),
        draft_url=one.act_url("draft"),
        choices=tuple(_choices(one, written.decision)),
        legend="What does it come to?",
        act="Correct the decision" if correction else "Decide",
        reason=written.reason,
        reason_hint="Why the earlier decision is wrong, in a sentence. Required."
        if correction
        else "Why, in a sentence. Required.",
        steps=written.steps,
        n_steps=detail.n_messages,
        seen=str(one.basis.seen),
        errors=written.errors,
        saved=written.saved,
        effect_url=one.act_url("effect"),
        skip_url=one.act_url("skip"),
        skip_label="Skip",
        next_url=one.next_url,
    )


def _choices(one: OpenDispute, chosen: str) -> Iterator[DecisionChoice]:
    marking = _marking_refusal(one)
    for decision, (label, _) in DECISIONS.items():
        why_not = (
            one.allowed.refusal(decision) if isinstance(decision, AdjudicationRuling) else marking
        )
        yield DecisionChoice(
            value=decision.value,
            label=label,
            key=_KEYS[decision],
            is_chosen=decision.value == chosen and not why_not,
            why_not=why_not,
            help=_HELP.get(decision, ""),
        )


def _marking_refusal(one: OpenDispute) -> str:
    """Why this person does not mark the check; "" when they may."""
    digest = one.basis.criterion_digest
    if one.basis.contract_pk is not None and one.basis.requirement is None:
        return "Nothing requires this criterion, so there is no check to mark."
    written = written_by(one.listed.task_pk, one.access.user)
    has_written = digest is not None and (one.criterion, digest) in written
    return marking_refusal(Role.REVIEWER, has_written=has_written)


def effect_part(one: OpenDispute, decision: str) -> EffectPart:
    """What a decision would do, where one is chosen."""
    chosen = ruling_of(decision)
    effect = dispute_effect_of(one.trial, one.listed, one.basis, chosen, one.at) if chosen else None
    return EffectPart(one.act_url("effect"), effect, is_offered=True)


def _heading(one: OpenDispute, question: pages.TextBlock | None) -> str:
    if question is not None and len(question.text) <= LONGEST_HEADING:
        return question.text
    return f"{one.criterion} of task {one.listed.task_id}"


def _progress(one: OpenDispute) -> str:
    """Where it stands in the list: "3 of 6"."""
    wanted = one.filters.chosen.state
    before, n = standing_in_list(one.filters.chosen, one.listed.place)
    if wanted is not None and wanted is not one.listed.state:
        return f"not in the list, which has {counted(n, 'dispute')}"
    return f"{before:,} of {n:,}"


def _sub(one: OpenDispute, detail: TrialDetail, requirement: Requirement) -> Iterator[pages.Link]:
    listed, at = one.listed, one.at
    yield pages.Link(f"Criterion {requirement_name(requirement)}")
    yield pages.Link("mandatory" if requirement.mandatory else "not mandatory")
    yield pages.Link(f"task {listed.task_id}", at.task(listed.task_uuid))
    label = trial_label(listed.label, listed.attempt)
    yield pages.Link(f"trial {label}", at.trial(detail.uuid))
    yield pages.Link(
        f"release {listed.release_name or NO_RELEASE}", at.release(listed.release_uuid)
    )


def _sentences(one: OpenDispute) -> Iterator[str]:
    listed = one.listed
    between = ", ".join(KINDS[kind] for kind in listed.kinds)
    if between:
        yield f"{between[0].upper()}{between[1:]}. {effect_sentence(listed)}"
    if one.access.may(Act.REVIEW) and one.allowed.is_party:
        yield PARTY_ONLY


def _state(one: OpenDispute, *, is_hidden: bool) -> pages.Badge:
    head = one.head
    if head is not None and not is_hidden:
        ruling = AdjudicationRuling(head.ruling)
        return pages.Badge(f"decided: {RULINGS[ruling]}", RULING_STATES[ruling])
    if one.listed.state is DisputeState.OVER:
        return pages.Badge("over")
    return pages.Badge("open", "unresolved")


def _cited_links(spoken: SpokenVerdicts, n_steps: int, links: DisputeLinks) -> Iterator[pages.Link]:
    by_step: dict[int, list[str]] = {}
    for step, who in spoken.citations:
        if 1 <= step <= n_steps:
            by_step.setdefault(step, []).append(who)
    for step, names in sorted(by_step.items())[:MOST_CITED]:
        title = f"cited by {', '.join(dict.fromkeys(names))}"
        yield pages.Link(f"step {step}", links.href(step), title)


def _pager(one: OpenDispute, page: ShownTranscript, n_steps: int) -> Pager:
    if page.previous is None and page.next is None:
        return Pager()
    return Pager(
        previous_url="" if page.previous is None else one.url(**{"from": page.previous}),
        next_url="" if page.next is None else one.url(**{"from": page.next}),
        words=f"steps {page.first:,} to {page.last:,} of {n_steps:,}",
    )


def _notices(
    one: OpenDispute, detail: TrialDetail, page: ShownTranscript, spoken: SpokenVerdicts
) -> Iterator[pages.Notice]:
    is_part = page.previous is not None or page.next is not None
    yield from steps_notice(page.addressed, is_part=is_part)
    if detail.status == TrialStatus.ERROR.value:
        yield pages.Notice("The harness broke: the trial says nothing of the agent.", "warning")
    if not detail.is_standing:
        yield pages.Notice("A later attempt stands for this trial.")
    asked = number_in(one.request, "step")
    if asked is not None and asked > detail.n_messages:
        yield pages.Notice(
            f"There is no step {asked:,}; the transcript has {counted(detail.n_messages, 'step')}.",
            "warning",
        )
    if spoken.n_more:
        yield pages.Notice(
            f"{counted(spoken.n_more, 'more verdict')} on it stand on the trial's page."
        )


def _held_decisions(one: OpenDispute) -> tuple[HeldDecision, ...]:
    """What the person submitted and can still take back."""
    made = (_held(row, one.at, one.now) for row in one.submitted.held)
    return tuple(each for each in made if each is not None)


def _held(draft: ReviewDraft, at: Addresses, now: datetime) -> HeldDecision | None:
    identity = dispute_address(draft)
    if identity is None or draft.held_until is None:
        return None
    left = (draft.held_until - now).total_seconds()
    return HeldDecision(
        words=draft_words(draft),
        undo_url=f"{at.dispute(identity)}undo",
        until=draft.held_until,
        seconds_left=max(0, round(left)),
        href=at.dispute(identity),
    )


def draft_words(draft: ReviewDraft) -> str:
    """What a draft decides of what."""
    decision = ruling_of(draft.decision)
    what = DECISIONS[decision][1] if decision else "no decision"
    trial = trial_label(draft.trial.label, draft.trial.attempt)
    name = marked_text(clean_text(draft.criterion.name))
    return f"{what[0].upper()}{what[1:]} on {name}, task {draft.trial.task.task_id}, trial {trial}"


def dispute_address(draft: ReviewDraft) -> UUID | None:
    """The dispute that a draft is on."""
    found: UUID | None = (
        draft.trial.disputes.filter(criterion=draft.criterion.name)
        .values_list("uuid", flat=True)
        .first()
    )
    return found


def _refused(one: OpenDispute) -> tuple[RefusedDecision, ...]:
    """What this person submitted elsewhere and was not kept."""
    found = []
    for row in one.submitted.refused:
        is_here = row.trial_id == one.listed.trial_pk and row.criterion.name == one.criterion
        identity = None if is_here else dispute_address(row)
        if identity is not None:
            found.append(RefusedDecision(draft_words(row), row.refusal, one.at.dispute(identity)))
    return tuple(found)
