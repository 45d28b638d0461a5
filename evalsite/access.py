"""Who may reach what: one rule on every route.

Each view states its rule with one of the decorators below; `tests/evalsite/test_access.py` fails
on a route without one. Another system's objects answer 404, like absent ones.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Concatenate, ParamSpec

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponseBase

from traces.models import Member, Role, System, User

P = ParamSpec("P")
View = Callable[..., HttpResponseBase]


class Act(StrEnum):
    """What a person does to a system, as docs/design.md section 9 lists it."""

    READ = "read"
    FLAG = "flag"
    CONTRIBUTE = "contribute"  # upload evidence, declare runs, propose, accept paths
    APPROVE = "approve"  # a contract or rules version that somebody else proposed
    RECOMPUTE = "recompute"  # stop or restart work, take a proposal of one's own back
    WORK = "work"  # on cases: assign, set a date, set aside, ask for a rerun
    REVIEW = "review"  # give verdicts, label, adjudicate, mark checks, vouch
    WRITE_RUBRIC = "write_rubric"  # a new text of a rubric
    ASK_JUDGES = "ask_judges"  # make probes, run judges, bring labels in
    OWN = "own"


_ALL = frozenset(Role)
ALLOWED: dict[Act, frozenset[Role]] = {
    Act.READ: _ALL,
    Act.FLAG: _ALL,
    Act.CONTRIBUTE: frozenset({Role.ENGINEER}),
    Act.APPROVE: frozenset({Role.REVIEWER, Role.OWNER}),
    Act.RECOMPUTE: frozenset({Role.ENGINEER, Role.REVIEWER, Role.OWNER}),
    Act.WORK: frozenset({Role.ENGINEER, Role.REVIEWER, Role.OWNER}),
    Act.REVIEW: frozenset({Role.REVIEWER}),
    Act.WRITE_RUBRIC: frozenset({Role.ENGINEER, Role.REVIEWER}),
    Act.ASK_JUDGES: frozenset({Role.ENGINEER, Role.REVIEWER}),
    Act.OWN: frozenset({Role.OWNER}),
}
_REFUSALS = {
    Act.CONTRIBUTE: "Only an engineer of this system uploads evidence, declares runs, proposes "
    "tasks, contracts and rules, and accepts paths. "
    "The site's operator makes a person one: manage.py member SYSTEM USERNAME engineer.",
    Act.APPROVE: "Only a reviewer or an owner of this system decides on proposed rules and "
    "contracts.",
    Act.RECOMPUTE: "A viewer does not stop or restart work on rules and contracts.",
    Act.WORK: "A viewer does not work on cases; comment on one instead.",
    Act.REVIEW: "Only a reviewer of this system gives verdicts and labels, decides disputes, marks "
    "checks and vouches.",
    Act.WRITE_RUBRIC: "Only an engineer or a reviewer of this system writes rubrics.",
    Act.ASK_JUDGES: "Only an engineer or a reviewer of this system makes probes, runs judges and "
    "brings labels in.",
    Act.OWN: "Only an owner of this system does that.",
}


@dataclass(frozen=True, slots=True)
class Access:
    """A signed-in person in a system of theirs."""

    user: User
    system: System
    role: Role

    def may(self, act: Act) -> bool:
        """Whether the role allows the act."""
        return self.role in ALLOWED[act]

    def refusal(self, act: Act) -> str:
        """Why the role does not allow the act; "" when it does."""
        return "" if self.may(act) else _REFUSALS[act]


class SystemRequest(HttpRequest):
    """A request whose route names a system that the person is a member of."""

    access: Access


def _rule(view: View, rule: str) -> View:
    view.access_rule = rule  # type: ignore[attr-defined]
    return view


def public(view: View) -> View:
    """Anybody may reach it: sign-in, health, static help."""
    return _rule(view, "public")


def signed_in(view: View) -> View:
    """Anybody who is signed in; the view shows only what is theirs."""

    @functools.wraps(view)
    def inner(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path())
        return view(request, *args, **kwargs)

    return _rule(inner, "signed-in")


def in_system(
    act: Act = Act.READ,
) -> Callable[[Callable[Concatenate[Any, P], HttpResponseBase]], View]:
    """Members of the system that the route names by `slug`, whose role allows the act.

    A person who is no member gets 404, as for a system that does not exist; a member whose role
    does not allow the act gets 403 with the reason. Looked up at every request, so a change of
    role holds at once.
    """

    def decorate(view: Callable[Concatenate[Any, P], HttpResponseBase]) -> View:
        @functools.wraps(view)
        def inner(
            request: HttpRequest, slug: str, *args: P.args, **kwargs: P.kwargs
        ) -> HttpResponseBase:
            if not request.user.is_authenticated:
                return redirect_to_login(request.get_full_path())
            access = access_of(request.user, slug)
            if not access.may(act):
                raise PermissionDenied(access.refusal(act))
            request.access = access  # type: ignore[attr-defined]
            return view(request, *args, **kwargs)

        return _rule(inner, f"system:{act.value}")

    return decorate


_ACCESS = """
SELECT s.*, m.role AS member_role FROM traces_member m
JOIN traces_system s ON s.id = m.system_id JOIN traces_user p ON p.id = m.user_id
WHERE m.user_id = %s AND s.slug = %s AND p.is_active
"""


def access_of(user: Any, slug: str) -> Access:
    """The person's access to the system of that address. Raises `Http404` without one.

    Every page of a system asks for it, so that the query is written out: building it cost more
    than running it.
    """
    for system in System.objects.raw(_ACCESS, [user.pk, slug]):
        return Access(user=user, system=system, role=Role(system.member_role))  # type: ignore[attr-defined]
    raise Http404("There is no such system, or you are no member of it.")


def systems_of(user: User) -> list[Member]:
    """A person's memberships, by name of the system."""
    return list(
        Member.objects.select_related("system").filter(user=user).order_by("system__name", "pk")
    )
