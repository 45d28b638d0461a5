"""A dispute is decided: its page, what a decision would do, drafts, undo and skips."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from evalsite.access import Act, SystemRequest, in_system
from evalsite.after_adjudication import check_decision, decide_dispute, ruling_of
from evalsite.common.formatting import time_text
from evalsite.held_decisions import finish_due
from evalsite.web.adjudicate_effect import DECISIONS
from evalsite.web.adjudicate_page import (
    OpenDispute,
    Written,
    dispute_detail_page,
    effect_part,
)
from reviews.models import Dispute
from reviews.services.adjudications import (
    AdjudicationConflictError,
    AdjudicationDeniedError,
    AdjudicationError,
    skip_dispute,
)
from reviews.services.review_drafts import (
    HOLD,
    DraftHeldError,
    drop_draft,
    save_draft,
    undo_hold,
)
from reviews.services.seats import LabelError, reveal
from traces.core.text_marks import clean_text
from traces.tasks import hint_held

CHOOSE = "Choose what it comes to: pass, fail, insufficient evidence, or what is unclear or wrong."
LAST_ONE = "That was the last dispute of the list."
TOO_LATE = "It is final by now. If it was wrong, correct it: the earlier decision stays visible."
_LONGEST_STEPS = 400  # characters of the field
_GRACE = 0.5  # seconds after its time at which a worker looks


@require_http_methods(["GET", "HEAD", "POST"])
@in_system()
def dispute_page(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """A dispute with its evidence. A POST asks to see what a blind label is kept from."""
    now = timezone.now()
    one = OpenDispute.of(request, dispute, now=now)
    if request.method == "POST":
        return _reveal(one)
    if request.access.may(Act.REVIEW) and finish_due(now, request.access.user):
        one = OpenDispute.of(request, dispute, now=now)
    return _page(one)


def _page(one: OpenDispute, status: int = 200) -> HttpResponse:
    page = dispute_detail_page(one)
    return render(one.request, "reviews/dispute_detail.html", {"page": page}, status=status)


def _reveal(one: OpenDispute) -> HttpResponse:
    access = one.access
    if not access.may(Act.REVIEW):
        raise PermissionDenied(access.refusal(Act.REVIEW))
    if one.request.POST.get("reveal") == "1":
        place = one.place()
        try:
            reveal(one.trial, place.criterion.pk, where="dispute", by=access.user, now=one.now)
        except LabelError as error:
            messages.error(one.request, str(error))
    return redirect(one.url())


@require_GET
@in_system(Act.REVIEW)
def dispute_effect(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """What a decision would do: a part of the page, or the page with it."""
    one = OpenDispute.of(request, dispute, now=timezone.now())
    decision = request.GET.get("decision", "")
    if request.headers.get("HX-Request") == "true":
        part = effect_part(one, decision if one.may_see_effects else "")
        response = render(request, "reviews/_dispute_effect.html", {"part": part})
    else:
        one.written = Written(decision=decision) if ruling_of(decision) else None
        response = _page(one)
    response["Vary"] = "HX-Request"
    return response


@dataclass(frozen=True, slots=True)
class _Sent:
    """What the bar of a deciding page sent."""

    decision: str
    reason: str
    steps_text: str
    seen: str
    is_held: bool

    @classmethod
    def of(cls, request: SystemRequest) -> _Sent:
        post = request.POST
        return cls(
            decision=post.get("decision", "")[:24],
            reason=clean_text(post.get("reason", "")).replace("\r\n", "\n"),
            steps_text=clean_text(post.get("steps", ""))[:_LONGEST_STEPS],
            seen=post.get("seen", "")[:200],
            is_held=post.get("hold") == "1",
        )

    def steps(self) -> tuple[int, ...]:
        """The numbers of the cited steps. Raises `AdjudicationError` for what is none."""
        words = self.steps_text.replace(",", " ").split()
        for word in words:
            if not (word.isascii() and word.isdigit() and len(word) < 10):
                raise AdjudicationError(
                    f"{word[:40]!r} is no number of a step; write them as 2, 5."
                )
        return tuple(int(word) for word in words)

    def numbers(self) -> Iterable[int]:
        """Whatever numbers there are, for a draft."""
        return (int(word) for word in re.findall(r"\b[0-9]{1,9}\b", self.steps_text))

    def refused(self, *errors: str) -> Written:
        """The same form again, with what is wrong."""
        return Written(self.decision, self.reason, self.steps_text, errors)


@require_POST
@in_system(Act.REVIEW)
def dispute_decide(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Decide a dispute; with `hold` it can be taken back for some seconds."""
    now = timezone.now()
    one = OpenDispute.of(request, dispute, now=now)
    sent = _Sent.of(request)
    next_url = one.next_url
    try:
        words = _decide(one, sent, now)
    except AdjudicationDeniedError as error:
        return _refused(one, sent, str(error), 403)
    except AdjudicationConflictError as error:
        return _refused(one, sent, str(error), 409)
    except (AdjudicationError, DraftHeldError) as error:
        return _refused(one, sent, str(error), 422)
    if words:
        messages.success(request, words)
    if not next_url:
        messages.info(request, LAST_ONE)
    return redirect(next_url or one.url())


