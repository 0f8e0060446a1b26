"""What a browser must do, whichever kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from envs.web.elements import attributes, clean, option_label, options_of
from envs.web.pages import Element, Page
from tools.errors import ToolError

HOME_LINES = 60
"""Lines of a page that are shown at once; `scroll` moves by this less an overlap."""
OVERLAP = 5
MAX_CHARS = 6500
MAX_TABS = 5
MAX_VALUE = 10_000
KEYS = ("Enter", "Space", "Tab", "Escape", "Backspace", "ArrowDown", "ArrowUp", "ArrowLeft", "ArrowRight")


@dataclass(frozen=True, slots=True)
class View:
    """What is open: the page in front, its address, and the titles of all tabs."""

    url: str
    page: Page
    tabs: tuple[str, ...]
    active: int


class Browser(Protocol):
    """Acts on the page in front. Element numbers are those of the last `view`; all errors of the model are ToolError.

    A page that crashes or does not answer is a ToolError as well: the browser then shows an empty page.
    """

    def open(self, url: str) -> None:
        """Begin at this address; its origin is the only one that can ever be opened."""
        ...

    def view(self) -> View:
        """What is open now."""
        ...

    def click(self, element: int) -> None:
        """Click an element."""
        ...

    def fill(self, element: int, text: str) -> None:
        """Replace the text of a field."""
        ...

    def select(self, element: int, option: str) -> None:
        """Choose an option by its text."""
        ...

    def press(self, element: int, key: str) -> None:
        """Press one of `KEYS` in an element."""
        ...

    def goto(self, url: str) -> None:
        """Open an address of the same origin."""
        ...

    def back(self) -> None:
        """Open the page before this one."""
        ...

    def tab(self, action: str, index: int) -> None:
        """Open a tab (`new`), or bring one to the front (`switch`), or `close` one."""
        ...

    def copy(self) -> Any | None:
        """The state that another browser continues from; None where it can only be replayed."""
        ...

    def close(self) -> None:
        """End; safe to call twice."""
        ...


def check_key(key: str) -> None:
    """Refuse keys that a browser might take for a command of its own.

    Raises:
        ToolError: it is none of `KEYS`.
    """
    if key not in KEYS:
        raise ToolError(f"the keys are {', '.join(KEYS)}; got {key[:40]!r}")


def fillable(element: Element, text: str) -> str:
    """What a field makes of a text: a field of one line has no line breaks.

    Raises:
        ToolError: the element takes no text, or not so much.
    """
    if element.role != "textbox" or element.node.tag not in ("input", "textarea"):
        raise ToolError(f"element {element.number} is a {element.role}, only a textbox can be filled")
    if "readonly" in attributes(element.node):
        raise ToolError(f"element {element.number} cannot be changed")
    if len(text) > MAX_VALUE:
        raise ToolError(f"a field takes at most {MAX_VALUE} characters, got {len(text)}")
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "")
    return text.replace("\n", "") if element.node.tag == "input" else text


def option_of(element: Element, option: str) -> int:
    """The index of an option by its text.

    Raises:
        ToolError: the element has no options, or no such one.
    """
    if element.node.tag != "select":
        raise ToolError(f"element {element.number} is a {element.role}, only a combobox has options")
    labels = [option_label(o) for o in options_of(element.node)]
    if clean(option) not in labels:
        raise ToolError(f"the options are {', '.join(labels)[:500]}; got {option[:100]!r}")
    return labels.index(clean(option))
