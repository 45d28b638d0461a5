"""Disputes, as `manage.py disputes --format json` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, TypeVar
from urllib.parse import urlencode

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.disputes import DisputeKind
from reviews.models import DisputeState
from reviews.selectors.blinding import hidden_in
from reviews.selectors.disputes import (
    DisputeFilter,
    DisputePage,
    DisputePlace,
    ListedDispute,
    listed_disputes,
)
from traces.core.records import CriterionClass
from traces.core.text_marks import clean_text

PAGE_DISPUTES = 200
ANY_STATE = "all"

Word = TypeVar("Word", bound=StrEnum)


def dispute_document(dispute: ListedDispute) -> dict[str, Any]:
    """A dispute as plain values for JSON. `why_not` says why an adjudication changes nothing."""
    return {
        "id": str(dispute.uuid),
        "state": dispute.state.value,
        "criterion": dispute.criterion,
        "class": dispute.criterion_class.value,
        "rubric_version": dispute.rubric_version or None,
        "decides": dispute.decides,
        "why_not": dispute.no_effect.value if dispute.no_effect else None,
        "counting_graders_disagree": dispute.is_counting,
        "between": [kind.value for kind in dispute.kinds],
        "says": [
            {
                "kind": side.kind.value,
                "grader": side.grader,
                "grader_version": side.version,
                "verdicts": [value.value for value in side.values],
                "counts": side.counts,
                "imported": side.is_imported,
            }
            for side in dispute.sides
        ],
        "n_more_graders": dispute.n_more_sides,
        "ruling": dispute.ruling.value if dispute.ruling else None,
        "stands": dispute.stands,
        "release": dispute.release_name,
        "run": dispute.run_name,
        "task_id": dispute.task_id,
        "family": dispute.family,
        "split": dispute.split or None,
        "trial": dispute.label,
        "attempt": dispute.attempt,
        "trial_id": str(dispute.trial_uuid),
        "opened_at": dispute.opened_at.isoformat(),
        "closed_at": dispute.closed_at.isoformat() if dispute.closed_at else None,
    }


def dispute_documents(chosen: DisputeFilter) -> Iterator[dict[str, Any]]:
    """All disputes that are like that, read a page at a time."""
    after: DisputePlace | None = None
    while True:
        page = listed_disputes(chosen, after=after, n=PAGE_DISPUTES)
        yield from map(dispute_document, page.rows)
        after = page.next_after
        if after is None:
            return


class DisputeList(ApiView):
    """Disputes: those that decide something first, then by class and age.

    Those of trials that a signed-in reviewer may still be asked to label blind are left out.
    """

    @extend_schema(
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter(
                "state",
                enum=[*(state.value for state in DisputeState), ANY_STATE],
                description="open by default.",
            ),
            OpenApiParameter("deciding", enum=["0", "1"], description="1: that decide something."),
            OpenApiParameter("class", enum=[each.value for each in CriterionClass]),
            OpenApiParameter("criterion", description="Its exact name."),
            OpenApiParameter(
                "kind", enum=[kind.value for kind in DisputeKind], description="Between whom."
            ),
            OpenApiParameter("after", description="The place that the page follows: see `next`."),
        ],
        responses={
            200: OpenApiTypes.OBJECT,
            **dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer)),
        },
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        caller = caller_of(request, query.get("system", ""))
        hidden = hidden_in(caller.user.pk, caller.role, caller.system.pk)
        chosen = DisputeFilter(
            caller.system.pk,
            state=_state(query.get("state", DisputeState.OPEN.value)),
            deciding=_is_deciding(query.get("deciding", "0")),
            criterion_class=_word(query.get("class"), CriterionClass, "class"),
            criterion=clean_text(query["criterion"]) if "criterion" in query else None,
            kind=_word(query.get("kind"), DisputeKind, "kind"),
            without=tuple((trial, name) for trial, names in hidden.items() for name in names),
        )
        after = None
        if "after" in query:
            after = DisputePlace.of(query["after"])
            if after is None:
                raise BadRequestError("bad-after", "`after` is a place that `next` gave.")
        page = listed_disputes(chosen, after=after, n=PAGE_DISPUTES)
        return Response(
            {
                "disputes": [dispute_document(row) for row in page.rows],
                "next": _next(request, page),
            }
        )


def _next(request: Request, page: DisputePage) -> str | None:
    if page.next_after is None:
        return None
    kept = {name: value for name, value in request.query_params.items() if name != "after"}
    query = urlencode({**kept, "after": str(page.next_after)})
    return str(request.build_absolute_uri(f"{reverse('api-disputes')}?{query}"))


def _state(word: str) -> DisputeState | None:
    return None if word == ANY_STATE else _word(word, DisputeState, "state", ANY_STATE)


def _word(word: str | None, known: type[Word], name: str, *more: str) -> Word | None:
    if word is None:
        return None
    if word in set(known):
        return known(word)
    words = ", ".join([*known, *more])
    raise BadRequestError(f"unknown-{name}", f"Unknown {name}; known are {words}.")


def _is_deciding(word: str) -> bool:
    if word not in {"0", "1"}:
        raise BadRequestError("bad-deciding", "`deciding` is 0 or 1.")
    return word == "1"
