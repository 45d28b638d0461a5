"""Passing paths, as `manage.py paths` prints them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, caller_of, path_level_of
from traces.api.uploads import ProblemSerializer
from traces.core.canonical import nfc
from traces.core.paths import PathLevel
from traces.models import Release, System
from traces.selectors.path_groups import TaskPaths, passing_paths
from traces.selectors.systems import releases_named


def paths_document(
    level: PathLevel, tasks: Sequence[TaskPaths], *, messages: bool
) -> dict[str, Any]:
    """The passing paths as plain values for JSON."""
    return {
        "level": level.value,
        "messages": messages,
        "tasks": {
            task.task_id: {
                "n_trials": task.n_trials,
                "n_graded": task.n_graded,
                "n_pass": task.n_pass,
                "groups": [list(group) for group in task.groups],
            }
            for task in tasks
        },
    }


def releases_of(request: Request, system: System) -> list[Release]:
    """The releases that `?release=` names, which may stand more than once."""
    found, missing = releases_named(system, request.query_params.getlist("release"))
    if missing:
        raise Http404("There is no such release in this system.")
    return found


class PathList(ApiView):
    """The passing trials of each task, grouped by path at one level."""

    @extend_schema(
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter("release", many=True, description="All of them by default."),
            OpenApiParameter("task", description="All of them by default."),
            OpenApiParameter("level", enum=[level.value for level in PathLevel]),
            OpenApiParameter("messages", enum=["0", "1"], description="1 by default."),
        ],
        responses={
            200: OpenApiTypes.OBJECT,
            **dict.fromkeys((400, 401, 404), OpenApiResponse(ProblemSerializer)),
        },
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        level, messages = path_level_of(request)
        tasks = passing_paths(
            system,
            level=level,
            messages=messages,
            releases=releases_of(request, system),
            task_id=nfc(query["task"]) if "task" in query else None,
        )
        return Response(paths_document(level, tasks, messages=messages))
