"""Bugs by syntax tree: one small change to one function, made in the text so that the rest of the file stays as it is.

A mutation replaces the span of one node. Expressions are written anew by `ast.unparse`, so only a few characters
differ; a reformatted function would show where the bug is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv, ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr,
}  # fmt: skip
_BUILTINS = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "max", "sorted": "list"}
_METHODS = {
    "upper": "lower", "lower": "upper", "startswith": "endswith", "endswith": "startswith",
    "lstrip": "rstrip", "rstrip": "lstrip", "append": "extend", "split": "rsplit", "find": "rfind",
}  # fmt: skip
REMOVED = 'raise NotImplementedError("not written yet")'
REMOVED_BODY = "removed_body"


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change: the bytes from `start` to `end` of the source become `text`."""

    kind: str
    start: int
    end: int
    text: str


def functions(tree: ast.AST) -> Iterator[tuple[str, FunctionNode]]:
    """Functions and methods by dotted name, in order; those inside functions are part of them."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, FunctionNode):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for name, method in functions(node):
                yield f"{node.name}.{name}", method
        elif isinstance(node, ast.If | ast.Try):
            yield from functions(node)


def mutations(source: str, function: FunctionNode) -> list[Mutation]:
    """Every change that can be made to a function of `source`, body removed last."""
    spans = _Spans(source)
    docstring = _docstring(function)
    found: list[Mutation] = []
    for statement in function.body:
        if statement is not docstring:
            for node in _walk(statement):
                found += [Mutation(kind, *spans.of(node), text) for kind, text in _changes(node)]
    body = function.body[1:] if docstring is not None else function.body
    if body and not (len(body) == 1 and isinstance(body[0], ast.Pass | ast.Raise)):
        found.append(Mutation(REMOVED_BODY, spans.of(body[0])[0], spans.of(body[-1])[1], REMOVED))
    return found


def mutate(source: str, mutation: Mutation) -> str:
    """`source` with one change made; it may be equal in effect."""
    data = source.encode()
    return (data[: mutation.start] + mutation.text.encode() + data[mutation.end :]).decode()


def segment(source: str, function: FunctionNode) -> str:
    """The text of a function, decorators left out, from the beginning of its first line."""
    lines = source.splitlines(keepends=True)
    return "".join(lines[function.lineno - 1 : function.end_lineno])


def _docstring(function: FunctionNode) -> ast.Expr | None:
    first = function.body[0]
    is_text = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
    return first if is_text and isinstance(first.value.value, str) else None  # type: ignore[attr-defined,return-value]


def _walk(node: ast.AST) -> Iterator[ast.AST]:
    """A node and those inside it, formatted texts left out: before Python 3.12 their parts have no true position."""
    yield node
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.JoinedStr):
            yield from _walk(child)


class _Spans:
    """Byte offsets of nodes; the tree's columns count bytes of UTF-8."""

    def __init__(self, source: str) -> None:
        self._starts = [0]
        for line in source.encode().split(b"\n"):
            self._starts.append(self._starts[-1] + len(line) + 1)

    def of(self, node: Any) -> tuple[int, int]:
        return (
            self._starts[node.lineno - 1] + node.col_offset,
            self._starts[node.end_lineno - 1] + node.end_col_offset,
        )


def _changes(node: ast.AST) -> Iterator[tuple[str, str]]:
    for kind, change in _KINDS.items():
        for changed in change(node):
            yield kind, changed


def _with(node: Any, **fields: Any) -> str:
    changed = copy.copy(node)
    for name, value in fields.items():
        setattr(changed, name, value)
    text = ast.unparse(changed)
    return f"({text})" if isinstance(node, ast.BoolOp | ast.IfExp) else text


def _compare(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        yield f"({_with(node, ops=[_COMPARE[type(node.ops[0])](), *node.ops[1:]])})"


def _arithmetic(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        yield f"({_with(node, op=_BINARY[type(node.op)]())})"
    elif isinstance(node, ast.AugAssign) and type(node.op) in _BINARY:
        yield _with(node, op=_BINARY[type(node.op)]())


def _boolean(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.BoolOp):
        yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())


def _negated(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.IfExp):
        yield _with(node, test=ast.UnaryOp(op=ast.Not(), operand=node.test))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield f"({ast.unparse(node.operand)})"


def _constant(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        yield repr(node.value + 1)
        if node.value > 0:
            yield repr(node.value - 1)
    elif isinstance(node, ast.Constant) and type(node.value) is bool:
        yield repr(not node.value)


def _builtin(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Name) and node.id in _BUILTINS:
        yield _BUILTINS[node.id]


def _method(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Attribute) and node.attr in _METHODS:
        yield _with(node, attr=_METHODS[node.attr])


def _dropped(node: ast.AST) -> Iterator[str]:
    """An assignment that changes what is already there, or a call for its effect, left out."""
    if isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        yield "pass"
    elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
        name = node.targets[0].id
        if any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node.value)):
            yield "pass"


def _swapped(node: ast.AST) -> Iterator[str]:
    if (
        isinstance(node, ast.Call)
        and len(node.args) >= 2
        and not any(isinstance(arg, ast.Starred) for arg in node.args)
    ):
        yield _with(node, args=[node.args[1], node.args[0], *node.args[2:]])


def _slice(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Slice):
        for name in ("lower", "upper"):
            if getattr(node, name) is not None:
                yield _with(node, **{name: None})


def _loop_exit(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Break):
        yield "continue"
    elif isinstance(node, ast.Continue):
        yield "break"


def _result(node: ast.AST) -> Iterator[str]:
    """A return value that is lost, or a raised error that is not raised."""
    if isinstance(node, ast.Return) and node.value is not None and not _is_none(node.value):
        yield "return None"
    elif isinstance(node, ast.Raise) and node.exc is not None:
        yield "pass"


def _is_none(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is None


_KINDS: dict[str, Callable[[ast.AST], Iterator[str]]] = {
    "compare": _compare,
    "arithmetic": _arithmetic,
    "boolean": _boolean,
    "negated": _negated,
    "constant": _constant,
    "builtin": _builtin,
    "method": _method,
    "dropped": _dropped,
    "swapped": _swapped,
    "slice": _slice,
    "loop_exit": _loop_exit,
    "result": _result,
}
KINDS: tuple[str, ...] = (*_KINDS, REMOVED_BODY)
"""Names of all kinds of bugs."""
