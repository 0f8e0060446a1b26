"""What a program is allowed, measured from outside it: `posture()` against what must hold."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sandbox.conformance.report import Unenforceable
from sandbox.conformance.subject import LIMITS, Subject, demand, equal

_WRITABLE = frozenset({"/tmp", "/workspace", "/dev", "/dev/shm", "/dev/pts", "/dev/mqueue", "/proc", "/run"})
_DEVICES = frozenset(
    f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty", "console")
)


def _measured(subject: Subject, *names: str) -> list[Any]:
    """Values of `posture()` by name.

    Raises:
        Unenforceable: the backend cannot measure one.
    """
    with subject.box() as box:
        found = box.posture()
    for name in names:
        if found.get(name) is None:
            raise Unenforceable(f"this backend does not measure {name!r} from outside")
    return [found[name] for name in names]


def posture_capabilities(subject: Subject) -> None:
    """None, of any kind."""
    subject.needs("no_capabilities")
    names = [f"{kind}_capabilities" for kind in ("effective", "permitted", "bounding", "ambient")]
    equal(_measured(subject, *names), [0, 0, 0, 0], "effective, permitted, bounding, ambient")


def posture_no_new_privileges(subject: Subject) -> None:
    """Set-user-id programs gain nothing."""
    subject.needs("no_new_privileges")
    equal(_measured(subject, "no_new_privileges"), [True], "NoNewPrivs")


def posture_seccomp(subject: Subject) -> None:
    """A filter is loaded."""
    subject.needs("seccomp")
    equal(_measured(subject, "seccomp"), [2], "Seccomp")


def posture_namespaces(subject: Subject) -> None:
    """None of the harness's."""
    subject.needs("namespaces")
    (found,) = _measured(subject, "private_namespaces")
    shared = sorted(name for name in ("ipc", "mnt", "net", "pid", "uts") if not found.get(name))
    equal(shared, [], "namespaces shared with the harness")


def posture_user_namespace(subject: Subject) -> None:
    """Its own user and cgroup namespaces."""
    (found,) = _measured(subject, "private_namespaces")
    if not found.get("user"):
        raise Unenforceable("programs run in the harness's user namespace")
    equal(found.get("cgroup"), True, "a cgroup namespace of its own")


def posture_descriptors(subject: Subject) -> None:
    """Three, or fewer."""
    (found,) = _measured(subject, "descriptors")
    demand(set(found) <= {0, 1, 2}, f"descriptors {found}")


def posture_host_user(subject: Subject) -> None:
    """Not root and not the harness's own."""
    subject.needs("separate_uid")
    uid, gid, groups = _measured(subject, "uid", "gid", "groups")
    demand(uid not in (0, os.getuid()) and gid not in (0, os.getgid()), f"uid {uid}, gid {gid}")
    equal([group for group in groups if group != gid], [], "further groups")


def posture_separate_users(subject: Subject) -> None:
    """Two sandboxes differ in it; a fork has its parent's."""
    subject.needs("separate_uid")
    with subject.box() as box, subject.box() as other, box.fork() as child:
        uids = [place.posture().get("uid") for place in (box, other, child)]
    if None in uids:
        raise Unenforceable("this backend does not measure 'uid' from outside")
    if uids[0] == uids[1]:
        raise Unenforceable("all sandboxes share one host user")
    equal(uids[2], uids[0], "uid of a fork")


def posture_cgroup(subject: Subject) -> None:
    """A group of its own for what is bounded in total."""
    subject.needs("memory_total", "processes", "namespaces")
    (found,) = _measured(subject, "cgroups")
    own = set(Path("/proc/self/cgroup").read_text().splitlines()) if subject.shares_host else set()
    demand(bool(set(found) - own), f"its groups are the harness's: {found}")


def posture_limits(subject: Subject) -> None:
    """Core dumps, descriptors, file size; the address space where memory has no total."""
    (found,) = _measured(subject, "limits")
    equal(found["Max core file size"], "0", "core dumps")
    equal(found["Max open files"], str(LIMITS.open_files), "open files")
    equal(found["Max file size"], str(LIMITS.file_bytes), "file size")
    if "memory_total" not in subject.report.enforced:
        equal(found["Max address space"], str(LIMITS.memory_bytes), "address space")


def posture_writable_mounts(subject: Subject) -> None:
    """The workspace, `/tmp`, shared memory and devices that hold nothing."""
    subject.needs("read_only_root")
    (found,) = _measured(subject, "writable_mounts")
    equal(sorted(set(found) - _WRITABLE - _DEVICES), [], "further writable mounts")
    demand("/workspace" in found, "the workspace is not among them")


def posture_first_victim_of_memory_shortage(subject: Subject) -> None:
    """The kernel takes a sandbox before the harness."""
    equal(_measured(subject, "oom_score_adj"), [1000], "oom_score_adj")


def posture_leaves_nothing(subject: Subject) -> None:
    """No descriptor in the harness, no program in the sandbox."""
    with subject.box() as box:
        box.posture()
        before = len(os.listdir("/proc/self/fd"))
        box.posture()
        equal(len(os.listdir("/proc/self/fd")), before, "descriptors of the harness")
