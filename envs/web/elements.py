"""The elements of a page: roles, names, what is typed, ticked or chosen in them."""

from __future__ import annotations

import re
from collections.abc import Iterator

from selectolax.lexbor import LexborHTMLParser, LexborNode

MAX_NAME = 120
MAX_OPTIONS = 60
MAX_LABELS = 3000

_SKIPPED = frozenset(
    {"script", "style", "head", "template", "noscript", "iframe", "object", "embed", "-comment"}
)
_BUTTONS = frozenset({"submit", "button", "reset", "image"})
_ROLE_NAMES = (
    "button link tab menuitem checkbox radio switch option textbox combobox slider treeitem gridcell "
    "clickable"
)
_ROLES = frozenset(_ROLE_NAMES.split())
_TYPED = re.compile(r"\[(\d+)\]")
_SPACE = re.compile(r"\s+")


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


def labels_of(tree: LexborHTMLParser) -> tuple[dict[int, str], set[int]]:
    """Names given by `<label>`, and the labels (or their texts' holders) that need not be read again."""
    names: dict[int, str] = {}
    told: set[int] = set()
    controls = "input, select, textarea"
    by_id = {attributes(n).get("id", ""): n for n in tree.css(controls)}
    for label in tree.css("label")[:MAX_LABELS]:
        target = by_id.get(attributes(label).get("for", ""))
        if target is not None and label.css_first(controls) is None:
            names[target.mem_id] = label.text()
            told.add(label.mem_id)
    for label in tree.css("label")[:MAX_LABELS]:
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


def state_of(node: LexborNode, role: str) -> str:
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
