"""The floors of benchmarks/sandbox.py: a bare bubblewrap, and round trips through pipes to a bash on the host."""

from __future__ import annotations

import atexit
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from sandbox import Limits, launch, machine, seccomp

Job = Callable[[int], object]
_BASH = ("/bin/bash", "--norc", "--noprofile")


def bare_bwrap() -> Job:
    """A launch with the flags of the backend and nothing around it: no groups, layers, pipes or deadlines."""
    bwrap, tools = machine.find_bwrap(), machine._tools()
    limits, ids = Limits(), machine.machine().uids
    uid = ids.claim() if ids else None
    filtered = seccomp.program() if seccomp.supported() else None
    before = launch.host_command(tools, limits, uid=uid, cgroup_files=(), address_space=False, processes=None)
    if not _reachable(bwrap):
        bwrap = _copy(bwrap)

    def go(_: int) -> None:
        with contextlib.ExitStack() as stack:
            null, other = (os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC) for _ in range(2))
            for fd in (null, other):
                stack.callback(os.close, fd)
            filter_fd = _memory_file(stack, filtered) if filtered is not None else -1
            words = launch.arguments(
                etc="/etc/alternatives",
                limits=limits,
                workspace=["--tmpfs", "/workspace"],
                cwd="",
                env={},
                status_fd=null,
                set_up_fd=other,
                seccomp_fd=filter_fd,
            )
            listed = _memory_file(stack, words)
            done = subprocess.run(
                [*before, str(bwrap), "--args", str(listed), "--", "/bin/true"],
                pass_fds=[fd for fd in (null, other, filter_fd, listed) if fd >= 0],
                capture_output=True,
                check=False,
            )
            assert done.returncode == 0, done.stderr

    return go


def _reachable(bwrap: Path) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in bwrap.parents)


def _copy(bwrap: Path) -> Path:
    """Where every user can run it: the harness does the same in its own folder."""
    folder = tempfile.mkdtemp(prefix="bare-bwrap-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    for name, data in machine.program_files(bwrap).items():
        path = Path(folder, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        path.chmod(0o755)
    for place in (Path(folder), *(p for p in Path(folder).rglob("*") if p.is_dir())):
        place.chmod(0o755)
    return Path(folder, "b/p/bwrap")


def _memory_file(stack: contextlib.ExitStack, data: bytes) -> int:
    fd = os.memfd_create("bench")
    stack.callback(os.close, fd)
    os.write(fd, data)
    os.lseek(fd, 0, os.SEEK_SET)
    return fd


@contextlib.contextmanager
def bare_pipe(concurrent: int) -> Iterator[Job]:
    """A command to a bash on the host and a line back."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "bufsize": 0}
    shells = [subprocess.Popen([*_BASH, "-s"], **pipes) for _ in range(concurrent)]

    def go(number: int) -> None:
        shells[number].stdin.write(b"echo done\n")
        assert shells[number].stdout.readline() == b"done\n"

    try:
        yield go
    finally:
        for shell in shells:
            shell.communicate()


@contextlib.contextmanager
def safe_pipe(concurrent: int) -> Iterator[Job]:
    """The same with all that a shell must give back; output is whole once the exit code has come."""
    shells, codes = [], []
    for _ in range(concurrent):
        ours, theirs = os.pipe2(os.O_CLOEXEC)
        start = f"exec {' '.join(_BASH)} -s 3>&{theirs} {theirs}>&-"
        pipe = subprocess.PIPE
        shells.append(
            subprocess.Popen(
                [*_BASH, "-c", start], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0, pass_fds=[theirs]
            )
        )
        os.close(theirs)
        codes.append(ours)
        for stream in (shells[-1].stdout, shells[-1].stderr):
            os.set_blocking(stream.fileno(), False)

    def go(number: int) -> None:
        shell = shells[number]
        shell.stdin.write(b"echo done </dev/null 3>&-\necho $?>&3\n")
        assert os.read(codes[number], 64) == b"0\n"
        assert (shell.stdout.read(65536), shell.stderr.read(65536)) == (b"done\n", None)

    try:
        yield go
    finally:
        for shell, code in zip(shells, codes, strict=True):
            shell.communicate()
            os.close(code)
