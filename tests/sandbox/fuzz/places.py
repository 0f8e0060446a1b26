"""Where the files of a fuzzed input land: a folder with something beside it that must stay as it is."""

from __future__ import annotations

import contextlib
import os
import socket
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sandbox import SandboxPathError, files
from sandbox.removal import remove_tree

SECRET = b"what lies outside"
FOLDER = "AGENT_RL_FUZZ_FOLDER"
"""Variable with the folder to use, for a process that may be ended in the midst of it."""


@contextlib.contextmanager
def place(layers: int = 1) -> Iterator[tuple[Path, list[int]]]:
    """A folder with `outside` in it, and descriptors of the layers `0`, `1`, ... beside that."""
    base = Path(tempfile.mkdtemp(dir=os.environ.get(FOLDER, "/dev/shm")))
    opened: list[int] = []
    try:
        (base / "outside").write_bytes(SECRET)
        for number in range(layers):
            (base / str(number)).mkdir()
            opened.append(os.open(base / str(number), os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        yield base, opened
        assert (base / "outside").read_bytes() == SECRET
        names = {"outside", *map(str, range(layers))}
        assert set(os.listdir(base)) == names, "something was made outside"
    finally:
        for fd in opened:
            os.close(fd)
        remove_tree(str(base))


def read(roots: list[int], path: str) -> bytes | None:
    """The contents, None where refused."""
    try:
        found = files.read(roots, path, 1000)
    except SandboxPathError:
        return None
    assert SECRET not in found
    return found


def make(root: Path, kind: str, name: str, rest: str) -> None:
    """Make what a program could make in its workspace, without leaving it.

    Raises:
        OSError: the kernel refuses.
    """
    parts = [part for part in name.split("/") if part not in ("", ".", "..")]
    if not parts or "\0" in name + rest:
        return
    path = root.joinpath(*parts)
    if path.parent.resolve() != path.parent:  # through a link: what the host does is the question, not this
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if kind == "file":
        with open(path, "xb") as made:
            made.write(os.fsencode(rest))
    elif kind == "folder":
        path.mkdir()
    elif kind == "opaque":
        path.mkdir()
        os.setxattr(path, files.OPAQUE, b"y")
    elif kind == "link":
        path.symlink_to(rest)
    elif kind == "hard":
        _hard(root, path, rest)
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as bound:
            bound.bind(str(path))
    elif kind == "whiteout":
        os.mknod(path, stat.S_IFCHR)
    elif kind == "device":
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 5))  # endless zeros, were it read
    elif kind == "sparse":
        path.touch()
        os.truncate(path, 1 << 40)


def _hard(root: Path, path: Path, rest: str) -> None:
    target = root.joinpath(*[part for part in rest.split("/") if part not in ("", ".", "..")])
    if target.parent.resolve() == target.parent:
        os.link(target, path, follow_symlinks=False)
