"""Probes: the batches of a system, what judges made of one, and its blind bundle."""

from __future__ import annotations

from collections import Counter
from typing import Any

from django.http import Http404, StreamingHttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of
from reviews.api.figures import RefusedSerializer
from reviews.core.probes import ProbeKind
from reviews.models import ProbeBatch
from reviews.selectors.probes import (
    PAGE,
    BatchRow,
    ProbeSummary,
    TriedJudge,
    batch_numbered,
    batch_rows,
    bundle_lines,
    judges_tried,
)

_PROBLEMS = dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer))
_SYSTEM = OpenApiParameter("system", description="The key's own system by default.")
_NO_BATCH = "There is no such batch of probes in this system."


def batch_document(row: BatchRow) -> dict[str, Any]:
    """A batch in the list as plain values for JSON."""
    return {
        "number": row.number,
        "criterion": row.criterion,
        "rubric_version": row.rubric_version or None,
        "n_trials": row.n_trials,
        "n_probes": row.n_probes,
        "n_judges": row.n_judges,
        "may_fall": row.may_fall,
        "reason": row.reason,
        "by": row.by_name,
        "made_at": row.made_at.isoformat(),
    }


def results_document(batch: ProbeBatch, judges: tuple[TriedJudge, ...]) -> dict[str, Any]:
    """What judges made of a batch: counts by kind, and nothing that tells which probe is which."""
    return {
        "number": batch.number,
        "criterion": batch.criterion.name,
        "criterion_digest": batch.criterion_digest.hex if batch.criterion_digest else None,
        "rubric_version": batch.rubric_version or None,
        "question": batch.question,
        "may_fall": batch.may_fall,
        "judges": [
            {
                "judge": each.judge,
                "version": each.version,
                "has_failed": each.summary.has_failed,
                "n_missing": each.summary.n_missing,
                "kinds": _kinds(each.summary),
            }
            for each in judges
        ],
    }


def _kinds(summary: ProbeSummary) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for kind in ProbeKind:
        results = [each.result for each in summary.probes if each.kind is kind]
        if not results:
            continue
        told = Counter(result.result.value for result in results if result and result.result)
        found[kind.value] = {
            "held": told["held"],
            "fell": told["fell"],
            "flipped": told["flipped"],
            "right": sum(1 for result in results if result and result.is_right),
            "wrong": sum(1 for result in results if result and result.is_right is False),
            "open": sum(1 for result in results if result and result.is_right is None),
            "missing": results.count(None),
        }
    return found


class ProbeList(ApiView):
    """The batches of probes, the newest first."""

    @extend_schema(
        operation_id="v1_probes_list",
        parameters=[
            _SYSTEM,
            OpenApiParameter("before", int, description="Only batches of smaller numbers."),
        ],
        responses={200: OpenApiTypes.OBJECT, **_PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        before = _number(query["before"]) if "before" in query else None
        rows = batch_rows(system.pk, before=before)
        shown = rows[:PAGE]
        return Response(
            {
                "batches": [batch_document(row) for row in shown],
                "next_before": shown[-1].number if len(rows) > PAGE else None,
            }
        )


def _number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 12):
        raise BadRequestError("bad-before", "`before` is the number of a batch.")
    return int(text)


class ProbeResults(ApiView):
    """What judges made of a batch, by version and kind of change."""

    @extend_schema(parameters=[_SYSTEM], responses={200: OpenApiTypes.OBJECT, **_PROBLEMS})
    def get(self, request: Request, number: int) -> Response:
        batch = _batch(request, number)
        return Response(results_document(batch, judges_tried(batch)))


class ProbeBundle(ApiView):
    """The blind bundle of a batch: a native record a line; nothing in it tells kinds apart."""

    @extend_schema(
        parameters=[_SYSTEM],
        responses={(200, "application/x-ndjson"): OpenApiTypes.STR, **_PROBLEMS},
    )
    def get(self, request: Request, number: int) -> StreamingHttpResponse:
        return bundle_answer(_batch(request, number))


def _batch(request: Request, number: int) -> ProbeBatch:
    system = caller_of(request, request.query_params.get("system", "")).system
    batch = batch_numbered(system.pk, number)
    if batch is None:
        raise Http404(_NO_BATCH)
    return batch


def bundle_answer(batch: ProbeBatch) -> StreamingHttpResponse:
    """The bundle as a file to keep. Its name tells the batch and nothing else."""
    name = f"{batch.system.slug}-judge-items-{batch.number}.jsonl"
    return StreamingHttpResponse(
        bundle_lines(batch),
        content_type="application/x-ndjson",
        headers={"Content-Disposition": f'attachment; filename="{name}"'},
    )
