"""Large layers: an ext4 in a file without a name, which the kernel frees with its mount, however the harness ends."""

from __future__ import annotations

import os
import subprocess

_FOLDER = "/var/tmp"
"""On disk: `/tmp` may be a tmpfs, and is one of our own in the launcher's mount namespace."""
_OVERHEAD_BYTES = 16 << 20
_INODE_BYTES = 256
_ENVIRONMENT = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C"}


def mount(path: str, size_bytes: int, inodes: int) -> bool:
    """Mount a new file system of about `size_bytes` at `path`; call it in the launcher's thread.

    The file is sparse: what is not written takes no disk. Returns whether it worked; it needs loop devices and
    e2fsprogs, and without them a tmpfs serves.
    """
    try:
        fd = os.open(_FOLDER, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    except OSError:  # a file system without unnamed files
        return False
    try:
        os.ftruncate(fd, size_bytes + inodes * _INODE_BYTES + _OVERHEAD_BYTES)
        file = f"/proc/self/fd/{fd}"
        options = "nodev,nosuid,noatime,loop"
        return all(
            _run(command, fd)
            for command in (
                ["mkfs.ext4", "-q", "-F", "-m", "0", "-b", "4096", "-N", str(inodes), *_FEATURES, file],
                ["mount", "-t", "ext4", "-o", options, file, path],
            )
        )
    finally:
        os.close(fd)


_FEATURES = ["-O", "^has_journal", "-E", "lazy_itable_init=1,nodiscard,root_owner=0:0"]
"""No journal: nobody reads the files after a crash."""


def _run(command: list[str], fd: int) -> bool:
    try:
        done = subprocess.run(
            command,
            env=_ENVIRONMENT,
            pass_fds=[fd],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
        )
    except FileNotFoundError:
        return False
    return done.returncode == 0
