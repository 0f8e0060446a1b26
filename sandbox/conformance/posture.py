"""What the kernel says about a program, looked at from outside the sandbox."""

from __future__ import annotations

import os

from sandbox.conformance.subject import SMALL, Subject, equal, true

_WRITABLE = {
    "/proc", "/tmp", "/workspace", "/dev", "/dev/shm", "/dev/pts", "/dev/null", "/dev/zero", "/dev/full", "/dev/random",
    "/dev/urandom", "/dev/tty", "/dev/console", "/dev/mqueue", "/run",
}  # fmt: skip


def posture_capabilities(subject: Subject) -> None:
    """None, of any kind."""
    with subject.box() as box:
        seen = box.posture()
        for kind in ("effective", "permitted", "bounding", "ambient"):
            equal(seen[f"{kind}_capabilities"], 0, f"{kind} capabilities")


def posture_no_new_privileges(subject: Subject) -> None:
    """Set, so that no setuid program gives any."""
    with subject.box() as box:
        equal(box.posture()["no_new_privileges"], True, "NoNewPrivs")


def posture_seccomp(subject: Subject) -> None:
    """A filter is loaded."""
    subject.needs("seccomp")
    with subject.box() as box:
        equal(box.posture()["seccomp"], 2, "Seccomp")


def posture_namespaces(subject: Subject) -> None:
    """Its own of every kind that the backend promises."""
    with subject.box() as box:
        private = box.posture()["private_namespaces"]
        shared = sorted(name for name, own in private.items() if not own)
        allowed = [] if "user_namespace" not in subject.report.missing else ["user"]
        true(shared in ([], allowed), f"namespaces shared with the host: {shared}")


def posture_descriptors(subject: Subject) -> None:
    """Three."""
    with subject.box() as box:
        equal(list(box.posture()["descriptors"]), [0, 1, 2], "descriptors")


def posture_host_user(subject: Subject) -> None:
    """Another than the harness's, and not root."""
    subject.needs("separate_uid")
    with subject.box() as box:
        seen = box.posture()
        true(
            seen["uid"] not in (0, os.getuid()) and seen["gid"] not in (0, os.getgid()), f"uid {seen['uid']}"
        )
        equal(list(seen["groups"]), [], "supplementary groups")


def posture_groups(subject: Subject) -> None:
    """A control group of its own."""
    subject.needs("memory_total", "processes")
    with subject.box() as box, subject.box() as other:
        mine, theirs = box.posture()["cgroups"], other.posture()["cgroups"]
        true(mine != theirs, f"two sandboxes must have two groups, but both have {mine}")


def posture_limits(subject: Subject) -> None:
    """No core files, and the descriptors and file sizes of the spec."""
    with subject.box() as box:
        limits = box.posture()["limits"]
        equal(limits["Max core file size"], "0", "core files")
        equal(limits["Max open files"], str(SMALL.open_files), "open files")
        equal(limits["Max file size"], str(SMALL.file_bytes), "file size")


def posture_out_of_memory_first(subject: Subject) -> None:
    """The kernel kills programs of sandboxes before the harness."""
    with subject.box() as box:
        equal(box.posture()["oom_score_adj"], 1000, "oom_score_adj")


def posture_writable_mounts(subject: Subject) -> None:
    """Only what is meant to be written."""
    with subject.box() as box:
        extra = set(box.posture()["writable_mounts"]) - _WRITABLE
        true(not extra, f"these mounts must not be writable: {sorted(extra)}")


CASES = (
    posture_capabilities,
    posture_no_new_privileges,
    posture_seccomp,
    posture_namespaces,
    posture_descriptors,
    posture_host_user,
    posture_groups,
    posture_limits,
    posture_out_of_memory_first,
    posture_writable_mounts,
)
