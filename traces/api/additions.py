"""Evidence that a stored trial lacks, sent by a program."""

from __future__ import annotations

import uuid
from typing import Any, ClassVar

from django.http import Http404
from django.http.request import UnreadablePostError
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework import serializers, status
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.after_review import add_evidence_to
from evalsite.api_access import (
    ApiView,
    BadRequestError,
    UploadThrottle,
    caller_of,
    check_may_contribute,
    visible_systems,
)
from evalsite.common.formatting import limit_text
from traces.core.records import Finding
from traces.core.strict_json import StrictJsonError, loads
from traces.models import Door, EvidenceAddition, Scope, Trial
from traces.selectors.reading_limits import reading_limits
from traces.services.additions import MOST_BYTES, AdditionError, addition_from

_RECORDED = "recorded"


class FindingSerializer(serializers.Serializer[Finding]):
    """What is wrong, and where in the document."""

    code = serializers.CharField()
    place = serializers.CharField()
    sentence = serializers.CharField()


class AdditionProblemSerializer(serializers.Serializer[None]):
    """A refusal: a stable code, one sentence, and all that is wrong by place."""

    code = serializers.CharField()
    detail = serializers.CharField()
    findings = FindingSerializer(many=True, required=False)


class AdditionSerializer(serializers.Serializer[EvidenceAddition]):
    """Evidence that was added to a trial: what it fills, where it comes from, and its digest."""

    id = serializers.UUIDField(source="uuid")
    trial = serializers.UUIDField(source="trial.uuid")
    order = serializers.IntegerField()
    parts = serializers.ListField(child=serializers.CharField())
    source = serializers.CharField()  # type: ignore[assignment]
    reason = serializers.CharField()
    digest = serializers.SerializerMethodField()
    added_at = serializers.DateTimeField()

    def get_digest(self, addition: EvidenceAddition) -> str:
        return addition.digest.hex


class AdditionCreate(ApiView):
    """Add evidence that a trial did not record. The trial itself never changes.

    The body is a JSON object of the missing parts alone (initial_state, final_state, facts,
    results, cost_usd, tokens, seconds) with `source` and `reason`. The same again is the first one.
    """

    scope: ClassVar[Scope] = Scope.INGEST
    throttle_classes = (UploadThrottle,)
    parser_classes = ()

    @extend_schema(
        request=OpenApiTypes.OBJECT,
        responses={
            200: AdditionSerializer,
            201: AdditionSerializer,
            **dict.fromkeys(
                (400, 401, 403, 404, 409, 413), OpenApiResponse(AdditionProblemSerializer)
            ),
        },
    )
    def post(self, request: Request, trial_id: uuid.UUID) -> Response:
        found = (
            Trial.objects.select_related("system")
            .filter(uuid=trial_id, system__in=visible_systems(request))
            .first()
        )
        if found is None:
            raise Http404("There is no such trial, or it is of another system.")
        caller = caller_of(request, found.system.slug)
        check_may_contribute(caller)
        try:
            document = _document(request)
            source, reason = (_text(document, name) for name in ("source", "reason"))
            now = timezone.now()
            row = add_evidence_to(
                found,
                addition_from(document),
                source=source,
                reason=reason,
                by=caller.user,
                api_key=caller.key,
                now=now,
            )
        except AdditionError as error:
            return _refused(error)
        is_new = row.added_at == now  # else somebody added the same before
        return Response(
            AdditionSerializer(row).data,
            status=status.HTTP_201_CREATED if is_new else status.HTTP_200_OK,
        )


def _document(request: Request) -> dict[str, Any]:
    try:
        # Read by hand: the standard parser takes duplicate keys and loses digits.
        data = request._request.read(MOST_BYTES + 1)  # noqa: SLF001
    except UnreadablePostError:
        raise BadRequestError("cut-short", "The body was cut short; send it again.") from None
    if len(data) > MOST_BYTES:
        sentence = f"Added evidence has at most {limit_text(MOST_BYTES)}."
        raise AdditionError(Finding("too-large", "", sentence))
    try:
        document = loads(data, reading_limits(Door.API))
    except StrictJsonError as error:
        raise AdditionError(Finding(error.code, error.place, error.sentence)) from None
    if not isinstance(document, dict):
        raise AdditionError(Finding("wrong-type", "", "The body must be a JSON object."))
    return document


def _text(document: dict[str, Any], name: str) -> str:
    """A text of the document, which is taken out of it."""
    text = document.pop(name, "")
    if not isinstance(text, str):
        raise AdditionError(Finding("wrong-type", name, f"{name} must be a text."))
    return text


def _refused(error: AdditionError) -> Response:
    codes = {finding.code for finding in error.findings}
    answer: int = status.HTTP_400_BAD_REQUEST
    if codes == {_RECORDED}:
        answer = status.HTTP_409_CONFLICT
    elif "too-large" in codes:
        answer = status.HTTP_413_REQUEST_ENTITY_TOO_LARGE
    return Response(
        {
            "code": error.code,
            "detail": str(error),
            "findings": [
                {"code": each.code, "place": each.place, "sentence": each.sentence}
                for each in error.findings
            ],
        },
        status=answer,
    )
