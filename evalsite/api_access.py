"""Who may reach the API: keys of a system, and signed-in members for what they may read.

Every API view is an `ApiView` and states its rule as `scope`. A key belongs to one system; to a
key or a person, another system's objects answer 404, like absent ones.
"""

from __future__ import annotations

import hmac
import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, ClassVar

from django.conf import settings
from django.db import DataError, InterfaceError, OperationalError
from django.db.models import QuerySet
from django.http import Http404
from django.utils import timezone
from rest_framework import exceptions, status
from rest_framework.authentication import BaseAuthentication, SessionAuthentication
from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.parsers import BaseParser
from rest_framework.permissions import BasePermission
from rest_framework.renderers import BaseRenderer
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.utils.mediatypes import media_type_matches
from rest_framework.views import APIView
from rest_framework.views import exception_handler as standard_handler

from evalsite.access import access_of
from evalsite.common.acting import note_key
from evalsite.embedded.postgres import EmbeddedPostgresError
from traces.core.paths import PathLevel
from traces.models import ApiKey, Member, Role, Scope, System, User
from traces.services.people import hash_secret

log = logging.getLogger("evalsite.api")

KEY_PREFIX = "evs_"
RETRY_SECONDS = 5
_LAST_USED_EVERY = timedelta(minutes=1)
_WRONG_KEY = "The API key is wrong, expired or revoked."


class ApiKeyAuthentication(BaseAuthentication):
    """`Authorization: Bearer evs_…`. The holder has to be a member of the key's system still."""

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        header = request.META.get("HTTP_AUTHORIZATION", "")
        scheme, _, given = header.partition(" ")
        if not header:
            return None
        if scheme.lower() != "bearer":
            raise exceptions.AuthenticationFailed("Send the API key as `Authorization: Bearer …`.")
        key = _key_of(given.strip())
        if key is None:
            raise exceptions.AuthenticationFailed(_WRONG_KEY)
        _note_use(key)
        note_key(key.name)
        return key.user, key

    def authenticate_header(self, request: Request) -> str:  # noqa: ARG002
        return 'Bearer realm="evalsite"'


def _key_of(given: str) -> ApiKey | None:
    prefix = given.removeprefix(KEY_PREFIX).partition("_")[0]
    key = (
        ApiKey.objects.select_related("system__shown_rules", "user")
        .filter(prefix=prefix[:16].replace("\x00", ""))
        .first()
    )
    stored = bytes(key.secret_sha256) if key else bytes(32)
    is_right = hmac.compare_digest(stored, hash_secret(given))
    if key is None or not is_right or not given.startswith(KEY_PREFIX):
        return None
    is_over = key.revoked_at is not None or key.expires_at <= timezone.now()
    if is_over or not key.user.is_active:
        return None
    is_member = Member.objects.filter(system=key.system_id, user=key.user_id).exists()
    return key if is_member else None


def _note_use(key: ApiKey) -> None:
    now = timezone.now()
    if key.last_used_at is None or now - key.last_used_at > _LAST_USED_EVERY:
        ApiKey.objects.filter(pk=key.pk).update(last_used_at=now)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and the system that the call is about. `key` None: a signed-in person."""

    user: User
    system: System
    role: Role
    key: ApiKey | None


def caller_of(request: Request, slug: str) -> Caller:
    """The caller in the system of that address; a key needs no address, as it has its system.

    Raises `Http404` for a system that is absent or another's, and `ValidationError` when a
    signed-in person names none.
    """
    if isinstance(request.auth, ApiKey):
        key = request.auth
        if slug and slug != key.system.slug:
            raise Http404("There is no such system, or the key is not of it.")
        role = Member.objects.values_list("role", flat=True).get(
            system=key.system_id, user=key.user_id
        )
        return Caller(user=key.user, system=key.system, role=Role(role), key=key)
    if not slug:
        raise BadRequestError("system-missing", "Name the system: ?system=ADDRESS.")
    access = access_of(request.user, slug)
    return Caller(user=access.user, system=access.system, role=access.role, key=None)


def check_may_contribute(caller: Caller) -> None:
    """Raise `PermissionDenied` unless the caller is an engineer of the system."""
    if caller.role is not Role.ENGINEER:
        raise exceptions.PermissionDenied(
            "Only an engineer of this system uploads evidence and declares runs."
        )


class BadRequestError(exceptions.APIException):
    """What was sent cannot be read; the same again is refused again."""

    status_code = status.HTTP_400_BAD_REQUEST

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence, code)


class HasScope(BasePermission):
    """A key needs the view's scope; a signed-in person may only read."""

    def has_permission(self, request: Request, view: APIView) -> bool:
        assert isinstance(view, ApiView)
        if isinstance(request.auth, ApiKey):
            self.message = f"This API key lacks the scope {view.scope.value!r}."
            return view.scope.value in request.auth.scopes
        return request.user.is_authenticated


