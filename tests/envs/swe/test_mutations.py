from __future__ import annotations

import ast

import pytest

from envs.swe.mutations import KINDS, REMOVED_BODY, functions, mutate, mutations, segment

SOURCE = '''
import os

class Box:
    def size(self, n):
        """Not é touched: 1 < 2."""
        total = 0
        for item in range(n):
            if item < 3 and not item == 2:  # é
                total += item * 2
            else:
                continue
            total = max(total, abs(n), -1)
        print(total, n)
        name = "é".upper() if n else os.path.join("a", "b")
        if not name:
            raise ValueError(name)
        return name[1:total]

def plain():
    return f"{1 < 2}" + "x"
'''


def _function(name: str) -> ast.FunctionDef:
    found = dict(functions(ast.parse(SOURCE)))[name]
    assert isinstance(found, ast.FunctionDef)
    return found


def test_every_kind_of_bug_is_drawn_and_parses() -> None:
    found = mutations(SOURCE, _function("Box.size"))
    assert {m.kind for m in found} == set(KINDS)
    assert len(KINDS) >= 8
    for mutation in found:
        changed = mutate(SOURCE, mutation)
        assert ast.dump(ast.parse(changed)) != ast.dump(ast.parse(SOURCE)), mutation
        assert '"""Not é touched: 1 < 2."""' in changed


def test_a_bug_changes_its_own_line_only() -> None:
    for mutation in mutations(SOURCE, _function("Box.size")):
        if mutation.kind == REMOVED_BODY:
            continue
        before, after = SOURCE.splitlines(), mutate(SOURCE, mutation).splitlines()
        assert len(before) == len(after)
        assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


def test_the_inside_of_formatted_texts_is_left_alone() -> None:
    # before Python 3.12 their nodes carry positions of another text
    assert [m.kind for m in mutations(SOURCE, _function("plain"))] == ["result", "arithmetic", REMOVED_BODY]


@pytest.mark.parametrize("name", ["Box.size", "plain"])
def test_a_segment_is_the_function_as_it_stands(name: str) -> None:
    assert segment(SOURCE, _function(name)) in SOURCE
    assert segment(SOURCE, _function(name)).lstrip().startswith("def ")
