"""The three pages that belong together: contracts, proposals, regrades."""

from __future__ import annotations

from evalsite.common.shell import Choice
from traces.web.addresses import Addresses, address

CONTRACTS, PROPOSALS, REGRADES = "Contracts", "Proposals", "Regrades"


def proposals_url(at: Addresses) -> str:
    """The list of proposals."""
    return address(at.contracts, {"view": "proposals"})


def contract_tabs(at: Addresses, current: str, *, n_open: int = 0) -> tuple[Choice, ...]:
    """The tabs of the three pages; `n_open` proposals wait for a decision."""
    places = (
        (CONTRACTS, at.contracts, None, "What each task requires."),
        (
            PROPOSALS,
            proposals_url(at),
            n_open or None,
            "Contracts that somebody proposed; a number counts those that wait for a decision.",
        ),
        (REGRADES, at.regrades, None, "Stored trials graded again, and what that changed."),
    )
    return tuple(
        Choice(label, href, is_current=label == current, count=count, help=words)
        for label, href, count, words in places
    )
