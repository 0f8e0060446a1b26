"""HTML as a person would read it aloud: lines of text with numbered elements, in document order.

The HTML is *reflected*: what a user typed stands in attributes (`value` also on a textarea, `checked`, `selected`).
The light browser keeps its pages so, and the real browser hands its pages over so: one renderer serves both.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_LINES = 4000
MAX_ELEMENTS = 3000
MAX_LINE = 400
MAX_NAME = 120
MAX_OPTIONS = 60
MAX_DEPTH = 1000
"""The parser's time grows with the square of the depth: 20,000 open elements take 5 s."""

_SKIPPED = frozenset({"script", "style", "head", "template", "noscript", "iframe", "object", "embed", "-comment"})
_BLOCKS = frozenset(
    "address article aside blockquote body br dd details div dl dt fieldset figure footer form h1 h2 h3 h4 h5 h6 "
    "header hr html li main nav ol p pre section summary table tbody thead tfoot tr ul".split()
)
_CELLS = frozenset({"td", "th"})
_BUTTONS = frozenset({"submit", "button", "reset", "image"})
_ROLES = frozenset(
    "button link tab menuitem checkbox radio switch option textbox combobox slider treeitem gridcell clickable".split()
)
_TYPED = re.compile(r"\[(\d+)\]")
_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]*)")
_SELF_CLOSING = frozenset(
    "area base br col embed hr img input link meta source track wbr p li td th tr option dt dd".split()
)
_SPACE = re.compile(r"\s+")


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
        return Page(title="", lines=(f"(this page nests deeper than {MAX_DEPTH} elements: not shown)",), elements=())
    return _Reader(LexborHTMLParser(html)).read()


def _depth(html: str) -> int:
    """How deep elements nest at most, from the tags alone: elements that close by themselves do not count."""
    depth = deepest = 0
    for match in _TAG.finditer(html):
        if match[2].lower() not in _SELF_CLOSING:
            depth = max(0, depth - 1) if match[1] else depth + 1
            deepest = max(deepest, depth)
    return deepest


def clean(text: str) -> str:
    """One line of text that cannot be taken for an element's number."""
    return _TYPED.sub(r"(\1)", _SPACE.sub(" ", text)).strip()


def attributes(node: LexborNode) -> dict[str, str]:
    """Attributes by lower-case name; one without a value is empty text."""
    return {str(key).lower(): value or "" for key, value in node.attributes.items()}


def kind_of(node: LexborNode) -> str:
    """The `type` of an input in lower case; `text` where there is none."""
    return attributes(node).get("type", "text").strip().lower() or "text"


def options_of(select: LexborNode) -> list[LexborNode]:
    """The options of a select, in order."""
    return select.css("option")


def option_label(option: LexborNode) -> str:
    """What a person reads for an option."""
    return clean(attributes(option).get("label", "") or option.text())


def chosen_options(select: LexborNode) -> list[LexborNode]:
    """The selected options; without any, the first one of a single select."""
    options = options_of(select)
    chosen = [o for o in options if "selected" in attributes(o)]
    if "multiple" in attributes(select):
        return chosen
    return chosen[-1:] or options[:1]


def role_of(node: LexborNode) -> str:
    """The role of an element that can be acted on; empty for all others."""
    tag, found = node.tag or "", attributes(node)
    if tag == "a" and "href" in found:
        return "link"
    if tag == "button":
        return "button"
    if tag == "input":
        kind = kind_of(node)
        if kind in _BUTTONS:
            return "button"
        return kind if kind in ("checkbox", "radio") else "textbox"
    if tag == "textarea":
        return "textbox"
    if tag == "select":
        return "combobox"
    role = found.get("role", "").strip().lower()
    if role in _ROLES:
        return role
    if "onclick" in found or "data-clickable" in found:
        return "clickable"
    return "textbox" if found.get("contenteditable", "no") in ("", "true") else ""


