"""The frame of every page: who one is, in which system, and where one can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from evalsite.common.shell import NavGroup, NavItem, Shell, SystemLink
from traces.models import User
from traces.selectors.system_list import SystemMenu, menu_of_systems
from traces.web.addresses import Addresses

if TYPE_CHECKING:
    from evalsite.access import Access

MOST_SYSTEMS = 50  # in the menu; the start page lists all


def system_shell(access: Access, *, section: str) -> Shell:
    """The frame of a page of a system. `section` is the label of its place in the navigation."""
    at = Addresses.of(access.system.slug)
    menu = menu_of_systems(access.user.pk, current=access.system.pk, n=MOST_SYSTEMS)
    return Shell(
        home_url=reverse("system-list"),
        sign_in_url=reverse("sign-in"),
        person_name=access.user.printed_name,
        role=access.role.value,
        sign_out_url=reverse("sign-out"),
        systems=_systems(menu, current=access.system.pk),
        nav=(
            _group(
                "Evidence",
                section,
                ("Tasks", at.tasks),
                ("Trials", at.trials),
                ("Runs", at.runs),
                ("Uploads", at.uploads),
            ),
            _group("Review", section, ("Flags", at.flags)),
            _group("Release", section, ("Releases", at.releases)),
            NavGroup("System", (_rules_item(at, menu.n_proposals, section),)),
        ),
        search_url=at.tasks,
        is_demo=settings.EVALSITE_DEMO,
    )


def person_shell(request: HttpRequest) -> Shell:
    """The frame of a page outside of any system."""
    user = request.user
    if not isinstance(user, User):
        return Shell(home_url=reverse("system-list"), sign_in_url=reverse("sign-in"))
    return Shell(
        home_url=reverse("system-list"),
        sign_in_url=reverse("sign-in"),
        person_name=user.printed_name,
        sign_out_url=reverse("sign-out"),
        systems=_systems(menu_of_systems(user.pk, current=None, n=MOST_SYSTEMS), current=None),
        is_demo=settings.EVALSITE_DEMO,
    )


def _group(label: str, current: str, *places: tuple[str, str]) -> NavGroup:
    return NavGroup(
        label, tuple(NavItem(name, href, is_current=name == current) for name, href in places)
    )


def _rules_item(at: Addresses, n_proposals: int, section: str) -> NavItem:
    """The place of rules, with what waits there for a reviewer or an owner."""
    is_current = section == "Rules"
    if not n_proposals:
        return NavItem("Rules", at.rules, is_current=is_current)
    words = "proposal waits" if n_proposals == 1 else "proposals wait"
    return NavItem("Rules", at.rules, is_current, n_proposals, f"{words} for a decision")


def _systems(menu: SystemMenu, *, current: int | None) -> tuple[SystemLink, ...]:
    start = reverse("system-list")
    return tuple(
        SystemLink(
            name=name,
            href=f"{start}systems/{slug}/tasks/",
            detail=role,
            is_current=pk == current,
        )
        for pk, name, slug, role in menu.rows
    )
