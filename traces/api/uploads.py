"""Uploads: send one, and see what became of it."""

from __future__ import annotations

import uuid
from typing import ClassVar

from django.db.models import QuerySet
from django.http import FileResponse, Http404
from django.http.request import UnreadablePostError
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import (
    ApiView,
    BadRequestError,
    UploadThrottle,
    caller_of,
    check_may_contribute,
    visible_systems,
)
from traces.api.bodies import Body, WrongEncodingError, body_of
from traces.core.formats import AUTO
from traces.models import Door, Scope, Upload, UploadLine
from traces.services.acceptance import Offer, Refusal, accept_upload
from traces.services.uploads import stored_path
from traces.tasks import hint_upload

PAGE_LINES = 200


class ProblemSerializer(serializers.Serializer[None]):
    """A refusal: a stable code and one sentence."""

    code = serializers.CharField()
    detail = serializers.CharField()


class ReceiptSerializer(serializers.Serializer[Upload]):
    """An upload that is safe: where to see what becomes of it."""

    id = serializers.UUIDField(source="uuid")
    receipt_url = serializers.SerializerMethodField()
    status_url = serializers.SerializerMethodField()

    def get_receipt_url(self, upload: Upload) -> str:
        return receipt_url(upload, self.context["request"])

    def get_status_url(self, upload: Upload) -> str:
        return status_url(upload, self.context["request"])


class LedgerSerializer(serializers.Serializer[Upload]):
    """received = stored + duplicate + conflict + refused, in records; and what came of them."""

    received = serializers.IntegerField(source="n_received")
    stored = serializers.IntegerField(source="n_stored")
    duplicate = serializers.IntegerField(source="n_duplicate")
    conflict = serializers.IntegerField(source="n_conflict")
    refused = serializers.IntegerField(source="n_refused")
    trials = serializers.IntegerField(source="n_trials")
    verdicts = serializers.IntegerField(source="n_verdicts")
    verdicts_refused = serializers.IntegerField(source="n_verdicts_refused")
    verdicts_waiting = serializers.IntegerField(source="n_waiting")
    warnings = serializers.IntegerField(source="n_warnings")


class UploadSerializer(serializers.Serializer[Upload]):
    """An upload, how far it is read, and its ledger."""

    id = serializers.UUIDField(source="uuid")
    system = serializers.CharField(source="system.slug")
    release = serializers.CharField(source="release.name", default=None)
    run = serializers.CharField(source="run_name")
    file_name = serializers.CharField()
    size = serializers.IntegerField()
    sha256 = serializers.SerializerMethodField()
    received_at = serializers.DateTimeField()
    by = serializers.CharField(source="by.username", default=None)
    door = serializers.CharField()
    state = serializers.CharField(source="job.state")
    failure = serializers.CharField(source="job.failure")
    finished_at = serializers.DateTimeField(source="job.finished_at")
    ledger = LedgerSerializer(source="job")
    lines_url = serializers.SerializerMethodField()
    raw_url = serializers.SerializerMethodField()

    def get_sha256(self, upload: Upload) -> str:
        return bytes(upload.sha256).hex()

    def get_lines_url(self, upload: Upload) -> str:
        return _absolute("api-upload-lines", upload, self.context["request"])

    def get_raw_url(self, upload: Upload) -> str:
        return _absolute("api-upload-raw", upload, self.context["request"])


class LineSerializer(serializers.Serializer[UploadLine]):
    """One record that is not simply stored: its number, its place and the reason."""

    outcome = serializers.CharField()
    number = serializers.IntegerField()
    member = serializers.CharField()
    place = serializers.CharField()
    code = serializers.CharField()
    sentence = serializers.CharField()


class LinesPageSerializer(serializers.Serializer[None]):
    """One page of lines, and the address of the next; null at the end."""

    lines = LineSerializer(many=True)
    next = serializers.URLField(allow_null=True)


def _absolute(name: str, upload: Upload, request: Request) -> str:
    return str(request.build_absolute_uri(reverse(name, args=[upload.uuid])))


def status_url(upload: Upload, request: Request) -> str:
    """Where a program sees what became of the upload."""
    return _absolute("api-upload", upload, request)


def receipt_url(upload: Upload, request: Request) -> str:
    """The receipt page, where a person sees what became of the upload."""
    path = reverse("upload-detail", args=[upload.system.slug, upload.uuid])
    return str(request.build_absolute_uri(path))


def refused(refusal: Refusal) -> Response:
    """A refusal as an answer."""
    answer = Response({"code": refusal.code, "detail": refusal.sentence}, status=refusal.status)
    if refusal.retry_after is not None:
        answer["Retry-After"] = str(refusal.retry_after)
    return answer


_PROBLEM = OpenApiResponse(ProblemSerializer)


