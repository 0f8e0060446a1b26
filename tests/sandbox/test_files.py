from __future__ import annotations

import os

from hypothesis import given
from hypothesis import strategies as st

from sandbox import SandboxPathError, files


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
