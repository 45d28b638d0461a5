"""The frame of every page: who one is, in which system, and where one can go."""

from __future__ import annotations

from typing import TYPE_CHECKING

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse

from evalsite.common.shell import Alert, NavGroup, NavItem, Shell, SystemLink
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
        account_url=reverse("account"),
        systems=_systems(menu, current=access.system.pk),
        nav=(
            _group(
                "Evidence",
                section,
                ("Overview", at.overview),
                ("Tasks", at.tasks),
                ("Trials", at.trials),
                ("Runs", at.runs),
                ("Uploads", at.uploads),
                ("Production", at.production),
            ),
            NavGroup(
                "Review",
                (
                    _counted(
                        "Cases", at.cases, section, menu.n_cases, ("case waits", "cases wait")
                    ),
                    _counted(
                        "Disputes",
                        at.disputes,
                        section,
                        menu.n_disputes,
                        ("dispute decides something", "disputes decide something"),
                    ),
                    NavItem("Labelling", at.calibration_sets, is_current=section == "Labelling"),
                    NavItem("Flags", at.flags, is_current=section == "Flags"),
                    NavItem("Judges", at.judges, is_current=section == "Judges"),
                ),
            ),
            _group("Release", section, ("Releases", at.releases), ("Thresholds", at.thresholds)),
            NavGroup(
                "System",
                (
                    _counted(
                        "Contracts", at.contracts, section, menu.n_contract_proposals, _PROPOSALS
                    ),
                    _counted("Rules", at.rules, section, menu.n_proposals, _PROPOSALS),
                    NavItem("Rubrics", at.rubrics, is_current=section == "Rubrics"),
                    NavItem("Families", at.families, is_current=section == "Families"),
                    NavItem("Members", at.members, is_current=section == "Members"),
                    NavItem("API keys", at.api_keys, is_current=section == "API keys"),
                    NavItem("Audit log", at.audit, is_current=section == "Audit log"),
                ),
            ),
        ),
        search_url=at.tasks,
        is_demo=settings.EVALSITE_DEMO,
        alert=_alert(menu.n_alerts, at),
    )


def _alert(n: int, at: Addresses) -> Alert | None:
    """That trials did something prohibited, until an owner has noted it."""
    if not n:
        return None
    if n == 1:
        said = "A prohibited action blocks a release. No owner has noted it yet."
        return Alert(said, at.alerts, "Look at it")
    said = f"{n:,} prohibited actions block releases. No owner has noted them yet."
    return Alert(said, at.alerts, "Look at them")


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
        account_url=reverse("account"),
        systems=_systems(menu_of_systems(user.pk, current=None, n=MOST_SYSTEMS), current=None),
        is_demo=settings.EVALSITE_DEMO,
    )


def _group(label: str, current: str, *places: tuple[str, str]) -> NavGroup:
    return NavGroup(
        label, tuple(NavItem(name, href, is_current=name == current) for name, href in places)
    )


_PROPOSALS = ("proposal waits for a decision", "proposals wait for a decision")


def _counted(label: str, href: str, current: str, n: int, words: tuple[str, str]) -> NavItem:
    """A place with what waits there; nothing is shown where nothing waits."""
    is_current = label == current
    if not n:
        return NavItem(label, href, is_current=is_current)
    return NavItem(label, href, is_current, n, words[n != 1])


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
