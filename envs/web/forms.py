"""HTML forms: what a click changes in a page, and what a submission sends."""

from __future__ import annotations

import html as html_
import re
from urllib.parse import urlencode, urlsplit, urlunsplit

from selectolax.lexbor import LexborNode

from envs.web.elements import attributes, chosen_options, kind_of, options_of

_TEXTS = ("checkbox", "radio", "submit", "button", "reset", "image", "hidden", "file")
_TITLE = re.compile(r"<title[^>]*>([^<]{0,300})", re.IGNORECASE)


def title_of(html: str) -> str:
    """The title of a page, without parsing all of it."""
    match = _TITLE.search(html)
    return html_.unescape(match[1]) if match else ""


def root_of(node: LexborNode) -> LexborNode:
    """The `<html>` element above a node."""
    while node.parent is not None and node.parent.tag not in (None, "-document"):
        node = node.parent
    return node


def document_of(node: LexborNode) -> str:
    """The whole page that a node belongs to, as HTML."""
    return root_of(node).html or ""


def base_of(node: LexborNode) -> str:
    """The address that `<base href>` names; empty without one."""
    base = root_of(node).css_first("base[href]")
    return attributes(base).get("href", "") if base is not None else ""


def form_of(node: LexborNode) -> LexborNode | None:
    """The form that a control belongs to."""
    name = attributes(node).get("form", "")
    if name:
        return next((f for f in root_of(node).css("form") if attributes(f).get("id") == name), None)
    parent = node.parent
    while parent is not None and parent.tag != "form":
        parent = parent.parent
    return parent


def controls_of(form: LexborNode) -> list[LexborNode]:
    """The controls of a form in document order, those outside that name it included."""
    found = root_of(form).css("input, select, textarea, button")
    return [node for node in found if (own := form_of(node)) is not None and own.mem_id == form.mem_id]


def default_button(node: LexborNode) -> LexborNode | None:
    """The first submit button of a control's form."""
    form = form_of(node)
    return next((c for c in controls_of(form) if _submits(c)), None) if form is not None else None


def text_fields(node: LexborNode) -> int:
    """How many text fields the form of a control has: one alone submits on Enter without a button."""
    form = form_of(node)
    return (
        sum(c.tag == "input" and kind_of(c) not in _TEXTS for c in controls_of(form))
        if form is not None
        else 0
    )


def _submits(node: LexborNode) -> bool:
    if node.tag == "button":
        return attributes(node).get("type", "submit").lower() in ("submit", "")
    return node.tag == "input" and kind_of(node) in ("submit", "image")


def set_value(node: LexborNode, text: str) -> None:
    """Type into a field."""
    node.attrs["value"] = text


def tick(node: LexborNode) -> None:
    """Turn a checkbox over, or choose a radio button of its group."""
    if kind_of(node) == "checkbox":
        _flag(node, "checked", "checked" not in attributes(node))
        return
    form, name = form_of(node), attributes(node).get("name", "")
    group = controls_of(form) if form is not None else root_of(node).css("input")
    for other in group:
        if other.tag == "input" and kind_of(other) == "radio" and attributes(other).get("name", "") == name:
            _flag(other, "checked", other.mem_id == node.mem_id)


def choose(select: LexborNode, index: int) -> None:
    """Select one option; where several may be selected, add it."""
    several = "multiple" in attributes(select)
    for i, option in enumerate(options_of(select)):
        _flag(option, "selected", i == index or (several and "selected" in attributes(option)))


def _flag(node: LexborNode, name: str, on: bool) -> None:
    if on:
        node.attrs[name] = ""
    elif name in node.attrs:
        del node.attrs[name]


def submission(node: LexborNode, button: LexborNode | None, url: str) -> tuple[str, str, bytes | None] | None:
    """Method, address and body that submitting a control's form sends; None when it has no form."""
    form = form_of(node)
    if form is None:
        return None
    found, asked = attributes(form), attributes(button) if button is not None else {}
    action = asked.get("formaction") or found.get("action") or url
    method = (asked.get("formmethod") or found.get("method", "get")).strip().lower()
    data = urlencode([pair for control in controls_of(form) for pair in _pairs(control, button)])
    if method == "post":
        return "POST", action, data.encode()
    parts = urlsplit(action)
    return "GET", urlunsplit((parts.scheme, parts.netloc, parts.path, data, "")), None


def _pairs(control: LexborNode, button: LexborNode | None) -> list[tuple[str, str]]:
    """What a control sends: successful controls only, in HTML's sense."""
    found = attributes(control)
    name = found.get("name", "")
    if not name or "disabled" in found:
        return []
    if control.tag == "select":
        return [(name, attributes(o).get("value", o.text().strip())) for o in chosen_options(control)]
    if control.tag == "textarea":
        return [(name, _crlf(found.get("value", control.text())))]
    kind = kind_of(control) if control.tag == "input" else "submit"
    if control.tag == "button" or kind in ("submit", "image", "button", "reset"):
        pressed = button is not None and control.mem_id == button.mem_id
        return [(name, found.get("value", ""))] if pressed else []
    if kind in ("checkbox", "radio"):
        return [(name, found.get("value", "on"))] if "checked" in found else []
    return [] if kind == "file" else [(name, found.get("value", ""))]


def _crlf(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n").replace("\n", "\r\n")