def _decide(one: OpenDispute, sent: _Sent, now: datetime) -> str:
    """Decide it or hold it. What to say of it; "" where the undo bar does."""
    decision = ruling_of(sent.decision)
    if decision is None:
        raise AdjudicationError(CHOOSE)
    steps = sent.steps()
    place = one.place()
    if sent.is_held:
        check_decision(
            one.trial,
            criterion=one.criterion,
            decision=decision,
            reason=sent.reason,
            steps=steps,
            by=one.access.user,
            now=now,
            seen=sent.seen,
        )
        draft = save_draft(
            place,
            decision=decision.value,
            reason=sent.reason,
            steps=steps,
            seen=sent.seen,
            now=now,
            hold=True,
        )
        hint_held(draft.pk, seconds=HOLD.total_seconds() + _GRACE)
        return ""
    with transaction.atomic():
        drop_draft(place)
        decide_dispute(
            one.trial,
            criterion=one.criterion,
            decision=decision,
            reason=sent.reason,
            steps=steps,
            by=one.access.user,
            now=now,
            seen=sent.seen,
        )
    return f"Decided: {DECISIONS[decision][1]}."


def _refused(one: OpenDispute, sent: _Sent, sentence: str, status: int) -> HttpResponse:
    """The page as it is now, with the person's own text and why it is not kept."""
    again = OpenDispute.of(one.request, one.listed.uuid, now=one.now)
    again.written = sent.refused(sentence)
    return _page(again, status)


@require_POST
@in_system(Act.REVIEW)
def dispute_draft(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Keep what somebody has written so far."""
    now = timezone.now()
    one = OpenDispute.of(request, dispute, now=now)
    sent = _Sent.of(request)
    is_script = "application/json" in request.headers.get("Accept", "")
    try:
        row = save_draft(
            one.place(),
            decision=sent.decision,
            reason=sent.reason,
            steps=sent.numbers(),
            seen=sent.seen,
            now=now,
        )
    except DraftHeldError as error:
        if is_script:
            return JsonResponse({"words": str(error)}, status=409)
        messages.error(request, str(error))
        return redirect(one.url())
    words = f"Draft kept, {time_text(row.saved_at)}"
    if is_script:
        return JsonResponse({"words": words})
    if request.POST.get("then") != "effect":
        messages.success(request, f"{words}.")
    return redirect(one.url())


@require_POST
@in_system(Act.REVIEW)
def dispute_undo(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Take a submitted decision back, with all that was written."""
    now = timezone.now()
    one = OpenDispute.of(request, dispute, now=now)
    row = undo_hold(one.place(), now=now)
    if row is None:
        messages.warning(request, TOO_LATE)
    else:
        messages.info(request, "Taken back. What you wrote is here; nothing is decided.")
    return redirect(one.url())


@require_POST
@in_system(Act.REVIEW)
def dispute_skip(request: SystemRequest, dispute: UUID) -> HttpResponse:
    """Leave a dispute to others, with a reason, and go on to the next."""
    now = timezone.now()
    one = OpenDispute.of(request, dispute, now=now)
    row = Dispute.objects.get(pk=one.listed.pk)
    try:
        skip_dispute(row, reason=request.POST.get("reason", ""), by=request.access.user, now=now)
    except AdjudicationDeniedError as error:
        raise PermissionDenied(str(error)) from error
    except AdjudicationError as error:
        one.written = Written(errors=(str(error),))
        return _page(one, 422)
    messages.info(request, "Skipped: it stays open for other reviewers.")
    if not one.next_url:
        messages.info(request, LAST_ONE)
    return redirect(one.next_url or one.url())
