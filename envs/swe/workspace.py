"""Reading an agent's repository from outside: a trusted program lists it, the host reads and compares.

No process of the agent is alive then, the listing interpreter and its library are read-only, it reads no start-up
file (`-I -S`), and each file is read by the host with no link followed. Nothing of git is asked: an agent's hooks and
aliases have no say, and new files are part of the patch.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping

from envs.swe import patch as patches
from envs.swe.kit import PYTHON
from envs.swe.patch import Patch
from envs.swe.repository import HOME, REPO
from sandbox.base import Sandbox
from sandbox.errors import SandboxLost, SandboxPathError

MAX_LISTED = 4000
"""Files of a repository."""

_LIST = r"""
import hashlib, json, os, stat, sys
root, most, found = sys.argv[1], int(sys.argv[2]), []
skipped = {".git", "__pycache__", ".pytest_cache", ".hypothesis"}
def walk(folder, prefix, depth):
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda e: e.name):
            status = entry.stat(follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if entry.name not in skipped and depth < 40:
                    walk(entry.path, prefix + entry.name + "/", depth + 1)
            elif stat.S_ISREG(status.st_mode) and not entry.name.endswith(".pyc"):
                if len(found) >= most:
                    sys.exit(3)
                with open(entry.path, "rb") as file:
                    digest = hashlib.file_digest(file, "sha256") if hasattr(hashlib, "file_digest") else (
                        hashlib.sha256(file.read()))
                found.append([prefix + entry.name, digest.hexdigest()])
if stat.S_ISDIR(os.lstat(root).st_mode):
    walk(root, "", 0)
print(json.dumps(found))
"""


class PatchError(Exception):
    """The agent left a repository from which no patch can be taken: its own doing, never a fault."""


def take_patch(box: Sandbox, original: Mapping[str, bytes], trusted: Iterable[str]) -> Patch:
    """What differs from the original in the agent's sandbox.

    Raises:
        PatchError: too many or too large files, or ones that cannot be read.
        SandboxLost: the sandbox itself is gone.
    """
    listed = _listing(box)
    changes: dict[str, bytes | None] = {path: None for path in original if path not in listed}
    size = 0
    for path, digest in listed.items():
        before = original.get(path)
        if before is not None and hashlib.sha256(before).hexdigest() == digest:
            continue
        if patches.is_protected(path, trusted):
            changes[path] = b""
            continue
        data = _read(box, path)
        size += len(data)
        changes[path] = data
        if len(changes) > patches.MAX_FILES or size > patches.MAX_BYTES:
            raise PatchError(
                f"a patch has at most {patches.MAX_FILES} files and {patches.MAX_BYTES} bytes; this one has more"
            )
    return patches.split(changes, trusted)


def _listing(box: Sandbox) -> dict[str, str]:
    done = box.exec([PYTHON, "-I", "-S", "-B", "-c", _LIST, HOME, str(MAX_LISTED)])
    if done.reason == "sandbox_lost":
        raise SandboxLost("the agent's sandbox was lost while its repository was listed")
    if not done.ok or done.stdout.truncated_bytes:
        raise PatchError(f"the repository cannot be listed (at most {MAX_LISTED} files that can be read)")
    rows = json.loads(done.stdout.head + done.stdout.tail)
    return {path: digest for path, digest in rows if _is_plain(path)}


def _is_plain(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return path.isprintable()


def _read(box: Sandbox, path: str) -> bytes:
    try:
        return box.read(f"{REPO}/{path}", max_bytes=patches.MAX_BYTES)
    except SandboxPathError as error:
        raise PatchError(f"a changed file cannot be read: {error}") from error
