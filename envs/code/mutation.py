"""Near-miss answers: a reference with one small mistake, as people make them.

One change a mutant: an operator or a comparison turned into its neighbour, a constant moved by one, a
condition negated, `and` for `or`, `min` for `max`, an assignment left out. Used twice: mutants show whether
hidden inputs are strong enough, and they are the wrong answers of the sloppy policy and of the tests.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator
from typing import Any

_COMPARE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
_BINARY: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Add, ast.FloorDiv: ast.Mult, ast.Mod: ast.FloorDiv,
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "any": "all", "all": "any", "sum": "max", "sorted": "list"}
_METHODS = {"upper": "lower", "lower": "upper", "startswith": "endswith", "endswith": "startswith"}


Site = tuple[int, int]
"""Which node of the tree, in the order of `ast.walk`, and which of its possible changes."""


def sites(source: str) -> list[Site]:
    """Where `source` can be changed, in the order of the tree."""
    nodes = enumerate(ast.walk(ast.parse(source)))
    return [(index, at) for index, node in nodes for at, _ in enumerate(_changes(node))]


def mutate(source: str, site: Site) -> ast.Module:
    """The tree of `source` with one change made; it may be equal in effect."""
    index, at = site
    tree = ast.parse(source)
    node = next(itertools.islice(ast.walk(tree), index, None))
    next(itertools.islice(_changes(node), at, None))(node)
    return tree


def _changes(node: ast.AST) -> Iterator[Callable[[Any], None]]:
    if isinstance(node, ast.Compare) and type(node.ops[0]) in _COMPARE:
        yield _compare
    elif isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
        yield _binary
    elif isinstance(node, ast.BoolOp):
        yield _boolean
    elif isinstance(node, ast.IfExp | ast.If):
        yield _negate
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        yield _up
        if node.value > 0:
            yield _down
    elif isinstance(node, ast.Name) and node.id in _NAMES:
        yield _rename
    elif isinstance(node, ast.Attribute) and node.attr in _METHODS:
        yield _method
    elif isinstance(node, ast.AugAssign) and type(node.op) in _BINARY:
        yield _binary
    elif isinstance(node, ast.FunctionDef):
        yield from (_without(at) for at, line in enumerate(node.body) if _replaces(line))


def _replaces(line: ast.stmt) -> bool:
    """Whether a statement gives a name a new value made from its old one, and can thus be left out."""
    if not isinstance(line, ast.Assign) or not isinstance(line.targets[0], ast.Name):
        return False
    name = line.targets[0].id
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(line.value))


def _compare(node: ast.Compare) -> None:
    node.ops[0] = _COMPARE[type(node.ops[0])]()


def _binary(node: ast.BinOp | ast.AugAssign) -> None:
    node.op = _BINARY[type(node.op)]()


def _boolean(node: ast.BoolOp) -> None:
    node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()


def _negate(node: ast.IfExp | ast.If) -> None:
    node.test = ast.copy_location(ast.UnaryOp(op=ast.Not(), operand=node.test), node.test)


def _up(node: ast.Constant) -> None:
    assert isinstance(node.value, int)
    node.value += 1


def _down(node: ast.Constant) -> None:
    assert isinstance(node.value, int)
    node.value -= 1


def _rename(node: ast.Name) -> None:
    node.id = _NAMES[node.id]


def _method(node: ast.Attribute) -> None:
    node.attr = _METHODS[node.attr]


def _without(at: int) -> Callable[[ast.FunctionDef], None]:
    def drop(node: ast.FunctionDef) -> None:
        del node.body[at]

    return drop
