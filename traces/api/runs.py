"""Runs: declare one before its trials, and see which of them are missing."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.db import transaction
from django.http import Http404
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import (
    ApiView,
    BadRequestError,
    caller_of,
    check_may_contribute,
    problem,
    visible_systems,
)
from traces.api.uploads import ProblemSerializer
from traces.models import Run, Scope
from traces.selectors.runs import RunRow, run_row
from traces.services.work import WorkError, declare_run, release_named

LONGEST_NAME = 512
MOST_TASKS = 100_000


class DeclarationSerializer(serializers.Serializer[None]):
    """So many trials of each task against one release."""

    system = serializers.CharField(required=False, allow_blank=True, default="")
    release = serializers.CharField(max_length=LONGEST_NAME)
    name = serializers.CharField(max_length=LONGEST_NAME)
    trials = serializers.IntegerField(min_value=1, max_value=1_000_000)
    tasks = serializers.ListField(
        child=serializers.CharField(max_length=LONGEST_NAME), required=False, max_length=MOST_TASKS
    )


class RunSerializer(serializers.Serializer[RunRow]):
    """A run and how much of it is there. Counts are of slots: the last attempt stands."""

    id = serializers.UUIDField(source="uuid")
    release = serializers.CharField(source="release_name")
    name = serializers.CharField()
    begun_at = serializers.DateTimeField()
    declared_at = serializers.DateTimeField(allow_null=True)
    declared_trials = serializers.IntegerField(allow_null=True)  # for each task
    n_tasks = serializers.IntegerField()
    n_trials = serializers.IntegerField(source="n_present")
    n_graded = serializers.IntegerField()
    n_pass = serializers.IntegerField()
    n_harness_errors = serializers.IntegerField(source="n_error")
    n_missing = serializers.IntegerField()


_PROBLEM = OpenApiResponse(ProblemSerializer)


def _described(run: Run) -> dict[str, Any]:
    row = run_row(run.release.system_id, run.uuid)
    return dict(RunSerializer(row).data)


class RunCreate(ApiView):
    """Declare a run before its trials, so that missing ones are seen."""

    scope: ClassVar[Scope] = Scope.INGEST

    @extend_schema(
        request=DeclarationSerializer,
        responses={
            201: RunSerializer,
            **dict.fromkeys((400, 401, 403, 404, 409, 503), _PROBLEM),
        },
    )
    def post(self, request: Request) -> Response:
        form = DeclarationSerializer(data=request.data)
        if not form.is_valid():
            raise BadRequestError("invalid", _first_sentence(form.errors))
        given = form.validated_data
        caller = caller_of(request, given["system"] or request.query_params.get("system", ""))
        check_may_contribute(caller)
        try:
            with transaction.atomic():
                run = declare_run(
                    release_named(caller.system, given["release"], by=caller.user),
                    given["name"],
                    trials=given["trials"],
                    task_ids=given.get("tasks", []),
                    by=caller.user,
                    now=timezone.now(),
                )
        except WorkError as error:
            return problem("run-exists", str(error), status.HTTP_409_CONFLICT)
        return Response(
            _described(run),
            status=status.HTTP_201_CREATED,
            headers={"Location": reverse("api-run", args=[run.uuid])},
        )


def _first_sentence(errors: Any) -> str:
    field, reasons = next(iter(errors.items()))
    while isinstance(reasons, dict):
        reasons = next(iter(reasons.values()))
    return f"{field}: {reasons[0]}"


class RunDetail(ApiView):
    """A run and how much of it is there."""

    @extend_schema(responses={200: RunSerializer, 401: _PROBLEM, 404: _PROBLEM})
    def get(self, request: Request, run_id: uuid.UUID) -> Response:
        run = (
            Run.objects.select_related("release__system")
            .filter(uuid=run_id, release__system__in=visible_systems(request))
            .first()
        )
        if run is None:
            raise Http404("There is no such run, or it is of another system.")
        return Response(_described(run))
