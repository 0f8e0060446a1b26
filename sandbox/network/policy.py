"""Which hosts a sandbox may reach, decided on names first and on the addresses behind them last."""

from __future__ import annotations

import ipaddress
import re
import socket
from collections.abc import Iterable
from dataclasses import dataclass

_NAME = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)(\.(?!-)[a-z0-9-]{1,63}(?<!-))*")


class Refused(Exception):
    """The policy forbids a connection; the message says why and may be shown to the program."""


@dataclass(frozen=True, slots=True)
class Policy:
    """Pairs of host pattern and port. A pattern is a name, or `*.` and a name for everything below it.

    Raises:
        ValueError: an entry is not `host:port`.
    """

    entries: tuple[tuple[str, int], ...]

    @classmethod
    def parse(cls, allow: Iterable[str]) -> Policy:
        """Read entries such as `pypi.org:443` and `*.example.org:443`."""
        return cls(tuple(_entry(text) for text in allow))

    def covers(self, text: str) -> bool:
        """Whether all that another list's entry names is allowed here.

        Raises:
            ValueError: the entry is not `host:port`.
        """
        host, port = _entry(text)
        name = host.removeprefix("*.")
        return any(
            port == allowed and (host == pattern or (pattern.startswith("*.") and _matches(pattern, name)))
            for pattern, allowed in self.entries
        )

    def check(self, host: str, port: int) -> str:
        """The name in lower case, when it is allowed.

        Raises:
            Refused: it is not, or it is an address instead of a name.
        """
        name = host.lower().rstrip(".")
        if not _NAME.fullmatch(name) or _is_address(name):
            raise Refused(f"{host[:80]!r} is not a host name; addresses are not allowed")
        if not any(port == allowed and _matches(pattern, name) for pattern, allowed in self.entries):
            raise Refused(f"{name}:{port} is not on the list of allowed hosts")
        return name


def resolve(name: str, port: int) -> list[str]:
    """The public addresses of a name, each checked.

    Raises:
        Refused: it has none, or one of them is not public: a name that mixes them is not to be trusted.
    """
    try:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, proto=socket.IPPROTO_TCP)
    except (OSError, UnicodeError) as error:
        raise Refused(f"{name} cannot be resolved") from error
    addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
    for address in addresses:
        if not is_public(address):
            raise Refused(f"{name} has an address that is not public")
    return addresses


def is_public(address: str) -> bool:
    """Whether an IP address belongs to the public internet, whichever way it is written."""
    try:
        ip = ipaddress.ip_address(address)
    except ValueError:  # a scoped address such as fe80::1%eth0
        return False
    inner = _embedded(ip) if isinstance(ip, ipaddress.IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    return ip.is_global and not (ip.is_multicast or ip.is_reserved or ip.is_unspecified)


def _embedded(ip: ipaddress.IPv6Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address that an IPv6 address stands for: mapped, 6to4, Teredo or NAT64."""
    if ip.ipv4_mapped or ip.sixtofour:
        return ip.ipv4_mapped or ip.sixtofour
    if ip.teredo:
        return ip.teredo[1]
    if ip in ipaddress.IPv6Network("64:ff9b::/96"):
        return ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    return None


def _entry(text: str) -> tuple[str, int]:
    host, colon, port = text.lower().rpartition(":")
    name = host.removeprefix("*.")
    if not colon or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError(f"an allowed host reads host:port, such as pypi.org:443; got {text!r}")
    if not _NAME.fullmatch(name) or _is_address(name) or "." not in name:
        raise ValueError(f"an allowed host is a full name, or *. and a full name; got {text!r}")
    return host, int(port)


def _matches(pattern: str, name: str) -> bool:
    return name.endswith(pattern[1:]) if pattern.startswith("*.") else name == pattern


def _is_address(name: str) -> bool:
    # Resolvers also take 0x7f.1, 127.1 and 2130706433 for addresses: no label of digits may come last.
    last = name.rpartition(".")[2]
    return last.isdigit() or bool(re.fullmatch(r"0x[0-9a-f]*", last))
