"""What bubblewrap is told: the command line before it, and the argument list that it reads from a descriptor."""

from __future__ import annotations

import os
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from sandbox.files import WORKSPACE
from sandbox.types import Limits

INNER_ID = 1000
ACCOUNTS = {
    "passwd": f"agent:x:{INNER_ID}:{INNER_ID}:agent:{WORKSPACE}:/bin/bash\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    "group": f"agent:x:{INNER_ID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}
_ENVIRONMENT = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": WORKSPACE,
    "USER": "agent",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "TERM": "dumb",
    "TMPDIR": "/tmp",
    "PYTHONHASHSEED": "0",
    "PYTHONDONTWRITEBYTECODE": "1",
}
MAX_WORDS = 8000
"""Of a command line; bubblewrap takes 9000, its own included."""
_MAX_VARIABLES = 2000
SHM_BYTES = 16 * 1024 * 1024

# Joins the groups, offers itself first to the out-of-memory killer, and becomes what follows.
_JOIN = (
    '{ echo 1000 >/proc/self/oom_score_adj; } 2>/dev/null; n=$1; shift; while [ "$n" -gt 0 ]; do '
    'echo 0 >"$1" || exit 125; shift; n=$((n-1)); done; exec "$@"'
)


@dataclass(frozen=True, slots=True)
class Tools:
    """Programs of the host, by absolute path: nothing is looked up through the sandbox or the harness's PATH."""

    sh: str
    setpriv: str
    prlimit: str


def host_command(
    tools: Tools,
    limits: Limits,
    *,
    uid: int | None,
    cgroup_files: Sequence[str],
    address_space: bool,
    processes: int | None,
) -> list[str]:
    """The command line up to and without bubblewrap: join the groups, drop the identity, set the limits.

    Args:
        tools: Programs to use.
        limits: What to set.
        uid: Host user and group to become; None keeps this process's.
        cgroup_files: `cgroup.procs` files to write.
        address_space: Bound each process's address space, for want of a memory group.
        processes: RLIMIT_NPROC; None leaves it.
    """
    command = [tools.sh, "-c", _JOIN, "sh", str(len(cgroup_files)), *cgroup_files]
    command += [tools.setpriv, "--no-new-privs"]
    if uid is not None:
        command += ["--reuid", str(uid), "--regid", str(uid), "--clear-groups"]
    wanted = {"core": 0, "fsize": limits.file_bytes, "nofile": limits.open_files}
    if address_space:
        wanted["as"] = limits.memory_bytes
    if processes is not None:
        wanted["nproc"] = processes
    command.append(tools.prlimit)
    for name, value in wanted.items():
        hard = resource.getrlimit(getattr(resource, f"RLIMIT_{name.upper()}"))[1]
        # Raising a hard limit needs a privilege; where the harness has a lower one, that stays.
        command.append(f"--{name}={value if hard == resource.RLIM_INFINITY else min(value, hard)}")
    return command


def environment(added: Mapping[str, str]) -> dict[str, str]:
    """The standard environment and what is added to it.

    Raises:
        ValueError: a name or value cannot stand in an environment.
    """
    if len(added) > _MAX_VARIABLES:
        raise ValueError(f"{len(added)} environment variables are more than {_MAX_VARIABLES}; use a file")
    for name, value in added.items():
        if not name or "=" in name or "\0" in name + value or not encodable(name + value):
            raise ValueError(
                f"environment variable {name!r} has an empty name, contains '=' or a NUL byte, or is not UTF-8"
            )
    return {**_ENVIRONMENT, **added}


def arguments(
    *,
    etc: str,
    limits: Limits,
    workspace: Sequence[str],
    cwd: str,
    env: Mapping[str, str],
    status_fd: int,
    set_up_fd: int,
    seccomp_fd: int,
) -> bytes:
    """The argument list, NUL-separated.

    Args:
        etc: Host folder shown as `/etc`.
        limits: Sizes.
        workspace: Arguments that mount the workspace.
        cwd: Folder relative to the workspace.
        env: Added to the standard environment.
        status_fd: Where bubblewrap reports.
        set_up_fd: What bubblewrap closes when the program starts.
        seccomp_fd: Where it reads the filter; -1 for none.

    Raises:
        ValueError: a name or value cannot stand in an environment.
    """
    words = ["--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    words += ["--unshare-cgroup", "--disable-userns", "--die-with-parent", "--new-session"]
    words += ["--uid", str(INNER_ID), "--gid", str(INNER_ID), "--hostname", "sandbox", "--clearenv"]
    for name, value in environment(env).items():
        words += ["--setenv", name, value]
    words += root_arguments("", etc)
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(min(SHM_BYTES, limits.tmp_bytes))]
    words += ["--tmpfs", "/dev/shm", "--perms", "1777", "--size", str(limits.tmp_bytes), "--tmpfs", "/tmp"]
    words += [*workspace, "--chdir", f"{WORKSPACE}/{cwd}".rstrip("/"), "--cap-drop", "ALL"]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--json-status-fd", str(status_fd)]
    words += ["--info-fd", str(set_up_fd)]
    if seccomp_fd >= 0:
        words += ["--seccomp", str(seccomp_fd)]
    return b"".join(os.fsencode(word) + b"\0" for word in words)


def encodable(text: str) -> bool:
    """Whether the kernel can be given a text: lone surrogates, which JSON can carry, have no bytes."""
    try:
        os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return True


def root_arguments(root: str, etc: str) -> list[str]:
    """What shows `/usr`, `/etc`, and `/bin`, `/lib` and so on as the links or folders that they are, beneath `root`."""
    words = ["--ro-bind", "/usr", f"{root}/usr"]
    for name in ("bin", "sbin", "lib", "lib32", "lib64", "libx32"):
        path = Path("/", name)
        if path.is_symlink():
            words += ["--symlink", os.readlink(path), f"{root}{path}"]
        elif path.is_dir():
            words += ["--ro-bind", str(path), f"{root}{path}"]
    return [*words, "--ro-bind", etc, f"{root}/etc"]
