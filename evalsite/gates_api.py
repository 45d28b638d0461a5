"""The gate of a release through the API, as `manage.py gate --json` prints it."""

from __future__ import annotations

import uuid

from django.http import Http404
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import ApiView, caller_of
from evalsite.gate_report import gate_report, report_document
from reviews.api.figures import RefusedSerializer
from traces.core.canonical import nfc
from traces.models import Release, System

NO_RELEASE = "There is no such release in this system."
_ANSWERS = {
    200: OpenApiTypes.OBJECT,
    **dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer)),
}


class ReleaseGateDetail(ApiView):
    """The gate of a release, computed now: checks, other result, digest of the evidence, signatures."""

    @extend_schema(operation_id="gate", responses=_ANSWERS)
    def get(self, request: Request, slug: str, release: uuid.UUID) -> Response:
        system = caller_of(request, slug).system
        return _answer(Release.objects.filter(system=system, uuid=release).first())


class NamedReleaseGate(ApiView):
    """The gate of the release of that name."""

    @extend_schema(
        operation_id="gate_by_name",
        parameters=[OpenApiParameter("name", required=True, description="Of the release.")],
        responses=_ANSWERS,
    )
    def get(self, request: Request, slug: str) -> Response:
        system: System = caller_of(request, slug).system
        name = nfc(request.query_params.get("name", ""))
        return _answer(Release.objects.filter(system=system, name=name).first())


def _answer(release: Release | None) -> Response:
    if release is None or release.is_unversioned:
        raise Http404(NO_RELEASE)
    return Response(report_document(gate_report(release, now=timezone.now())))
