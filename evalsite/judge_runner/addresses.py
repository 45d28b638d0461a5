"""Which network addresses a judge's endpoint may have, and the one that is connected to.

A name is looked up once, all its addresses are checked, and the connection goes to one of those
that were checked: a name that answers otherwise a moment later changes nothing. Spellings such as
decimal, octal or hexadecimal numbers are what the look-up makes of them.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

Address = IPv4Address | IPv6Address
Lookup = Callable[[str, int], Sequence[str]]

# Never, whatever the operator allows: these are no places of an endpoint.
_NEVER: Final = tuple(
    ip_network(text)
    for text in (
        "0.0.0.0/8", "169.254.0.0/16", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4",
        "240.0.0.0/4", "168.63.129.16/32", "100.100.100.200/32", "::/128", "fe80::/10",
        "fec0::/10", "ff00::/8", "fd00:ec2::/32", "fd20:ce::/32", "100::/64",
    )
)  # fmt: skip
_NAT64: Final = (IPv6Network("64:ff9b::/96"), IPv6Network("64:ff9b:1::/48"))


class AddressError(Exception):
    """The endpoint is not connected to; the text is a sentence for people."""


def address_refusal(address: Address, *, allow_private: bool) -> str:
    """Why an address is not connected to, as the end of a sentence; "" for one that may be."""
    all_of_it = (address, *_inside(address))
    if any(_is_in(one, network) for one in all_of_it for network in _NEVER):
        return "an address of the network itself, which is never connected to"
    if not allow_private and not all(one.is_global for one in all_of_it):
        return "a private address, which EVALSITE_JUDGE_ALLOW_PRIVATE=1 allows"
    return ""


def _is_in(address: Address, network: IPv4Network | IPv6Network) -> bool:
    return address.version == network.version and address in network


def _inside(address: Address) -> tuple[Address, ...]:
    """IPv4 addresses that stand inside an IPv6 address and are what it leads to."""
    if isinstance(address, IPv4Address):
        return ()
    found: list[Address] = []
    if address.ipv4_mapped is not None:
        found.append(address.ipv4_mapped)
    if address.sixtofour is not None:
        found.append(address.sixtofour)
    if address.teredo is not None:
        found += address.teredo
    low = int(address) & 0xFFFFFFFF
    if any(address in network for network in _NAT64) or 0xFFFF < int(address) <= 0xFFFFFFFF:
        found.append(IPv4Address(low))
    return tuple(found)


def looked_up(host: str, port: int) -> Sequence[str]:
    """The addresses of a name, or of a number however it is spelt. Raises OSError."""
    rows = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(row[4][0]) for row in rows]


def checked_address(
    host: str,
    port: int,
    *,
    allow_private: bool,
    timeout_seconds: float,
    lookup: Lookup = looked_up,
) -> str:
    """The address to connect to. Raises `AddressError` where any address of the name is refused.

    Raises TimeoutError where the look-up takes longer than `timeout_seconds`.
    """
    found = _in_time(lookup, host, port, timeout_seconds)
    if not found:
        raise AddressError(f"No address is known for {host}.")
    addresses = [_parsed(text) for text in dict.fromkeys(found)]
    for address in addresses:
        if why := address_refusal(address, allow_private=allow_private):
            raise AddressError(f"{host} has {address}, {why}.")
    return str(addresses[0])


def _parsed(text: str) -> Address:
    return ip_address(text.partition("%")[0])


def _in_time(lookup: Lookup, host: str, port: int, timeout_seconds: float) -> Sequence[str]:
    """The look-up's answer. The system's own look-up knows no time-out, so a thread waits for it."""
    answers: list[Sequence[str]] = []

    def look() -> None:
        try:
            answers.append(lookup(host, port))
        except (OSError, UnicodeError):
            answers.append(())

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    thread.join(timeout_seconds)
    if not answers:
        raise TimeoutError
    return answers[0]
