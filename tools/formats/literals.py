"""Reads and writes calls of Python literals, `find("it's", limit=3, tags=["a", "b"])`, evaluating nothing.

A reader of our own and not `ast`: hostile text can neither exhaust the interpreter's stack or memory, nor
emit warnings, nor mean different things to different Python versions. It accepts text, numbers, True, False,
None (also true, false, null), lists, tuples (read as lists) and dicts with text keys, `MAX_DEPTH` deep.
"""

from __future__ import annotations

import math
import re
from typing import Any, NamedTuple

MAX_DEPTH = 64
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?(?![\w.])", re.ASCII)
_SPACE = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*+")
_WORDS = {"True": True, "False": False, "None": None, "true": True, "false": False, "null": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"', "0": "\0", "\n": ""}
_ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([\s\S]))")
# Possessive, so that text of any length is read in constant memory.
_ENDS = {
    '"': re.compile(r'(?:[^\\"\n]|\\[\s\S])*+'),
    "'": re.compile(r"(?:[^\\'\n]|\\[\s\S])*+"),
    '"""': re.compile(r'(?:[^\\"]|\\[\s\S]|"(?!""))*+'),
    "'''": re.compile(r"(?:[^\\']|\\[\s\S]|'(?!''))*+"),
}
_UNSAFE = re.compile(r"[\x00-\x1f\x7f\\\ud800-\udfff]")


class LiteralError(ValueError):
    """The text is not a call of literals; the message says what was expected and what is there."""


class Call(NamedTuple):
    """A call as written, and the index after its closing parenthesis."""

    name: str
    positional: list[Any]
    named: dict[str, Any]
    end: int


def read_call(text: str, position: int) -> Call:
    """Read one call that starts at `position` with its name.

    Raises:
        LiteralError: the text is not a call of literals.
    """
    match = NAME.match(text, position)
    if match is None or not text.startswith("(", match.end()):
        raise LiteralError(f"expected name(...), got {_found(text, position)}")
    positional: list[Any] = []
    named: dict[str, Any] = {}
    position = skip_space(text, match.end() + 1)
    while not text.startswith(")", position):
        key = NAME.match(text, position)
        equals = skip_space(text, key.end()) if key else position
        if key and text.startswith("=", equals):
            if key[0] in named:
                raise LiteralError(f"argument {key[0][:40]!r} is given twice")
            named[key[0]], position = _value(text, skip_space(text, equals + 1), 1)
        elif named:
            raise LiteralError(f"expected name=value after a named argument, got {_found(text, position)}")
        else:
            value, position = _value(text, position, 1)
            positional.append(value)
        position = _separator(text, position, ")")
    return Call(match[0], positional, named, position + 1)


def skip_space(text: str, position: int) -> int:
    """The index after white space and comments."""
    match = _SPACE.match(text, position)
    return match.end() if match else position


def write(value: Any) -> str:
    """A JSON value as the shortest literal on one line that reads back to it."""
    if isinstance(value, str):
        return _write_text(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{_write_text(str(k))}: {write(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(write(item) for item in value) + "]"
    return repr(value)


def _value(text: str, position: int, depth: int) -> tuple[Any, int]:
    if depth > MAX_DEPTH:
        raise LiteralError(f"values may be nested {MAX_DEPTH} deep, this one is deeper")
    first = text[position : position + 1]
    if first and first in "\"'":
        return _text(text, position, first)
    if first and first in "[(":
        return _list(text, position, depth, "]" if first == "[" else ")")
    if first == "{":
        return _dict(text, position, depth)
    number = _NUMBER.match(text, position)
    if number:
        return _number(number[0]), number.end()
    word = NAME.match(text, position)
    if word and word[0] in _WORDS:
        return _WORDS[word[0]], word.end()
    raise LiteralError(
        f'expected a literal such as "text", 1.5, True or [1, 2], got {_found(text, position)}'
    )


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        pass
    value = float(text)
    if not math.isfinite(value) or text.lstrip("+-").isdigit():
        raise LiteralError(f"numbers must be finite and fit 64 bits, got {text[:40]}")
    return value


def _text(text: str, position: int, quote: str) -> tuple[str, int]:
    if text.startswith(quote * 3, position):
        quote *= 3
    start = position + len(quote)
    match = _ENDS[quote].match(text, start)
    end = match.end() if match else start
    if not text.startswith(quote, end):
        raise LiteralError(
            f"text that starts with {quote} must end with it on the same line "
            f"(a line break is written \\n), got {_found(text, position)}"
        )
    return _ESCAPE.sub(_unescape, text[start:end]), end + len(quote)


def _unescape(match: re.Match[str]) -> str:
    digits = match[1] or match[2] or match[3]
    if digits:
        code = int(digits, 16)
        return chr(code) if code < 0x110000 else match[0]
    return _ESCAPES.get(match[4], match[0])


def _list(text: str, position: int, depth: int, close: str) -> tuple[list[Any], int]:
    items: list[Any] = []
    position = skip_space(text, position + 1)
    while not text.startswith(close, position):
        item, position = _value(text, position, depth + 1)
        items.append(item)
        position = _separator(text, position, close)
    return items, position + 1


def _dict(text: str, position: int, depth: int) -> tuple[dict[str, Any], int]:
    items: dict[str, Any] = {}
    position = skip_space(text, position + 1)
    while not text.startswith("}", position):
        key, position = _value(text, position, depth + 1)
        position = skip_space(text, position)
        if not isinstance(key, str) or not text.startswith(":", position):
            raise LiteralError(f'expected {{"text": value}}, got {_found(text, position)}')
        items[key], position = _value(text, skip_space(text, position + 1), depth + 1)
        position = _separator(text, position, "}")
    return items, position + 1


def _separator(text: str, position: int, close: str) -> int:
    """The index of the next item, or of `close`."""
    position = skip_space(text, position)
    if text.startswith(",", position):
        return skip_space(text, position + 1)
    if text.startswith(close, position):
        return position
    raise LiteralError(f"expected ',' or '{close}', got {_found(text, position)}")


def _found(text: str, position: int) -> str:
    if position >= len(text):
        return "the end of the text"
    piece = text[position : position + 20]
    return repr(piece.split("\n", 1)[0] or piece[0])


def _write_text(value: str) -> str:
    quote = "'" if '"' in value and "'" not in value else '"'
    escaped = _UNSAFE.sub(_escape, value)
    return quote + (escaped.replace('"', '\\"') if quote == '"' else escaped) + quote


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\\": "\\\\"}.get(character)
    if short:
        return short
    return f"\\x{ord(character):02x}" if ord(character) < 0x80 else f"\\u{ord(character):04x}"
