"""What a MiniWoB++ page shows, read back from the lines that the agent is given."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator
from dataclasses import dataclass

from envs.policies import call
from tools.types import Message

Way = Generator[Message, str, None]
"""Yields calls, is sent what the page shows after each."""
Solver = Callable[[str], Way]
"""From the first page to a way through it."""
_ELEMENT = re.compile(
    r'\[(?P<number>\d+)\] (?P<role>\w+) "(?P<name>[^"]*)"(?: = "(?P<value>[^"]*)")?(?: of \((?P<options>[^)]*)\))?'
    r"(?: (?P<state>checked|unchecked))?"
)


@dataclass(frozen=True, slots=True)
class Item:
    """One element."""

    number: int
    role: str
    name: str
    value: str
    checked: bool


@dataclass(frozen=True, slots=True)
class Seen:
    """A page as it was shown."""

    text: str

    @property
    def lines(self) -> list[str]:
        """Without the lines about the page itself."""
        return self.text.partition("\n\n")[2].splitlines()

    @property
    def wanted(self) -> str:
        """The first line: what is asked for."""
        return self.lines[0] if self.lines else ""

    @property
    def items(self) -> list[Item]:
        """Every element in order."""
        found = _ELEMENT.finditer(" ".join(self.lines))  # long lines are wrapped at spaces
        return [
            Item(int(m["number"]), m["role"], m["name"].strip(), m["value"] or "", m["state"] == "checked")
            for m in found
        ]

    def of(self, *roles: str) -> list[Item]:
        """The elements of some roles."""
        return [item for item in self.items if item.role in roles]

    def named(self, name: str, *roles: str) -> Item:
        """The first element whose name is this, or that of a link in running text.

        Raises:
            LookupError: there is none.
        """
        for item in self.items:
            bare = item.name.strip(" .,!?")
            if (not roles or item.role in roles) and name in (item.name, bare):
                return item
        raise LookupError(name)

    def has(self, name: str, *roles: str) -> bool:
        """Whether there is such an element."""
        try:
            self.named(name, *roles)
        except LookupError:
            return False
        return True

    def quoted(self) -> list[str]:
        """What stands in quotation marks in the first line."""
        return [text.strip() for text in re.findall(r'"([^"]*)"', self.wanted)]


def click(item: Item) -> Message:
    """Click an element."""
    return call("click", element=item.number)


def fill(item: Item, text: str) -> Message:
    """Fill a text field."""
    return call("fill", element=item.number, text=text)


def part(pattern: str, text: str) -> str:
    """What the one group of a pattern matches.

    Raises:
        LookupError: it does not match.
    """
    found = re.search(pattern, text)
    if found is None:
        raise LookupError(pattern)
    return found[1].strip()
