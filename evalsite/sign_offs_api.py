"""The signed file of a sign-off through the API, as its page hands it out."""

from __future__ import annotations

import uuid

from django.http import Http404, HttpResponse
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiResponse, extend_schema
from rest_framework.request import Request

from evalsite.api_access import ApiView, caller_of
from evalsite.signing import attestation_of
from reviews.api.figures import RefusedSerializer
from reviews.models import SignOff

NO_SIGNATURE = "There is no such signature in this system."
_ANSWERS = {
    200: OpenApiTypes.OBJECT,
    **dict.fromkeys((400, 401, 403, 404), OpenApiResponse(RefusedSerializer)),
}


class SignOffAttestation(ApiView):
    """The in-toto statement of a signature in its DSSE envelope, byte for byte as it was signed."""

    @extend_schema(operation_id="attestation", responses=_ANSWERS)
    def get(self, request: Request, slug: str, sign_off: uuid.UUID) -> HttpResponse:
        system = caller_of(request, slug).system
        row = SignOff.objects.filter(system=system, uuid=sign_off).first()
        if row is None:
            raise Http404(NO_SIGNATURE)
        return HttpResponse(attestation_of(row), content_type="application/json")