def is_hidden(node: LexborNode) -> bool:
    """Whether nobody can see an element."""
    if node.tag in _SKIPPED or (node.tag == "input" and kind_of(node) == "hidden"):
        return True
    found = attributes(node)
    style = found.get("style", "").replace(" ", "").lower()
    return "hidden" in found or found.get("aria-hidden") == "true" or "display:none" in style


class _Reader:
    """One walk over a tree, without recursion: pages may nest as deep as they like."""

    def __init__(self, tree: LexborHTMLParser) -> None:
        self._tree = tree
        self._lines: list[str] = []
        self._line: list[str] = []
        self._elements: list[Element] = []
        self._labels, self._named_by_label = _labels(tree)

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
        self._say(f'[{number}] {role} "{name}"{_state(node, role)}')
        return True

    def _name(self, node: LexborNode, role: str) -> str:
        found = attributes(node)
        name = found.get("aria-label") or self._labels.get(node.mem_id, "")
        if not name and (node.tag not in ("input", "select", "textarea")) and role != "textbox":
            name = node.text(separator=" ")
        if not name and role == "button":
            name = found.get("value", "") or found.get("alt", "")
        name = name or found.get("title", "") or found.get("placeholder", "") or found.get("name", "")
        return clean(name).replace('"', "'")[:MAX_NAME]

    def _say(self, text: str) -> None:
        if text:
            self._line.append(text)

    def _flush(self) -> None:
        line = " ".join(self._line).removesuffix(" |")
        self._line.clear()
        if line.strip("#| "):
            for start in range(0, min(len(line), 10 * MAX_LINE), MAX_LINE):
                self._lines.append(line[start : start + MAX_LINE])


def _labels(tree: LexborHTMLParser) -> tuple[dict[int, str], set[int]]:
    """Names given by `<label>`, and the labels (or their texts' holders) that need not be read again."""
    names: dict[int, str] = {}
    told: set[int] = set()
    controls = "input, select, textarea"
    by_id = {attributes(n).get("id", ""): n for n in tree.css(controls)}
    for label in tree.css("label")[:MAX_ELEMENTS]:
        target = by_id.get(attributes(label).get("for", ""))
        if target is not None and label.css_first(controls) is None:
            names[target.mem_id] = label.text()
            told.add(label.mem_id)
    for label in tree.css("label")[:MAX_ELEMENTS]:
        inner = label.css_first(controls)
        if inner is not None and inner.mem_id not in names:
            names[inner.mem_id] = " ".join(_own_texts(label))
            told.update(n.mem_id for n in label.css("span"))
    return names, told


def _own_texts(label: LexborNode) -> Iterator[str]:
    for child in label.iter(include_text=True):
        if child.tag == "-text":
            yield child.text_content or ""
        elif child.tag not in ("input", "select", "textarea"):
            yield child.text()


def _state(node: LexborNode, role: str) -> str:
    """What is typed, ticked or chosen; a password shows its length only."""
    found, parts = attributes(node), ""
    if role == "textbox":
        value = found.get("value", "" if node.tag == "input" else node.text())
        shown = "*" * len(value) if kind_of(node) == "password" and node.tag == "input" else value
        parts = f' = "{_quoted(shown)}"'
    elif role in ("checkbox", "radio", "switch"):
        ticked = "checked" in found or found.get("aria-checked") == "true"
        parts = " checked" if ticked else " unchecked"
    elif role == "combobox" and node.tag == "select":
        chosen = ", ".join(option_label(o) for o in chosen_options(node))
        options = options_of(node)
        listed = " | ".join(option_label(o)[:MAX_NAME] for o in options[:MAX_OPTIONS])
        more = f" | ... {len(options) - MAX_OPTIONS} more" if len(options) > MAX_OPTIONS else ""
        parts = f' = "{chosen[:MAX_NAME]}" of ({listed}{more})'
    return parts + (" disabled" if "disabled" in found else "")


def _quoted(text: str) -> str:
    """A value on one line: line breaks as `\\n`."""
    return _TYPED.sub(r"(\1)", text.replace("\\", "\\\\").replace("\r", "").replace("\n", "\\n"))
