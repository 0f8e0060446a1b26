from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sandbox.network.policy import Policy, Refused, is_public

POLICY = Policy.parse(["pypi.org:443", "*.Example.org:8443"])


@pytest.mark.parametrize(
    ("host", "port", "allowed"),
    [
        ("pypi.org", 443, True),
        ("PyPI.org.", 443, True),
        ("pypi.org", 80, False),
        ("evil-pypi.org", 443, False),
        ("pypi.org.evil.com", 443, False),
        ("a.b.example.org", 8443, True),
        ("example.org", 8443, False),
        ("evilexample.org", 8443, False),
        ("127.0.0.1", 443, False),
        ("[::1]", 443, False),
        ("2130706433", 443, False),
        ("0x7f.0x1", 443, False),
        ("pypi.org\0.evil.com", 443, False),
        ("", 443, False),
    ],
)
def test_names(host: str, port: int, allowed: bool) -> None:
    if allowed:
        assert POLICY.check(host, port) == host.lower().rstrip(".")
    else:
        with pytest.raises(Refused):
            POLICY.check(host, port)


@pytest.mark.parametrize(
    "entry",
    ["pypi.org", "pypi.org:", "pypi.org:0", "pypi.org:70000", "*:443", "*.:443", "10.0.0.1:443", "org:443"],
)
def test_entries_that_say_too_little_or_too_much_are_refused(entry: str) -> None:
    with pytest.raises(ValueError, match="an allowed host"):
        Policy.parse([entry])


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1",
        "10.1.2.3",
        "172.16.0.1",
        "192.168.1.1",
        "169.254.169.254",
        "100.64.0.1",
        "0.0.0.0",
        "224.0.0.1",
        "255.255.255.255",
        "192.0.2.1",
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fc00::1",
        "ff02::1",
        "::ffff:10.0.0.1",
        "64:ff9b::7f00:1",
        "2002:7f00:1::",
        "not an address",
    ],
)
def test_addresses_that_are_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize(
    "address", ["1.2.3.4", "8.8.8.8", "2606:4700::1111", "::ffff:8.8.8.8", "64:ff9b::808:808"]
)
def test_public_addresses(address: str) -> None:
    assert is_public(address)


@given(st.ip_addresses(v=4))
def test_an_embedded_address_is_as_public_as_itself(ip: ipaddress.IPv4Address) -> None:
    number = int(ip)
    for text in (f"::ffff:{ip}", f"64:ff9b::{number >> 16:x}:{number & 0xFFFF:x}"):
        assert is_public(text) == is_public(str(ip))


@given(st.text(max_size=300), st.integers(0, 70000))
def test_any_text_is_refused_or_allowed(host: str, port: int) -> None:
    try:
        name = POLICY.check(host, port)
    except Refused:
        return
    assert name == "pypi.org" or name.endswith(".example.org")


@pytest.mark.parametrize(
    ("entry", "covered"),
    [
        ("pypi.org:443", True),
        ("PyPI.org:443", True),
        ("pypi.org:80", False),
        ("*.pypi.org:443", False),
        ("*.example.org:8443", True),
        ("*.a.example.org:8443", True),
        ("a.example.org:8443", True),
        ("example.org:8443", False),
        ("*.org.example:8443", False),
        ("evilexample.org:8443", False),
    ],
)
def test_a_part_of_a_list(entry: str, covered: bool) -> None:
    assert POLICY.covers(entry) == covered
