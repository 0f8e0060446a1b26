"""The targets: each takes any bytes as what a sandbox sent, and fails where they get further than they may."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

from sandbox import SandboxPathError, files
from sandbox.archives import unpack
from sandbox.docker_frames import Frames
from sandbox.flatten import flatten
from sandbox.network import proxy
from sandbox.network.policy import Policy, Refused
from sandbox.process import Pipes, Process, parse_status
from sandbox.remote import wire
from sandbox.shell import parse_notice
from tests.sandbox.fuzz import places

TOKEN = "0123456789abcdef" * 2
CORPUS = Path(__file__).parent.parent / "corpus"
SLOW_S = 5.0
MAX_BYTES, MAX_FILES = 1 << 16, 50
HEADS = [kind for kind in vars(wire).values() if isinstance(kind, type) and issubclass(kind, wire.Head)]


def _pieces(data: bytes) -> list[bytes]:
    """The first byte says how long the pieces are in which the rest arrives."""
    size = 1 + data[0] if data else 1
    return [data[at : at + size] for at in range(1, len(data), size)]


def status(data: bytes) -> None:
    """Bubblewrap's reports."""
    for line in data.split(b"\n"):
        found = parse_status(line)
        assert found.exit_code is None or 0 <= found.exit_code <= 255
        assert found.child_pid is None or 0 < found.child_pid <= 1 << 22


@cache
def _running() -> subprocess.Popen[bytes]:
    made = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    atexit.register(made.communicate)
    return made


def launch(data: bytes) -> None:
    """The same through its pipe, in pieces."""
    ours, theirs = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    process = Process(_running(), Pipes(None, None, ours, ours, ours))
    try:
        for piece in _pieces(data)[:2000]:
            os.write(theirs, piece)
            process.take_status()
        os.close(theirs)
        process.take_status()
        assert process.status_closed
        assert process.init_pid is None, "a process that bubblewrap did not make"
    finally:
        os.close(process.exited)
        os.close(ours)


def notice(data: bytes) -> None:
    """The end of a shell's command, in pieces."""
    noticed = bytearray()
    expected = re.compile(rb"(?:\A|\n)" + TOKEN.encode() + rb" ([0-9]{1,3})\n")
    for piece in _pieces(data)[:500]:
        noticed += piece
        found = expected.search(noticed)
        assert parse_notice(noticed, TOKEN) == (None if found is None else int(found[1]))


def frames(data: bytes) -> None:
    """Docker's streams: the same in whatever pieces they come, and all of it."""
    whole, rest = {1: b"", 2: b""}, data[1:]
    while len(rest) > 8:
        kind, size = 2 if rest[0] == 2 else 1, int.from_bytes(rest[4:8], "big")
        whole[kind] += rest[8 : 8 + size]
        rest = rest[8 + size :]
    reader, found = Frames(), {1: b"", 2: b""}
    for piece in _pieces(data):
        for kind, part in reader.take(piece):
            found[2 if kind == 2 else 1] += part
    assert found == whole


def result(data: bytes) -> None:
    """A server's word on what a program did."""
    with contextlib.suppress(wire.Malformed):
        found = wire.result_of(data, 0.0)
        assert wire.result_of(b"".join(wire.result_frame(found, found.usage.queue_s)), 0.0) == found
        found.stdout.text.encode()


def heads(data: bytes) -> None:
    """Any frame between client and server."""
    for kind in HEADS:
        with contextlib.suppress(wire.Malformed):
            head, parts = wire.decode(kind, data)
            again = b"".join(wire.encode(kind, head.model_dump(exclude={"parts"}), parts))
            assert wire.decode(kind, again) == (head, parts)


class _Folder:
    """What `unpack` needs of a sandbox: a folder that is written to as a workspace is."""

    def __init__(self, root: int) -> None:
        self._roots = [root]

    def write(self, path: str, data: bytes) -> None:
        files.write(self._roots, path, data, None)


def tar(data: bytes) -> None:
    """An archive on its way into a workspace."""
    with places.place() as (base, roots):
        with contextlib.suppress(SandboxPathError):
            box: object = _Folder(roots[0])
            unpack(box, data, max_bytes=MAX_BYTES, max_files=MAX_FILES)  # type: ignore[arg-type]
        total = count = 0
        for path in (base / "0").rglob("*"):
            found = path.lstat()
            assert stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)
            assert stat.S_IMODE(found.st_mode) in (0o644, 0o755)
            if stat.S_ISREG(found.st_mode):
                total, count = total + found.st_size, count + 1
        assert total <= MAX_BYTES
        assert count <= MAX_FILES


def tree(data: bytes) -> None:
    """A workspace full of whatever: lines `KIND NAME [REST]`, `layer`, `read PATH` and `write PATH [DATA]`."""
    lines = [line.split(" ", 2) for line in os.fsdecode(data[:4000]).split("\n")][:60]
    layers = 1 + min(3, sum(line == ["layer"] for line in lines))
    with places.place(layers + 1) as (base, roots):
        number, asked = 0, []
        for kind, name, rest in ([*line, "", ""][:3] for line in lines):
            number = min(number + (kind == "layer"), layers - 1)
            asked.append(name)
            if kind == "write":
                with contextlib.suppress(SandboxPathError):
                    files.write(roots[:layers], name, os.fsencode(rest), None)
                    assert places.read(roots[:layers], name) == os.fsencode(rest)[:1000] or len(rest) > 1000
            elif kind != "read":
                with contextlib.suppress(OSError, ValueError, RuntimeError):  # loops of links
                    places.make(base / str(number), kind, name, rest)
        before = [places.read(roots[:layers], name) for name in asked]
        flatten(roots[:layers], roots[layers], None)
        assert [places.read(roots[layers:], name) for name in asked] == before


_POLICY = Policy.parse(("example.org:443", "*.example.net:8443"))


def connect(data: bytes) -> None:
    """A program's request to the proxy."""
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        with contextlib.suppress(BlockingIOError):
            theirs.send(data)
        theirs.shutdown(socket.SHUT_WR)
        with contextlib.suppress(Refused):
            host, port = proxy._asked(ours)
            assert host
            assert 0 < port < 65536
            _POLICY.check(host, port)
            assert host.lower().rstrip(".").endswith(("example.org", ".example.net"))


TARGETS: Mapping[str, Callable[[bytes], None]] = {
    one.__name__: one for one in (status, launch, notice, frames, result, heads, tar, tree, connect)
}


def attempt(name: str, data: bytes) -> None:
    """Run a target once; too slow is a failure too."""
    began = time.monotonic()
    TARGETS[name](data)
    took_s = time.monotonic() - began
    assert took_s < SLOW_S, f"{took_s:.1f} s for {len(data)} bytes"


def kept(name: str) -> list[Path]:
    """The inputs in the corpus of a target."""
    return sorted(path for path in (CORPUS / name).iterdir() if path.is_file())


if __name__ == "__main__":
    for path in map(Path, sys.argv[2:]):
        attempt(sys.argv[1], path.read_bytes())
