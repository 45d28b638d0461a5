"""Figures, trials with their verdicts, and exports."""

from __future__ import annotations

import json
import uuid
from typing import Any

from django.db.models import QuerySet
from django.http import Http404, HttpResponse, StreamingHttpResponse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, BadRequestError, caller_of, visible_systems
from reviews.api.standings import standings_document
from reviews.selectors.exports import ExportSelection, csv_rows, jsonl_lines, trial_text
from reviews.selectors.figures import SystemFigures, system_figures
from reviews.selectors.standings import trial_standings
from reviews.services.seats import reveal_in
from traces.core.records import TrialStatus
from traces.models import Release, Role, Run, System, Trial
from traces.selectors.systems import releases_named


class RefusedSerializer(serializers.Serializer[None]):
    """A refusal: a stable code and one sentence."""

    code = serializers.CharField()
    detail = serializers.CharField()


_PROBLEMS = dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer))
_SYSTEM = OpenApiParameter("system", description="The key's own system by default.")


def figures_document(figures: SystemFigures) -> dict[str, Any]:
    """The figures as plain values for JSON; k are texts, as JSON names are."""
    total = figures.total
    return {
        "n_tasks": len(figures.tasks),
        "n_trials": total.run,
        "n_graded": total.graded,
        "n_pass": total.passed,
        "pass_hat_k": _by_k(figures.pass_hat_k),
        "pass_at_k": _by_k(figures.pass_at_k),
    }


def _by_k(means: tuple[Any, ...]) -> dict[str, float]:
    return {
        str(k): float(mean.value) for k, mean in enumerate(means, start=1) if mean.value is not None
    }


class FigureList(ApiView):
    """passed / graded / run, pass^k and pass@k of some releases taken together."""

    @extend_schema(
        parameters=[
            _SYSTEM,
            OpenApiParameter("release", many=True, description="All of them by default."),
        ],
        responses={200: OpenApiTypes.OBJECT, **_PROBLEMS},
    )
    def get(self, request: Request) -> Response:
        system = caller_of(request, request.query_params.get("system", "")).system
        found, missing = releases_named(system, request.query_params.getlist("release"))
        if missing:
            raise Http404("There is no such release in this system.")
        return Response(figures_document(system_figures(system, found)))


class TrialDetail(ApiView):
    """A trial: what it comes to, requirement by requirement, and its native record with verdicts."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT, **_PROBLEMS})
    def get(self, request: Request, trial_id: uuid.UUID) -> HttpResponse:
        trial = (
            Trial.objects.select_related("system", "release", "run", "task", "disposition")
            .filter(uuid=trial_id, system__in=visible_systems(request))
            .first()
        )
        if trial is None:
            raise Http404("There is no such trial, or it is of another system.")
        caller = caller_of(request, trial.system.slug)
        if caller.role is Role.REVIEWER:  # who labels it blind no more: they see what is said
            trials = Trial.objects.filter(pk=trial.pk)
            reveal_in(trials, where="api", by=caller.user, now=timezone.now())
        standings = trial_standings(
            trial.pk,
            system_pk=trial.system_id,
            task_pk=trial.task_id,
            status=TrialStatus(trial.status),
            contract_pk=trial.task.contract_id,
        )
        # Written by hand: the numbers of a record keep every digit.
        document = json.dumps(standings_document(standings))
        text = f'{trial_text(trial)[:-1]}, "standings": {document}}}'
        return HttpResponse(text, content_type="application/json")


class Export(ApiView):
    """The trials of a system, release or run: native JSON Lines, or CSV."""

    @extend_schema(
        parameters=[
            _SYSTEM,
            OpenApiParameter("release", description="All of them by default."),
            OpenApiParameter("run", description="All of them by default."),
            OpenApiParameter("format", enum=["jsonl", "csv"], description="jsonl by default."),
        ],
        responses={
            (200, "application/x-ndjson"): OpenApiTypes.STR,
            (200, "text/csv"): OpenApiTypes.STR,
            **_PROBLEMS,
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        query = request.query_params
        caller = caller_of(request, query.get("system", ""))
        system = caller.system
        selection = selection_of(system, query.get("release"), query.get("run"))
        if caller.role is Role.REVIEWER and query.get("format", "jsonl") == "jsonl":
            reveal_in(trials_of(selection), where="export", by=caller.user, now=timezone.now())
        match query.get("format", "jsonl"):
            case "jsonl":
                lines, kind = jsonl_lines(selection), "application/x-ndjson"
            case "csv":
                lines, kind = csv_rows(selection), "text/csv; charset=utf-8"
            case _:
                raise BadRequestError("unknown-format", "`format` is jsonl or csv.")
        suffix = "csv" if kind.startswith("text/csv") else "jsonl"
        name = f"{system.slug}.{suffix}"
        return StreamingHttpResponse(
            lines,
            content_type=kind,
            headers={"Content-Disposition": f'attachment; filename="{name}"'},
        )


def trials_of(selection: ExportSelection) -> QuerySet[Trial]:
    """The trials that an export is of."""
    trials = Trial.objects.filter(system=selection.system)
    if selection.release:
        trials = trials.filter(release=selection.release)
    return trials.filter(run=selection.run) if selection.run else trials


def selection_of(system: System, release: str | None, run: str | None) -> ExportSelection:
    """The selection that the names stand for. Raises `Http404` for a name that is none."""
    found: Release | None = None
    if release is not None:
        names, missing = releases_named(system, [release])
        if missing:
            raise Http404("There is no such release in this system.")
        found = names[0]
    if run is None:
        return ExportSelection(system, found)
    runs = Run.objects.filter(release__system=system, name=run)
    if found:
        runs = runs.filter(release=found)
    chosen = runs.order_by("pk").first()
    if chosen is None:
        raise Http404("There is no such run in this system.")
    return ExportSelection(system, found, chosen)
