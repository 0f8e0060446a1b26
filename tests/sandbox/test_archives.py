from __future__ import annotations

import contextlib
import io
import tarfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sandbox import Sandbox, SandboxPathError
from sandbox.archives import _files, unpack


def packed(*members: tuple[str, bytes | None, bytes], mode: str = "w:gz") -> bytes:
    """A tar of (name, content or None, type) members; links point to what `content` says."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content, kind in members:
            info = tarfile.TarInfo(name)
            info.type = kind
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                info.linkname = (content or b"").decode()
                tar.addfile(info)
            else:
                info.size = len(content or b"")
                tar.addfile(info, io.BytesIO(content or b""))
    return file.getvalue()


REG, DIR, SYM, HARD, FIFO = (
    tarfile.REGTYPE,
    tarfile.DIRTYPE,
    tarfile.SYMTYPE,
    tarfile.LNKTYPE,
    tarfile.FIFOTYPE,
)


@pytest.mark.parametrize("mode", ["w", "w:gz"])
def test_files_arrive(box: Sandbox, mode: str) -> None:
    archive = packed(("src", None, DIR), ("src/a.py", b"print(1)\n", REG), ("b", b"\0\xff", REG), mode=mode)
    assert unpack(box, archive, into="deep/er") == 2
    assert box.exec(["/usr/bin/python3", "deep/er/src/a.py"]).stdout.text == "1\n"
    assert box.read("deep/er/b") == b"\0\xff"


@pytest.mark.parametrize(
    "member",
    [
        ("../up", b"x", REG),
        ("a/../../up", b"x", REG),
        ("link", b"/etc/passwd", SYM),
        ("link", b"inside", SYM),
        ("hard", b"/etc/passwd", HARD),
        ("fifo", None, FIFO),
    ],
)
def test_what_leaves_the_workspace_or_is_no_file_is_refused(
    box: Sandbox, member: tuple[str, bytes | None, bytes]
) -> None:
    with pytest.raises(SandboxPathError):
        unpack(box, packed(member))


def test_an_absolute_path_lands_beneath_the_workspace(box: Sandbox) -> None:
    unpack(box, packed(("/etc/passwd", b"mine", REG)))
    assert box.read("etc/passwd") == b"mine"


def test_a_link_in_the_workspace_is_not_followed(box: Sandbox) -> None:
    box.exec(["/bin/ln", "-s", "/etc", "out"])
    with pytest.raises(SandboxPathError):
        unpack(box, packed(("out/passwd", b"x", REG)))


def test_bombs_are_refused_before_they_unfold(box: Sandbox) -> None:
    with pytest.raises(SandboxPathError, match="raise max_bytes"):
        unpack(box, packed(("zeros", bytes(3 << 20), REG)), max_bytes=1 << 20)
    with pytest.raises(SandboxPathError, match="raise max_bytes"):  # a long name is a header, not a file
        unpack(box, packed(("n" * (3 << 20), b"", REG)), max_bytes=1 << 20, max_files=10)
    with pytest.raises(SandboxPathError, match="raise max_files"):
        unpack(box, packed(*[(f"f{i}", b"", REG) for i in range(5)]), max_files=4)


@settings(max_examples=150, deadline=None)
@given(st.binary(max_size=2000))
def test_any_bytes_are_an_archive_or_an_error_of_ours(data: bytes) -> None:
    with contextlib.suppress(SandboxPathError):
        list(_files(data, 1 << 16, 100))


SOUND = packed(("a/b", b"content", REG), ("c", b"x" * 600, REG), mode="w")


@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(st.integers(0, len(SOUND) - 1), st.integers(0, 255)), max_size=12))
def test_a_damaged_archive_is_read_or_refused(changes: list[tuple[int, int]]) -> None:
    data = bytearray(SOUND)
    for at, value in changes:
        data[at] = value
    try:
        for name, content in _files(bytes(data), 1 << 16, 100):
            assert ".." not in Path(name).parts
            assert not name.startswith("/")
            assert len(content) <= 1 << 16
    except SandboxPathError:
        pass