class UploadThrottle(SimpleRateThrottle):
    """Uploads that one key may send in a minute; counted before the body is read."""

    scope = "uploads"

    def get_rate(self) -> str:
        return f"{settings.EVALSITE_UPLOADS_PER_MINUTE}/min"

    def get_cache_key(self, request: Request, view: APIView) -> str:  # noqa: ARG002
        return f"uploads-by-{request.user.pk}"


class _OneForm(BaseContentNegotiation):
    """Each view answers in its one form, whatever `Accept` or `?format=` say."""

    def select_parser(self, request: Request, parsers: Iterable[BaseParser]) -> BaseParser | None:
        return next(
            (p for p in parsers if media_type_matches(p.media_type, request.content_type)), None
        )

    def select_renderer(
        self,
        request: Request,  # noqa: ARG002
        renderers: Iterable[BaseRenderer],
        format_suffix: str | None = None,  # noqa: ARG002
    ) -> tuple[BaseRenderer, str]:
        renderer = next(iter(renderers))
        return renderer, str(renderer.media_type)


class ApiView(APIView):
    """One act of the API. `scope` is the rule that the route carries as `access_rule`."""

    scope: ClassVar[Scope] = Scope.READ
    content_negotiation_class = _OneForm
    permission_classes: Sequence[type[BasePermission]] = (HasScope,)

    @classmethod
    def as_view(cls, **initkwargs: Any) -> Any:
        view: Any = super().as_view(**initkwargs)
        view.access_rule = f"api-key:{cls.scope.value}"
        return view

    def get_authenticators(self) -> list[BaseAuthentication]:
        # What changes something is not reached by a cookie.
        reads = self.scope is Scope.READ
        return [ApiKeyAuthentication(), *([SessionAuthentication()] if reads else [])]

    def get_exception_handler(self) -> Callable[[Exception, dict[str, Any]], Response | None]:
        return answer_to


def answer_to(error: Exception, context: dict[str, Any]) -> Response | None:
    """The answer to an exception: `code` and `detail`, and when to come again where that helps."""
    if isinstance(error, DataError):
        return problem("unreadable-text", "A name holds characters that no name can hold.", 400)
    if isinstance(error, RecursionError):
        return problem("too-deep", "The JSON is nested too deeply.", 400)
    if isinstance(error, OperationalError | InterfaceError | EmbeddedPostgresError | OSError):
        log.warning("service away", extra={"cause": type(error).__name__})
        away = problem(
            "unavailable", "The database or the disk is away; send the same again later.", 503
        )
        away["Retry-After"] = str(RETRY_SECONDS)
        return away
    answer = standard_handler(error, context)
    if answer is None:
        return None
    codes = error.get_codes() if isinstance(error, exceptions.APIException) else "not-found"
    sentence = answer.data.get("detail", "") if isinstance(answer.data, dict) else ""
    answer.data = {
        "code": str(codes).replace("_", "-") if isinstance(codes, str) else "invalid",
        "detail": str(sentence) or "The request cannot be read.",
    }
    return answer


def problem(code: str, sentence: str, status_code: int) -> Response:
    """A refusal as JSON."""
    return Response({"code": code, "detail": sentence}, status=status_code)


def visible_systems(request: Request) -> QuerySet[System]:
    """The systems whose objects the caller may read."""
    if isinstance(request.auth, ApiKey):
        return System.objects.filter(pk=request.auth.system_id)
    return System.objects.filter(members__user=request.user.pk, members__user__is_active=True)


def path_level_of(request: Request) -> tuple[PathLevel, bool]:
    """The level that `?level=` names, exact by default, and whether agent messages count.

    Raises `BadRequestError` for a level that does not exist.
    """
    query = request.query_params
    word, messages = query.get("level", PathLevel.EXACT.value), query.get("messages", "1")
    if word not in {level.value for level in PathLevel}:
        known = ", ".join(level.value for level in PathLevel)
        raise BadRequestError("unknown-level", f"Unknown level; known are {known}.")
    if messages not in {"0", "1"}:
        raise BadRequestError("bad-messages", "`messages` is 0 or 1.")
    return PathLevel(word), messages == "1"
