"""Cases, and the reruns that are asked for, as `manage.py cases --json` prints them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

from django.urls import reverse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.disposition import NextAction
from reviews.models import CaseState
from reviews.selectors.case_history import RerunAsk, rerun_asks
from reviews.selectors.cases import CaseFilter, CasePage, ListedCase, Place, listed_cases

PAGE_CASES = 200
ANY_STATE = "all"


def case_document(case: ListedCase, ask: RerunAsk | None) -> dict[str, Any]:
    """A case as plain values for JSON. `rerun` is the newest request for a further attempt."""
    return {
        "id": str(case.uuid),
        "state": case.state.value,
        "disposition": case.disposition,
        "next_actions": [action.value for action in case.next_actions],
        "worked_by": case.worked_by,
        "open_criteria": list(case.why),
        "release": case.release_name,
        "run": case.run_name,
        "task_id": case.task_id,
        "family": case.family,
        "split": case.split or None,
        "trial": case.label,
        "attempt": case.attempt,
        "trial_id": str(case.trial_uuid),
        "assignee": case.assignee_name or None,
        "due_on": case.due_on.isoformat() if case.due_on else None,
        "opened_at": case.opened_at.isoformat(),
        "closed_at": case.closed_at.isoformat() if case.closed_at else None,
        "rerun": None
        if ask is None
        else {"reason": ask.reason, "by": ask.by_name, "asked_at": ask.at.isoformat()},
    }


def case_documents(chosen: CaseFilter) -> Iterator[dict[str, Any]]:
    """All cases that are like that, read a page at a time."""
    after: Place | None = None
    while True:
        page = listed_cases(chosen, after=after, n=PAGE_CASES)
        yield from _documents(page)
        after = page.next_after
        if after is None:
            return


def _documents(page: CasePage) -> list[dict[str, Any]]:
    asks = rerun_asks([row.pk for row in page.rows])
    return [case_document(row, asks.get(row.pk)) for row in page.rows]


class CaseList(ApiView):
    """The queue of cases, the oldest first; `rerun=1` lists those to run again."""

    @extend_schema(
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter("action", enum=[action.value for action in NextAction]),
            OpenApiParameter(
                "state",
                enum=[*(state.value for state in CaseState), ANY_STATE],
                description="open by default.",
            ),
            OpenApiParameter("rerun", enum=["0", "1"], description="1: a rerun is asked for."),
            OpenApiParameter("after", description="The place that the page follows: see `next`."),
        ],
        responses={
            200: OpenApiTypes.OBJECT,
            **dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer)),
        },
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        chosen = CaseFilter(
            system.pk,
            state=_state(query.get("state", CaseState.OPEN.value)),
            action=_action(query.get("action")),
            rerun_asked=_is_rerun(query.get("rerun", "0")),
        )
        after = None
        if "after" in query:
            after = Place.of(query["after"])
            if after is None:
                raise BadRequestError("bad-after", "`after` is a place that `next` gave.")
        page = listed_cases(chosen, after=after, n=PAGE_CASES)
        return Response({"cases": _documents(page), "next": _next(request, page)})


def _next(request: Request, page: CasePage) -> str | None:
    if page.next_after is None:
        return None
    kept = {name: value for name, value in request.query_params.items() if name != "after"}
    query = urlencode({**kept, "after": str(page.next_after)})
    return str(request.build_absolute_uri(f"{reverse('api-cases')}?{query}"))


def _state(word: str) -> CaseState | None:
    if word == ANY_STATE:
        return None
    if word in set(CaseState):
        return CaseState(word)
    known = ", ".join([*CaseState, ANY_STATE])
    raise BadRequestError("unknown-state", f"Unknown state; known are {known}.")


def _action(word: str | None) -> NextAction | None:
    if word is None:
        return None
    if word in set(NextAction):
        return NextAction(word)
    raise BadRequestError("unknown-action", f"Unknown action; known are {', '.join(NextAction)}.")


def _is_rerun(word: str) -> bool:
    if word not in {"0", "1"}:
        raise BadRequestError("bad-rerun", "`rerun` is 0 or 1.")
    return word == "1"
