"""Private, link-local and metadata addresses are told in every spelling."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from evalsite.judge_runner.addresses import (
    AddressError,
    address_refusal,
    checked_address,
    looked_up,
)

PRIVATE = "a private address, which EVALSITE_JUDGE_ALLOW_PRIVATE=1 allows"
NEVER = "an address of the network itself, which is never connected to"


@pytest.mark.parametrize(
    ("text", "why", "why_with_private"),
    [
        ("93.184.216.34", "", ""),
        ("2606:2800:220:1:248:1893:25c8:1946", "", ""),
        ("127.0.0.1", PRIVATE, ""),
        ("127.255.0.9", PRIVATE, ""),
        ("10.1.2.3", PRIVATE, ""),
        ("172.16.0.1", PRIVATE, ""),
        ("192.168.1.1", PRIVATE, ""),
        ("100.64.0.1", PRIVATE, ""),
        ("198.18.0.1", PRIVATE, ""),
        ("::1", PRIVATE, ""),
        ("fc00::1", PRIVATE, ""),
        ("fd12:3456::1", PRIVATE, ""),
        ("::ffff:127.0.0.1", PRIVATE, ""),
        ("::ffff:10.0.0.1", PRIVATE, ""),
        ("::ffff:93.184.216.34", "", ""),
        ("2002:7f00:1::", PRIVATE, ""),
        ("64:ff9b::7f00:1", PRIVATE, ""),
        ("64:ff9b::a00:1", PRIVATE, ""),
        ("2001:0:a00:1::", NEVER, NEVER),
        ("2001:0:a00:1::a247:27dd", PRIVATE, ""),
        ("::7f00:1", PRIVATE, ""),
        ("::a9fe:a9fe", NEVER, NEVER),
        ("169.254.169.254", NEVER, NEVER),
        ("169.254.0.1", NEVER, NEVER),
        ("::ffff:169.254.169.254", NEVER, NEVER),
        ("2002:a9fe:a9fe::", NEVER, NEVER),
        ("64:ff9b::a9fe:a9fe", NEVER, NEVER),
        ("64:ff9b:1::a9fe:a9fe", NEVER, NEVER),
        ("fd00:ec2::254", NEVER, NEVER),
        ("fe80::1", NEVER, NEVER),
        ("fec0::1", NEVER, NEVER),
        ("0.0.0.0", NEVER, NEVER),  # noqa: S104 - it is refused
        ("0.1.2.3", NEVER, NEVER),
        ("::", NEVER, NEVER),
        ("224.0.0.1", NEVER, NEVER),
        ("ff02::1", NEVER, NEVER),
        ("240.0.0.1", NEVER, NEVER),
        ("255.255.255.255", NEVER, NEVER),
        ("100.100.100.200", NEVER, NEVER),
        ("168.63.129.16", NEVER, NEVER),
    ],
)
def test_what_an_address_is(text: str, why: str, why_with_private: str) -> None:
    address = ip_address(text)
    assert address_refusal(address, allow_private=False) == why
    assert address_refusal(address, allow_private=True) == why_with_private


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.1", "2130706433", "0177.0.0.1", "0x7f.0.0.1", "0x7f000001", "017700000001",
     "localhost", "::1"],
)  # fmt: skip
def test_every_spelling_of_this_machine_is_refused(host: str) -> None:
    with pytest.raises(AddressError) as refused:
        checked_address(host, 80, allow_private=False, timeout_seconds=20)
    assert "a private address" in str(refused.value) or "No address is known" in str(refused.value)


@pytest.mark.parametrize("host", ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"])  # fmt: skip
def test_every_spelling_of_a_metadata_address_is_refused(host: str) -> None:
    with pytest.raises(AddressError) as refused:
        checked_address(host, 80, allow_private=True, timeout_seconds=20)
    assert str(refused.value) == (
        f"{host} has 169.254.169.254, an address of the network itself, which is never connected "
        "to."
    )


def answering(*addresses: str) -> object:
    def lookup(host: str, port: int) -> Sequence[str]:
        assert (host, port) == ("judge.example", 443)
        return addresses

    return lookup


def checked(*addresses: str) -> str:
    return checked_address(
        "judge.example",
        443,
        allow_private=False,
        timeout_seconds=20,
        lookup=answering(*addresses),  # type: ignore[arg-type]
    )


def test_the_first_address_is_taken() -> None:
    assert checked("93.184.216.34", "93.184.216.34", "1.1.1.1") == "93.184.216.34"
    assert checked("2606:4700::1111%eth0") == "2606:4700::1111"


@pytest.mark.parametrize("other", ["10.0.0.1", "::1", "169.254.169.254", "fe80::1%eth0"])
def test_mixed_answers_are_refused_as_a_whole(other: str) -> None:
    for addresses in (("93.184.216.34", other), (other, "93.184.216.34")):
        with pytest.raises(AddressError, match=r"^judge\.example has "):
            checked(*addresses)


def test_a_name_without_an_address() -> None:
    with pytest.raises(AddressError, match=r"^No address is known for judge\.example\.$"):
        checked()

    def broken(host: str, port: int) -> Sequence[str]:
        raise OSError

    with pytest.raises(AddressError, match=r"^No address is known for judge\.example\.$"):
        checked_address(
            "judge.example", 443, allow_private=False, timeout_seconds=20, lookup=broken
        )


def test_the_machine_looks_up_numbers() -> None:
    assert list(looked_up("127.1", 80)) == ["127.0.0.1"]
