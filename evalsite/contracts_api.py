"""Contracts through the API: read, checked, previewed, proposed. Nobody decides through it."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from typing import IO, Any, ClassVar

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils import timezone
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import exceptions, serializers, status
from rest_framework.parsers import BaseParser, JSONParser
from rest_framework.request import Request
from rest_framework.response import Response

from evalsite.api_access import (
    ApiView,
    BadRequestError,
    Caller,
    caller_of,
    problem,
    visible_systems,
)
from reviews.core.contract_drafts import (
    ContractSource,
    DraftFinding,
    grader_tests_of,
)
from reviews.core.regrades import GraderTest
from reviews.permissions.contracts import draft_refusal
from reviews.selectors.contract_checks import checked_contracts
from reviews.selectors.contracts import contracts_in_effect
from reviews.services.contracts import (
    LONGEST_REASON,
    ContractFindingsError,
    ContractsError,
    draft_contracts,
    propose_contracts,
)
from traces.core.contracts.documents import MOST_TEXT_BYTES
from traces.core.contracts.writing import join_documents
from traces.models import ContractPreview, ContractProposal, Scope
from traces.tasks import hint_contract_preview
from traces.web.addresses import Addresses

_BYTES = "bytes"


class YamlParser(BaseParser):
    """The body as bytes, whatever it is called; no more than one byte beyond what is read."""

    media_type = "*/*"

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,  # noqa: ARG002
        parser_context: Mapping[str, Any] | None = None,  # noqa: ARG002
    ) -> Mapping[str, bytes]:
        """The bytes, under the name that `_source` asks for."""
        return {_BYTES: stream.read(MOST_TEXT_BYTES + 1)}


class ContractFindingSerializer(serializers.Serializer[Any]):
    """Something wrong in a contract text. Line and column count from 1; 0 where none is named."""

    code = serializers.CharField()
    line = serializers.IntegerField()
    column = serializers.IntegerField()
    field = serializers.CharField()
    sentence = serializers.CharField()
    task = serializers.CharField(source="task_id")  # "" where it could not be read


class ContractSerializer(serializers.Serializer[Any]):
    """A contract in effect, as its author wrote it."""

    task = serializers.CharField(source="task_id")
    id = serializers.UUIDField(source="version")
    version = serializers.IntegerField(source="number")
    digest = serializers.CharField(source="digest.hex")
    text = serializers.CharField()


class RefusedContractsSerializer(serializers.Serializer[None]):
    """A refusal: a stable code, one sentence, and the findings of the text where there are any."""

    code = serializers.CharField()
    detail = serializers.CharField()
    findings = ContractFindingSerializer(many=True, required=False)


class ReasonSerializer(serializers.Serializer[None]):
    """Why the contracts should hold."""

    reason = serializers.CharField(max_length=LONGEST_REASON)


_REFUSED = OpenApiResponse(RefusedContractsSerializer)
_PROBLEMS = dict.fromkeys((400, 401, 403, 404), _REFUSED)
_SYSTEM = OpenApiParameter("system", description="The key's own system by default.")
_BODY = {"application/yaml": OpenApiTypes.STR}


def grader_tests_document(tests: Iterable[GraderTest]) -> list[dict[str, Any]]:
    """The results of grader tests as plain values for JSON; `checks` are those not as expected."""
    return [
        {
            "task": test.task_id,
            "name": test.name,
            "met": test.is_met,
            "checks": [
                {
                    "criterion": check.criterion,
                    "expected": check.expected,
                    "found": check.found,
                    "sentence": check.sentence,
                }
                for check in test.checks
            ],
        }
        for test in tests
    ]


def _refused_text(findings: tuple[DraftFinding, ...]) -> Response:
    return Response(
        {
            "code": "bad-contract",
            "detail": f"{findings[0].place}: {findings[0].sentence}".removeprefix(": "),
            "findings": ContractFindingSerializer(findings, many=True).data,
        },
        status=status.HTTP_400_BAD_REQUEST,
    )


class ContractList(ApiView):
    """The contracts in effect."""

    @extend_schema(
        parameters=[
            _SYSTEM,
            OpenApiParameter("task", description="The contract of this task only."),
            OpenApiParameter("format", enum=["json", "yaml"], description="json by default."),
        ],
        responses={
            (200, "application/json"): ContractSerializer(many=True),
            (200, "application/yaml"): OpenApiTypes.STR,
            **_PROBLEMS,
        },
    )
    def get(self, request: Request) -> HttpResponse:
        query = request.query_params
        system = caller_of(request, query.get("system", "")).system
        found = contracts_in_effect(system.pk, task_id=query.get("task", ""))
        match query.get("format", "json"):
            case "json":
                return Response(ContractSerializer(found, many=True).data)
            case "yaml":
                text = join_documents(each.text for each in found)
                return HttpResponse(text, content_type="application/yaml; charset=utf-8")
            case _:
                raise BadRequestError("unknown-format", "`format` is json or yaml.")


class ContractCheck(ApiView):
    """Check contract texts against a system and run their grader tests; nothing is kept."""

    parser_classes = (YamlParser,)

    @extend_schema(
        parameters=[_SYSTEM],
        request=_BODY,
        responses={200: OpenApiTypes.OBJECT, **_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        system = caller_of(request, request.query_params.get("system", "")).system
        read = checked_contracts(system, [_source(request)])
        if read.findings:
            return _refused_text(read.findings)
        tests = [test for each in read.contracts for test in grader_tests_of(each.contract)]
        return Response(
            {
                "ok": all(test.is_met for test in tests),
                "tasks": [drafted.contract.task_id for drafted in read.contracts],
                "grader_tests": grader_tests_document(tests),
            }
        )


def _source(request: Request) -> ContractSource:
    # An empty body is not parsed at all.
    data: Any = request.data
    return ContractSource("", data.get(_BYTES, b""))


class ContractDraft(ApiView):
    """Draft contracts. A worker finds out what they would change; then they can be proposed."""

    scope: ClassVar[Scope] = Scope.INGEST
    parser_classes = (YamlParser,)

    @extend_schema(
        parameters=[_SYSTEM],
        request=_BODY,
        responses={202: OpenApiTypes.OBJECT, 409: _REFUSED, **_PROBLEMS},
    )
    def post(self, request: Request) -> Response:
        caller = _engineer(request)
        try:
            preview = draft_contracts(
                caller.system, [_source(request)], by=caller.user, now=timezone.now()
            )
        except ContractFindingsError as error:
            return _refused_text(error.findings)
        except ContractsError as error:
            return problem("nothing-new", str(error), status.HTTP_409_CONFLICT)
        hint_contract_preview(preview.pk)
        return Response(
            preview_document(preview),
            status=status.HTTP_202_ACCEPTED,
            headers={"Location": reverse("api-contract-preview", args=[preview.uuid])},
        )


def _engineer(request: Request) -> Caller:
    caller = caller_of(request, request.query_params.get("system", ""))
    if refusal := draft_refusal(caller.system, caller.user):
        raise exceptions.PermissionDenied(refusal)
    return caller


def preview_document(preview: ContractPreview) -> dict[str, Any]:
    """A preview as plain values for JSON."""
    return {
        "id": str(preview.uuid),
        "state": preview.state,
        "tasks": sorted(preview.texts),
        "n_done": preview.n_done,
        "n_total": preview.n_total,
        "failure": preview.failure,
        "result": preview.result,
        "page": Addresses.of(preview.system.slug).contract_preview(preview.uuid),
    }


def _preview(request: Request, identity: uuid.UUID) -> ContractPreview:
    preview = (
        ContractPreview.objects.select_related("system", "by")
        .filter(uuid=identity, system__in=visible_systems(request))
        .first()
    )
    if preview is None:
        raise Http404("There is no such preview, or it is of another system.")
    return preview


class ContractPreviewDetail(ApiView):
    """What drafted contracts would change, as soon as a worker has found out."""

    @extend_schema(responses={200: OpenApiTypes.OBJECT, **_PROBLEMS})
    def get(self, request: Request, preview_id: uuid.UUID) -> Response:
        return Response(preview_document(_preview(request, preview_id)))


class ContractPropose(ApiView):
    """Propose previewed contracts; a reviewer or an owner decides, on a page."""

    scope: ClassVar[Scope] = Scope.INGEST
    parser_classes = (JSONParser,)

    @extend_schema(
        request=ReasonSerializer,
        responses={201: OpenApiTypes.OBJECT, 409: _REFUSED, **_PROBLEMS},
    )
    def post(self, request: Request, preview_id: uuid.UUID) -> Response:
        preview = _preview(request, preview_id)
        caller = _engineer(request)
        form = ReasonSerializer(data=request.data)
        if not form.is_valid():
            raise BadRequestError("invalid", "`reason`: say why, in a sentence.")
        try:
            proposal = propose_contracts(
                preview,
                reason=form.validated_data["reason"],
                by=caller.user,
                now=timezone.now(),
            )
        except ContractFindingsError as error:
            return _refused_text(error.findings)
        except ContractsError as error:
            return problem("not-to-propose", str(error), status.HTTP_409_CONFLICT)
        return Response(proposal_document(proposal), status=status.HTTP_201_CREATED)


def proposal_document(proposal: ContractProposal) -> dict[str, Any]:
    """A proposal as plain values for JSON."""
    versions = proposal.versions.select_related("task").order_by("task__sort_key", "pk")
    return {
        "number": proposal.number,
        "versions": [
            {"id": str(version.uuid), "task": version.task.task_id, "version": version.number}
            for version in versions
        ],
        "page": Addresses.of(proposal.system.slug).contract_proposal(proposal.number),
    }
