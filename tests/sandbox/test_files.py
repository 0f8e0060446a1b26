from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sandbox
from sandbox import Limits, Sandbox, SandboxPathError, SandboxSpec, files


def test_paths_that_are_too_long_or_too_deep_say_so(box: Sandbox) -> None:
    with pytest.raises(SandboxPathError, match="too long"):
        box.write("n" * 300, b"")
    with pytest.raises(SandboxPathError, match="nests 101 deep"):
        box.write("d/" * 100 + "f", b"")


def test_limits_are_checked() -> None:
    with pytest.raises(ValueError, match=r"workspace_bytes must be positive, not 0"):
        sandbox.create(SandboxSpec(limits=Limits(workspace_bytes=0)))


@given(st.lists(st.sampled_from(["a", "b", ".", "", "..", "c d"]), max_size=6), st.booleans())
def test_components_never_leave(parts: list[str], absolute: bool) -> None:
    path = ("/workspace/" if absolute else "") + "/".join(parts)
    try:
        names = files.components(path)
    except SandboxPathError:
        assert ".." in parts or path.startswith("/")
        return
    assert os.path.normpath("/".join(names)) == os.path.normpath("/".join(filter(None, parts)))
    assert ".." not in names
