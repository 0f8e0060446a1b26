"""HTML as a person would read it aloud: lines of text with numbered elements, in document order.

The HTML is *reflected*: what a user typed stands in attributes (`value` also on a textarea, `checked`, `selected`).
The light browser keeps its pages so, and the real browser hands its pages over so: one renderer serves both.
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

from envs.web.elements import MAX_NAME, attributes, clean, is_hidden, labels_of, role_of, state_of

MAX_LINES = 4000
MAX_ELEMENTS = 3000
MAX_LINE = 400
MAX_DEPTH = 1000
"""The parser's time grows with the square of the depth: 20,000 open elements take 5 s."""

_BLOCK_NAMES = (
    "address article aside blockquote body br dd details div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 "
    "header hr html li main nav ol p pre section summary table tbody thead tfoot tr ul"
)
_BLOCKS = frozenset(_BLOCK_NAMES.split())
_CELLS = frozenset({"td", "th"})
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_OPEN_ENDED = "area base br col embed hr img input link meta source track wbr p li td th tr option dt dd"
_SELF_CLOSING = frozenset(_OPEN_ENDED.split())


@dataclass(frozen=True, slots=True)
class Element:
    """Something that can be acted on; `number` counts from 1 in document order."""

    number: int
    role: str
    name: str
    node: LexborNode


@dataclass(frozen=True, slots=True)
class Page:
    """A page as lines and elements."""

    title: str
    lines: tuple[str, ...]
    elements: tuple[Element, ...]


def read_page(html: str) -> Page:
    """Render reflected HTML; at most `MAX_LINES` lines and `MAX_ELEMENTS` elements, whatever the page holds."""
    if _depth(html) > MAX_DEPTH:
        return Page(
            title="", lines=(f"(this page nests deeper than {MAX_DEPTH} elements: not shown)",), elements=()
        )
    return _Reader(LexborHTMLParser(html)).read()


def _depth(html: str) -> int:
    """How deep elements nest at most, from the tags alone: elements that close by themselves do not count."""
    depth = deepest = 0
    for match in _TAG.finditer(html):
        if match[2].lower() not in _SELF_CLOSING:
            depth = max(0, depth - 1) if match[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest


class _Reader:
    """One walk over a tree, without recursion: pages may nest as deep as they like."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._lines: list[str] = []
        self._line: list[str] = []
        self._elements: list[Element] = []
        self._labels, self._named_by_label = labels_of(tree)

    def read(self) -> Page:
        title = self._tree.css_first("title")
        body = self._tree.body
        if body is not None:
            self._walk(body)
        self._flush()
        return Page(
            title=clean(title.text())[:MAX_NAME] if title is not None else "",
            lines=tuple(self._lines),
            elements=tuple(self._elements),
        )

    def _walk(self, body: LexborNode) -> None:
        stack: list[tuple[LexborNode, bool]] = [(body, True)]
        while stack and len(self._lines) < MAX_LINES:
            node, entering = stack.pop()
            tag = node.tag or ""
            if not entering:
                self._leave(tag)
            elif tag == "-text":
                self._say(clean(node.text_content or ""))
            elif not is_hidden(node):
                if tag in _BLOCKS:
                    self._flush()
                if tag[:1] == "h" and tag[1:].isdigit():
                    self._say("#" * int(tag[1:]))
                if self._act(node) or node.mem_id in self._named_by_label:
                    self._leave(tag)
                    continue
                stack.append((node, False))
                stack.extend((child, True) for child in reversed(list(node.iter(include_text=True))))

    def _leave(self, tag: str) -> None:
        if tag in _BLOCKS:
            self._flush()
        elif tag in _CELLS:
            self._say("|")

    def _act(self, node: LexborNode) -> bool:
        """Write an element that can be acted on, and say whether its content is thereby told."""
        role = role_of(node)
        if not role or len(self._elements) >= MAX_ELEMENTS:
            return False
        name = self._name(node, role)
        number = len(self._elements) + 1
        self._elements.append(Element(number, role, name, node))
        self._say(f'[{number}] {role} "{name}"{state_of(node, role)}')
        return True

    def _name(self, node: LexborNode, role: str) -> str:
        found = attributes(node)
        name = found.get("aria-label") or self._labels.get(node.mem_id, "")
        if not name and (node.tag not in ("input", "select", "textarea")) and role != "textbox":
            name = node.text(separator=" ")
        if not name and role == "button":
            name = found.get("value", "") or found.get("alt", "")
        name = name or found.get("title", "") or found.get("placeholder", "") or found.get("name", "")
        if not name.strip() and role == "clickable":
            name = found.get("class", "") or found.get("id", "") or (node.tag or "")
        return clean(name).replace('"', "'")[:MAX_NAME]

    def _say(self, text: str) -> None:
        if text:
            self._line.append(text)

    def _flush(self) -> None:
        line = " ".join(self._line).removesuffix(" |")
        self._line.clear()
        if line.strip("#| "):
            self._lines += textwrap.wrap(line[: 10 * MAX_LINE], MAX_LINE, break_on_hyphens=False)
