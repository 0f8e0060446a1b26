"""What a browser must do, whichever kind it is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

from envs.web.pages import Page

HOME_LINES = 60
"""Lines of a page that are shown at once; `scroll` moves by this less an overlap."""
OVERLAP = 5
MAX_CHARS = 6500
MAX_TABS = 5
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
