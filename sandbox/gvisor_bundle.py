"""What runsc is told: its flags, the OCI bundle made from a `SandboxSpec`, and the bubblewrap that it runs in."""

from __future__ import annotations

import errno
import json
from collections.abc import Mapping, Sequence
from typing import Any

from sandbox import docker_profile, launch
from sandbox.files import WORKSPACE
from sandbox.types import Limits

ROOT, BUNDLE, NOTICES = "/rootfs", "/bundle", "/run"
_STATE, _NOTICES = "/run", "/notices"
_STATE_BYTES = 16 << 20
_NAMESPACES = ("pid", "network", "ipc", "uts", "mount")
_CAPABILITIES = (
    *("SYS_ADMIN", "SYS_CHROOT", "SETUID", "SETGID", "SETFCAP", "SETPCAP"),
    *("CHOWN", "DAC_OVERRIDE", "DAC_READ_SEARCH", "FOWNER", "FSETID", "SYS_PTRACE"),
)
"""Of runsc in its user namespace of two unprivileged ids; it drops them once its kernel and file server are shut in."""
SPARED = frozenset({"chroot", "mount", "pivot_root", "ptrace", "umount2", "unshare"})
"""System calls of runsc itself that programs under bubblewrap are refused."""


def command(log_fd: int, *, open_fifos: bool) -> list[str]:
    """Runsc's command line; it writes to `log_fd` only when it fails."""
    flags = [
        f"--root={_STATE}",
        "--platform=ptrace",
        "--network=none",
        "--ignore-cgroups",
        "--rootless",
        "--oci-seccomp",
    ]
    flags += ["--file-access=exclusive", "--file-access-mounts=shared", f"--log-fd={log_fd}"]
    if open_fifos:
        flags.append("--host-fifo=open")
    return ["/runsc", *flags, "run", f"--bundle={BUNDLE}", "it"]


def config(words: Sequence[str], cwd: str, env: Mapping[str, str], limits: Limits, *, notices: bool) -> bytes:
    """The bundle's `config.json`: one program as user 1000 without capabilities over a read-only root.

    Raises:
        ValueError: a name or value cannot stand in an environment.
    """
    shared = str(min(launch.SHM_BYTES, limits.tmp_bytes))
    rlimits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": limits.file_bytes,
        "RLIMIT_NOFILE": limits.open_files,
        "RLIMIT_NPROC": limits.processes,
    }
    bundle = {
        "ociVersion": "1.0.2",
        "hostname": "sandbox",
        "root": {"path": ROOT, "readonly": True},
        "process": {
            "terminal": False,
            "user": {"uid": launch.INNER_ID, "gid": launch.INNER_ID, "umask": 0o022},
            "args": list(words),
            "env": [f"{name}={value}" for name, value in launch.environment(env).items()],
            "cwd": f"{WORKSPACE}/{cwd}".rstrip("/"),
            "capabilities": {},
            "noNewPrivileges": True,
            "rlimits": [{"type": name, "soft": value, "hard": value} for name, value in rlimits.items()],
        },
        "mounts": [
            {"destination": "/proc", "type": "proc", "source": "proc"},
            {"destination": "/dev", "type": "dev", "source": "dev"},
            _tmpfs("/dev/shm", shared),
            _tmpfs("/tmp", str(limits.tmp_bytes)),
            _bind(WORKSPACE, WORKSPACE),
            *([_bind(_NOTICES, NOTICES)] if notices else []),
        ],
        "linux": {"namespaces": [{"type": name} for name in _NAMESPACES], "seccomp": _filter()},
    }
    return json.dumps(bundle).encode()


def arguments(
    *,
    runsc: str,
    etc: str,
    workspace: Sequence[str],
    notices: str | None,
    namespace_fd: int,
    config_fd: int,
    status_fd: int,
    set_up_fd: int,
    seccomp_fd: int,
) -> bytes:
    """Bubblewrap's argument list, NUL-separated: runsc sees the root that it shows, and nothing else of the machine.

    Args:
        runsc: The binary on the host.
        etc: Host folder shown as `/etc`.
        workspace: Arguments that mount the workspace.
        notices: Host folder shown as `/run`, or None.
        namespace_fd: User namespace in which 0 is runsc's user and 1000 the programs'.
        config_fd: Where the bundle's `config.json` is read from.
        status_fd: Where bubblewrap reports.
        set_up_fd: What bubblewrap closes when runsc starts.
        seccomp_fd: Where it reads the filter.
    """
    words = ["--userns", str(namespace_fd), "--uid", "0", "--gid", "0"]
    words += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts", "--unshare-cgroup"]
    words += ["--die-with-parent", "--new-session", "--hostname", "sandbox", "--clearenv"]
    words += ["--setenv", "PATH", "/usr/bin:/bin", "--ro-bind", runsc, "/runsc"]
    words += [
        "--perms",
        "0755",
        "--dir",
        ROOT,
        *launch.root_arguments(ROOT, etc),
        "--dir",
        f"{ROOT}{WORKSPACE}",
    ]
    for name in ("proc", "dev", "tmp"):
        words += ["--dir", f"{ROOT}/{name}"]
    if notices is not None:
        words += ["--bind", notices, _NOTICES, "--dir", f"{ROOT}{NOTICES}"]
    words += ["--dir", "/tmp"]  # where the kernel makes its own, empty root
    words += ["--proc", "/proc", "--dev", "/dev", "--size", str(_STATE_BYTES), "--tmpfs", _STATE]
    words += ["--ro-bind-data", str(config_fd), f"{BUNDLE}/config.json", *workspace, "--cap-drop", "ALL"]
    for name in _CAPABILITIES:
        words += ["--cap-add", f"CAP_{name}"]
    words += ["--remount-ro", "/dev", "--remount-ro", "/", "--json-status-fd", str(status_fd)]
    words += ["--info-fd", str(set_up_fd), "--seccomp", str(seccomp_fd)]
    return b"".join(word.encode() + b"\0" for word in words)


def _filter() -> dict[str, Any]:
    """What gVisor's kernel refuses programs: as elsewhere, so that they reach less of it.

    It knows no answer but EPERM, so what is to look absent is left out: clone3, which it lacks, and families of
    sockets, of which it has no dangerous ones.
    """
    whole: dict[str, Any] = json.loads(docker_profile.profile())
    refused = [rule for rule in whole["syscalls"] if rule.pop("errnoRet") == errno.EPERM]
    return {**whole, "syscalls": refused}


def _bind(source: str, place: str) -> dict[str, Any]:
    return {"destination": place, "type": "bind", "source": source, "options": ["bind", "rw"]}


def _tmpfs(place: str, size: str) -> dict[str, Any]:
    options = ["rw", "nosuid", "nodev", "mode=1777", f"size={size}"]
    return {"destination": place, "type": "tmpfs", "source": "tmpfs", "options": options}