class UploadCreate(ApiView):
    """Send evidence. What is answered with 202 is safe; the receipt says what becomes of it."""

    scope: ClassVar[Scope] = Scope.INGEST
    throttle_classes = (UploadThrottle,)

    @extend_schema(
        request={
            "multipart/form-data": {
                "type": "object",
                "properties": {
                    "file": {"type": "string", "format": "binary"},
                    "system": {"type": "string"},
                    "release": {"type": "string"},
                    "run": {"type": "string"},
                    "format": {"type": "string", "default": "auto"},
                },
                "required": ["file"],
            },
            "application/octet-stream": OpenApiTypes.BINARY,
        },
        parameters=[
            OpenApiParameter("system", description="The key's own system by default."),
            OpenApiParameter("release", description="Else each record names its own."),
            OpenApiParameter("run", description="Else each record's, else the default run."),
            OpenApiParameter("format", description="Found out by looking, by default."),
            OpenApiParameter("Idempotency-Key", location=OpenApiParameter.HEADER),
        ],
        responses={
            202: ReceiptSerializer,
            **dict.fromkeys((400, 401, 403, 404, 409, 411, 413, 415, 429, 503), _PROBLEM),
        },
    )
    def post(self, request: Request) -> Response:
        query = request.query_params
        caller = caller_of(request, query.get("system", ""))
        check_may_contribute(caller)
        body = body_of(request._request)  # noqa: SLF001 - DRF would hold the body in memory
        if isinstance(body, Refusal):
            return refused(body)
        if named := body.fields.get("system"):
            caller = caller_of(request, named)
        offer = Offer(
            system=caller.system,
            door=Door.API,
            by=caller.user,
            api_key=caller.key,
            file_name=body.file_name,
            release=_field(request, body, "release"),
            run=_field(request, body, "run"),
            format=_field(request, body, "format") or AUTO,
            idempotency_key=request.headers.get("Idempotency-Key"),
            **self.limits(),
        )
        try:
            outcome = accept_upload(body.chunks, offer, now=timezone.now())
        except WrongEncodingError:
            raise BadRequestError(
                "wrong-encoding", "The body is not in the encoding that its header names."
            ) from None
        except UnreadablePostError:
            raise BadRequestError("cut-short", "The body ended before its length.") from None
        if isinstance(outcome, Refusal):
            return refused(outcome)
        hint_upload(outcome.pk)
        receipt = ReceiptSerializer(outcome, context={"request": request}).data
        return Response(
            receipt,
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": receipt["receipt_url"]},
        )

    @staticmethod
    def limits() -> dict[str, int]:
        """Bytes as sent and as unpacked that this door takes."""
        from django.conf import settings

        most = settings.EVALSITE_API_MAX_BYTES
        return {"max_bytes": most, "max_inflated_bytes": most}


def _field(request: Request, body: Body, name: str) -> str:
    return body.fields.get(name) or request.query_params.get(name, "")


def uploads_of(request: Request) -> QuerySet[Upload]:
    """The uploads of the caller's systems."""
    return Upload.objects.select_related("system", "release", "by", "job").filter(
        system__in=visible_systems(request)
    )


def upload_or_404(request: Request, upload_id: uuid.UUID) -> Upload:
    """The upload, if it is one of the caller's systems."""
    upload = uploads_of(request).filter(uuid=upload_id).first()
    if upload is None:
        raise Http404("There is no such upload, or it is of another system.")
    return upload


class UploadDetail(ApiView):
    """How far an upload is read, and its ledger."""

    @extend_schema(responses={200: UploadSerializer, 401: _PROBLEM, 404: _PROBLEM})
    def get(self, request: Request, upload_id: uuid.UUID) -> Response:
        upload = upload_or_404(request, upload_id)
        return Response(UploadSerializer(upload, context={"request": request}).data)


class UploadLines(ApiView):
    """The records that were refused, in conflict or odd, a page at a time."""

    @extend_schema(
        parameters=[OpenApiParameter("after", OpenApiTypes.INT64, description="Where to go on.")],
        responses={200: LinesPageSerializer, 400: _PROBLEM, 401: _PROBLEM, 404: _PROBLEM},
    )
    def get(self, request: Request, upload_id: uuid.UUID) -> Response:
        upload = upload_or_404(request, upload_id)
        after = request.query_params.get("after", "0")
        if not (after.isascii() and after.isdigit() and len(after) < 19):
            raise BadRequestError("bad-after", "`after` is a number that an answer gave.")
        rows = list(
            UploadLine.objects.filter(upload=upload, pk__gt=int(after)).order_by("pk")[
                : PAGE_LINES + 1
            ]
        )
        more = len(rows) > PAGE_LINES
        rows = rows[:PAGE_LINES]
        here = _absolute("api-upload-lines", upload, request)
        return Response(
            {
                "lines": [dict(LineSerializer(row).data) for row in rows],
                "next": f"{here}?after={rows[-1].pk}" if more else None,
            }
        )


class UploadRaw(ApiView):
    """The upload's bytes as they came."""

    @extend_schema(responses={(200, "application/octet-stream"): OpenApiTypes.BINARY})
    def get(self, request: Request, upload_id: uuid.UUID) -> FileResponse:
        upload = upload_or_404(request, upload_id)
        return FileResponse(
            stored_path(upload).open("rb"),
            as_attachment=True,
            filename=upload.file_name,
            content_type="application/octet-stream",
        )
