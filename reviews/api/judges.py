"""The judges of a system and their calibration cards, as `manage.py judges --json` prints them."""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

from django.http import Http404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.calibration import CalibrationStatus, figures_document
from reviews.selectors.judge_cards import (
    ANY_TEXT,
    CardItem,
    CardPart,
    JudgeCard,
    hidden_trials,
    judge_card,
)
from reviews.selectors.judges import ListedJudge, StoredCalibration, judges_of
from reviews.selectors.probes import probe_results

NO_TEXT = "-"
"""Stands in an address for a criterion of tasks without a contract."""


def judges_document(judges: Collection[ListedJudge], *, slug: str, now: datetime) -> dict[str, Any]:
    """The judge versions of a system with what they said and how each is calibrated."""
    return {"system": slug, "judges": [_judge(each, now=now) for each in judges]}


def card_document(
    card: JudgeCard, *, now: datetime, hidden: Collection[int] = frozenset()
) -> dict[str, Any]:
    """A calibration card with the items behind its figures.

    Trials of `hidden` are left out of the items: their labels are kept from the reader.
    """
    stored = card.stored
    tried = probe_results(card.judge.version_pk, card.judge.criterion_pk, card.text.digest)
    return {
        **_judge(card.judge, now=now),
        "text": _text(card.text.digest, card.text.rubric_version),
        "other_texts": [
            _text(each.digest, each.rubric_version) for each in card.texts if each != card.text
        ],
        "calibration": _calibration(stored, now=now) if stored else None,
        "labelled": _part(card.labelled, hidden),
        "adjudicated": _part(card.adjudicated, hidden),
        "exploratory": _part(card.exploratory, hidden),
        "probes": [
            {
                "id": str(each.uuid),
                "batch": each.batch_number,
                "position": each.position,
                "kind": each.kind.value,
                "result": each.result.result.value if each.result and each.result.result else None,
                "right": each.result.is_right if each.result else None,
            }
            for each in tried.probes
        ],
        "history": [_calibration(each, now=now) for each in card.history],
    }


def _judge(each: ListedJudge, *, now: datetime) -> dict[str, Any]:
    current = each.current
    return {
        "judge": each.judge,
        "version": each.version,
        "criterion": each.criterion,
        "judge_id": each.version_pk,
        "criterion_id": each.criterion_pk,
        "status": each.status_at(now).value,
        "votes": each.status_at(now) is CalibrationStatus.CALIBRATED,
        "n_verdicts": each.said.n,
        "verdicts": {value.value: n for value, n in sorted(each.said.by_value.items())},
        "first_verdict_at": _time(each.said.first_at),
        "last_verdict_at": _time(each.said.last_at),
        "calibration": _calibration(current, now=now) if current else None,
    }


def _calibration(stored: StoredCalibration, *, now: datetime) -> dict[str, Any]:
    return {
        "text": _text(stored.digest, stored.rubric_version),
        "status": stored.status_at(now).value,
        "sentence": stored.why,
        "read_at": _time(stored.read_at),
        "valid_until": _time(stored.valid_until),
        "by": stored.by_name or None,
        "figures": stored.document,
    }


def _text(digest: uuid.UUID | None, rubric_version: str) -> dict[str, Any]:
    return {"digest": digest.hex if digest else None, "rubric_version": rubric_version or None}


def _part(part: CardPart, hidden: Collection[int]) -> dict[str, Any]:
    return {
        "figures": figures_document(part.figures),
        "items": [_item(each) for each in part.items if each.trial.pk not in hidden],
    }


def _item(each: CardItem) -> dict[str, Any]:
    return {
        "id": each.item.key,
        "trial": str(each.trial.uuid),
        "task_id": each.trial.task_id,
        "trial_label": each.trial.label,
        "attempt": each.trial.attempt,
        "family": each.item.family or None,
        "people": each.item.consensus.value,
        "labels": [label.value.value for label in each.item.labels],
        "random_sample": each.item.is_random,
        "judge": each.item.word.value,
    }


def _time(at: datetime | None) -> str | None:
    return at.isoformat() if at else None


# --- API

_PROBLEMS = dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer))
_SYSTEM = OpenApiParameter("system", description="The key's own system by default.")


class JudgeList(ApiView):
    """The judge versions of a system: what each said of each criterion, and whether it votes."""

    @extend_schema(
        operation_id="v1_judges_list",
        parameters=[
            _SYSTEM,
            OpenApiParameter("criterion", description="All of them by default."),
            OpenApiParameter(
                "status",
                enum=[status.value for status in CalibrationStatus],
                description="All of them by default.",
            ),
        ],
        responses={200: OpenApiTypes.OBJECT, **_PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        status = query.get("status", "")
        known = [each.value for each in CalibrationStatus]
        if status and status not in known:
            raise BadRequestError("unknown-status", f"`status` is one of {', '.join(known)}.")
        now = timezone.now()
        judges = [
            each
            for each in judges_of(system.pk)
            if query.get("criterion", each.criterion) == each.criterion
            and (not status or each.status_at(now).value == status)
        ]
        return Response(judges_document(judges, slug=system.slug, now=now))


class JudgeDetail(ApiView):
    """The calibration card of a judge version on a criterion, with the items behind it."""

    @extend_schema(
        parameters=[
            _SYSTEM,
            OpenApiParameter(
                "text",
                description="Digest of the criterion as labelled, - without a contract. "
                "The one that holds by default.",
            ),
        ],
        responses={200: OpenApiTypes.OBJECT, **_PROBLEMS},
    )
    def get(self, request: Request, judge: int, criterion: int) -> Response:
        caller = caller_of(request, request.query_params.get("system", ""))
        asked = text_asked(request.query_params.get("text", ""))
        card = judge_card(caller.system, judge, criterion, digest=asked)
        if card is None:
            raise Http404("There is no such judge or criterion in this system.")
        hidden = hidden_trials(card, caller.user.pk, caller.role)
        return Response(card_document(card, now=timezone.now(), hidden=hidden))


def text_asked(text: str) -> uuid.UUID | object | None:
    """The text of a criterion that an address names. One that is none is a text of nothing."""
    if not text:
        return ANY_TEXT
    if text == NO_TEXT:
        return None
    try:
        return uuid.UUID(text)
    except ValueError:
        return uuid.UUID(int=0)
