from __future__ import annotations

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sandbox
from sandbox import Limits, Sandbox, SandboxPathError, SandboxSpec, files
from tests.sandbox.conftest import SMALL, needs


def test_write_then_program_then_read(box: Sandbox) -> None:
    box.write("a/b/in.bin", b"\x00\xff\r\n")
    assert box.exec(["/bin/cp", "a/b/in.bin", "/workspace/out.bin"]).ok
    assert box.read("out.bin") == b"\x00\xff\r\n"
    assert box.read("/workspace/a/./b//in.bin") == b"\x00\xff\r\n"


def test_initial_files_belong_to_the_program_whatever_the_umask_is() -> None:
    before = os.umask(0o077)
    try:
        with sandbox.create(SandboxSpec(limits=SMALL, files={"d/f": b"1"})) as box:
            result = box.exec(["/bin/bash", "-c", "stat -c '%a %U' d d/f; echo 2 >> d/f; rm d/f; rmdir d"])
    finally:
        os.umask(before)
    assert result.stdout.text == "755 agent\n644 agent\n"
    assert result.ok


def test_writing_keeps_the_mode_and_replaces_in_one_step(box: Sandbox) -> None:
    box.exec(["/bin/bash", "-c", "echo old > run.sh; chmod 700 run.sh; ln run.sh other"])
    box.write("run.sh", b"#!/bin/bash\necho new\n")
    assert box.exec(["./run.sh"]).stdout.text == "new\n"
    assert box.read("other") == b"old\n"
    assert box.exec(["/bin/ls", "-A"]).stdout.text == "other\nrun.sh\n"


def test_read_is_capped(box: Sandbox) -> None:
    box.write("f", b"x" * 100)
    assert box.read("f", max_bytes=100) == b"x" * 100
    with pytest.raises(SandboxPathError, match="larger than 99 bytes"):
        box.read("f", max_bytes=99)


def test_full_workspace_is_a_clear_error(box: Sandbox) -> None:
    needs("workspace_size")
    with pytest.raises(SandboxPathError, match="workspace is full"):
        box.write("f", bytes(5 << 20))
    assert box.exec(["/bin/ls", "-A"]).stdout.text == ""


def test_names_that_the_file_system_refuses(box: Sandbox) -> None:
    with pytest.raises(SandboxPathError, match="too long"):
        box.write("n" * 300, b"")
    with pytest.raises(SandboxPathError, match="nests 101 deep"):
        box.write("d/" * 100 + "f", b"")
    box.write("ä ' \n\t$(x)", b"odd")
    assert box.read("ä ' \n\t$(x)") == b"odd"


def test_paths_in_the_spec_are_checked() -> None:
    with pytest.raises(SandboxPathError):
        sandbox.create(SandboxSpec(files={"../escape": b""}))


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
