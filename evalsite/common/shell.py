"""What every page shows around its content, as plain values for the templates."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class NavItem:
    """One entry of the navigation."""

    label: str
    href: str
    is_current: bool = False
    count: int | None = None  # shown beside the label; None: nothing
    count_words: str = ""  # what is counted: "proposals wait for a decision"


@dataclass(frozen=True, slots=True)
class NavGroup:
    """Entries of the navigation under one heading."""

    label: str
    items: tuple[NavItem, ...]


@dataclass(frozen=True, slots=True)
class SystemLink:
    """A system that the person is a member of."""

    name: str
    href: str
    detail: str = ""  # "risk tier: payments", or the role held there
    is_current: bool = False


@dataclass(frozen=True, slots=True)
class Alert:
    """What every page of a system shows until an owner has noted it."""

    sentence: str
    href: str
    link: str  # what the link says


@dataclass(frozen=True, slots=True)
class Shell:
    """The frame of a page: where one is, who one is, and where one can go."""

    home_url: str
    sign_in_url: str
    person_name: str = ""  # "": nobody is signed in
    role: str = ""  # in the current system
    sign_out_url: str = ""  # takes a POST
    account_url: str = ""  # of the person's own account
    systems: tuple[SystemLink, ...] = ()
    nav: tuple[NavGroup, ...] = ()
    search_url: str = ""  # takes ?q=; "": no search here
    is_demo: bool = False
    alert: Alert | None = None  # shown at the head of every page of the system

    @property
    def current_system(self) -> SystemLink | None:
        """The system that the page belongs to, None outside of one."""
        return next((system for system in self.systems if system.is_current), None)


@dataclass(frozen=True, slots=True)
class Crumb:
    """One place on the way to this page. The last one has no address."""

    label: str
    href: str = ""


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure of the strip: the value in words, and what it is a figure of."""

    label: str
    value: str  # ready to read: "96.5%", "$0.041", "none"
    detail: str = ""  # "466 / 483 / 500 passed / graded / run"
    help: str = ""  # one sentence, shown on hover and to a screen reader
    state: str = ""  # pass | fail | unresolved | harness-error: colours the value
    href: str = ""


@dataclass(frozen=True, slots=True)
class Choice:
    """One choice of a switch or a menu, as a link."""

    label: str
    href: str
    is_current: bool = False
    count: int | None = None
    help: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """One option of a select box."""

    value: str
    label: str
    is_selected: bool = False


@dataclass(frozen=True, slots=True)
class Pager:
    """Links to the neighbouring pages of a list."""

    previous_url: str = ""
    next_url: str = ""
    words: str = ""  # "steps 1 to 200 of 6,000"
