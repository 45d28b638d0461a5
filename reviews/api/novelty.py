"""What a release does with accepted paths, as `manage.py paths --novel` prints it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.http import Http404
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, caller_of, path_level_of
from reviews.api.figures import RefusedSerializer
from reviews.core.accepted_paths import Taking
from reviews.selectors.novelty import (
    NovelPaths,
    TaskNovelty,
    newest_release,
    novel_paths,
    release_novelty,
)
from traces.core.canonical import nfc
from traces.core.paths import PathLevel
from traces.models import Release, System
from traces.selectors.paths import key_name
from traces.selectors.systems import releases_named

Found = Sequence[tuple[TaskNovelty, NovelPaths]]


def novelty_of(
    system: System,
    release: Release,
    level: PathLevel,
    *,
    messages: bool,
    task_id: str | None = None,
) -> Found:
    """The tasks that a release ran, or the one of that id, with their paths not accepted."""
    column = key_name(level, messages=messages)
    paths = novel_paths(system, release.pk, path_key=column)
    return [
        (task, paths.get(task.pk, NovelPaths()))
        for task in release_novelty(system, release.pk, path_key=column).tasks
        if task_id in (None, task.task_id)
    ]


def novelty_document(
    release: Release,
    level: PathLevel,
    found: Found,
    *,
    messages: bool,
) -> dict[str, Any]:
    """What a release does with accepted paths and which of its paths are new, for JSON."""
    return {
        "release": release.name,
        "level": level.value,
        "messages": messages,
        "tasks": [
            {
                "task_id": task.task_id,
                "taken": list(task.numbers(Taking.TAKEN)),
                "no_longer_taken": list(task.numbers(Taking.NO_LONGER)),
                "not_taken_yet": list(task.numbers(Taking.NOT_YET)),
                "cannot_tell": list(task.numbers(Taking.CANNOT_TELL)),
                "new": [list(group) for group in paths.new],
                "seen_before": [list(group) for group in paths.seen_before],
            }
            for task, paths in found
        ],
    }


class Novelty(ApiView):
    """The accepted paths that a release takes or not, and which of its paths are new."""

    @extend_schema(
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter("release", description="The newest with trials by default."),
            OpenApiParameter("task", description="All of them by default."),
            OpenApiParameter("level", enum=[level.value for level in PathLevel]),
            OpenApiParameter("messages", enum=["0", "1"], description="1 by default."),
        ],
        responses={
            200: OpenApiTypes.OBJECT,
            **dict.fromkeys((400, 401, 404), OpenApiResponse(RefusedSerializer)),
        },
    )
    def get(self, request: Request) -> Response:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        level, messages = path_level_of(request)
        release = _release_of(system, query.get("release"))
        task_id = nfc(query["task"]) if "task" in query else None
        found = novelty_of(system, release, level, messages=messages, task_id=task_id)
        return Response(novelty_document(release, level, found, messages=messages))


def _release_of(system: System, name: str | None) -> Release:
    if name is None:
        release = newest_release(system)
        if release is None:
            raise Http404("No release of this system has a trial that figures count.")
        return release
    found, missing = releases_named(system, [name])
    if missing:
        raise Http404("There is no such release in this system.")
    return found[0]
